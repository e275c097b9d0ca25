"""A Hypothesis state machine around an agent: the model, its tools' timing and the user do what is drawn.

    class TestMyAgent(AgentStateMachine):
        def agent(self):
            self.shop = FakeShop()
            return make_agent(self.shop)

        @invariant()
        def nothing_is_sold_twice(self):
            assert self.shop.sold <= self.shop.had

pytest collects such a class (the plugin that comes with `fsm_agent` sees to it). A failure is printed as the few steps
that bring it about, those of your own rules too: as a program that can be pasted, and as a file that can be replayed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fsm_agent.loop.agent import AgentMachine
from fsm_agent.loop.events import Event
from fsm_agent.testing.content import tool_use
from fsm_agent.testing.coverage import COVERAGE
from fsm_agent.testing.playing import MAX_STEPS, PlayedRun, Stage, aim_at_depth, calls_of
from fsm_agent.testing.scenario import Scenario, UserAct, program
from fsm_agent.testing.script import Item, Reply
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.simulation.run import expect_no_failure, expect_nothing_left, wind_up
from fsm_agent.testing.simulation.virtual_loop import VirtualLoop
from fsm_agent.testing.steps import (
    Steps,
    broken_off,
    check_invariants,
    load_steps,
    program_of,
    record_steps,
    save_steps,
    seeded,
    take_steps,
)
from fsm_agent.testing.strategies.answers import Inputs, answers, valid_calls
from fsm_agent.testing.strategies.behaviour import LATER
from fsm_agent.testing.strategies.printing import print_items_as_code
from fsm_agent.testing.written import UnwritableError

__all__ = ["AgentStateMachine", "invariant", "precondition", "rule"]

print_items_as_code()
SUMMARY = Reply("<summary>They talked.</summary>")
FAILURES = Path(".fsm_agent") / "failures"
"""Where scenarios of failures are written, below the working directory."""

STEPS = 15
"""Steps of an example, unless the profile of Hypothesis names another number: an agent's run seldom has more."""
_SAID = ("Done.", "I see.", "Let me look again.", "")


class _Shuffling:
    """An order of the event loop that can be changed while it runs; 0 is that of plain asyncio."""

    def __init__(self) -> None:
        self.order = 0
        self._asked = 0

    def begin(self) -> Callable[[int], int]:
        def choose(options: int) -> int:
            self._asked += 1
            # Hashes of tuples of integers are the same everywhere.
            return (hash((self.order, self._asked)) >> 16) % options if self.order else 0

        return choose


def _of_the_class(name: str) -> st.SearchStrategy[Any]:
    """A strategy that is made from the tools of the machine under test."""
    return st.runner().flatmap(lambda machine: getattr(machine, name))


class AgentStateMachine(RuleBasedStateMachine):
    """The base class of your property test. Override `agent`; add `@rule` and `@invariant` of your own.

    After each step the run either waits for the model (`waiting`) or is `over`. Then every invariant of the library has
    been checked, and `played` is the run. `calls`, `events` and `messages` are for your invariants.

    `inputs` are your own strategies for the inputs of tools, by name; without, they are made from the schemas.
    """

    prompt: ClassVar[str] = "Go."
    inputs: ClassVar[Inputs] = {}
    limits: ClassVar[Mapping[str, Any]] = {}
    """Limits that differ from the machine's: small ones reach what lies behind them."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        record_steps(cls)
        now = settings()
        own = now.stateful_step_count != settings.get_profile("default").stateful_step_count
        cls.TestCase.settings = settings(
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            stateful_step_count=now.stateful_step_count if own else STEPS,
            phases=[phase for phase in now.phases if phase is not Phase.explain],
        )

    def agent(self) -> AgentMachine:
        """Make the machine under test, afresh for each example, with fakes of whatever its tools touch."""
        raise NotImplementedError(f"Define {type(self).__name__}.agent(self): it returns the AgentMachine to test.")

    def __init__(self) -> None:
        super().__init__()
        self.recorded_steps = Steps()
        """What was done so far, by the rules of the library and by your own."""
        self.machine = self.agent()
        self.runs: list[PlayedRun] = []
        """The runs that are over, in order."""
        self._call, self._answers = _strategies(type(self), self.machine)
        self._shuffling = _Shuffling()
        self._loop = VirtualLoop(self._shuffling, max_steps=50 * MAX_STEPS)
        self._failures: list[dict[str, Any]] = []
        self._loop.set_exception_handler(lambda _, context: self._failures.append(context))
        self._summaries: list[Item] = []
        with broken_off(self.explain_failure):
            self._begin(self.prompt, ())

    # ---- what invariants look at

    @property
    def over(self) -> bool:
        """Whether the run has ended, and nothing is going on."""
        return self._over

    @property
    def waiting(self) -> bool:
        """Whether the run waits for the model's answer."""
        return not self._over

    @property
    def played(self) -> PlayedRun:
        """The last run that is over. Raises `IndexError` before the first is."""
        return self.runs[-1]

    @property
    def events(self) -> list[Event]:
        """The events of this run so far."""
        return self._stage.events

    @property
    def messages(self) -> list[JsonObject]:
        """The conversation: as the run left it, or, while the run waits, as the model was last sent it."""
        if self._over:
            return self.played.result.messages
        return list(json.loads(self._request.body)["messages"]) if self._request is not None else []

    @property
    def calls(self) -> list[tuple[str, JsonObject]]:
        """The tool calls of the conversation, in order: name and input."""
        return calls_of(self.messages)

    @property
    def scenario(self) -> Scenario:
        """What happened in this run so far, as a scenario that can be saved and played."""
        return Scenario(
            self._served,
            prompt=self._prompt,
            acts=self._acts,
            limits=self.limits,
            history=self._history,
            schedule=None if self.runs[1:] else self._loop.order.schedule,
        )

    # ---- what happens

    # Steps are kept small, and the simplest rule is the first by its name: so Hypothesis can leave steps out.

    @precondition(lambda self: self.waiting)
    @rule(call=_of_the_class("_call"))
    def model_calls(self, call: tuple[str, JsonObject]) -> None:
        """The model calls a tool, with an input that fits its schema."""
        self._answer(Reply(tool_use(*call)))

    @precondition(lambda self: self.waiting)
    @rule(first=_of_the_class("_call"), second=_of_the_class("_call"))
    def model_calls_both(self, first: tuple[str, JsonObject], second: tuple[str, JsonObject]) -> None:
        """The model calls two tools in one message."""
        self._answer(Reply(tool_use(*first), tool_use(*second)))

    @precondition(lambda self: self.waiting)
    @rule(call=_of_the_class("_call"))
    def model_calls_twice(self, call: tuple[str, JsonObject]) -> None:
        """The model makes the same call twice in one message: if the tool allows it, both run side by side."""
        self._answer(Reply(tool_use(*call), tool_use(*call)))

    @precondition(lambda self: self.waiting)
    @rule(text=st.sampled_from(_SAID))
    def model_says(self, text: str) -> None:
        """The model answers in words and ends its turn."""
        self._answer(Reply(text))

    @precondition(lambda self: self.waiting)
    @rule(answer=_of_the_class("_answers"))
    def model_responds(self, answer: Item) -> None:
        """The model, or the service before it, answers anything: wrong calls, cut streams, errors."""
        if answer.when is not None:
            self._summaries.append(answer)
            self._served.append(answer)
        else:
            self._answer(answer)

    @precondition(lambda self: self.waiting)
    @rule(
        do=st.sampled_from(("abort", "send", "close", "cancel")),
        steps=st.integers(0, 60),
        seconds=st.sampled_from((0.0, *LATER)),
    )
    def user_acts(self, do: Literal["abort", "send", "close", "cancel"], steps: int, seconds: float) -> None:
        """The user does something during the model's next answer, or what follows from it."""
        act = UserAct(do, self._stage.answered + 1, steps, seconds)
        self._acts.append(act)
        self._stage.add(act)

    @precondition(lambda self: self.waiting)
    @rule(seconds=st.sampled_from(LATER))
    def user_aborts(self, seconds: float) -> None:
        """The user aborts so long after the model's next answer begins: while a tool works, or a wait goes on."""
        self.user_acts("abort", 0, seconds)

    @precondition(lambda self: self.waiting)
    @rule(order=st.integers(1, 7))
    def shuffle(self, order: int) -> None:
        """What could run next runs in another order from now on."""
        self._shuffling.order = order

    @precondition(lambda self: self.over)
    @rule(prompt=st.sampled_from(("And now?", "Once more.")))
    def user_asks(self, prompt: str) -> None:
        """Another run on what the last one left."""
        self._begin(prompt, self.played.result.messages)

    # ---- driving the run

    def _begin(self, prompt: str, history: Iterable[Mapping[str, Any]]) -> None:
        self._prompt, self._history = prompt, tuple(history)
        self._served: list[Item] = []
        self._acts: list[UserAct] = []
        self._kind = "turn"
        self._request: Any = None
        self._over = False
        self._asked, self._go = asyncio.Event(), asyncio.Event()
        scenario = Scenario(prompt=prompt, history=self._history, limits=self.limits)
        self._stage = Stage(self.machine, scenario, script=self._next, cue=self._cue)
        self._on_loop(self._start())

    async def _start(self) -> None:
        self._stage.start()
        await self._until_asked()

    async def _cue(self, request: Any) -> None:
        """The run asks the model: wait for the rule that answers."""
        self._kind, self._request = str(getattr(request, "purpose", "turn")), request
        if self._kind == "turn":
            self._asked.set()
            await self._go.wait()
            self._go.clear()

    def _next(self, body: JsonObject) -> Item:
        del body
        if self._kind == "summary":
            return self._summaries.pop(0) if self._summaries else SUMMARY
        return self._served[-1]

    def _answer(self, item: Item) -> None:
        self._served.append(item)
        self._asked.clear()
        self._go.set()
        self._on_loop(self._until_asked())

    async def _until_asked(self) -> None:
        asked = asyncio.ensure_future(self._asked.wait())
        consumer = self._stage.consumer
        await asyncio.wait({asked, consumer}, return_when=asyncio.FIRST_COMPLETED)
        if not consumer.done():
            return
        asked.cancel()
        await asyncio.wait({asked})
        played = await self._stage.finish()
        self.runs.append(played)
        self._over = True
        COVERAGE.add(played.machine.definition, played.events)
        played.check()

    def _on_loop(self, work: Any) -> None:
        self._loop.run_until_complete(work)

    # ---- the end

    def check_invariants(self, *args: Any, **more: Any) -> None:
        """Hypothesis calls this after each step."""
        with broken_off(self.explain_failure):
            super().check_invariants(*args, **more)

    def teardown(self) -> None:
        """The model says that it is done until the run is over; then nothing may be left behind."""
        try:
            with broken_off(self.explain_failure):
                self._wind_down()
        finally:
            wind_up(self._loop)

    def _wind_down(self) -> None:
        for _ in range(20):
            if self._over:
                break
            self._answer(Reply("Done."))
        else:
            self._on_loop(self._abort())
        aim_at_depth(sum(len(run.result.trace) for run in self.runs), "rows that fired")
        expect_nothing_left(self._loop)
        expect_no_failure(self._failures)

    # ---- the same again

    @classmethod
    def replay(cls, steps: str | Path | Iterable[tuple[str, Mapping[str, Any]]]) -> Self:
        """Do the same again, without Hypothesis: the steps of a failure, as its note tells them or from its file.

        Each step is the name of a rule and its arguments. All invariants are checked, and it fails as it failed.
        Returns the machine after its teardown. Raises `ValueError` for a step that cannot be done where it stands.
        """
        told = load_steps(steps, cls) if isinstance(steps, str | Path) else list(steps)
        with seeded():
            machine = cls()
            machine.recorded_steps.replayed = True
            try:
                check_invariants(machine)
                for _ in take_steps(machine, told):
                    check_invariants(machine)
            finally:
                machine.teardown()
        return machine

    async def _abort(self) -> None:
        self._stage.do(UserAct("abort"))
        await self._until_asked()

    def explain_failure(self, error: BaseException) -> None:
        """Tell how the same can be had again, without Hypothesis. The library calls it."""
        if self.recorded_steps.replayed:
            return
        kind = type(self)
        path = FAILURES / f"{kind.__module__}.{kind.__qualname__}.json"
        taken = self.recorded_steps.taken
        try:
            save_steps(path, kind, taken)
            note = f"The same again:\n\n{program_of(kind, taken)}\n\nor: replay_scenario({str(path)!r})"
        except UnwritableError as why:
            self.scenario.save(path)
            name = f"{kind.__module__}:{kind.__qualname__}().agent"
            note = (
                f"What the model and the user did, without your own rules ({why}):\n\n"
                f"{program(self.scenario, name)}\n\n"
                f"or: replay_scenario({str(path)!r}, {name.rpartition(':')[2]})"
            )
        error.add_note(note)


def _strategies(
    kind: type[AgentStateMachine], machine: AgentMachine
) -> tuple[st.SearchStrategy[tuple[str, JsonObject]], st.SearchStrategy[Item]]:
    """A call, and any answer, for the tools of the machine: made once for each class."""
    if kind not in _MADE:
        calls = valid_calls(machine.toolbox, inputs=kind.inputs).map(lambda call: (call["name"], call["input"]))
        _MADE[kind] = calls, answers(machine.toolbox, inputs=kind.inputs)
    return _MADE[kind]


_MADE: dict[type[AgentStateMachine], tuple[Any, Any]] = {}
