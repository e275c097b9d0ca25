"""What the `expect` of a fault scenario may say, and how it is seen in what came of the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from fsm_agent.loop.events import System, Tombstone
from fsm_agent.session.message import blocks_of, inner_blocks
from tests.faults.loader import Played

Check = Callable[[Played, Any], None]


def check(played: Played) -> None:
    """Hold the case to each of its expectations."""
    expect = played.case.words["expect"]
    assert expect, f"{played.case.name} expects nothing"
    for name, wanted in expect.items():
        CHECKS[name](played, wanted)


def _number(found: float, wanted: Any, what: str) -> None:
    if isinstance(wanted, Mapping):
        assert found >= wanted.get("at_least", found), f"{what}: {found}, wanted {wanted}"
        assert found <= wanted.get("at_most", found), f"{what}: {found}, wanted {wanted}"
    else:
        assert found == wanted, f"{what}: {found}, wanted {wanted}"


def _each_run(found: list[Any], wanted: Any) -> None:
    assert found == (wanted if isinstance(wanted, list) else [wanted])


def _blocks(messages: list[dict[str, Any]], role: str, kind: str) -> list[dict[str, Any]]:
    return [b for m in messages if m["role"] == role for b in blocks_of(m) if b["type"] == kind]


def _added(played: Played) -> list[dict[str, Any]]:
    """All messages that the runs left, without the history that the first began with."""
    return played.results[-1].messages[len(played.before[0]) :]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


# ---- how the runs ended


def reasons(played: Played, wanted: Any) -> None:
    _each_run([str(result.reason) for result in played.results], wanted)


def detail(played: Played, wanted: str) -> None:
    assert wanted in played.results[0].detail, played.results[0].detail


def text(played: Played, wanted: str) -> None:
    assert played.results[-1].text == wanted


def continues(played: Played, wanted: list[str]) -> None:
    """All triggers of the first run that go back, in this order (`context_ready` and the like are none)."""
    quiet = {"context_ready", "response_ended", "tools_requested", "context_compacted", "context_refilled"}
    assert [t for t in played.results[0].trace[:-1] if t not in quiet] == wanted, played.results[0].trace


def turns(played: Played, wanted: Any) -> None:
    _each_run([result.turns for result in played.results], wanted)


def seconds(played: Played, wanted: Any) -> None:
    """From the start of the first request to the end of the first run."""
    run = played.runs[0]
    assert run.ended_at is not None
    _number(run.ended_at - run.exchanges[0].started, wanted, "seconds")


# ---- what was sent


def requests(played: Played, wanted: Any) -> None:
    if isinstance(wanted, list):
        _each_run([len(run.exchanges) for run in played.runs], wanted)
    else:
        _number(len(played.exchanges), wanted, "requests")


def turn_requests(played: Played, wanted: Any) -> None:
    _number(sum(e.kind == "turn" for e in played.exchanges), wanted, "requests for a turn")


def summary_requests(played: Played, wanted: Any) -> None:
    _number(sum(e.kind == "summary" for e in played.exchanges), wanted, "requests for a summary")


def models(played: Played, wanted: list[str]) -> None:
    assert [exchange.model for exchange in played.exchanges] == wanted


def gaps(played: Played, wanted: list[Any]) -> None:
    """Seconds between the end of each request and the start of the next."""
    found = [b.started - (a.ended or 0.0) for a, b in pairwise(played.exchanges)]
    for gap, each in zip(found, wanted, strict=True):
        _number(gap, each, "seconds between two requests")


def sent(played: Played, wanted: list[Mapping[str, Any]]) -> None:
    """Of single requests, by their number from 1 (negative from the end)."""
    for words in wanted:
        number = words["request"]
        exchange = played.exchanges[number - 1 if number > 0 else number]
        for name, value in words.items():
            if name != "request":
                SENT[name](played, exchange, value)


def _contains(played: Played, exchange: Any, wanted: Any) -> None:
    told = json.dumps(exchange.body, ensure_ascii=False)
    for part, count in wanted.items():
        assert told.count(part) == count, f"{part!r} occurs {told.count(part)} times, wanted {count}: {told[-2000:]}"


def _kinds(played: Played, exchange: Any, wanted: Mapping[str, int]) -> None:
    """How many blocks of a type, those inside tool results included."""
    blocks = [block for message in exchange.messages for block in blocks_of(message)]
    blocks += [part for block in blocks for part in inner_blocks(block)]
    for kind, count in wanted.items():
        assert sum(block["type"] == kind for block in blocks) == count, f"{kind} in {exchange.messages}"


def _same_messages(played: Played, exchange: Any, other: int) -> None:
    assert exchange.messages == played.exchanges[other - 1].messages


def _more_output(played: Played, exchange: Any, other: int) -> None:
    assert exchange.body["max_tokens"] > played.exchanges[other - 1].body["max_tokens"]


def _last_message(played: Played, exchange: Any, wanted: Any) -> None:
    assert exchange.messages[-1] == wanted


def _last_role(played: Played, exchange: Any, wanted: str) -> None:
    assert exchange.messages[-1]["role"] == wanted


def _has_message(played: Played, exchange: Any, wanted: Any) -> None:
    assert wanted in exchange.messages, exchange.messages[-3:]


def _same_frame(played: Played, exchange: Any, other: int) -> None:
    for key in ("system", "tools", "model"):
        assert exchange.body.get(key) == played.exchanges[other - 1].body.get(key)


SENT: Mapping[str, Callable[[Played, Any, Any], None]] = {
    "contains": _contains,
    "blocks": _kinds,
    "same_messages_as": _same_messages,
    "more_output_than": _more_output,
    "last_message": _last_message,
    "last_role": _last_role,
    "has_message": _has_message,
    "same_frame_as": _same_frame,
}


def prefix_stable(played: Played, wanted: bool) -> None:
    """Each request begins with the bytes of the one before: messages grow at their end, the rest stays as it is."""
    found = [_stable_parts(exchange.raw) for exchange in played.exchanges]
    for (frame, messages), (next_frame, next_messages) in pairwise(found):
        assert next_frame == frame
        assert next_messages.startswith(messages), (messages[-300:], next_messages[:])


def _stable_parts(raw: bytes) -> tuple[bytes, bytes]:
    body = json.loads(raw)
    messages = json.dumps(body.pop("messages"))[:-1].encode()
    assert raw.count(b'"messages":') == 1
    before, _, after = raw.partition(b'"messages":')
    assert json.loads(raw)["messages"] == json.loads(messages + b"]")
    return before, messages if after else b""


# ---- what is left


def assistant_texts(played: Played, wanted: list[str]) -> None:
    assert [block["text"] for block in _blocks(_added(played), "assistant", "text")] == wanted


def assistant_messages(played: Played, wanted: Any) -> None:
    _number(sum(m["role"] == "assistant" for m in _added(played)), wanted, "messages of the model")


def tool_ids(played: Played, wanted: list[str]) -> None:
    assert [block["id"] for block in _blocks(_added(played), "assistant", "tool_use")] == wanted


def results(played: Played, wanted: list[Any]) -> None:
    """The tool results in order: `[id, is_error]` or `[id, is_error, part of its text]`."""
    found = _blocks(_added(played), "user", "tool_result")
    assert [block["tool_use_id"] for block in found] == [each[0] for each in wanted]
    for block, each in zip(found, wanted, strict=True):
        assert block.get("is_error", False) is each[1], block
        if len(each) > 2:
            assert each[2] in _text(block["content"]), block


def result_characters(played: Played, wanted: Any) -> None:
    for block in _blocks(_added(played), "user", "tool_result"):
        _number(len(_text(block["content"])), wanted, "characters of a result")


def all_result_characters(played: Played, wanted: Any) -> None:
    found = _blocks(_added(played), "user", "tool_result")
    _number(sum(len(_text(block["content"])) for block in found), wanted, "characters of all results")


def result_messages(played: Played, wanted: int) -> None:
    found = [m for m in _added(played) if any(block["type"] == "tool_result" for block in blocks_of(m))]
    assert len(found) == wanted


def roles(played: Played, wanted: str) -> None:
    """The first letters of the roles that the first run left, without those before."""
    left = played.results[0].messages[len(played.before[0]) :]
    assert "".join(message["role"][0] for message in left) == wanted, left


def history_unchanged(played: Played, wanted: bool) -> None:
    """The first run left what it began with, and its prompt."""
    before = played.before[0]
    left = played.results[0].messages
    assert left[: len(before)] == before
    assert [message["role"] for message in left[len(before) :]] == ["user"]


def thinking(played: Played, wanted: int) -> None:
    found = _blocks(_added(played), "assistant", "thinking")
    assert len(found) == wanted
    assert all(block["signature"] for block in found)


def thinking_model(played: Played, wanted: str) -> None:
    makers = {
        message.model  # type: ignore[attr-defined]
        for message in played.results[-1].messages
        if any(block["type"] == "thinking" for block in blocks_of(message))
    }
    assert makers == {wanted}


def queued_undelivered(played: Played, wanted: list[Any]) -> None:
    assert list(played.results[0].undelivered) == wanted


# ---- what was told


def net_text(played: Played, wanted: str) -> None:
    assert played.runs[0].net_text == wanted


def net_length(played: Played, wanted: int) -> None:
    assert len(played.runs[0].net_text) == wanted


def tombstones(played: Played, wanted: Any) -> None:
    _number(sum(len(run.all(Tombstone)) for run in played.runs), wanted, "tombstones")


def errors(played: Played, wanted: Any) -> None:
    _number(_notices(played, "error"), wanted, "errors shown")


def notices(played: Played, wanted: Mapping[str, Any]) -> None:
    for subtype, count in wanted.items():
        _number(_notices(played, subtype), count, subtype)


def _notices(played: Played, subtype: str) -> int:
    return sum(event.subtype == subtype for run in played.runs for event in run.all(System))


def waits(played: Played, wanted: str) -> None:
    """The waits before repetitions, told by their events."""
    assert wanted == "never shorter"
    found = [event.detail["seconds"] for event in played.runs[0].all(System) if event.subtype == "backoff"]
    assert len(found) > 1
    assert found == sorted(found)


def usage(played: Played, wanted: Mapping[str, int]) -> None:
    found = played.results[0].usage
    assert {name: getattr(found, name) for name in wanted} == dict(wanted)


# ---- what tools and hooks lived through


def calls(played: Played, wanted: Mapping[str, Any]) -> None:
    for name, count in wanted.items():
        _number(len(played.seen.inputs.get(name, [])), count, f"calls of {name}")


def inputs(played: Played, wanted: Mapping[str, Any]) -> None:
    for name, given in wanted.items():
        assert played.seen.inputs.get(name, []) == given


def hook_inputs(played: Played, wanted: list[bool]) -> None:
    assert played.seen.hooks == wanted


def permissions(played: Played, wanted: list[str]) -> None:
    assert played.seen.permissions == wanted


def before_tool(played: Played, wanted: list[str]) -> None:
    assert played.seen.before_tool == wanted


CHECKS: Mapping[str, Check] = {
    function.__name__: function
    for function in (
        *(reasons, detail, text, continues, turns, seconds, requests, turn_requests, summary_requests, models, gaps),
        *(sent, prefix_stable, assistant_texts, assistant_messages, tool_ids, results, result_characters),
        *(all_result_characters, result_messages, roles, history_unchanged, thinking, thinking_model),
        *(
            queued_undelivered,
            net_text,
            net_length,
            tombstones,
            errors,
            notices,
            waits,
            usage,
            calls,
            inputs,
            hook_inputs,
        ),
        *(permissions, before_tool),
    )
}
