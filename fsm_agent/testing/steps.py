"""The steps of a state machine: recorded as they are taken, written down, and taken again without Hypothesis."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import random
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from hypothesis.errors import HypothesisException
from hypothesis.stateful import INITIALIZE_RULE_MARKER, INVARIANT_MARKER, RULE_MARKER, MultipleResults
from hypothesis.strategies import DataObject

from fsm_agent.testing.shapes import as_list
from fsm_agent.testing.written import Code, Drawn, Result, UnwritableError, from_json, named, place_of, to_json

__all__ = [
    "Step",
    "Steps",
    "broken_off",
    "check_invariants",
    "load_steps",
    "machine_of_steps",
    "program_of",
    "record_steps",
    "save_steps",
    "seeded",
    "take_steps",
]

Step: TypeAlias = tuple[str, Mapping[str, Any]]
"""The name of a rule, and its arguments."""
FORMAT = 1
_SIMPLE = (type(None), bool, int, float, str, bytes)


@dataclass
class Steps:
    """What was done with one state machine."""

    taken: list[Step] = field(default_factory=list[Step])
    results: list[Any] = field(default_factory=list[Any])
    """What each step returned."""
    replayed: bool = False
    """Whether they are taken again."""


# ---- recording


def record_steps(kind: type[Any]) -> None:
    """From now on the rules of this class write down each of their calls."""
    for _, member in inspect.getmembers(kind):
        for marker in (RULE_MARKER, INITIALIZE_RULE_MARKER):
            declared = getattr(member, marker, None)
            if declared is not None and not hasattr(declared.function, _RECORDED):
                declared.function = _recorded(declared.function)


_RECORDED = "fsm_agent_recorded"


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    copied = not function.__module__.startswith("fsm_agent.")  # your rule may change what it is given

    @functools.wraps(function)
    def step(machine: Any, **given: Any) -> Any:
        steps: Steps = machine.recorded_steps
        for name, value in given.items():
            if isinstance(value, DataObject):
                given[name] = _Recording(value)
        written = {name: _known(steps.results, value, copied=copied) for name, value in given.items()}
        steps.taken.append((function.__name__, written))
        with broken_off(machine.explain_failure):
            result = function(machine, **given)
        steps.results.append(result)
        return result

    setattr(step, _RECORDED, True)
    return step


class _Recording(Drawn):
    """`st.data()` that remembers what was drawn."""

    def __init__(self, data: DataObject) -> None:
        super().__init__()
        self._data = data

    def draw(self, strategy: Any, label: Any = None) -> Any:
        value = self._data.draw(strategy, label)
        self.values.append(value)
        return value


def _known(results: Sequence[Any], value: Any, *, copied: bool) -> Any:
    """The value as it is to be written: by the step that returned it, or as it is before a rule changes it."""
    if isinstance(value, (_Recording, *_SIMPLE)):
        return value
    for number, result in enumerate(results):
        if result is value:
            return Result(number)
        for index, each in enumerate(getattr(result, "values", ()) if _is_several(result) else ()):
            if each is value:
                return Result(number, index)
    if (several := as_list(value)) is not None:
        return [_known(results, each, copied=copied) for each in several]
    if not copied:
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # what cannot be copied is written as it is in the end
        return value


def _is_several(result: Any) -> bool:
    return isinstance(result, MultipleResults)


@contextmanager
def broken_off(explain: Callable[[BaseException], None]) -> Generator[None]:
    """Explains what breaks a step off, unless it is how Hypothesis gives an example up."""
    try:
        yield
    except BaseException as error:
        if _is_failure(error):
            explain(error)
        raise


def _is_failure(error: BaseException) -> bool:
    """Whether a test fails with it. What `pytest.fail` raises is no `Exception`."""
    module: Any = sys.modules.get("pytest")
    failed: Any = (Exception,) if module is None else (Exception, module.fail.Exception)
    return isinstance(error, failed) and not isinstance(error, HypothesisException)


# ---- written down


def save_steps(path: Path, kind: type[Any], steps: Sequence[Step]) -> None:
    """Write them to a JSON file. Raises `UnwritableError` when one has a value without a written form."""
    words = {"format": FORMAT, "state_machine": _class_of(kind), "steps": _words(steps)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(words, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


def _class_of(kind: type[Any]) -> str:
    """`module:name`; a class inside a function can be told, though not imported."""
    return f"{kind.__module__}:{kind.__qualname__}"


def _words(steps: Iterable[Step]) -> list[list[Any]]:
    return [[name, {key: to_json(value) for key, value in given.items()}] for name, given in steps]


def _read(path: str | Path) -> dict[str, Any]:
    try:
        words: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} has no steps: {error}") from error
    if not isinstance(words, dict) or "steps" not in words or "state_machine" not in words:
        raise ValueError(
            f"{path} has no steps of a state machine; if it has a scenario, give replay_scenario the machine too."
        )
    known = cast("dict[str, Any]", words)
    if known.get("format") != FORMAT:
        raise ValueError(f"{path} has format {known.get('format')!r}; this version reads format {FORMAT}.")
    return known


def load_steps(path: str | Path, kind: type[Any]) -> list[Step]:
    """Read the file of a failure. Raises `ValueError` for what is none, or is one of another class."""
    words = _read(path)
    if words["state_machine"] != _class_of(kind):
        raise ValueError(f"{path} has the steps of {words['state_machine']}, not of {_class_of(kind)}.")
    try:
        return [(str(name), {key: from_json(value) for key, value in given.items()}) for name, given in words["steps"]]
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def machine_of_steps(path: str | Path) -> Any:
    """The class that the file names. Raises `ValueError` if it cannot be imported: then call its `replay`."""
    place = str(_read(path)["state_machine"])
    try:
        return named(place)
    except ValueError as error:
        raise ValueError(f"{error} Or call {place.partition(':')[2]}.replay({str(path)!r}).") from error


def program_of(kind: type[Any], steps: Sequence[Step]) -> str:
    """A short program that takes the steps again."""
    code = Code()
    try:
        name = code.name(place_of(kind))
    except UnwritableError:
        name = kind.__name__
    taken = [f"    ({rule!r}, {code.of(given)})," for rule, given in _words(steps)]
    return "\n".join([*code.lines(), "", f"{name}.replay([", *taken, "])"])


# ---- taken again


def take_steps(machine: Any, steps: Iterable[Step]) -> Iterator[None]:
    """Takes one step after the other. Raises `ValueError` for a rule that there is not, or that may not be used now."""
    rules = _declared(machine, RULE_MARKER, INITIALIZE_RULE_MARKER)
    results: list[Any] = machine.recorded_steps.results
    for number, (name, given) in enumerate(steps):
        if name not in rules:
            raise ValueError(f"Step {number} is {name!r}; {type(machine).__name__} has no such rule.")
        if not all(holds(machine) for holds in rules[name].preconditions):
            raise ValueError(f"Step {number}, {name}, cannot be done there: its precondition does not hold any more.")
        rules[name].function(machine, **{key: _resolved(results, value) for key, value in given.items()})
        yield


def _resolved(results: Sequence[Any], value: Any) -> Any:
    if (several := as_list(value)) is not None:
        return [_resolved(results, each) for each in several]
    if not isinstance(value, Result):
        return value
    result = results[value.step]
    return result if value.index is None else result.values[value.index]


def check_invariants(machine: Any) -> None:
    """All that hold now, as Hypothesis does it: while rules that initialize are left, only those that want it."""
    done = {name for name, _ in machine.recorded_steps.taken}
    begun = done.issuperset(_declared(machine, INITIALIZE_RULE_MARKER))
    for each in _declared(machine, INVARIANT_MARKER).values():
        if (begun or each.check_during_init) and all(holds(machine) for holds in each.preconditions):
            each.function(machine)


def _declared(machine: Any, *markers: str) -> dict[str, Any]:
    """Rules or invariants, by name."""
    kind: Any = machine.__class__
    members = (member for _, member in inspect.getmembers(kind))
    found = (getattr(member, marker, None) for member in members for marker in markers)
    return {each.function.__name__: each for each in found if each is not None}


@contextmanager
def seeded() -> Generator[None]:
    """Random numbers as they are in an example of Hypothesis."""
    state = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(state)
