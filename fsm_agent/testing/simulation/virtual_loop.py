"""An asyncio event loop with a virtual clock and a drawn order.

**The clock.** `loop.time()` starts at 0 and stands still while anything can run. When nothing can, it jumps to the next
timer: ten minutes of backoff take no time. Only the loop's clock is virtual: code that is to be simulated takes its
time from the loop (or from a clock handed in), not from `time.monotonic()`.

**The order.** In one iteration the loop runs the callbacks that were ready when it began, as asyncio does; those that
they make ready run in the next one. Within an iteration the order is drawn (`Choices`), and is kept legal:

- plain callbacks (`call_soon`, done callbacks, readers, writers) keep their order among themselves, so that the
  callbacks of one future, or the three that open a transport, run as they were scheduled;
- a step of a task never runs before a plain callback that was scheduled ahead of it, so that whoever awaits a future
  sees what its earlier done callbacks did;
- steps of different tasks run in any order, and after any plain callback that was scheduled behind them: how long a
  task takes to get its turn is nobody's business;
- timers with the same deadline, sockets that became ready together, and executor jobs that finished together fire in
  any order; timers with different deadlines keep theirs.

Nothing is starved: what is ready now has run before anything that becomes ready in this iteration. Sets of tasks
iterate in an order that depends on the run alone (tasks are hashed by their number, not by their address), so that
asyncio's own `TaskGroup` and `wait` repeat themselves. A program that iterates sets of other objects has to see to
that itself.

**The outside world.** Executor jobs, sockets, child processes, signals and other threads are real, and so is the time
that they take. Before the clock jumps over somebody outside who may still speak, the loop listens for a short real time
(`Patience`). Such a run is repeatable as far as the outside world is.
"""

import asyncio
import concurrent.futures
import itertools
import math
import selectors
import socket
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

from fsm_agent.testing.simulation.choices import FIFO, Choices
from fsm_agent.testing.simulation.errors import Deadlock, Livelock, OutOfTime
from fsm_agent.testing.simulation.jobs import Jobs
from fsm_agent.testing.simulation.order import Order
from fsm_agent.testing.simulation.patience import Patience
from fsm_agent.testing.simulation.tasks import NumberedTask
from fsm_agent.testing.simulation.timers import Timers
from fsm_agent.testing.simulation.waiting import describe_handle, describe_tasks, natural

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_STEPS = 1_000_000
_TALLIED = 10_000  # the last steps before a livelock is declared, counted by callback
_LISTENING_SLICE = 0.05  # real seconds; after each the loop looks whether anybody outside is left
_ITERATIONS_BETWEEN_POLLS = 64  # of a loop that is busy and watches no socket: for signals
_WORKER = "simulated-job"
_TASKS = asyncio.Task, getattr(asyncio.tasks, "_PyTask", asyncio.Task)
_STEPS = frozenset({None, "task_wakeup", "__step", "__wakeup"})  # names of a task's callbacks, in C and in Python


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop that `simulate` runs on. `asyncio.Runner(loop_factory=VirtualLoop)` works too.

    `max_steps` bounds the callbacks that a run may execute (with the jumps of the clock), `max_time` its virtual
    seconds. Running it raises `Deadlock`, `Livelock` or `OutOfTime` where a real loop would hang.

    >>> with asyncio.Runner(loop_factory=VirtualLoop) as runner:
    ...     runner.run(asyncio.sleep(600, "ten minutes later"))
    'ten minutes later'
    """

    # The parts of asyncio's loop that this one builds on; unchanged from Python 3.4 to 3.14.
    _ready: deque[asyncio.Handle]
    _stopping: bool
    _selector: selectors.BaseSelector
    _default_executor: concurrent.futures.Executor | None
    _ssock: socket.socket
    _read_from_self: Callable[[], None]
    _write_to_self: Callable[[], None]
    _process_events: Callable[[list[tuple[selectors.SelectorKey, int]]], None]
    _check_closed: Callable[[], None]
    _check_default_executor: Callable[[], None]

    def __init__(
        self,
        choices: Choices = FIFO,
        *,
        max_steps: int = MAX_STEPS,
        max_time: float = math.inf,
        patience: Patience | None = None,
    ) -> None:
        super().__init__()
        self.steps = 0
        """Callbacks executed, and jumps of the clock, since the loop was made."""
        self._now = 0.0
        self._moved_at = 0  # the step at which the clock last moved
        self._resolution = time.get_clock_info("monotonic").resolution
        self._max_steps = max_steps
        self._max_time = max_time
        self._patience = patience or Patience()
        self.order = Order(choices)
        """What was drawn so far."""
        self.timers = Timers()
        """What was set by `call_later` and `call_at`."""
        self._task_numbers = itertools.count(1)
        self._tasks: weakref.WeakSet[NumberedTask[Any]] = weakref.WeakSet()
        self._injected: dict[int, list[Callable[[], object]]] = {}
        self._tally: Counter[str] = Counter()
        self._next_stop = self._following_stop()
        self._iterations = 0
        self._descriptors = self._selector.get_map()
        self._settling = False
        self._jobs = Jobs(self._write_to_self)
        self._own_threads = set(threading.enumerate())

    # Time ----------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See `asyncio.loop.call_at`; `when` is virtual."""
        self._check_closed()
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self.timers.add(timer)
        return timer

    def _timer_handle_cancelled(self, _: asyncio.TimerHandle) -> None:  # called by TimerHandle.cancel
        self.timers.note_cancelled()

    def _take_due_timers(self) -> None:
        limit = self._now + self._resolution
        heap = self.timers.heap
        if not heap or heap[0][0] > limit:  # as nearly always
            return
        while tied := self.timers.pop_due(limit):
            # A callback that looks at the clock and sets its timer again must find that its time has come.
            self._now = max(self._now, tied[0].when())
            self._ready.extend(self.order.shuffled(tied, describe_handle))

    # Tasks, jobs ---------------------------------------------------------------------------------------------------

    def create_task(self, coro: Any, **options: Any) -> Any:
        """See `asyncio.loop.create_task`."""
        if self.get_task_factory() is not None:
            return super().create_task(coro, **options)
        self._check_closed()
        number = next(self._task_numbers)
        if options.get("name") is None:
            options["name"] = f"Task-{number}"
        task = NumberedTask(coro, number=number, loop=self, **options)
        self._tasks.add(task)
        return task

    def run_in_executor(
        self, executor: concurrent.futures.Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        """See `asyncio.loop.run_in_executor`. The clock does not jump over a running job, but see `Patience.job`."""
        self._check_closed()
        if executor is None:
            self._check_default_executor()
            executor = self._default_executor
            if executor is None:
                executor = concurrent.futures.ThreadPoolExecutor(thread_name_prefix=_WORKER)
                self._default_executor = executor
        target: asyncio.Future[T] = self.create_future()
        self._jobs.submit(executor, target, func, *args)
        return target

    # One iteration -------------------------------------------------------------------------------------------------

    def _run_once(self) -> None:  # called by asyncio's run_forever, again and again
        if not self._ready:
            self._take_due_timers()
        if self._ready:
            self._iterations += 1
            seldom = not self._iterations % _ITERATIONS_BETWEEN_POLLS
            if seldom or len(self._descriptors) > 1:  # ours, and more
                self._glance_outside(deliver=seldom)
        else:
            self._idle()
        self._take_due_timers()
        if self.order.fifo:
            self._run_in_order()
        else:
            self._run_drawn()

    def _run_in_order(self) -> None:
        ready = self._ready
        for _ in range(len(ready)):
            if self.steps >= self._next_stop:
                self._halt(ready[0])
            handle = ready.popleft()
            if not handle.cancelled():
                self.steps += 1
                handle._run()  # noqa: SLF001

    def _run_drawn(self) -> None:
        ready = self._ready
        left = len(ready)
        window: list[asyncio.Handle] = []  # the steps of tasks ahead of the next plain callback, and then that callback
        fenced = False  # whether that callback is in
        try:
            while left or window:
                while left and not fenced:
                    left -= 1
                    window.append(ready.popleft())
                    fenced = not _is_task_step(window[-1])
                if self.steps >= self._next_stop:
                    self._halt(window[0])
                index = self.order.choose(window, describe_handle)
                fenced = fenced and index < len(window) - 1
                handle = window.pop(index)
                if not handle.cancelled():
                    self.steps += 1
                    handle._run()  # noqa: SLF001
        finally:
            ready.extendleft(reversed(window))

    def _idle(self) -> None:
        """Nothing is ready: listen to the outside world, else move the clock, else say that the run is dead."""
        if self._stopping:
            self._poll(0)
            return
        if self.steps >= self._next_stop:
            self._halt(None)
            if self._ready:
                return
        if self._listen():
            return
        if self._settling:
            self.stop()
            return
        deadline = self.timers.next_deadline()
        if deadline == math.inf:
            raise Deadlock(self._deadlock())
        if deadline > self._max_time:
            raise OutOfTime(
                f"The program had not ended after {self._now:g} of at most {self._max_time:g} virtual seconds "
                f"(its next timer is due at {deadline:g} s).\n{describe_tasks(self.unfinished_tasks())}"
            )
        self.steps += 1
        self._moved_at = self.steps
        self._now = max(self._now, deadline)

    # Injected calls, limits ----------------------------------------------------------------------------------------

    def call_before_step(self, step: int, callback: Callable[[], object]) -> None:
        """Runs `callback()` just before step number `step` (the first is 0), also if that step is a jump of the clock.

        Raises ValueError if that step has been made already.
        """
        if step < self.steps:
            raise ValueError(f"Step {step} is over (the loop has made {self.steps} steps): name a later one.")
        self._injected.setdefault(step, []).append(callback)
        self._next_stop = self._following_stop()

    def allow_steps(self, more: int) -> None:
        """Lets the loop make `more` steps from now on, at any virtual time, whatever it was limited to."""
        self._max_steps = self.steps + more
        self._max_time = math.inf
        self._next_stop = self._following_stop()

    def _following_stop(self) -> int:
        tally_from = max(self.steps + 1, self._max_steps - _TALLIED)
        return min(self._max_steps, tally_from, *self._injected)

    def _halt(self, upcoming: asyncio.Handle | None) -> None:
        """Called when `_next_stop` is reached: some call was injected here, or the limit of the steps is near."""
        for callback in self._injected.pop(self.steps, ()):
            asyncio.Handle(callback, (), self)._run()  # noqa: SLF001
        if self.steps >= self._max_steps:
            raise Livelock(self._livelock())
        if upcoming is not None and self.steps >= self._max_steps - _TALLIED:
            self._tally[describe_handle(upcoming)] += 1
        self._next_stop = self._following_stop()

    def _livelock(self) -> str:
        busiest = "\n".join(f"  - {count} x {label}" for label, count in self._tally.most_common(5))
        still = self.steps - self._moved_at
        clock = f"the clock stands at {self._now:g} s, and has not moved in the last {still} of them"
        tasks = describe_tasks(self.unfinished_tasks())
        return (
            f"The program was still going after {self.steps} steps; {clock}.\n"
            f"Busiest at the end:\n{busiest}\nUnfinished tasks:\n{tasks}"
        )

    def _deadlock(self) -> str:
        silent = f" (sockets, threads, executor jobs were silent for {self._patience.silence:g} real seconds)"
        return (
            f"Nothing can go on at {self._now:g} s: no callback is ready and no timer is set"
            f"{silent if self._outside() else ''}.\nUnfinished tasks:\n{describe_tasks(self.unfinished_tasks())}"
        )

    # The outside world ---------------------------------------------------------------------------------------------

    def watched(self) -> list[int]:
        """The file descriptors that the program watches."""
        own = self._ssock.fileno()
        return sorted(key.fd for key in self._selector.get_map().values() if key.fd != own)

    def unfinished_tasks(self) -> list["asyncio.Task[Any]"]:
        """The tasks of this loop that are not done, by name."""
        return sorted(
            (task for task in asyncio.all_tasks(self) if not task.done()), key=lambda task: natural(task.get_name())
        )

    def has_unseen_error(self) -> bool:
        """Whether a task failed and nobody has looked at its exception so far."""
        return any(task.done() and getattr(task, "_log_traceback", False) for task in self._tasks)

    def running_jobs(self) -> int:
        """Executor jobs that have not ended, whether somebody waits for them or nobody."""
        return self._jobs.running + self._jobs.abandoned

    def settle(self) -> None:
        """Runs what is ready, and what follows from it, until only the clock or somebody outside could go on."""
        self._settling = True
        try:
            self.run_forever()
        finally:
            self._settling = False

    def _outside(self) -> bool:
        return (
            len(self._selector.get_map()) > 1  # the loop's own waking pipe is one
            or self._jobs.running > 0
            or bool(getattr(self, "_signal_handlers", None))
            or self._foreign_thread()
        )

    def _foreign_thread(self) -> bool:
        if threading.active_count() == 1:
            return False
        return any(
            thread not in self._own_threads and not thread.name.startswith(_WORKER) for thread in threading.enumerate()
        )

    def _real_limit(self) -> float:
        if not self._outside():
            return 0.0
        if not self._settling and self.timers.next_deadline() == math.inf:
            return self._patience.silence
        return self._patience.job if self._jobs.running else self._patience.io

    def _listen(self) -> bool:
        """Waits for the outside world, in real time; says whether it made anything ready."""
        begun = finished_at = time.monotonic()
        while True:
            now = time.monotonic()
            left = begun + self._real_limit() - now
            if not self._jobs.finished:
                finished_at = now
            elif not self._jobs.running or now - finished_at >= self._patience.io:
                self._deliver()  # all have ended, or the others take their time
            else:
                left = finished_at + self._patience.io - now
            if self._ready:
                return True
            if left <= 0 and not self._jobs.finished:
                self._poll(0)
                return bool(self._ready)
            self._poll(min(max(left, 0.0), _LISTENING_SLICE))
            if self._ready:
                return True

    def _deliver(self) -> None:
        def choose(options: int) -> int:
            return self.order.choose(range(options), lambda index: f"finished executor job {index}")

        self._jobs.deliver(choose)
        while self._jobs.finished and self.order.choose(("later", "now"), lambda when: f"the next executor job {when}"):
            self._jobs.deliver(choose)

    def _glance_outside(self, *, deliver: bool) -> None:
        self._poll(0)
        if deliver and self._jobs.finished:
            self._deliver()

    def _poll(self, timeout: float) -> None:
        events = self._selector.select(timeout)
        own = self._ssock.fileno()
        heard = sorted((event for event in events if event[0].fd != own), key=lambda event: event[0].fd)
        if len(heard) < len(events):
            self._read_from_self()
        self._process_events(list(self.order.shuffled(heard, lambda event: f"socket {event[0].fd}")))


def _is_task_step(handle: asyncio.Handle) -> bool:
    callback = getattr(handle, "_callback", None)
    return isinstance(getattr(callback, "__self__", None), _TASKS) and getattr(callback, "__name__", None) in _STEPS
