"""Rules on `cache_control` (R170 to R172)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request
from fsm_agent.testing.shapes import JsonObject, as_object, is_object, objects

Refusals = Iterator[ApiRefusal]

MAX_MARKS = 4


@dataclass(frozen=True, slots=True)
class _Mark:
    path: str
    control: Any


def _marks(request: Request) -> list[_Mark]:
    """The marks in the order in which the API reads them: tools, system, messages, and the automatic one last."""
    body = request.body
    places: list[tuple[str, JsonObject]] = []
    places += [(f"tools.{at}", tool) for at, tool in enumerate(objects(body.get("tools")))]
    places += [(f"system.{at}", block) for at, block in enumerate(objects(body.get("system")))]
    places += request.sent
    marks = [_Mark(f"{path}.cache_control", place["cache_control"]) for path, place in places if _marked(place)]
    return [*marks, _Mark("cache_control", body["cache_control"])] if _marked(body) else marks


def _marked(place: JsonObject) -> bool:
    return place.get("cache_control") is not None


def check_cache_control(request: Request) -> Refusals:
    """R171: type and time to live."""
    for mark in _marks(request):
        if not is_object(mark.control):
            yield refuse("R171", f"{mark.path}: Input should be a valid dictionary or object to extract fields from")
        elif "type" not in mark.control:
            yield refuse("R171", f"{mark.path}.type: Field required")
        elif mark.control["type"] != "ephemeral":
            text = f"Input tag '{mark.control['type']}' found using 'type' does not match any of the expected tags:"
            yield refuse("R171", f"{mark.path}: {text} 'ephemeral'")
        elif mark.control.get("ttl", "5m") not in ("5m", "1h"):
            yield refuse("R171", f"{mark.path}.ephemeral.ttl: Input should be '5m' or '1h'")
        else:
            for key in mark.control.keys() - {"type", "ttl", "scope"}:
                yield refuse("R171", f"{mark.path}.ephemeral.{key}: Extra inputs are not permitted")


def check_cache_marks(request: Request) -> Refusals:
    """R170, R172: how many, and in which order."""
    marks = _marks(request)
    if len(marks) > MAX_MARKS:
        text = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
        yield refuse("R170", text)
    short = False
    for mark in marks:
        ttl = (as_object(mark.control) or {}).get("ttl", "5m")
        if ttl == "1h" and short:
            yield refuse(
                "R172",
                f"{mark.path}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
                " Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
            )
        short = short or ttl == "5m"
