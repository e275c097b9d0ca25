"""A request to the Messages API, put together from bytes that were encoded before.

The keys stand in a fixed order with `messages` last: as long as only messages are added, each body is a prefix of the
next one (but for its last two characters), which is what the API's prompt cache lives on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Final, Literal, TypeAlias, cast

from fsm_agent.model.json_types import is_mapping
from fsm_agent.model.surrogates import mended
from fsm_agent.session.message import OpenArray, cache_marks

__all__ = ["ModelRequest", "RequestTemplate"]

Purpose: TypeAlias = Literal["turn", "summary"]
System: TypeAlias = str | Sequence[Mapping[str, Any]] | None

MOST_CACHE_MARKS: Final = 4
"""Cache breakpoints that a request may hold, the top-level one included (recorded: `Found 5`)."""

_OWN_KEYS: Final = frozenset(
    {"max_tokens", "messages", "model", "stream", "system", "thinking", "tool_choice", "tools"}
)
_CHARS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, ready to be sent: `POST /v1/messages` with this body, these headers and this query."""

    model: str
    body: bytes = field(repr=False)
    """Strict UTF-8 JSON, `stream` on."""
    max_tokens: int
    purpose: Purpose = "turn"
    """A turn of the conversation, or a summary of it."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    surplus_cache_marks: int = 0
    """How many cache marks more it has than the API takes."""

    def json(self) -> dict[str, Any]:
        """The body parsed, anew with each call: for tests and scripted models, not for the loop."""
        return cast("dict[str, Any]", json.loads(self.body))


class RequestTemplate:
    """What stays the same in all requests of a machine, encoded once.

    >>> template = RequestTemplate(system="Be brief.", cache=False)
    >>> template.request(model="m", messages=b'[{"role":"user","content":"Hi"}]', max_tokens=10).body
    b'{"model":"m","max_tokens":10,"stream":true,"system":"Be brief.","messages":[{"role":"user","content":"Hi"}]}'

    - `system`: text or a list of text blocks; `tools`: API dicts, sent in this order.
    - `tool_choice`, `thinking`: as the API takes them.
    - `extra`: further parameters of the body (`temperature`, `metadata`, `stop_sequences`, `output_config`, ...).
    - `betas`: names for the header `anthropic-beta`.
    - `cache`: mark the end of each request for the prompt cache (the API's top-level `cache_control`), unless that
      would be a fifth mark beside the caller's own.

    Raises `ValueError` for what no request could be made of.
    """

    def __init__(
        self,
        *,
        system: System = None,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: Mapping[str, Any] | None = None,
        thinking: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        betas: Sequence[str] = (),
        cache: bool = True,
    ) -> None:
        self._extra = dict(extra or {})
        _check_extra(self._extra)
        _check_choice(tool_choice, tools)
        _check_thinking(thinking)
        self.thinking = thinking
        self.headers, self.query = _beta_headers(betas)
        self._cache = cache and "cache_control" not in self._extra
        self._container = self._extra.get("container")
        self._options = b"".join(_pair(key, value) for key, value in self._extra.items() if key != "container")
        self._thinking = _pair("thinking", thinking) if thinking is not None else b""
        self._choice = _pair("tool_choice", tool_choice) if tool_choice is not None else b""
        self._tools = _tools(tools)
        # The system prompt of the last request, with its bytes. Replaced as a whole: runs share the template.
        self._system: tuple[System, bytes] = (system, _system(system))
        self._own_system = system
        self._check_marks()

    def request(
        self,
        *,
        model: str,
        messages: bytes | OpenArray,
        max_tokens: int,
        purpose: Purpose = "turn",
        system: System | EllipsisType = ...,
        tools: Sequence[Mapping[str, Any]] | EllipsisType | None = ...,
        tool_choice: Mapping[str, Any] | EllipsisType | None = ...,
        think: bool = True,
        container: str | None = None,
    ) -> ModelRequest:
        """A request with this JSON array of messages. What is left out is the template's; bytes are only joined.

        `think=False` leaves the `thinking` parameter out. `container` is the id of the code execution container to go
        on in, which the last reply told; a template that names a container of its own keeps that.
        """
        system_bytes = self._system_bytes(self._own_system if isinstance(system, EllipsisType) else system)
        tool_bytes = self._tools if isinstance(tools, EllipsisType) else _tools(tools or ())
        choice = self._choice
        if not isinstance(tool_choice, EllipsisType):
            choice = _pair("tool_choice", tool_choice) if tool_choice is not None else b""
        parts = [
            b'{"model":' + _encoded(model) + b',"max_tokens":%d,"stream":true' % max_tokens,
            self._options,
            self._thinking if think else b"",
            choice if tool_bytes else b"",
            system_bytes,
            tool_bytes,
            self._container_bytes(container),
        ]
        data: bytes | bytearray
        if isinstance(messages, bytes):
            data, end, marks = messages, b"}", cache_marks(messages)
        else:
            data, end, marks = messages.data, b"]}", messages.cache_marks
        marks += sum(map(cache_marks, parts))
        if self._cache and marks < MOST_CACHE_MARKS:
            parts.append(b',"cache_control":{"type":"ephemeral"}')
        body = b"".join([*parts, b',"messages":', data, end])
        surplus = max(0, marks - MOST_CACHE_MARKS)
        return ModelRequest(model, body, max_tokens, purpose, self.headers, self.query, surplus)

    def _container_bytes(self, known: str | None) -> bytes:
        own = self._container
        if known is not None and is_mapping(own):  # its skills, without an id yet
            return _pair("container", {"id": known, **own})
        chosen = known if own is None else own
        return b"" if chosen is None else _pair("container", chosen)

    def fixed_tokens(self, system: System | EllipsisType = ...) -> int:
        """Estimate of the tokens of system prompt and tools: a quarter of their characters."""
        system_bytes = self._system_bytes(self._own_system if isinstance(system, EllipsisType) else system)
        return (len(system_bytes) + len(self._tools)) // _CHARS_PER_TOKEN

    def _system_bytes(self, system: System) -> bytes:
        held, encoded = self._system
        if system is held:
            return encoded
        encoded = _system(system)
        self._system = (system, encoded)
        return encoded

    @property
    def needs_leading_thinking(self) -> bool:
        """Whether a turn in a tool loop must begin with thinking (the API's rule for `thinking.type: enabled`)."""
        return self.thinking is not None and self.thinking.get("type") == "enabled"

    def _check_marks(self) -> None:
        marks = cache_marks(self._tools) + cache_marks(self._system[1])
        if marks > MOST_CACHE_MARKS:
            raise ValueError(
                f"The tools and the system prompt hold {marks} cache marks; the API takes {MOST_CACHE_MARKS} in a "
                "request. Remove some `cache_control`."
            )


def _encoded(value: object) -> bytes:
    try:
        try:
            return _ENCODER.encode(value).encode()
        except UnicodeEncodeError:  # a lone surrogate
            return _ENCODER.encode(mended(_plain(value))).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"A part of the request is not JSON ({error}): {repr(value)[:200]}") from error


def _pair(key: str, value: object) -> bytes:
    return b"," + _encoded(key) + b":" + _encoded(value)


def _as_dict(value: object) -> dict[str, Any]:
    """What the encoder makes of what is no dict: any mapping is an object."""
    if is_mapping(value):
        return dict(value)
    raise TypeError(f"an object of type {type(value).__name__} has no form in JSON")


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_as_dict)


def _plain(value: object) -> object:
    """Mappings as the dicts that JSON is made of, tuples as lists."""
    if is_mapping(value):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    return value


def _system(system: System) -> bytes:
    # An empty text block is refused by the API (`system: text content blocks must be non-empty`).
    if system is None or (isinstance(system, str) and not system.strip()):
        return b""
    if isinstance(system, str):
        return _pair("system", system)
    blocks = [block for block in system if block.get("type") != "text" or str(block.get("text", "")).strip()]
    return _pair("system", blocks) if blocks else b""


def _tools(tools: Sequence[Mapping[str, Any]]) -> bytes:
    return _pair("tools", list(tools)) if tools else b""


def _beta_headers(betas: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    if isinstance(betas, str):
        raise ValueError(f"betas={betas!r} is a text; give a list of names, such as [{betas!r}].")  # noqa: TRY004
    names = list(dict.fromkeys(str(name).strip() for name in betas))
    if not all(name and name.isascii() and name.isprintable() and "," not in name for name in names):
        raise ValueError(f"betas={list(betas)!r}: each is the name of a beta, such as 'context-1m-2025-08-07'.")
    return ({"anthropic-beta": ",".join(names)}, {"beta": "true"}) if names else ({}, {})


def _check_extra(extra: Mapping[str, Any]) -> None:
    own = sorted(_OWN_KEYS & extra.keys())
    if own:
        raise ValueError(
            f"extra holds {', '.join(map(repr, own))}, which have parameters of their own; give them there."
        )


def _check_choice(choice: Mapping[str, Any] | None, tools: Sequence[Mapping[str, Any]]) -> None:
    if choice is None:
        return
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        raise ValueError(f"tool_choice has the type {kind!r}; the API knows 'auto', 'any', 'tool' and 'none'.")
    if kind in ("any", "tool") and not tools:
        raise ValueError(f"tool_choice {kind!r} needs tools, and there are none.")
    names = [tool.get("name") for tool in tools]
    if kind == "tool" and choice.get("name") not in names:
        raise ValueError(f"tool_choice names the tool {choice.get('name')!r}; there are {names!r}.")


def _check_thinking(thinking: Mapping[str, Any] | None) -> None:
    if thinking is not None and thinking.get("type") not in ("enabled", "disabled", "adaptive"):
        raise ValueError(
            f"thinking has the type {thinking.get('type')!r}; the API knows 'adaptive', 'enabled' and 'disabled'."
        )
