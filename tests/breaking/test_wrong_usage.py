"""What is configured or said wrongly is told in a whole sentence, before any request."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from fsm_agent import AgentMachine, ConfigurationError, Hooks
from fsm_agent.session.history import HistoryError
from fsm_agent.testing import MessagesServer, Reply
from fsm_agent.tools import Change, Defer, Deny, Note, Stop
from tests.breaking.agents import MODEL, echo, machine

SIX_MARKS = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 6

WRONG: dict[str, dict[str, Any]] = {
    "a name for a list of names": {"fallback_models": "claude-haiku-4-5"},
    "one tool for a list": {"tools": echo},
    "no list of tools": {"tools": None},
    "a text for tools": {"tools": "echo"},
    "a number for the system prompt": {"system": 5},
    "texts for system blocks": {"system": ["be brief"]},
    "one system block": {"system": {"type": "text", "text": "be brief"}},
    "a system block that is no text": {"system": [{"type": "image"}]},
    "too many cache marks": {"system": SIX_MARKS},
    "a dict for limits": {"limits": {"max_turns": 3}},
    "a list for hooks": {"hooks": [echo]},
    "one stop hook for a list": {"hooks": Hooks(stop=echo)},  # type: ignore[arg-type]
    "a hook that cannot be called": {"hooks": Hooks(before_tool=[5])},
    "a permission that cannot be called": {"can_use_tool": True},
    "a text for thinking": {"thinking": "enabled"},
    "a text for tool_choice": {"tool_choice": "auto"},
    "a list for extra": {"extra": ["temperature"]},
    "no list of betas": {"betas": None},
    "a negative ceiling": {"output_ceilings": {MODEL: -5}},
    "a number for a price": {"prices": {MODEL: 3}},
    "an output type without a JSON form": {"output_type": object()},
    "a class without a JSON form": {"output_type": type("Plain", (), {})},
    "a key for a client": {"client": "sk-ant"},
    "a client that blocks": {"client": anthropic.Anthropic(api_key="test")},
    "a text for the declaration": {"definition": "agent_loop"},
    "an effect that cannot be called": {"effects": {"context": 5}},
    "a list for actions": {"actions": [echo]},
    "a dict for deps": {"deps": {"call_model": echo}},
    "a path for the result store": {"result_store": "results"},
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_a_configuration_error_in_a_sentence(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        AgentMachine(MODEL, **options)
    text = str(raised.value)
    assert len(text) < 600
    assert " " in text
    assert text[0].isupper()


PROMPTS: dict[str, Any] = {
    "a number": 5,
    "zero": 0,
    "bytes": b"hi",
    "one block": {"type": "text", "text": "hi"},
    "texts for blocks": ["hi"],
    "a block without a type": [{}],
    "a blank block": [{"type": "text", "text": " "}],
    "a text block without text": [{"type": "text"}],
    "what is no JSON": [{"type": "text", "text": object()}],
    "nothing for a block": [None],
    "a tool result": [{"type": "tool_result", "tool_use_id": "a", "content": "b"}],
    "a tool use": [{"type": "tool_use", "id": "a", "name": "echo", "input": {}}],
    "a thought": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_a_prompt_that_is_none_is_refused_before_any_request(prompt: Any) -> None:
    agent, model = machine()
    with pytest.raises(ValueError, match=r"^The prompt "):
        agent.run(prompt)
    assert model.call_count == 0


@pytest.mark.parametrize("message", PROMPTS.values(), ids=PROMPTS)
async def test_a_message_that_is_none_is_refused_where_it_is_sent(message: Any) -> None:
    agent, _ = machine(Reply("hello"))
    run = agent.run("hi")
    with pytest.raises(ValueError, match=r"^The message "):
        run.send(message)
    assert (await run).text == "hello"


async def test_a_message_after_the_end_is_refused_and_not_lost_in_silence() -> None:
    agent, _ = machine(Reply("hello"))
    run = agent.run("hi")
    await run
    with pytest.raises(RuntimeError, match="The run has ended"):
        run.send("one more thing")


async def test_blocks_of_the_sdk_are_a_prompt() -> None:
    agent, model = machine(Reply("hello"))
    await agent.run([anthropic.types.TextBlock(type="text", text="hi")])  # type: ignore[list-item]
    assert model.calls[0]["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


def test_a_history_that_begins_with_a_system_message_says_where_that_belongs() -> None:
    agent, _ = machine()
    with pytest.raises(HistoryError, match=r"messages\[0\] has the role 'system'\. .*machine's `system`"):
        agent.run("hi", history=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}])


@pytest.mark.parametrize("key", [None, ""])
async def test_without_a_key_there_is_no_request(key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    async with MessagesServer([Reply("hello")]) as server:
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        if key is not None:
            monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        agent = AgentMachine(MODEL)
        with pytest.raises(ConfigurationError, match="no key for the Messages API; set ANTHROPIC_API_KEY, or give"):
            agent.run("hi")
        assert server.bodies == []


async def test_a_client_without_a_key_is_told_of_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    async with anthropic.AsyncAnthropic(base_url="http://127.0.0.1:1") as client:
        with pytest.raises(ConfigurationError, match="no key"):
            AgentMachine(MODEL, client=client).run("hi")


@pytest.mark.parametrize("kind", [Deny, Note, Stop, Defer])
def test_an_answer_of_a_hook_without_text_fails_in_the_hook(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\w+=\.\.\.\) was given NoneType; give text\.$"):
        kind(None)


def test_a_note_of_a_change_is_text() -> None:
    with pytest.raises(TypeError, match="give text"):
        Change({}, note=5)  # type: ignore[arg-type]
