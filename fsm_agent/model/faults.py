"""What can go wrong with a stream itself, beside the errors that the SDK and its transport raise."""

from typing import Final

__all__ = ["EOF", "PROTOCOL", "STALL", "StreamFault"]

EOF: Final = "eof"
"""The stream ended before the message was whole."""
STALL: Final = "stall"
"""The stream stays open and says nothing, or nothing but pings."""
PROTOCOL: Final = "protocol"
"""The stream says something that the Messages API does not: no JSON, an unknown block, events out of order."""


class StreamFault(Exception):  # noqa: N818 - a fault of the stream, told as an outcome
    """A stream that is not a whole message. `kind` is `eof`, `stall` or `protocol`; the text says what was wrong.

    A `call_model` of your own may raise it too.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
