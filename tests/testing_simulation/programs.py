"""Small asyncio programs whose result no legal order may change: (program, result, virtual seconds)."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator


async def a_lock_keeps_updates_whole():
    balance = 0
    lock = asyncio.Lock()

    async def deposit():
        nonlocal balance
        async with lock:
            before = balance
            await asyncio.sleep(0)
            balance = before + 1

    await asyncio.gather(*(deposit() for _ in range(5)))
    return balance


async def a_queue_keeps_its_order():
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
    taken = []

    async def produce():
        for number in range(6):
            await queue.put(number)

    async def consume():
        for _ in range(6):
            taken.append(await queue.get())
            queue.task_done()

    await asyncio.gather(produce(), consume())
    await queue.join()
    return taken


async def two_consumers_take_everything_once():
    queue: asyncio.Queue[int | None] = asyncio.Queue()
    taken: list[int] = []

    async def consume():
        while (number := await queue.get()) is not None:
            taken.append(number)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(consume())
        for number in range(6):
            await queue.put(number)
        for _ in range(2):
            await queue.put(None)
    return sorted(taken)


async def gather_keeps_the_order_of_its_arguments():
    return await asyncio.gather(asyncio.sleep(3, "c"), asyncio.sleep(1, "a"), asyncio.sleep(3, "b"))


async def a_timeout_fires_at_its_time():
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(5):
            await asyncio.sleep(60)
    except TimeoutError:
        return loop.time()


async def wait_for_returns_in_time_and_gives_up_in_time():
    first = await asyncio.wait_for(asyncio.sleep(1, "in time"), 2)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 3)
    return first


async def a_failing_child_cancels_its_siblings():
    cancelled = []

    async def sibling(number):
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    async def child():
        await asyncio.sleep(1)
        raise ValueError("child")

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(sibling(number))
            group.create_task(child())
    except ExceptionGroup as errors:
        return sorted(cancelled), len(errors.exceptions)


async def a_cancelled_task_cleans_up():
    steps = []

    async def work():
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            steps.append("cleaned up")

    task = asyncio.create_task(work())
    await asyncio.sleep(2)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return [*steps, task.cancelled()]


async def an_abandoned_generator_is_closed():
    closed = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield number
                await asyncio.sleep(0)
        finally:
            closed.append("closed")

    async for number in numbers():
        if number == 3:
            break
    await asyncio.sleep(1)
    return closed


async def a_semaphore_lets_two_in():
    inside = most = 0
    gate = asyncio.Semaphore(2)

    async def enter():
        nonlocal inside, most
        async with gate:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(1)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(6)))
    return most


async def a_condition_and_a_barrier_meet():
    condition = asyncio.Condition()
    barrier = asyncio.Barrier(3)
    order = []

    async def wait(number):
        await barrier.wait()
        async with condition:
            await condition.wait_for(lambda: "go" in order)
            order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(wait(number))
        await barrier.wait()
        async with condition:
            order.append("go")
            condition.notify_all()
    return order[0], sorted(order[1:])


async def done_callbacks_precede_whoever_awaits():
    # A documented guarantee of asyncio that libraries build on: callbacks of one future run in their order.
    seen: list[int] = []

    async def work():
        await asyncio.sleep(1)
        return "result"

    def see(number, _):
        seen.append(number)

    async def other():
        await asyncio.sleep(1)

    task = asyncio.create_task(work())
    for number in range(3):
        task.add_done_callback(functools.partial(see, number))
    others = [asyncio.create_task(other()) for _ in range(3)]
    await task
    so_far = list(seen)
    await asyncio.gather(*others)
    return so_far


async def plain_callbacks_keep_their_order():
    loop = asyncio.get_running_loop()
    seen: list[int] = []
    waiters = [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)]
    for number in range(5):
        loop.call_soon(seen.append, number)
    await asyncio.sleep(0)
    so_far = list(seen)
    await asyncio.gather(*waiters)
    return so_far


async def timers_fire_by_deadline():
    loop = asyncio.get_running_loop()
    seen: list[int] = []
    for delay in (3, 1, 2):
        loop.call_later(delay, seen.append, delay)
    loop.call_later(1.5, seen.append, 0).cancel()
    await asyncio.sleep(4)
    return seen


PROGRAMS = [
    (a_lock_keeps_updates_whole, 5, 0),
    (a_queue_keeps_its_order, [0, 1, 2, 3, 4, 5], 0),
    (two_consumers_take_everything_once, [0, 1, 2, 3, 4, 5], 0),
    (gather_keeps_the_order_of_its_arguments, ["c", "a", "b"], 3),
    (a_timeout_fires_at_its_time, 5, 5),
    (wait_for_returns_in_time_and_gives_up_in_time, "in time", 4),
    (a_failing_child_cancels_its_siblings, ([0, 1, 2, 3], 1), 1),
    (a_cancelled_task_cleans_up, ["cleaned up", True], 3),
    (an_abandoned_generator_is_closed, ["closed"], 1),
    (a_semaphore_lets_two_in, 2, 3),
    (a_condition_and_a_barrier_meet, ("go", [0, 1]), 0),
    (done_callbacks_precede_whoever_awaits, [0, 1, 2], 1),
    (plain_callbacks_keep_their_order, [0, 1, 2, 3, 4], 0),
    (timers_fire_by_deadline, [1, 2, 3], 4),
]
