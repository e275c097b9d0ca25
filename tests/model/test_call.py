"""One request, from sending to one outcome, whatever the stream does. Time is virtual."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import httpx2
import pytest

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import ResponseOutcome as R
from fsm_agent.model.call import ModelCall
from fsm_agent.model.faults import EOF, PROTOCOL, STALL
from fsm_agent.model.reply import ReplyAssembler
from fsm_agent.model.request import ModelRequest
from fsm_agent.testing.simulation import simulate
from tests.model.streams import (
    PING,
    REQUEST,
    STOPPED,
    Performed,
    Step,
    begin,
    call,
    delta,
    end,
    model,
    performed,
    start,
    stop,
    text,
    thinking,
    whole,
)

LIMITS = LoopLimits(stream_idle_timeout=60, stream_progress_timeout=300, abort_grace=1)


def run(*steps: Step, limits: LoopLimits = LIMITS) -> Performed:
    return simulate(lambda: performed(model(*steps), limits)).result


def seconds(*steps: Step) -> tuple[Performed, float]:
    done = simulate(lambda: performed(model(*steps), LIMITS))
    return done.result, done.elapsed


def wait(duration: float) -> Callable[[], Coroutine[Any, Any, None]]:
    return lambda: asyncio.sleep(duration)


async def forever() -> None:
    await asyncio.Event().wait()


# ---- whole replies


def test_a_whole_reply_is_one_outcome_and_its_events_are_told_in_order():
    events = whole(text("Hi."))
    done = run(*events)
    assert (done.outcome, done.events, done.made.failure) == (R.END_TURN, events, None)
    assert done.made.reply.text == "Hi."


def test_pings_are_not_told():
    events = whole(text("Hi."))
    assert run(PING, events[0], PING, *events[1:]).events == events


def test_a_call_is_told_when_its_block_is_complete_and_before_its_event():
    seen: list[Any] = []

    async def on_event(reply: ReplyAssembler, event: dict[str, Any]) -> None:
        seen.append(event["type"])

    async def program() -> R:
        events = whole(call('{"a": 1}'), reason="tool_use")
        made = ModelCall(model(*events), REQUEST, limits=LIMITS, on_event=on_event, on_block=seen.append)
        return await made.perform()

    assert simulate(program).result is R.TOOL_USE
    assert [one if isinstance(one, str) else one.input for one in seen][3:5] == [{"a": 1}, "content_block_stop"]


def test_a_call_is_not_told_for_an_input_that_is_still_streamed():
    assert run(start(), *call('{"a": 1}')[:-1]).calls == []


def test_the_consumer_sees_the_fresh_id_of_a_renamed_call():
    events = whole(call("{}", 0, call_id="a"), call("{}", 1, call_id="a"), reason="tool_use")
    done = run(*events)
    starts = [event["content_block"]["id"] for event in done.events if event["type"] == "content_block_start"]
    assert starts == [one.id for one in done.calls] == ["a", "a_2"]
    assert events[4]["content_block"]["id"] == "a"


def test_ids_of_the_conversation_are_not_used_again():
    done = simulate(lambda: performed(model(*whole(call("{}"), reason="tool_use")), known_ids=["t1"])).result
    assert done.calls[0].id == "t1_2"


def test_the_consumer_sees_no_lone_surrogate():
    done = run(*whole(text("x\ud83d"), thinking("\udc00", 1), text("y", 2)))
    repr(done.events).encode()
    assert done.made.reply.text == "x\ufffdy"


def test_what_follows_message_stop_is_not_read():
    done = run(*whole(text("one")), *whole(text("two")), forever)
    assert (done.outcome, done.made.reply.text) == (R.END_TURN, "one")


# ---- streams that end too early


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([], R.RETRYABLE),
        ([start()], R.RETRYABLE),
        ([start(), *text("Hel")[:2]], R.RETRYABLE),
        ([start(), *call('{"a')[:2]], R.RETRYABLE),
        ([start(), *call("{}")], R.RETRYABLE),
        ([start(), *text("Hi."), *call("{}", 1)], R.RETRYABLE),
        ([start(), *text("Hi.")], R.CUT),
        ([start(), *text("Hi."), *call('{"a', 1)[:2]], R.CUT),
    ],
)
def test_an_end_before_the_stop_reason_is_never_a_success(steps: list[Step], outcome: R):
    done = run(*steps)
    assert (done.outcome, done.kind) == (outcome, EOF)


@pytest.mark.parametrize(
    "after", [[], [httpx2.ReadError("reset")], [forever], [{"type": "error"}], ["junk"], [start()]]
)
def test_a_reply_that_has_told_its_stop_reason_is_whole_whatever_follows(after: list[Any]):
    done = run(start(), *text("Hi."), stop("end_turn"), *after)
    assert (done.outcome, done.made.failure) == (R.END_TURN, None)


def test_a_message_stop_without_a_stop_reason_is_no_end():
    assert run(start(), *text("Hi."), STOPPED).outcome is R.RETRYABLE


def test_the_usage_of_a_lost_reply_is_known():
    assert run(start(), *text("Hi.")).made.reply.usage.total == 11


# ---- streams that fail


@pytest.mark.parametrize("before", [[], [start()], [start(), *text("Hi.")], [start(), *call("{}")]])
def test_an_error_event_is_judged_by_its_type_wherever_it_stands(before: list[Step]):
    def event(kind: str) -> Step:
        return {"type": "error", "error": {"type": kind, "message": "x"}}

    assert run(*before, event("overloaded_error")).outcome is R.OVERLOADED
    assert run(*before, event("api_error")).outcome is R.RETRYABLE
    assert run(*before, event("invalid_request_error")).outcome is R.FATAL


def test_an_error_event_is_not_told_to_the_consumer():
    done = run(start(), {"type": "error", "error": {"type": "api_error", "message": "x"}})
    assert done.events == [start()]


def test_a_reset_is_a_lost_connection():
    assert run(start(), *text("Hi."), httpx2.ReadError("reset")).outcome is R.CUT
    assert run(start(), httpx2.RemoteProtocolError("cut")).kind == "connection"
    assert run(httpx2.ConnectError("refused")).outcome is R.RETRYABLE


@pytest.mark.parametrize("junk", ["text", None, 3, [], {}, {"type": 3}, {"index": 0}])
def test_what_is_no_event_is_a_fault_of_the_stream(junk: Any):
    done = run(start(), junk)
    assert (done.outcome, done.kind) == (R.RETRYABLE, PROTOCOL)


def test_an_event_that_is_nested_too_deeply_is_a_fault_of_the_stream():
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    done = run(start(), begin(0, {"type": "web_fetch_tool_result", "content": deep}))
    assert done.kind == PROTOCOL
    while deep:  # else its end would be a recursion of its own
        deep = deep.pop()


def no_stream(request: ModelRequest) -> Any:
    return [start()]


def failing_at_once(request: ModelRequest) -> Any:
    raise ZeroDivisionError


@pytest.mark.parametrize("wrong", [no_stream, failing_at_once])
def test_a_call_model_that_is_no_stream_is_a_fault_of_the_program(wrong: Any):
    assert simulate(lambda: performed(wrong)).result.outcome is R.FATAL


# ---- silence


def test_a_silent_stream_is_lost_after_the_idle_limit():
    done, elapsed = seconds(start(), *text("Hel")[:2], forever)
    assert (done.outcome, done.kind, elapsed) == (R.RETRYABLE, STALL, 60)


def test_silence_before_the_first_byte_counts_too():
    done, elapsed = seconds(forever)
    assert (done.outcome, done.kind, elapsed) == (R.RETRYABLE, STALL, 60)


def test_silence_after_a_complete_text_leaves_the_text():
    assert run(start(), *text("Hi."), forever).outcome is R.CUT


def test_pings_keep_a_stream_alive_until_the_progress_limit():
    done, elapsed = seconds(start(), *[step for _ in range(100) for step in (wait(15), PING)])
    assert (done.outcome, done.kind, elapsed) == (R.RETRYABLE, STALL, 300)
    assert "pings" in (done.made.failure.message if done.made.failure else "")


def test_pings_and_then_content_is_no_stall():
    pings = [step for _ in range(8) for step in (wait(30), PING)]
    done, elapsed = seconds(start(), *pings, wait(30), *text("Hi."), *pings, stop("end_turn"), STOPPED)
    assert (done.outcome, elapsed) == (R.END_TURN, 510)


def test_long_silences_below_the_limit_are_no_stall():
    done, elapsed = seconds(*[step for event in whole(text("Hi.")) for step in (wait(59), event)])
    assert (done.outcome, elapsed) == (R.END_TURN, 59 * 6)


def test_no_clock_runs_while_the_consumer_is_busy():
    async def slow(reply: ReplyAssembler, event: dict[str, Any]) -> None:
        await asyncio.sleep(1_000)

    async def program() -> tuple[R, str]:
        made = ModelCall(model(*whole(text("Hi.")), forever), REQUEST, limits=LIMITS, on_event=slow)
        outcome = await made.perform()
        return outcome, made.reply.text

    done = simulate(program)
    assert (done.result, done.elapsed) == ((R.END_TURN, "Hi."), 6_000)


def test_the_clock_starts_anew_when_the_consumer_is_back():
    async def slow(reply: ReplyAssembler, event: dict[str, Any]) -> None:
        await asyncio.sleep(1_000)

    async def program() -> R:
        return await ModelCall(model(start(), forever), REQUEST, limits=LIMITS, on_event=slow).perform()

    assert simulate(program).elapsed == 1_060


def test_one_timer_serves_the_whole_stream(monkeypatch: pytest.MonkeyPatch):
    timers: list[float] = []

    async def program() -> None:
        loop = asyncio.get_running_loop()
        inner = loop.call_at

        def counting(when: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
            timers.append(when)
            return inner(when, *args, **options)

        monkeypatch.setattr(loop, "call_at", counting)
        deltas = [delta(0, type="text_delta", text="x")] * 1_000
        await performed(model(start(), begin(0, {"type": "text", "text": ""}), *deltas, end(0), stop("end_turn")))

    simulate(program)
    assert len(timers) <= 3


# ---- cancellation and closing


class Recorder:
    """A stream that says whether it was closed."""

    def __init__(self, *steps: Step, closing: Callable[[], Any] | None = None) -> None:
        self.steps, self.closing, self.closed = steps, closing, False

    async def __call__(self, request: ModelRequest) -> AsyncGenerator[dict[str, Any], None]:
        try:
            async for event in model(*self.steps)(request):
                yield event
        finally:
            if self.closing is not None:
                await self.closing()
            self.closed = True


@pytest.mark.parametrize(
    "steps",
    [
        whole(text("Hi.")),
        [start(), *text("Hi.")],
        [start(), {"type": "error"}, forever],
        [start(), start(), forever],
        [start(), forever],
        [forever],
        [start(), httpx2.ReadError("x")],
    ],
)
def test_the_stream_is_closed_whatever_happens(steps: list[Step]):
    stream = Recorder(*steps)
    simulate(lambda: performed(stream, LIMITS))
    assert stream.closed


def cancelled_after(delay: float, stream: Recorder, on_event: Any) -> tuple[ModelCall, float]:
    made = None

    async def program() -> ModelCall:
        nonlocal made
        made = ModelCall(stream, REQUEST, limits=LIMITS, on_event=on_event)
        task = asyncio.create_task(made.perform())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return made

    done = simulate(program)
    return done.result, done.elapsed


async def unheard(reply: ReplyAssembler, event: dict[str, Any]) -> None:
    pass


def test_a_cancellation_goes_through_at_once_and_what_came_stays():
    stream = Recorder(start(), *text("Hel")[:2], forever)
    made, elapsed = cancelled_after(5, stream, unheard)
    assert (made.reply.text, elapsed, stream.closed) == ("Hel", 5, True)
    assert made.reply.text_message() == {"role": "assistant", "content": [{"type": "text", "text": "Hel"}]}


def test_a_cancellation_while_the_consumer_is_busy_closes_the_stream():
    async def slow(reply: ReplyAssembler, event: dict[str, Any]) -> None:
        await asyncio.sleep(1_000)

    stream = Recorder(*whole(text("Hi.")))
    _, elapsed = cancelled_after(5, stream, slow)
    assert (elapsed, stream.closed) == (5, True)


def test_a_cancellation_at_the_moment_of_a_stall_is_a_cancellation():
    stream = Recorder(start(), forever)
    _, elapsed = cancelled_after(60, stream, unheard)
    assert (elapsed, stream.closed) == (60, True)


def test_a_stream_that_does_not_close_holds_nobody_longer_than_the_grace_time():
    stream = Recorder(start(), {"type": "error"}, closing=forever)
    done = simulate(lambda: performed(stream, LIMITS))
    assert (done.result.outcome, done.elapsed, stream.closed) == (R.RETRYABLE, LIMITS.abort_grace, False)


def test_a_stream_that_fails_to_close_changes_no_outcome():
    async def failing() -> None:
        raise ZeroDivisionError

    stream = Recorder(*whole(text("Hi.")), forever, closing=failing)
    assert simulate(lambda: performed(stream, LIMITS)).result.outcome is R.END_TURN


def test_what_the_consumer_raises_is_not_taken_for_a_fault_of_the_model():
    async def failing(reply: ReplyAssembler, event: dict[str, Any]) -> None:
        raise LookupError("the consumer's own")

    stream = Recorder(*whole(text("Hi.")))

    async def program() -> None:
        await ModelCall(stream, REQUEST, limits=LIMITS, on_event=failing).perform()

    with pytest.raises(LookupError, match="the consumer's own"):
        simulate(program)
    assert stream.closed


def test_a_task_that_stalled_can_still_be_cancelled_later():
    async def program() -> int:
        await performed(model(start(), forever), LIMITS)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert simulate(program).result == 0
