"""Values that fit a JSON schema, and values that do not: what a model gives a tool."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from fsm_agent.testing.shapes import JsonObject, as_list, as_object

__all__ = ["json_values", "misfits", "some_of", "values_of"]

_SCALARS = st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-1e6, 1e6) | st.text(max_size=8)


def json_values(max_leaves: int = 4) -> st.SearchStrategy[Any]:
    """Any JSON value, small."""
    inner: st.SearchStrategy[Any] = st.recursive(
        _SCALARS,
        lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
        max_leaves=max_leaves,
    )
    return inner


def values_of(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit the schema. References, `anyOf`, `oneOf`, `allOf`, `enum`, bounds, patterns and formats count.

    What a schema says beyond that (`not`, `if`, `uniqueItems`, ...) is not looked at, so that a value may not fit it.

    >>> from hypothesis import find
    >>> unit = {"type": "object", "properties": {"unit": {"enum": ["C"]}}, "required": ["unit"]}
    >>> find(values_of(unit), lambda value: True)
    {'unit': 'C'}
    """
    return _Reader(dict(schema)).values(dict(schema))


def misfits(schema: Mapping[str, Any]) -> st.SearchStrategy[JsonObject]:
    """Objects that most likely do not fit: a required key left out, a value of another type, an unknown key."""
    fitting: st.SearchStrategy[JsonObject] = values_of(schema)
    properties = sorted(as_object(schema.get("properties")) or {})
    required = [str(name) for name in as_list(schema.get("required")) or []]
    ways = [st.builds(_with, fitting, st.just("unknown"), _SCALARS)]
    if required:
        ways.append(st.builds(_without, fitting, st.sampled_from(required)))
    if properties:
        ways.append(st.builds(_with, fitting, st.sampled_from(properties), st.none() | json_values()))
    return st.one_of(ways)


def _with(value: JsonObject, name: str, other: Any) -> JsonObject:
    return {**value, name: other}


def _without(value: JsonObject, name: str) -> JsonObject:
    return {key: each for key, each in value.items() if key != name}


class _Reader:
    """Reads one schema, with its definitions."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._named: dict[str, st.SearchStrategy[Any]] = {}

    def values(self, schema: Any) -> st.SearchStrategy[Any]:
        known = as_object(schema)
        if known is None:  # `true`: anything
            return json_values()
        if "$ref" in known:
            return self._reference(str(known["$ref"]))
        if "const" in known:
            return st.just(known["const"])
        if known.get("enum"):
            return st.sampled_from(as_list(known["enum"]) or [None])
        for word in ("anyOf", "oneOf"):
            if known.get(word):
                return st.one_of([self.values(each) for each in as_list(known[word]) or []])
        if known.get("allOf"):
            return self.values(self._merged(known))
        kind = known.get("type")
        kinds = as_list(kind)
        if kinds is not None:
            return st.one_of([self.values({**known, "type": each}) for each in kinds])
        return self._typed(kind if kind is not None else _guessed(known), known)

    def _reference(self, name: str) -> st.SearchStrategy[Any]:
        if name not in self._named:
            target = self._target(name)
            found: list[st.SearchStrategy[Any]] = []
            self._named[name] = st.deferred(lambda: found[0])
            found.append(self.values(target))
        return self._named[name]

    def _target(self, name: str) -> Any:
        target: Any = self._root
        for part in name.removeprefix("#").strip("/").split("/"):
            target = target.get(part, {}) if part else target
        return target

    def _merged(self, schema: JsonObject) -> JsonObject:
        """The parts of an `allOf`, and what stands beside it, as one schema."""
        merged: JsonObject = {}
        properties: JsonObject = {}
        required: list[Any] = []
        beside = {key: value for key, value in schema.items() if key != "allOf"}
        for part in (beside, *(as_list(schema["allOf"]) or [])):
            each = as_object(part) or {}
            if "$ref" in each:
                each = as_object(self._target(str(each["$ref"]))) or {}
            properties |= as_object(each.get("properties")) or {}
            required += as_list(each.get("required")) or []
            merged |= each
        return merged | ({"properties": properties, "required": required} if properties else {})

    def _typed(self, kind: Any, schema: JsonObject) -> st.SearchStrategy[Any]:
        match kind:
            case "object":
                return self._object(schema)
            case "array":
                return self._array(schema)
            case "string":
                return _strings(schema)
            case "integer":
                return _integers(schema)
            case "number":
                return _numbers(schema)
            case "boolean":
                return st.booleans()
            case "null":
                return st.none()
            case _:
                return json_values()

    def _object(self, schema: JsonObject) -> st.SearchStrategy[Any]:
        properties = as_object(schema.get("properties")) or {}
        required = set(as_list(schema.get("required")) or [])
        needed = {name: self.values(each) for name, each in properties.items() if name in required}
        optional = {name: self.values(each) for name, each in properties.items() if name not in required}
        extra = schema.get("additionalProperties")
        if not properties and extra not in (None, False):
            return st.dictionaries(st.text(min_size=1, max_size=8), self.values(extra), max_size=3)
        return some_of(optional, needed) if optional else st.fixed_dictionaries(needed)

    def _array(self, schema: JsonObject) -> st.SearchStrategy[Any]:
        first = [self.values(each) for each in as_list(schema.get("prefixItems")) or []]
        if first:
            return st.tuples(*first).map(list)
        least = int(schema.get("minItems", 0))
        most = min(int(schema.get("maxItems", least + 3)), least + 3)
        return st.lists(self.values(schema.get("items", True)), min_size=least, max_size=most)


_FEW = 4
"""Optional keys of which each choice is a single draw."""


def some_of(
    optional: Mapping[str, st.SearchStrategy[Any]], needed: Mapping[str, st.SearchStrategy[Any]] | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    """Dictionaries with all the needed keys and any choice of the optional ones.

    >>> from hypothesis import find
    >>> find(some_of({"a": st.just(1), "b": st.just(2)}), lambda value: True)
    {}
    """
    always = dict(needed or {})
    if len(optional) > _FEW:
        return st.fixed_dictionaries(always, optional=dict(optional))
    choices = st.sampled_from([given for size in range(len(optional) + 1) for given in combinations(optional, size)])

    @st.composite
    def made(draw: st.DrawFn) -> dict[str, Any]:
        given = draw(choices)
        return {name: draw(each) for name, each in (*always.items(), *((name, optional[name]) for name in given))}

    return made()


def _guessed(schema: JsonObject) -> str | None:
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else None


def _strings(schema: JsonObject) -> st.SearchStrategy[str]:
    least = int(schema.get("minLength", 0))
    most = min(int(schema.get("maxLength", least + 12)), least + 12)
    if "pattern" in schema:
        pattern = str(schema["pattern"])
        if pattern.endswith("$") and not pattern.endswith("\\$"):
            pattern = f"{pattern[:-1]}\\Z"  # in a JSON schema `$` is the end, not the last line's
        fitting = st.from_regex(pattern)
        return fitting.filter(lambda text: len(text) >= least and len(text) <= int(schema.get("maxLength", 10_000)))
    made = _FORMATS.get(str(schema.get("format")))
    return made if made is not None else st.text(min_size=least, max_size=most)


_FORMATS: dict[str, st.SearchStrategy[str]] = {
    "date": st.dates().map(str),
    "date-time": st.datetimes(timezones=st.just(None)).map(lambda when: f"{when.isoformat()}Z"),
    "time": st.times().map(lambda when: f"{when.isoformat()}Z"),
    "uuid": st.uuids().map(str),
    "email": st.from_regex(r"\A[a-z]{1,8}@[a-z]{1,8}\.org\Z"),
    "uri": st.from_regex(r"\Ahttps://[a-z]{1,8}\.org/[a-z]{0,8}\Z"),
}


def _bounds(schema: JsonObject) -> tuple[float | None, float | None]:
    """The least and the greatest number; an exclusive bound is moved by one for integers' sake."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + 1
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - 1
    return low, high


def _whole(bound: float | None, *, up: bool) -> int | None:
    if bound is None:
        return None
    return int(-(-bound // 1)) if up else int(bound // 1)


def _integers(schema: JsonObject) -> st.SearchStrategy[int]:
    low, high = _bounds(schema)
    least, most = _whole(low, up=True), _whole(high, up=False)
    return st.integers(least, most) if schema.keys() & _BOUNDS else _EVERYDAY | st.integers()


_BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_EVERYDAY = st.integers(0, 10) | st.integers(-300, 300)
"""Numbers as they occur, so that a sum or a limit is met now and then."""


def _numbers(schema: JsonObject) -> st.SearchStrategy[float]:
    if not schema.keys() & _BOUNDS:
        return _EVERYDAY.map(float) | st.floats(allow_nan=False, allow_infinity=False)
    low, high = schema.get("minimum"), schema.get("maximum")
    least, most = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return st.floats(
        min_value=least if low is None else low,
        max_value=most if high is None else high,
        exclude_min=low is None and least is not None,
        exclude_max=high is None and most is not None,
        allow_nan=False,
        allow_infinity=False,
    )
