"""Requests that no wait could mend are not repeated, and tell no secret."""

from __future__ import annotations

import anthropic
import pytest

from fsm_agent import AgentMachine
from fsm_agent.testing import MessagesServer, Reply
from tests.breaking.agents import MODEL, QUICK


async def test_a_closed_client_is_told_of_at_once() -> None:
    client = anthropic.AsyncAnthropic(base_url="http://127.0.0.1:1", api_key="test")
    await client.close()
    result = await AgentMachine(MODEL, client=client, limits=QUICK).run("hi")
    assert (result.reason, result.requests) == ("model_error", 1)
    assert "the client has been closed" in result.detail


async def test_a_wrong_address_is_told_of_at_once() -> None:
    async with anthropic.AsyncAnthropic(base_url="nowhere", api_key="test") as client:
        result = await AgentMachine(MODEL, client=client, limits=QUICK).run("hi")
    assert (result.reason, result.requests) == ("model_error", 1)
    assert "protocol" in result.detail


async def test_a_key_that_cannot_be_sent_is_told_of_at_once_and_not_shown() -> None:
    async with (
        MessagesServer([Reply("never")]) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="sk-secret\n") as client,
    ):
        run = AgentMachine(MODEL, client=client, limits=QUICK).run("hi")
        lines = [event.model_dump_json() async for event in run]
    assert (run.result.reason, run.result.requests) == ("model_error", 1)
    assert "Illegal header value" in run.result.detail
    assert "secret" not in "".join(lines) + repr(run.result.error)


@pytest.mark.parametrize("name", ["x-api-key", "authorization"])
async def test_a_key_among_the_headers_is_a_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    async with (
        MessagesServer([Reply("hello")]) as server,
        anthropic.AsyncAnthropic(base_url=server.url, default_headers={name: "Bearer test"}) as client,
    ):
        assert (await AgentMachine(MODEL, client=client).run("hi")).text == "hello"
