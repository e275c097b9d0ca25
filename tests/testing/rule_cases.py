"""How a rule of the API is tested: a request that it refuses, with the exact text, and one that it lets through."""

from dataclasses import dataclass, field
from typing import Any

from fsm_agent.testing.rules import ApiSettings

MODEL = "claude-sonnet-5-5"
OLD_MODEL = "claude-sonnet-4-5"
BASE: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
USER = {"role": "user", "content": "hi"}
DROPPED = object()
"""Stands for a field that is absent."""


@dataclass(frozen=True)
class Case:
    """A request judged by a rule; `message` is the text of the refusal, `None` when the request is fine."""

    rule: str
    name: str
    body: dict[str, Any]
    message: str | None = None
    settings: ApiSettings = field(default_factory=ApiSettings)
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 400
    type: str = "invalid_request_error"

    @property
    def id(self) -> str:
        return f"{self.rule}-{self.name}"


def refused(rule: str, name: str, message: str, *, beta: str = "", settings: ApiSettings | None = None, **more: Any):
    headers = {"anthropic-beta": beta} if beta else {}
    status, kind = more.pop("status", 400), more.pop("type", "invalid_request_error")
    return Case(rule, name, request(**more), message, settings or ApiSettings(), headers, status, kind)


def accepted(rule: str, name: str, *, beta: str = "", settings: ApiSettings | None = None, **more: Any) -> Case:
    headers = {"anthropic-beta": beta} if beta else {}
    return Case(rule, name, request(**more), None, settings or ApiSettings(), headers)


def request(**fields: Any) -> dict[str, Any]:
    """The base request with these fields; one that is `DROPPED` is left out."""
    return {key: value for key, value in {**BASE, **fields}.items() if value is not DROPPED}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def call(identifier: str, name: str = "read", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": name, "input": {}, **more}


def result(identifier: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **more}


def custom_tool(name: str = "read", **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object", "properties": {}}, **more}
