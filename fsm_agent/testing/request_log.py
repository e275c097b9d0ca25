"""What the server saw: one entry for each request."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fsm_agent.testing.rules import ApiRefusal, parse_body
from fsm_agent.testing.shapes import JsonObject

__all__ = ["LoggedRequest"]


@dataclass
class LoggedRequest:
    """One request and what became of it."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    at: float
    """Seconds of the server's clock."""
    refusal: ApiRefusal | None = None
    """The rule that refused it."""
    unexpected: str | None = None
    """Why the script had no answer."""
    status: int | None = None
    """The status that was sent; `None` when the connection ended before."""
    events_sent: int = 0
    """Events of the stream that were sent, pings included."""
    client_gone: bool = False
    """The client closed the connection before the answer was complete."""
    finished: bool = False
    """Nothing more is going to be sent."""

    @cached_property
    def body(self) -> JsonObject | None:
        """The parsed body as it was sent; `None` when it was no JSON object."""
        parsed = parse_body(self.raw)
        return None if isinstance(parsed, ApiRefusal) else parsed

    @property
    def messages(self) -> list[JsonObject]:
        """The messages of the request."""
        return [] if self.body is None else list(self.body.get("messages", []))

    @property
    def is_messages_call(self) -> bool:
        """Whether it was `POST /v1/messages`."""
        return self.method == "POST" and self.path.partition("?")[0] == "/v1/messages"
