"""Values written down: as JSON that can be read again, and as the Python that makes them.

>>> written = to_json(("refund", {"amount": 5.0}))
>>> written
{'$tuple': ['refund', {'amount': 5.0}]}
>>> from_json(written)
('refund', {'amount': 5.0})
>>> Code().of(written)
"('refund', {'amount': 5.0})"
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import importlib
import math
import pathlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel

from fsm_agent.testing.item_words import code_of, item_of, words_of
from fsm_agent.testing.script import ApiError, RawResponse, Reply, Stream
from fsm_agent.testing.shapes import as_list

__all__ = ["Code", "Drawn", "Result", "UnwritableError", "from_json", "named", "place_of", "to_json"]


class UnwritableError(ValueError):
    """A value that has no written form."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an earlier step returned (the first is step 0); `index` counts within `multiple(...)`."""

    step: int
    index: int | None = None


@dataclass(slots=True)
class Drawn:
    """Values that a rule drew with `st.data()`, one after the other.

    >>> data = Drawn([3])
    >>> data.draw("any strategy")
    3
    """

    values: list[Any] = field(default_factory=list[Any])
    _next: int = 0

    def draw(self, strategy: object, label: object = None) -> Any:
        """The next one. Raises `ValueError` after the last."""
        del strategy, label
        if self._next >= len(self.values):
            raise ValueError(f"The rule draws more than the {len(self.values)} values that it drew before.")
        self._next += 1
        return self.values[self._next - 1]


_TEXTS: Mapping[type[Any], tuple[Callable[[Any], str], str]] = {
    dt.datetime: (dt.datetime.isoformat, "fromisoformat"),
    dt.date: (dt.date.isoformat, "fromisoformat"),
    dt.time: (dt.time.isoformat, "fromisoformat"),
    decimal.Decimal: (str, ""),
    fractions.Fraction: (str, ""),
    uuid.UUID: (str, ""),
    pathlib.PosixPath: (str, ""),
}
"""Types whose values are made from a text, how that is written, and by which method it is read ('' calls the type)."""
_NAMES = {each.__name__: each for each in _TEXTS}


def place_of(kind: type[Any]) -> str:
    """`module:name` of a class. Raises `UnwritableError` for one that cannot be imported."""
    if "<" in kind.__qualname__:
        raise UnwritableError(f"The class {kind.__qualname__} is made inside a function, so nothing can import it.")
    return f"{kind.__module__}:{kind.__qualname__}"


def named(place: str) -> Any:
    """What is at `module:name`. Raises `ValueError` if nothing is."""
    module, _, name = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{place} cannot be imported ({error}); put its folder on the path.") from error
    return found


# ---- as JSON


def to_json(value: Any) -> Any:
    """The value as JSON data. Raises `UnwritableError` for what is neither data, an item of a script, an enumeration's
    member, a dataclass, a pydantic model, nor one of a few types of the standard library.
    """
    kind: Any = cast("Any", type(value))
    if value is None or kind in {bool, int, str}:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if kind is dict:
        plain = all(type(key) is str and not key.startswith("$") for key in value)
        if plain:
            return {key: to_json(each) for key, each in value.items()}
        return {"$dict": [[to_json(key), to_json(each)] for key, each in value.items()]}
    if kind is list:
        return [to_json(each) for each in value]
    if kind is tuple:
        return {"$tuple": [to_json(each) for each in value]}
    if kind in {set, frozenset}:
        return {f"${kind.__name__}": sorted((to_json(each) for each in value), key=repr)}
    if kind is bytes:
        return {"$bytes": value.hex()}
    return _tagged(kind, value)


def _tagged(kind: Any, value: Any) -> dict[str, Any]:
    if kind in _TEXTS:
        return {"$text": [kind.__name__, _TEXTS[kind][0](value)]}
    if isinstance(value, Result):
        return {"$result": [value.step, value.index]}
    if isinstance(value, Drawn):
        return {"$drawn": [to_json(each) for each in value.values]}
    if isinstance(value, Reply | Stream | ApiError | RawResponse):
        try:
            return {"$item": words_of(value)}
        except ValueError as error:
            raise UnwritableError(str(error)) from error
    if isinstance(value, enum.Enum):
        return {"$member": [place_of(kind), value.name]}
    if isinstance(value, BaseModel):
        return {"$model": [place_of(kind), value.model_dump(mode="json", by_alias=True)]}
    names = _names_of_fields(kind)
    if names is None:
        raise UnwritableError(f"{value!r} has no written form")
    return {"$object": [place_of(kind), {name: to_json(getattr(value, name)) for name in names}]}


def _names_of_fields(kind: Any) -> list[str] | None:
    """Of a dataclass or a named tuple."""
    if hasattr(kind, "__dataclass_fields__"):
        return [each.name for each in dataclasses.fields(kind) if each.init]
    return list(kind._fields) if tuple in kind.__mro__ and hasattr(kind, "_fields") else None


def from_json(data: Any) -> Any:
    """The value that `to_json` wrote. Raises `ValueError` for what it does not write."""
    if (several := as_list(data)) is not None:
        return [from_json(each) for each in several]
    if not isinstance(data, dict):
        return data
    words = cast("dict[str, Any]", data)
    tag = next(iter(words), "")
    if not tag.startswith("$"):
        return {key: from_json(each) for key, each in words.items()}
    if tag not in _READ:
        raise ValueError(f"There is no {tag}.")
    return _READ[tag](words[tag])


def _object(told: Sequence[Any]) -> Any:
    place, fields = told
    return named(place)(**from_json(fields))


def _text(told: Sequence[Any]) -> Any:
    kind, text = told
    made: Any = _NAMES[kind]
    method = _TEXTS[made][1]
    return (getattr(made, method) if method else made)(text)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "$float": float,
    "$dict": lambda told: {from_json(key): from_json(each) for key, each in told},
    "$tuple": lambda told: tuple(from_json(told)),
    "$set": lambda told: set(from_json(told)),
    "$frozenset": lambda told: frozenset(from_json(told)),
    "$bytes": bytes.fromhex,
    "$text": _text,
    "$result": lambda told: Result(*told),
    "$drawn": lambda told: Drawn(from_json(told)),
    "$item": item_of,
    "$member": lambda told: named(told[0])[told[1]],
    "$model": lambda told: named(told[0]).model_validate(told[1]),
    "$object": _object,
}


# ---- as Python


@dataclass
class Code:
    """Python for what `to_json` wrote, and what it needs to import."""

    imports: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Names, by their module."""

    def lines(self) -> list[str]:
        """The imports as statements."""
        return [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(self.imports.items())]

    def name(self, place: str) -> str:
        """The name by which `module:name` is known, once it is imported."""
        module, _, name = place.partition(":")
        if module != "builtins":
            self.imports.setdefault(module, set()).add(name.partition(".")[0])
        return name

    def of(self, data: Any) -> str:
        """Python that makes the value."""
        if (several := as_list(data)) is not None:
            return f"[{self._several(several)}]"
        if not isinstance(data, dict):
            return repr(data)
        words = cast("dict[str, Any]", data)
        tag = next(iter(words), "")
        if not tag.startswith("$"):
            return f"{{{', '.join(f'{key!r}: {self.of(each)}' for key, each in words.items())}}}"
        return self._tagged(tag, words[tag])

    def _several(self, data: Iterable[Any]) -> str:
        return ", ".join(self.of(each) for each in data)

    def _tagged(self, tag: str, told: Any) -> str:
        ways: Mapping[str, Callable[[Any], str]] = {
            "$float": lambda told: f"float({told!r})",
            "$dict": lambda told: f"{{{', '.join(f'{self.of(key)}: {self.of(each)}' for key, each in told)}}}",
            "$tuple": lambda told: f"({self._several(told)}{',' if len(told) == 1 else ''})",
            "$set": lambda told: f"set([{self._several(told)}])",
            "$frozenset": lambda told: f"frozenset([{self._several(told)}])",
            "$bytes": lambda told: repr(bytes.fromhex(told)),
            "$text": self._text,
            "$result": lambda told: f"{self.name(_RESULT)}({', '.join(repr(n) for n in told if n is not None)})",
            "$drawn": lambda told: f"{self.name(_DRAWN)}([{self._several(told)}])",
            "$item": self._item,
            "$member": lambda told: f"{self.name(told[0])}[{told[1]!r}]",
            "$model": lambda told: f"{self.name(told[0])}.model_validate({told[1]!r})",
            "$object": self._object,
        }
        return ways[tag](told)

    def _text(self, told: Sequence[Any]) -> str:
        kind, text = told
        made = _NAMES[kind]
        method = _TEXTS[made][1]
        name = self.name(f"{'pathlib' if made is pathlib.PosixPath else made.__module__}:{kind}")
        return f"{name}{'.' if method else ''}{method}({text!r})"

    def _object(self, told: Sequence[Any]) -> str:
        place, fields = told
        return f"{self.name(place)}({', '.join(f'{name}={self.of(each)}' for name, each in fields.items())})"

    def _item(self, words: Any) -> str:
        item = item_of(words)
        names = {type(item).__name__}
        blocks = item.blocks if isinstance(item, Reply) else ()
        names |= {str(block["type"]) for block in blocks if block["type"] in {"tool_use", "thinking"}}
        names |= {"Fault"} if getattr(item, "fault", None) is not None else set()
        self.imports.setdefault("fsm_agent.testing", set()).update(names)
        return code_of(item)


_RESULT, _DRAWN = "fsm_agent.testing:Result", "fsm_agent.testing:Drawn"
