"""The words in which a test says what the model does.

A *script* is a list of items that are served in order, or a function from the request to an item:

>>> script = [
...     Reply(text("Let me look."), tool_use("read", {"path": "a.txt"}, id="t1")),
...     ApiError(529, "overloaded_error", "Overloaded", headers={"retry-after": "3"}),
...     Stream(["message_start", {"text": "par"}, "reset"]),
...     Reply("All done."),
... ]
>>> script[0].stop_reason, script[3].stop_reason
('tool_use', 'end_turn')

`Reply` is a whole answer, `Stream` one told event by event, `ApiError` an error before any stream, `RawResponse` any
bytes at all. `Repeat` serves an item several times; `when=` keeps an item for requests of one kind; `fault=` breaks
the answer at one of its events.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from fsm_agent.testing.content import redacted_thinking, text, thinking, tool_use
from fsm_agent.testing.request_kinds import RequestKind, request_kind
from fsm_agent.testing.shapes import JsonObject

__all__ = [
    "ApiError",
    "Fault",
    "FaultKind",
    "Item",
    "RawResponse",
    "Repeat",
    "Reply",
    "RequestKind",
    "Script",
    "ScriptFunction",
    "Step",
    "Stream",
    "Usage",
    "When",
    "redacted_thinking",
    "request_kind",
    "text",
    "thinking",
    "tool_use",
    "with_fault",
]

Step: TypeAlias = str | bytes | JsonObject
"""One raw step of a `Stream`; `fsm_agent.testing.events` says what each means."""

FaultKind: TypeAlias = Literal["eof", "cut", "reset", "error", "silence", "garbage"]
"""How an answer breaks.

`eof` ends the body properly but too early; `cut` closes the connection without the end of the body; `reset` sends a
TCP reset; `error` puts an error event into the stream; `silence` sends nothing more; `garbage` sends a data line that
is no JSON.
"""


# ---- what an item says beside its content


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts that an answer reports; what is left `None` is counted by the server.

    >>> Usage(output_tokens=20).given()
    {'output_tokens': 20}
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further keys of the usage object, such as `server_tool_use`."""

    def given(self) -> JsonObject:
        """The counts that the script fixes, by their name on the wire."""
        named = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_creation_input_tokens": self.cache_creation_input_tokens,
            "cache_read_input_tokens": self.cache_read_input_tokens,
        }
        return {key: value for key, value in named.items() if value is not None} | dict(self.more)


@dataclass(frozen=True, slots=True)
class When:
    """Which requests an item is kept for. All conditions that are given must hold.

    >>> When(kind="summary").admits({"model": "m", "messages": []}, "turn", size=10, largest=10)
    False
    """

    kind: RequestKind | None = None
    model: str | None = None
    """The exact model name of the request."""
    larger_than: float | None = None
    """Bytes of the request body."""
    larger_than_share: float | None = None
    """Share (0 to 1) of the largest request body that this script has seen."""
    test: Callable[[JsonObject], bool] | None = None
    """A predicate on the parsed body."""

    def admits(self, body: JsonObject, kind: RequestKind, *, size: int, largest: int) -> bool:
        """Whether the request with this body, kind and size (bytes) may have the item."""
        return (
            (self.kind is None or self.kind == kind)
            and (self.model is None or self.model == body.get("model"))
            and (self.larger_than is None or size > self.larger_than)
            and (self.larger_than_share is None or size > self.larger_than_share * largest)
            and (self.test is None or self.test(body))
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """Break an answer at one event: events before `at_event` (from 0) arrive whole, the fault comes in its stead.

    `after_bytes` sends so many bytes of that event first, so that the break is inside a line (over HTTP only; in
    process an event is whole or absent).
    """

    at_event: int
    kind: FaultKind
    after_bytes: int = 0
    error_type: str = "overloaded_error"
    message: str = "Overloaded"

    def __post_init__(self) -> None:
        if self.at_event < 0:
            raise ValueError(f"Fault(at_event={self.at_event}): events are counted from 0.")


def _selector(when: "RequestKind | When | Callable[[JsonObject], bool] | None") -> When | None:
    if when is None or isinstance(when, When):
        return when
    if callable(when):
        return When(test=when)
    if when in ("turn", "summary"):
        return When(kind=when)
    raise ValueError(f'when={when!r} is no request kind; write "turn", "summary", a When(...) or a predicate.')


Selector: TypeAlias = RequestKind | When | Callable[[JsonObject], bool]


# ---- items


@dataclass(frozen=True, slots=True, init=False)
class Reply:
    """A whole answer of the model: content blocks and a stop reason.

    A `str` stands for a text block. Without `stop` it is `tool_use` when the reply calls a tool, else `end_turn`.
    """

    blocks: tuple[JsonObject, ...]
    stop: str | None
    usage: Usage
    model: str | None
    stop_sequence: str | None
    stop_details: JsonObject | None
    when: When | None
    fault: Fault | None
    extra: JsonObject

    def __init__(
        self,
        *blocks: JsonObject | str,
        stop: str | None = None,
        usage: Usage | Mapping[str, Any] | None = None,
        model: str | None = None,
        stop_sequence: str | None = None,
        stop_details: JsonObject | None = None,
        when: Selector | None = None,
        fault: Fault | None = None,
        extra: JsonObject | None = None,
    ) -> None:
        made = tuple(text(block) if isinstance(block, str) else dict(block) for block in blocks)
        for position, block in enumerate(made):
            if not isinstance(block.get("type"), str):
                raise TypeError(f"Block {position} of Reply has no type; write text(...), tool_use(...) or a dict.")
        set_field = object.__setattr__
        set_field(self, "blocks", made)
        set_field(self, "stop", stop)
        set_field(self, "usage", _usage(usage))
        set_field(self, "model", model)
        set_field(self, "stop_sequence", stop_sequence)
        set_field(self, "stop_details", stop_details)
        set_field(self, "when", _selector(when))
        set_field(self, "fault", fault)
        set_field(self, "extra", dict(extra or {}))

    @property
    def stop_reason(self) -> str:
        """The stop reason that goes over the wire."""
        if self.stop is not None:
            return self.stop
        return "tool_use" if any(block["type"] == "tool_use" for block in self.blocks) else "end_turn"


def _usage(usage: Usage | Mapping[str, Any] | None) -> Usage:
    if usage is None:
        return Usage()
    if isinstance(usage, Usage):
        return usage
    known = {name: usage[name] for name in _USAGE_NAMES if name in usage}
    return Usage(**known, more={key: value for key, value in usage.items() if key not in _USAGE_NAMES})


_USAGE_NAMES = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True, init=False)
class Stream:
    """An answer told step by step, also a wrong one; see `fsm_agent.testing.events.stream_actions` for the steps."""

    steps: tuple[Step, ...]
    usage: Usage
    model: str | None
    when: When | None
    fault: Fault | None

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        usage: Usage | Mapping[str, Any] | None = None,
        model: str | None = None,
        when: Selector | None = None,
        fault: Fault | None = None,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "steps", tuple(steps))
        set_field(self, "usage", _usage(usage))
        set_field(self, "model", model)
        set_field(self, "when", _selector(when))
        set_field(self, "fault", fault)


@dataclass(frozen=True, slots=True, init=False)
class ApiError:
    """An error answer before any stream: HTTP status, error type, message and headers."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str]
    details: JsonObject | None
    when: When | None

    def __init__(
        self,
        status: int,
        type: str,  # noqa: A002  the wire's own name
        message: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        details: JsonObject | None = None,
        when: Selector | None = None,
    ) -> None:
        if not 400 <= status <= 599:
            raise ValueError(f"ApiError({status}): an error has a status from 400 to 599; use RawResponse for others.")
        set_field = object.__setattr__
        set_field(self, "status", status)
        set_field(self, "type", type)
        set_field(self, "message", _DEFAULT_MESSAGES.get(type, type) if message is None else message)
        set_field(self, "headers", (_RETRY if status == 529 else {}) | dict(headers or {}))
        set_field(self, "details", details)
        set_field(self, "when", _selector(when))

    def body(self, request_id: str | None) -> JsonObject:
        """The JSON body as the API writes it."""
        error: JsonObject = {"type": self.type, "message": self.message}
        if self.details is not None:
            error["details"] = self.details
        return {"type": "error", "error": error, "request_id": request_id}


_RETRY = {"x-should-retry": "true"}
"""Comes with every 529 of the API, so with ours, unless the script says otherwise."""

_DEFAULT_MESSAGES = {
    "overloaded_error": "Overloaded",
    "api_error": "Internal server error",
    "rate_limit_error": "This request would exceed your organization's rate limit.",
    "authentication_error": "invalid x-api-key",
    "not_found_error": "Not Found",
}


@dataclass(frozen=True, slots=True, init=False)
class RawResponse:
    """Any HTTP answer, byte for byte: an HTML page with status 200, an empty body, a recorded stream.

    A `fault` needs an event stream (`content-type: text/event-stream`) to count events in.
    """

    body: bytes
    status: int
    headers: Mapping[str, str]
    when: When | None
    fault: Fault | None

    def __init__(
        self,
        body: bytes | str = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        when: Selector | None = None,
        fault: Fault | None = None,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "body", body.encode() if isinstance(body, str) else body)
        set_field(self, "status", status)
        set_field(self, "headers", {"content-type": "application/json"} if headers is None else dict(headers))
        set_field(self, "when", _selector(when))
        set_field(self, "fault", fault)

    @property
    def is_event_stream(self) -> bool:
        """Whether the body is a server-sent event stream, by its content type."""
        return any(key.lower() == "content-type" and "event-stream" in value for key, value in self.headers.items())


Item: TypeAlias = Reply | Stream | ApiError | RawResponse
"""One answer of the model."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Serve an item several times, or for ever.

    >>> Repeat(Reply("again"), 3).times
    3
    """

    item: Item
    times: int | Literal["always"]

    def __post_init__(self) -> None:
        if self.times != "always" and self.times < 1:
            raise ValueError(f'Repeat(times={self.times}): give a number from 1, or "always".')


ScriptFunction: TypeAlias = Callable[[JsonObject], Item]
"""A model as a function of the parsed request body."""

Script: TypeAlias = Sequence[Item | Repeat] | ScriptFunction

_Breakable = TypeVar("_Breakable", bound=Reply | Stream | RawResponse)


def with_fault(item: _Breakable, fault: Fault | None) -> _Breakable:
    """The same item, broken at one event (for drivers that try each event in turn)."""
    made = object.__new__(type(item))
    for name in item.__dataclass_fields__:
        object.__setattr__(made, name, fault if name == "fault" else getattr(item, name))
    return made
