"""Text of any length in bounded memory: its beginning and its end."""

from __future__ import annotations

import codecs
from collections import deque


class Excerpt:
    """Bytes of an output as they come, decoded as UTF-8; what is no UTF-8 becomes U+FFFD.

    A character may come in two pieces.

    >>> excerpt = Excerpt(keep=12)
    >>> excerpt.add(b"caf\\xc3"), excerpt.add(b"\\xa9 au lait, cr\\xe8me")
    ('caf', 'é au lait, cr�me')
    >>> print(excerpt.text)
    café a
    [7 characters left out]
     cr�me
    """

    def __init__(self, *, keep: int) -> None:
        """`keep`: characters kept, half of them from the beginning and half from the end."""
        self._half = keep // 2
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self._dropped = 0

    def add(self, data: bytes, *, final: bool = False) -> str:
        """Take bytes; gives the text that they complete. `final`: no more will come."""
        text = self._decoder.decode(data, final)
        room = self._half - len(self._head)
        rest = text
        if room > 0:
            self._head += text[:room]
            rest = text[room:]
        if rest:
            self._tail.append(rest)
            self._tail_length += len(rest)
            self._trim()
        return text

    @property
    def text(self) -> str:
        """The beginning and the end, with a note of what was left out between them."""
        tail = "".join(self._tail)
        overlong = len(tail) - self._half
        if overlong > 0:
            tail = tail[overlong:]
        dropped = self._dropped + max(0, overlong)
        return f"{self._head}\n[{dropped} characters left out]\n{tail}" if dropped else self._head + tail

    def _trim(self) -> None:
        while self._tail_length - len(self._tail[0]) >= self._half:
            first = self._tail.popleft()
            self._tail_length -= len(first)
            self._dropped += len(first)
