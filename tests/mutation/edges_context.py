"""The edges of the context: when it is made smaller, by how much, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fsm_agent import AgentMachine, Deps, LoopLimits
from fsm_agent.testing import Repeat, Reply, ScriptedModel, request_kind, text, tool_use
from fsm_agent.testing.simulation import simulate
from tests.loop.scenarios import (
    FALLBACK,
    LONG,
    MODEL,
    NEARLY_FULL,
    SUMMARY,
    TOOL,
    at,
    echo,
    fetch,
    filling,
    folded_history,
    overflow,
)
from tests.mutation.edge_kit import blocks_in, machine_of

NOT_CACHED = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
FULL = {"input_tokens": 165_000, "output_tokens": 5_000, **NOT_CACHED}
"""Above the size from which the context is made smaller, and below the window."""
FULL_TURN = Reply(tool_use("echo", {"x": "a"}), usage=FULL, when="turn")
DONE = Reply("done", when="turn")
NO_SUMMARY = Reply(stop="refusal", when="summary")


def talk(rounds: int, answer: str, question: str = "why?") -> list[dict[str, Any]]:
    """An older conversation without tools."""
    return [
        message
        for number in range(rounds)
        for message in (
            {"role": "user", "content": f"{number}: {question}"},
            {"role": "assistant", "content": [text(f"{number}: {answer}")]},
        )
    ]


def summaries(model: ScriptedModel) -> list[Any]:
    """The requests for a summary."""
    return [call for call in model.calls if request_kind(call) == "summary"]


def a_context_that_was_compacted_is_small() -> None:
    """Another model is asked right after the compaction, so the context is weighed again."""

    async def program() -> None:
        refused = [SUMMARY, Reply(stop="refusal", when="turn"), DONE]
        cases: list[tuple[list[Any], LoopLimits, str]] = [
            (
                [Reply(tool_use("echo"), usage={"input_tokens": 180_000, **NOT_CACHED}, when="turn")],
                LoopLimits(),
                "word " * 400,
            ),
            ([], LoopLimits(context_window=20_000), LONG),
        ]
        for before, limits, answer in cases:
            model = ScriptedModel([*before, *refused])
            machine = machine_of(model, echo, limits=limits, fallback_models=[FALLBACK])
            run = machine.run("go", history=talk(8, answer))
            edits = [event async for event in run if event.type == "context_edit"]
            assert (run.result.reason, len(summaries(model))) == ("completed", 1), run.result
            assert [edit.stage for edit in edits] == ["autocompact"]
            assert edits[0].tokens_after < 0.4 * edits[0].tokens_before, edits

    simulate(program)


def compactions_in_vain_are_given_up_and_forgotten_after_a_success() -> None:
    async def program() -> None:
        cases = (
            ([Repeat(NO_SUMMARY, "always")], 3),
            ([Repeat(NO_SUMMARY, 2), SUMMARY, Repeat(NO_SUMMARY, "always")], 6),
        )
        for answers, wanted in cases:
            calls = [tool_use("echo", {"x": f"{number} " * 150}) for number in range(8)]
            turns = [Reply(call, usage=FULL, when="turn") for call in calls]
            model = ScriptedModel([*turns, DONE, *answers])
            result = await machine_of(model, echo).run("go", history=talk(8, "word " * 400))
            assert result.reason == "completed", result
            assert len(summaries(model)) == wanted, len(summaries(model))

    simulate(program)


def a_head_that_is_too_long_is_made_shorter() -> None:
    async def program() -> None:
        too_long = overflow(when="summary")
        model = ScriptedModel([overflow(when="turn"), overflow(when="turn"), too_long, too_long, SUMMARY, DONE])
        machine = machine_of(model, echo, fetch, limits=LoopLimits(**NEARLY_FULL))
        result = await machine.run("go", history=folded_history())
        assert result.reason == "completed", result
        sizes = [len(str(call)) for call in summaries(model)]
        assert sizes[0] > sizes[1] > sizes[2], sizes

    simulate(program)


def what_comes_after_a_compaction_is_looked_at() -> None:
    """An image whose media type is wrong is mended before it is sent."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "R0lGODlhAQABAAAAACw="}}

    async def program() -> None:
        model = ScriptedModel([SUMMARY, TOOL, DONE])
        machine = machine_of(model, echo, limits=LoopLimits(context_window=20_000))
        run = machine.run("go", history=talk(8, LONG))
        async for event in run:
            if at("stream_request_start", purpose="turn")(event) and model.call_count == 1:
                run.send([picture])
        sent = blocks_in(model.calls[-1]["messages"], "image")
        assert [block["source"]["media_type"] for block in sent] == ["image/gif"], sent

    simulate(program)


def what_came_since_the_last_reply_counts() -> None:
    async def program() -> None:
        calls = Reply(tool_use("fetch"), tool_use("fetch"), usage={"input_tokens": 160_000, **NOT_CACHED}, when="turn")
        model = ScriptedModel([calls, SUMMARY, DONE])
        result = await machine_of(model, fetch).run("go", history=talk(8, LONG))
        assert "context_compacted" in result.trace, result.trace

    simulate(program)


def a_context_that_fills_slowly_is_no_refill() -> None:
    async def program() -> None:
        calm = Repeat(Reply(tool_use("echo"), when="turn"), 3)
        model = ScriptedModel([*filling(1), calm, *filling(1), DONE])
        result = await machine_of(model, echo, fetch).run("go")
        assert result.trace.count("context_compacted") == 2, result.trace

    simulate(program)


def a_stage_of_the_program_may_fail() -> None:
    def broken(view: Any) -> None:
        raise ValueError("no such file")

    async def program() -> None:
        result = await AgentMachine(MODEL, deps=Deps(call_model=ScriptedModel([]), microcompact=broken)).run("go")
        assert result.reason == "turn_setup_failed", result
        assert result.detail == "The stage microcompact failed: ValueError: no such file", result.detail

    simulate(program)


def no_summary_is_asked_for_where_it_would_make_no_room() -> None:
    """The system prompt fills the context."""

    async def program() -> None:
        model = ScriptedModel([FULL_TURN, DONE])
        machine = machine_of(model, echo, system="x" * 640_000)
        result = await machine.run("go", history=talk(4, "word " * 400))
        assert (result.reason, result.requests) == ("completed", 2), result

    simulate(program)


def the_task_stays_word_for_word_in_a_compaction() -> None:
    async def program() -> None:
        calls = [Reply(tool_use("echo", {"x": f"{number} " * 4_000}), when="turn") for number in range(3)]
        model = ScriptedModel([*calls, FULL_TURN, SUMMARY, DONE])
        run = machine_of(model, echo).run("Write the report.", history=talk(1, "word " * 400))
        async for event in run:
            if event.type == "stream_request_start" and event.request == 1:
                run.send("In Norwegian.")
        assert "context_compacted" in run.result.trace, run.result.trace
        said = [message["content"] for message in model.calls[-1]["messages"] if message["role"] == "user"]
        assert [words for words in said if isinstance(words, str)][-2:] == ["Write the report.", "In Norwegian."], said

    simulate(program)


def a_drain_that_frees_nothing_is_not_made() -> None:
    async def program() -> None:
        model = ScriptedModel([overflow(when="turn"), SUMMARY, DONE])
        machine = machine_of(model, echo, limits=LoopLimits(context_window=10_000))
        result = await machine.run("go", history=talk(8, "so", "word " * 400))
        assert "reactive_compact_retry" in result.trace, result.trace
        assert "collapse_drain_retry" not in result.trace, result.trace

    simulate(program)


def a_drain_leaves_a_digest_of_what_was_done() -> None:
    async def program() -> None:
        model = ScriptedModel([overflow(when="turn"), DONE])
        machine = machine_of(model, fetch, limits=LoopLimits(**NEARLY_FULL))
        result = await machine.run("go", history=folded_history())
        assert "collapse_drain_retry" in result.trace, result.trace
        folded = str(model.calls[-1]["messages"][1]["content"])
        assert "fetch({}) -> word word" in folded, folded
        assert "answer 0" in folded, folded

    simulate(program)


def the_newest_cache_marks_are_sent() -> None:
    async def program() -> None:
        mark = {"cache_control": {"type": "ephemeral"}}
        history: list[dict[str, Any]] = []
        for number in range(6):
            history += [
                {"role": "user", "content": [{**text(f"question {number}"), **mark}]},
                {"role": "assistant", "content": [text("answer")]},
            ]
        model = ScriptedModel([DONE])
        result = await machine_of(model, echo).run("go", history=history)
        assert result.reason == "completed", result
        marked = [block["text"] for block in blocks_in(model.calls[0]["messages"], "text") if "cache_control" in block]
        assert marked == [f"question {number}" for number in range(2, 6)], marked

    simulate(program)


CONTEXT_EDGES: tuple[Callable[[], None], ...] = (
    a_context_that_was_compacted_is_small,
    compactions_in_vain_are_given_up_and_forgotten_after_a_success,
    a_head_that_is_too_long_is_made_shorter,
    what_comes_after_a_compaction_is_looked_at,
    what_came_since_the_last_reply_counts,
    a_context_that_fills_slowly_is_no_refill,
    a_stage_of_the_program_may_fail,
    no_summary_is_asked_for_where_it_would_make_no_room,
    the_task_stays_word_for_word_in_a_compaction,
    a_drain_that_frees_nothing_is_not_made,
    a_drain_leaves_a_digest_of_what_was_done,
    the_newest_cache_marks_are_sent,
)
