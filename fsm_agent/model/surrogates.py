"""Lone surrogates: code units that JSON may spell (`\\ud83d`) and UTF-8 cannot. The API refuses a body that has one."""

from collections.abc import Iterable
from typing import Any, Final

from fsm_agent.model.json_types import is_array, is_object

__all__ = ["mended", "mended_text"]


def mended_text(text: str) -> str:
    """The text in strict Unicode: two halves that stand together become their character, a lone one U+FFFD.

    >>> mended_text("\\ud83d\\ude00 \\ud83d!") == "\\U0001f600 \\ufffd!"
    True
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mended(value: Any) -> Any:
    """JSON data with each of its strings mended, keys too; the same object when there is nothing to mend.

    >>> mended({"a": ["\\ud83d", 1]}) == {"a": ["\\ufffd", 1]}
    True
    """
    return value if _is_strict(value) else _rebuilt(value)


def _is_strict(value: Any) -> bool:
    """Whether there is nothing to mend. This is all that happens to nearly every event, so it makes nothing new."""
    if isinstance(value, str):
        return mended_text(value) is value
    parts: Iterable[Any] = ()
    if is_object(value):
        parts = value.values() if _are_ascii(value) else (*value, *value.values())
    elif is_array(value):
        parts = value
    for part in parts:
        if type(part) is str:
            if not part.isascii() and mended_text(part) is not part:
                return False
        elif part is not None and type(part) not in _NO_TEXT and not _is_strict(part):
            return False
    return True


_NO_TEXT: Final = frozenset({int, float, bool})


def _are_ascii(keys: Iterable[Any]) -> bool:
    """One look at all of them; False also for keys that are no strings."""
    try:
        return "".join(keys).isascii()
    except TypeError:
        return False


def _rebuilt(value: Any) -> Any:
    if isinstance(value, str):
        return mended_text(value)
    if is_object(value):
        fresh: dict[Any, Any] = {mended(key): mended(item) for key, item in value.items()}
        same = all(a is b and value[a] is fresh[b] for a, b in zip(value, fresh, strict=False))
        return value if same and len(fresh) == len(value) else fresh
    if is_array(value):
        new: list[Any] = [mended(item) for item in value]
        return value if all(a is b for a, b in zip(value, new, strict=True)) else new
    return value
