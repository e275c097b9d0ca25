"""Message threads and cache diagnostics, as the real SDK asks for them."""

import asyncio
from typing import Any

import anthropic
import pytest

from fsm_agent.testing import Fault, MessagesServer, Repeat, Reply, Stream, text, thinking, tool_use
from tests.testing.calls import MODEL, client_of

BETAS = ["message-threads-2026-08-12"]
QUESTION = {"role": "user", "content": "hi"}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}
CALL = Reply(thinking("hm"), tool_use("read", id="t1"))


async def ask(client, thread: Any, *messages: Any, **fields: Any) -> Any:
    request = {"model": MODEL, "max_tokens": 100, "messages": list(messages), "betas": BETAS, **fields}
    return await client.beta.messages.create(thread=thread, **request)


def after(message):
    return {"type": "continue", "previous_message_id": message.id}


CREATE = {"type": "create"}


async def test_a_continuation_brings_only_what_is_new():
    seen: list[Any] = []

    def script(body):
        seen.append(body)
        return CALL if len(seen) == 1 else Reply("done")

    async with MessagesServer(script) as server, client_of(server) as client:
        first = await ask(client, CREATE, QUESTION, system="Be brief.")
        second = await ask(client, after(first), RESULT)
        third = await ask(client, after(second), QUESTION)
        assert [entry.messages for entry in server.requests] == [[QUESTION], [RESULT], [QUESTION]]
    assert third.content[0].text == "done"
    assert [len(body["messages"]) for body in seen] == [1, 3, 5]
    assert seen[2]["system"] == "Be brief."
    assert seen[1]["messages"][1]["content"][0]["thinking"] == "hm"
    assert third.usage.input_tokens > second.usage.input_tokens > first.usage.input_tokens


async def test_a_continuation_is_judged_as_the_whole_conversation():
    async with MessagesServer([CALL, Reply("done")]) as server, client_of(server) as client:
        first = await ask(client, CREATE, QUESTION)
        with pytest.raises(anthropic.BadRequestError, match=r"messages\.1: `tool_use` ids were found without"):
            await ask(client, after(first), QUESTION)
        assert (await ask(client, after(first), RESULT)).content[0].text == "done"


async def refused(client, error, code, thread, **fields):
    with pytest.raises(error) as raised:
        await ask(client, thread, QUESTION, **fields)
    assert raised.value.error_code == code


async def test_a_reply_is_continued_once():
    async with MessagesServer([Repeat(Reply("a"), 2)]) as server, client_of(server) as client:
        first = await ask(client, CREATE, QUESTION)
        await ask(client, after(first), QUESTION)
        await refused(client, anthropic.BadRequestError, "thread_already_continued", after(first))


async def test_a_thread_ends_five_minutes_after_its_last_reply():
    now = [0.0]
    script = [Repeat(Reply("a"), 3)]
    async with MessagesServer(script, clock=lambda: now[0]) as server, client_of(server) as client:
        message = await ask(client, CREATE, QUESTION)
        for later in (299.0, 598.0):
            now[0] = later
            message = await ask(client, after(message), QUESTION)
        now[0] = 898.0
        await refused(client, anthropic.NotFoundError, "thread_not_found", after(message))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "claude-opus-5-5"},
        {"system": "other"},
        {"tool_choice": {"type": "none"}},
        {"betas": [*BETAS, "context-1m-2025-08-07"]},
    ],
)
async def test_what_shapes_the_prompt_must_stay(change):
    async with MessagesServer([Reply("a")]) as server, client_of(server) as client:
        first = await ask(client, CREATE, QUESTION, system="Be brief.")
        await refused(client, anthropic.BadRequestError, "thread_fingerprint_mismatch", after(first), **change)


async def test_what_threads_cannot_do_is_refused_with_its_name():
    async with MessagesServer([]) as server, client_of(server) as client:
        fields: dict[str, Any] = {
            "context_management": {"edits": []},
            "betas": [*BETAS, "context-management-2025-06-27"],
        }
        await refused(client, anthropic.BadRequestError, "thread_unsupported_request", CREATE, **fields)


async def test_a_refused_or_broken_turn_is_not_held():
    broken = Reply("a", fault=Fault(3, "eof"))
    async with MessagesServer([Reply("no", stop="refusal"), broken]) as server, client_of(server) as client:
        first = await ask(client, CREATE, QUESTION)
        await refused(client, anthropic.NotFoundError, "thread_not_found", after(first))
        events = [event async for event in await ask(client, CREATE, QUESTION, stream=True)]
        await refused(client, anthropic.NotFoundError, "thread_not_found", after(events[0].message))


async def test_a_continuation_that_broke_may_be_tried_again():
    broken = Reply("b", fault=Fault(2, "reset"))
    async with MessagesServer([Reply("a"), broken, Reply("c")]) as server, client_of(server) as client:
        first = await ask(client, CREATE, QUESTION)
        with pytest.raises(anthropic.APIConnectionError):
            await ask(client, after(first), QUESTION)
        assert (await ask(client, after(first), QUESTION)).content[0].text == "c"


async def test_a_reply_is_continued_by_one_request_at_a_time():
    slow = Stream(["message_start", {"wait": "abort"}])
    async with MessagesServer([Reply("a"), slow, Reply("c")]) as server, client_of(server) as client:
        first = await ask(client, CREATE, QUESTION)
        events = await ask(client, after(first), QUESTION, stream=True)
        await anext(events)
        await refused(client, anthropic.BadRequestError, "thread_continue_in_flight", after(first))
        await events.close()
        while not server.requests[1].finished:
            await asyncio.sleep(0)
        assert (await ask(client, after(first), QUESTION)).content[0].text == "c"


async def test_without_the_beta_header_a_thread_is_an_unknown_field():
    async with MessagesServer([]) as server, client_of(server) as client:
        with pytest.raises(anthropic.BadRequestError, match="thread: Extra inputs are not permitted"):
            await ask(client, CREATE, QUESTION, betas=[])


async def test_a_long_thread_is_read_at_the_cost_of_its_new_messages():
    async with MessagesServer([Repeat(Reply("a"), "always")]) as server, client_of(server) as client:
        message = await ask(client, CREATE, QUESTION)
        for _ in range(30):
            message = await ask(client, after(message), QUESTION)
        assert message.usage.input_tokens > 30 * 10
        assert max(len(entry.raw) for entry in server.requests) < 250


# ---- diagnostics


async def diagnosed(client, previous, **fields):
    request = {"model": MODEL, "max_tokens": 9, "messages": [QUESTION], **fields}
    return await client.messages.create(diagnostics={"previous_message_id": previous}, **request)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "claude-opus-5-5"}, "model_changed"),
        ({"tools": [{"name": "t", "input_schema": {"type": "object"}}]}, "tools_changed"),
        ({"system": "other"}, "system_changed"),
        ({"messages": [{"role": "user", "content": "other"}]}, "messages_changed"),
    ],
)
async def test_a_reply_says_why_a_prefix_was_missed(change, reason):
    async with MessagesServer([Repeat(Reply("a"), 3)]) as server, client_of(server) as client:
        first = await diagnosed(client, None, system="s")
        assert first.diagnostics is None
        longer = [QUESTION, {"role": "assistant", "content": [text("a")]}, QUESTION]
        assert (await diagnosed(client, first.id, system="s", messages=longer)).diagnostics is None
        missed = (await diagnosed(client, first.id, **{"system": "s", **change})).diagnostics
    assert missed.cache_miss_reason.type == reason
    assert missed.cache_miss_reason.cache_missed_input_tokens == first.usage.input_tokens


async def test_a_message_that_nobody_knows_is_told():
    async with MessagesServer([Reply("a")]) as server, client_of(server) as client:
        message = await diagnosed(client, "msg_other")
    assert message.diagnostics.cache_miss_reason.type == "previous_message_not_found"
