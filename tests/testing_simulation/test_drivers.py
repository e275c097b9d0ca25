import asyncio
import contextlib

import pytest

from fsm_agent.testing.simulation import (
    EventFault,
    FaultKind,
    RandomChoices,
    abort_points,
    each_point,
    every_event,
)


class Transfer:
    """Moves 1 from one account to the other, and may be cancelled anywhere. The sum must stay."""

    def __init__(self):
        self.accounts = {"from": 1, "to": 0}
        self.task = None

    async def start(self):
        self.task = asyncio.create_task(self.move())
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        assert sum(self.accounts.values()) == 1, "money was lost"

    async def move(self):
        await asyncio.sleep(60)
        self.accounts["from"] -= 1
        self.accounts["to"] += 1

    def inject(self):
        if self.task is not None:
            self.task.cancel()


class CarelessTransfer(Transfer):
    async def move(self):
        await asyncio.sleep(60)
        self.accounts["from"] -= 1
        await asyncio.sleep(1)
        self.accounts["to"] += 1


def test_a_careful_program_survives_an_abort_at_every_point():
    report = abort_points(Transfer)
    assert report.ok, report
    assert report.points == tuple(range(1, len(report.points) + 1))
    assert str(report) == f"abort at every suspension point: {len(report.points)} points, 0 failed"


def test_an_abort_at_the_wrong_point_is_found():
    report = abort_points(CarelessTransfer)
    assert not report.ok
    failed = [failure.point for failure in report.failures]
    assert set(failed) < set(report.points)
    assert failed == list(range(failed[0], failed[-1] + 1))  # from the first half of the transfer to the second
    assert str(report.failures[0]).startswith(f"at {failed[0]}: AssertionError: money was lost")
    assert f"{len(failed)} failed" in str(report)


def test_a_program_is_aborted_in_its_sleep_not_after_it():
    times = []

    class Sleeper(Transfer):
        def inject(self):
            times.append(asyncio.get_running_loop().time())
            super().inject()

    abort_points(Sleeper)
    assert times[0] == 0
    assert 60 in times
    assert times == sorted(times)


def test_an_abort_that_leaves_something_behind_is_found():
    class Leaking(Transfer):
        async def move(self):
            self.helper = asyncio.create_task(asyncio.sleep(600), name="helper")
            await asyncio.sleep(1)
            self.helper.cancel()

    report = abort_points(Leaking)
    assert [type(failure.error).__name__ for failure in report.failures].count("LeftBehind") > 0
    assert "task 'helper'" in str(report)


def test_an_abort_that_hangs_is_found():
    class Hanging(Transfer):
        async def move(self):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                await asyncio.Event().wait()

    report = abort_points(Hanging)
    assert {type(failure.error).__name__ for failure in report.failures} == {"Deadlock"}


def test_an_error_in_the_injected_call_is_a_failure_of_its_point():
    class Broken(Transfer):
        def inject(self):
            raise LookupError("no such run")

    report = abort_points(Broken)
    assert len(report.failures) == len(report.points)
    assert "no such run" in str(report.failures[0])


def test_points_can_be_named_or_thinned_out():
    assert abort_points(Transfer, points=[2, 1]).points == (1, 2)
    assert len(abort_points(Transfer, at_most=3).points) == 3
    report = abort_points(Transfer, points=[1, 1_000])
    assert report.missed == (1_000,)
    assert str(report).endswith("1 points, 0 failed, 1 not reached")


def test_a_report_about_nothing_is_not_ok():
    assert not abort_points(Transfer, points=[]).ok


def test_every_order_has_its_own_points():
    for seed in range(10):
        assert abort_points(Transfer, choices=RandomChoices(seed)).ok
        assert not abort_points(CarelessTransfer, choices=RandomChoices(seed)).ok


def test_the_undisturbed_scenario_has_to_pass():
    class Wrong(Transfer):
        async def move(self):
            self.accounts["from"] = 5

    with pytest.raises(AssertionError, match="money was lost"):
        abort_points(Wrong)


async def read_stream(fault, patience):
    """A reader of a stream of four events that has to end on its own, whatever takes the place of one of them."""
    queue: asyncio.Queue[object] = asyncio.Queue()
    for event in range(4):
        if event == fault.event:
            if fault.kind is not FaultKind.SILENCE:
                queue.put_nowait(fault.kind)
            break
        queue.put_nowait(event)
    else:
        queue.put_nowait(FaultKind.EOF)
    read = []
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(patience):
                item = await queue.get()
            if isinstance(item, FaultKind):
                break
            read.append(item)
    assert read == list(range(fault.event))


def test_a_reader_with_a_limit_survives_every_fault_at_every_event():
    report = every_event(lambda fault: read_stream(fault, patience=60), events=4)
    assert report.ok, report
    assert len(report.points) == 4 * 4
    assert report.points[1] == EventFault(0, FaultKind.RESET)


def test_a_reader_without_a_limit_hangs_in_silence():
    report = every_event(lambda fault: read_stream(fault, patience=None), events=4)
    assert [failure.point for failure in report.failures] == [
        EventFault(event, FaultKind.SILENCE) for event in range(4)
    ]
    assert "at event 2 (silence): Deadlock: Nothing can go on at 0 s" in str(report)


def test_the_kinds_of_fault_can_be_chosen():
    report = every_event(lambda fault: read_stream(fault, patience=60), events=2, kinds=[FaultKind.EOF])
    assert report.points == (EventFault(0, FaultKind.EOF), EventFault(1, FaultKind.EOF))


def test_any_kind_of_point_can_be_driven():
    journal = b"one\ntwo\n"

    def reload_cut(length):
        lines = journal[:length].split(b"\n")
        assert all(line in {b"one", b"two"} for line in lines[:-1])
        return True

    report = each_point("cut at every byte", range(len(journal) + 1), reload_cut)
    assert report.ok, report
    assert len(report.points) == 9


def test_an_interrupt_is_not_collected():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        each_point("interrupted", [1], interrupted)
