"""A script as a JSON file, for `fsm-agent serve-model --script FILE` and for test data.

```json
{"format": 1,
 "script": [
   {"blocks": [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "name": "read", "input": {"path": "a"}}]},
   {"http": 529, "error": "overloaded_error", "message": "Overloaded", "headers": {"retry-after": "3"}, "repeat": 2},
   {"stream": ["message_start", {"text": "par"}, "reset"]},
   {"blocks": [{"type": "text", "text": "A summary."}], "when": "kind==summary", "repeat": "always"},
   {"response": {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>"}},
   {"recording": "cassette.json", "exchange": 0},
   {"blocks": [{"type": "text", "text": "All done."}], "stop": "end_turn", "usage": {"output_tokens": 3}}
 ]}
```

`settings` (models, context_window, ...) and `chunking` (text, json, wire, newline, pings, delay) may stand beside
`script`. A bare list is a script too. Every item may have `when` (`kind==turn`, `kind==summary`, `model==NAME`,
`size>BYTES`, `size>half` of the largest request so far; joined by `and`), `repeat` (a number or `"always"`) and, except
errors, `fault` (`{"at_event": 3, "kind": "reset"}`).
"""

import json
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fsm_agent.testing.events import Chunking
from fsm_agent.testing.recordings import load_cassette, recorded_item
from fsm_agent.testing.rules import ApiSettings, ModelProfile
from fsm_agent.testing.script import (
    ApiError,
    Fault,
    Item,
    RawResponse,
    Repeat,
    Reply,
    RequestKind,
    Stream,
    When,
    with_fault,
)
from fsm_agent.testing.shapes import JsonObject

__all__ = ["ScriptFile", "ScriptItem", "load_script", "parse_when"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class _Response(_Strict):
    status: int = 200
    headers: dict[str, str] = Field(default_factory=lambda: {"content-type": "application/json"})
    body: str = ""


class ScriptItem(_Strict):
    """One item: exactly one of `blocks`, `stream`, `http`, `response`, `recording` says what it is."""

    blocks: list[JsonObject] | None = None
    stream: list[str | JsonObject] | None = None
    http: int | None = None
    response: _Response | None = None
    recording: str | None = None

    stop: str | None = None
    usage: JsonObject | None = None
    model: str | None = None
    stop_sequence: str | None = None
    stop_details: JsonObject | None = None
    error: str = "api_error"
    message: str | None = None
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    details: JsonObject | None = None
    exchange: int = 0
    when: str | None = None
    repeat: int | Literal["always"] = 1
    fault: Fault | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        kinds = ("blocks", "stream", "http", "response", "recording")
        given = [name for name in kinds if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"an item has exactly one of {', '.join(kinds)}; this one has {given or 'none'}")
        if self.http is not None and self.fault is not None:
            raise ValueError("an error answer (http) has no events, so it can have no fault")
        return self

    def item(self, folder: Path = Path()) -> Item | Repeat:
        """The item; `folder` is where a recording's path starts."""
        made = self._plain(parse_when(self.when), folder)
        if self.fault is not None and not isinstance(made, ApiError):
            made = with_fault(made, self.fault)
        return made if self.repeat == 1 else Repeat(made, self.repeat)

    def _plain(self, when: When | None, folder: Path) -> Item:
        if self.blocks is not None:
            return Reply(
                *self.blocks,
                stop=self.stop,
                usage=self.usage,
                model=self.model,
                stop_sequence=self.stop_sequence,
                stop_details=self.stop_details,
                when=when,
            )
        if self.stream is not None:
            return Stream(self.stream, usage=self.usage, model=self.model, when=when)
        if self.http is not None:
            error, headers = self.error, self.headers
            return ApiError(self.http, error, self.message, headers=headers, details=self.details, when=when)
        if self.response is not None:
            answer = self.response
            return RawResponse(answer.body, status=answer.status, headers=answer.headers, when=when)
        return self._recorded(folder / str(self.recording), when)

    def _recorded(self, path: Path, when: When | None) -> RawResponse:
        exchanges = load_cassette(path)
        if not 0 <= self.exchange < len(exchanges):
            raise ValueError(f"{path} has {len(exchanges)} exchanges, so there is no exchange {self.exchange}.")
        made = recorded_item(exchanges[self.exchange])
        return RawResponse(made.body, status=made.status, headers=made.headers, when=when)


class _Settings(_Strict):
    models: dict[str, ModelProfile] = Field(default_factory=dict[str, ModelProfile])
    accept_unknown_models: bool = True
    context_window: int | None = None
    enforce_max_tokens: bool = False
    unique_ids: Literal["turn", "history"] = "turn"
    check_signatures: bool = True
    image_megabytes: int = 5


class ScriptFile(_Strict):
    """A whole script file."""

    format: Literal[1] = 1
    script: list[ScriptItem]
    settings: _Settings = _Settings()
    chunking: Chunking = Chunking()

    def items(self, folder: Path = Path()) -> list[Item | Repeat]:
        """The script."""
        return [item.item(folder) for item in self.script]

    def api_settings(self) -> ApiSettings:
        """The rules' settings."""
        return ApiSettings(**dict(self.settings))


def load_script(path: str | Path) -> ScriptFile:
    """Read a script file; `ValueError` says where it is wrong."""
    content = Path(path).read_text(encoding="utf-8")
    try:
        parsed: Any = json.loads(content)
        return ScriptFile.model_validate({"script": parsed} if isinstance(parsed, list) else parsed)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the top level"
        raise ValueError(f"{path} is no script: {where}: {first['msg']}.") from error
    except ValueError as error:
        raise ValueError(f"{path} is no script: it is not JSON ({error}).") from error


def parse_when(words: str | None) -> When | None:
    """The condition of an item, from its words in a file.

    >>> parse_when("kind==summary and size>half")
    When(kind='summary', model=None, larger_than=None, larger_than_share=0.5, test=None)
    """
    if words is None:
        return None
    found: dict[str, Any] = {}
    for part in words.split(" and "):
        key, value = _condition(part.strip())
        found[key] = value
    return When(**found)


_KINDS: dict[str, RequestKind] = {"turn": "turn", "summary": "summary"}


def _condition(part: str) -> tuple[str, Any]:
    if part.startswith("kind==") and part.removeprefix("kind==") in _KINDS:
        return "kind", _KINDS[part.removeprefix("kind==")]
    if part.startswith("model=="):
        return "model", part.removeprefix("model==")
    if part == "size>half":
        return "larger_than_share", 0.5
    if part.startswith("size>") and part.removeprefix("size>").isdigit():
        return "larger_than", int(part.removeprefix("size>"))
    raise ValueError(
        f"{part!r} is no condition; write kind==turn, kind==summary, model==NAME, size>BYTES or size>half,"
        " joined by `and`."
    )
