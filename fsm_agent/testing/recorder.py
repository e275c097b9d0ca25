"""Recording of real runs, in the form that `RecordedModel` and the server replay.

What could identify somebody is taken out before anything is written: keys and other headers, e-mail addresses,
organization, workspace, account and request ids.
"""

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsm_agent.testing.recordings import Exchange, save_cassette
from fsm_agent.testing.shapes import is_list, is_object

if TYPE_CHECKING:
    import anthropic
    import httpx2

__all__ = ["Recorder", "record", "redacted"]

REQUEST_HEADERS = ("anthropic-version", "anthropic-beta", "content-type")
RESPONSE_HEADERS = ("content-type", "retry-after", "x-should-retry")
"""Only these are kept, and the `anthropic-ratelimit-*` headers."""

_NO_ID = "00000000-0000-0000-0000-000000000000"
_REDACTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"), "user@example.com"),
    (
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        _NO_ID,
    ),
    (re.compile(r"\bsk-ant-[A-Za-z0-9_-]+"), "sk-ant-REDACTED"),
    (re.compile(r"\b(req|org|wrkspc|user|acct)_[A-Za-z0-9]{8,}"), r"\1_REDACTED"),
)


def redacted(text: str) -> str:
    """The text without addresses, keys and ids of organizations, workspaces, users and requests.

    >>> redacted("ask jane.doe@corp.example about req_011CUsMKYjBx5E13iV6w2whj")
    'ask user@example.com about req_REDACTED'
    """
    for pattern, substitute in _REDACTIONS:
        text = pattern.sub(substitute, text)
    return text


class Recorder:
    """Collects exchanges. `redact` is applied to every string on top of the rules of this module."""

    def __init__(self, redact: Callable[[str], str] | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self._own_redaction = redact

    def transport(self, inner: "httpx2.AsyncBaseTransport | None" = None) -> "httpx2.AsyncBaseTransport":
        """A transport for `httpx2.AsyncClient` (so for the SDK's `http_client`) that records what passes."""
        import httpx2

        from fsm_agent.testing.recording_transport import RecordingTransport

        return RecordingTransport(inner or httpx2.AsyncHTTPTransport(), self._add)

    def client(self, **options: Any) -> "anthropic.AsyncAnthropic":
        """An SDK client that records; `options` are those of `anthropic.AsyncAnthropic`."""
        import anthropic

        http = anthropic.DefaultAsyncHttpxClient(transport=self.transport())
        return anthropic.AsyncAnthropic(http_client=http, **options)

    def _add(self, request: "httpx2.Request", content: bytes, response: "httpx2.Response", answered: bytes) -> None:
        asked = {
            "method": request.method,
            "path": request.url.raw_path.decode(),
            "headers": self._headers(request.headers, REQUEST_HEADERS),
            "body": self._json(_parsed(content)),
        }
        headers = self._headers(response.headers, RESPONSE_HEADERS)
        told = {"status": response.status_code, "headers": headers, **self._body(headers, answered)}
        self.exchanges.append({"request": asked, "response": told})

    def _redact(self, text: str) -> str:
        text = redacted(text)
        return text if self._own_redaction is None else self._own_redaction(text)

    def _json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redact(value)
        if is_list(value):
            return [self._json(item) for item in value]
        return {key: self._json(item) for key, item in value.items()} if is_object(value) else value

    def _headers(self, headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
        lower = {name.lower(): value for name, value in headers.items()}
        kept = [name for name in lower if name in names or name.startswith("anthropic-ratelimit-")]
        return {name: self._redact(lower[name]) for name in kept}

    def _body(self, headers: Mapping[str, str], content: bytes) -> dict[str, Any]:
        text = content.decode("utf-8", "replace")
        if "event-stream" in headers.get("content-type", ""):
            return {"sse": self._redact(text)}
        parsed = _parsed(content)
        return {"text": self._redact(text)} if parsed is None else {"body": self._json(parsed)}

    def save(self, path: str | Path) -> None:
        """Write what was recorded as a cassette."""
        save_cassette(path, self.exchanges)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


@asynccontextmanager
async def record(path: str | Path, *, redact: Callable[[str], str] | None = None) -> AsyncGenerator[Recorder, None]:
    """Record what `recorder.client(...)` sends and gets, and write it to `path` at the end of the block, also when the
    block fails.
    """
    recorder = Recorder(redact)
    try:
        yield recorder
    finally:
        recorder.save(path)
