"""What a run tells its consumer: one closed union of frozen models, discriminated by `type`.

Every run ends with exactly one `terminal` event, and it is the last.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_serializer
from pydantic_core import to_jsonable_python

from fsm_agent.model.json_types import is_object
from fsm_agent.model.surrogates import mended
from fsm_agent.model.unchecked import unchecked
from fsm_agent.model.usage import Usage


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """The event with these fields, all of them, and no check."""
        return unchecked(cls, fields)


class StreamRequestStart(_Event):
    """A request to the model is about to be sent."""

    type: Literal["stream_request_start"] = "stream_request_start"
    model: str
    request: int
    """Number of the request in the run, from 1 (summaries included)."""
    attempt: int
    """1 for the first request of a turn, more for its repetitions."""
    purpose: Literal["turn", "summary"] = "turn"


class StreamEvent(_Event):
    """One raw event of the model's stream, as it came over the wire."""

    type: Literal["stream_event"] = "stream_event"
    message_id: str
    """Id of the message that the event belongs to; a `tombstone` with this id retracts it."""
    event: dict[str, Any]
    """The event as the API sends it: `event["type"]` is `content_block_delta`, `message_start`, ..."""

    @property
    def text(self) -> str:
        """The text that this event adds to the answer, or ''."""
        delta = self.event.get("delta")
        if not is_object(delta) or delta.get("type") != "text_delta":
            return ""
        return str(delta.get("text", ""))

    def typed(self) -> Any:
        """The event as the SDK's own type (`anthropic.types.RawMessageStreamEvent`), for code written against it."""
        from fsm_agent.model.sdk_types import typed_event

        return typed_event(self.event)


class Assistant(_Event):
    """A message of the model has entered the history."""

    type: Literal["assistant"] = "assistant"
    message: dict[str, Any]
    message_id: str
    model: str
    stop_reason: str | None
    usage: Usage
    partial: bool = False
    """Only the whole, visible part of a message that was cut is in the history."""


class User(_Event):
    """A message of role `user` has entered the history: tool results, or an instruction of the loop."""

    type: Literal["user"] = "user"
    message: dict[str, Any]
    purpose: str
    """`prompt`, `tool_results`, `queued`, or the action that added it (`ask_to_continue_truncated`, ...)."""


class System(_Event):
    """A notice that is not part of the conversation: an error that no row repaired, a fallback, a hook's failure."""

    type: Literal["system"] = "system"
    subtype: str
    """`error`, `model_fallback`, `backoff`, `hook_error`, `hook_timeout`, `interrupted`, `limit`, ..."""
    message: str
    detail: dict[str, Any] = Field(default_factory=dict)


class Attachment(_Event):
    """Something added beside the tool results: a message that the user queued, a note of a hook."""

    type: Literal["attachment"] = "attachment"
    kind: str
    content: Any


class Progress(_Event):
    """A tool has started, tells of its progress, or has finished. Each start has exactly one finish."""

    type: Literal["progress"] = "progress"
    kind: Literal["tool_started", "tool_progress", "tool_finished"]
    tool_use_id: str
    tool: str
    is_error: bool | None = None
    """Known for `tool_finished`."""
    seconds: float | None = None
    """Time that the tool took; known for `tool_finished`."""
    discarded: bool = False
    """The message that held the call was discarded, and the result with it."""
    data: Any = None
    """What the tool told with `context.progress`, as it is; in JSON what has no form there is text."""

    @field_serializer("data", when_used="json")
    def _data_as_json(self, data: Any) -> Any:
        try:
            return mended(to_jsonable_python(data, bytes_mode="base64", serialize_unknown=True))
        except Exception:  # the tool's own object: a circle, a bad `__str__`
            return f"<{type(data).__name__}>"


class Tombstone(_Event):
    """What was streamed of this message is retracted: it is not in the history."""

    type: Literal["tombstone"] = "tombstone"
    message_id: str
    cause: str
    """The trigger of the row that discarded it."""


class ToolUseSummary(_Event):
    """One line about a batch of tool calls, for displays that fold them."""

    type: Literal["tool_use_summary"] = "tool_use_summary"
    tool_use_ids: list[str]
    summary: str


class ContextEdit(_Event):
    """A stage of the context pipeline changed what the model is sent."""

    type: Literal["context_edit"] = "context_edit"
    stage: str
    tokens_before: int
    tokens_after: int
    removed: str
    """What was removed or replaced, in words."""


class Transition(_Event):
    """A row fired. The sequence of these is the trace of the run."""

    type: Literal["transition"] = "transition"
    source: str
    trigger: str
    dest: str
    facts: dict[str, str]
    """The outcomes that were known when the row fired."""
    control: dict[str, int]
    """Counters and flags after the row fired."""
    reason: str | None = None


class Terminal(_Event):
    """The end of the run: exactly one, last."""

    type: Literal["terminal"] = "terminal"
    reason: str
    detail: str
    """Why, in a sentence; '' where the reason says it all."""
    text: str
    """The whole answer: continuations are joined."""
    turns: int
    requests: int
    usage: Usage


Event: TypeAlias = Annotated[
    StreamRequestStart
    | StreamEvent
    | Assistant
    | User
    | System
    | Attachment
    | Progress
    | Tombstone
    | ToolUseSummary
    | ContextEdit
    | Transition
    | Terminal,
    Field(discriminator="type"),
]
"""Everything that a run may tell. Match on the class or on `type`."""
