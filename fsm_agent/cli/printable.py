"""Text of models and tools, made safe for a terminal."""

from __future__ import annotations

from typing import Final

# Control characters would move the cursor or set colours: they are shown as the symbols that Unicode has for them.
# Line ends and tabs stay; marks that turn the direction of writing, which can hide text, and lone surrogates go.
_SYMBOLS: Final = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_DELETE: Final = {0x7F: "\N{SYMBOL FOR DELETE}"}
_C1: Final = dict.fromkeys(range(0x80, 0xA0), "\N{REPLACEMENT CHARACTER}")
_DIRECTIONS: Final = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\N{REPLACEMENT CHARACTER}")
_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")
_TABLE: Final = {**_SYMBOLS, **_DELETE, **_C1, **_DIRECTIONS, **_SURROGATES}


def printable(text: str) -> str:
    r"""The text without anything that would act on a terminal.

    >>> printable("red: \x1b[31m\r\n")
    'red: ␛[31m\n'
    """
    return text.replace("\r\n", "\n").translate(_TABLE)


def one_line(text: str, limit: int) -> str:
    """The text in one line of at most `limit` characters.

    >>> one_line("def f():\\n    return 1", 12)
    'def f(): re…'
    """
    line = " ".join(printable(text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
