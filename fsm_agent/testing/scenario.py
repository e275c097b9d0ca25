"""A scenario: everything that happens to an agent in one run, as a value that can be printed, saved and replayed.

>>> from fsm_agent.testing.script import Reply
>>> scenario = Scenario(script=[Reply("Hello.")], acts=[UserAct("abort", steps=3)])
>>> scenario
Scenario(script=[Reply('Hello.')], acts=[UserAct('abort', steps=3)])
>>> Scenario.from_json(scenario.as_json()) == scenario
True
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, cast

from fsm_agent.testing.events import Chunking
from fsm_agent.testing.item_words import code_of, item_of, words_of
from fsm_agent.testing.script import Item
from fsm_agent.testing.simulation.choices import Schedule

__all__ = ["HookAct", "Scenario", "ToolAct", "UserAct", "load_scenario", "program"]

FORMAT = 1


class _Brief:
    """Printed as it would be written: without the fields that have their default."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_arguments(self))})"


@dataclass(frozen=True, slots=True, repr=False)
class ToolAct(_Brief):
    """What one call of a tool does, in place of the tool.

    It tells its `progress`, waits for `seconds` (`hangs`: for ever), and then returns or raises. `deaf`: when it is
    cancelled it goes on for so many seconds before it gives in.

    >>> ToolAct(raises="ValueError", seconds=2.0)
    ToolAct(raises='ValueError', seconds=2.0)
    """

    returns: Any = "ok"
    """A text, a list of content blocks, any JSON value, or the name of a value that has none: see `ODD_RESULTS`."""
    raises: str = ""
    """Name of a built-in exception; '' returns."""
    seconds: float = 0.0
    progress: Sequence[Any] = ()
    hangs: bool = False
    deaf: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", tuple(self.progress))


@dataclass(frozen=True, slots=True, repr=False)
class HookAct(_Brief):
    """What a hook, or whoever is asked for a permission, answers once.

    `says` is one of `pass`, `block`, `prevent` (a stop hook), `allow`, `deny`, `deny_and_stop`, `defer` (a permission),
    `note`, `change` (before or after a tool), `stop` (after a tool), and for each, as for the function that makes the
    system prompt, `raise`, `hang` and `nonsense`.
    """

    says: str = "pass"
    text: str = "No."
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class UserAct(_Brief):
    """What the user does, after request number `request` (from 1) begins to be answered: `seconds` later, or `steps`
    steps of the event loop later.

    `abort` aborts the run, `send` queues a message, `close` leaves the iteration and closes the run, `cancel` cancels
    the task that iterates it. Request 0 is the start of the run.
    """

    do: Literal["abort", "send", "close", "cancel"]
    request: int = 1
    steps: int = 0
    seconds: float = 0.0
    text: str = "One more thing."


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Scenario(_Brief):
    """One run of an agent. Whatever is left out is as the agent itself has it.

    When `script` is at its end the model says "Done.", and every request for a summary is answered with one.
    """

    script: tuple[Item, ...]
    """What the model answers, request by request."""
    prompt: str
    tools: Mapping[str, tuple[ToolAct, ...]]
    """Tools that are stood in for, and what their calls do, one after the other; the last act is repeated."""
    stop_hooks: tuple[HookAct, ...]
    """What one more stop hook answers, one after the other, and then `pass`. So are the next four."""
    permissions: tuple[HookAct, ...]
    before_tool: tuple[HookAct, ...]
    after_tool: tuple[HookAct, ...]
    system: tuple[HookAct, ...]
    """What happens when the run asks for its system prompt; `pass` gives the machine's own."""
    effects: Mapping[str, tuple[str, ...]]
    """Outcomes of effects of your own, one after the other; the last one is repeated."""
    acts: tuple[UserAct, ...]
    limits: Mapping[str, Any]
    """Limits that differ from the machine's."""
    history: tuple[Mapping[str, Any], ...]
    chunking: Chunking
    schedule: Schedule
    """The order in which the event loop runs what could run next."""

    def __init__(
        self,
        script: Iterable[Item] = (),
        *,
        prompt: str = "Go.",
        tools: Mapping[str, Iterable[ToolAct]] | None = None,
        stop_hooks: Iterable[HookAct] = (),
        permissions: Iterable[HookAct] = (),
        before_tool: Iterable[HookAct] = (),
        after_tool: Iterable[HookAct] = (),
        system: Iterable[HookAct] = (),
        effects: Mapping[str, Iterable[str]] | None = None,
        acts: Iterable[UserAct] = (),
        limits: Mapping[str, Any] | None = None,
        history: Iterable[Mapping[str, Any]] = (),
        chunking: Chunking | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "script", tuple(script))
        put(self, "prompt", prompt)
        put(self, "tools", {name: tuple(acts) for name, acts in (tools or {}).items()})
        put(self, "stop_hooks", tuple(stop_hooks))
        put(self, "permissions", tuple(permissions))
        put(self, "before_tool", tuple(before_tool))
        put(self, "after_tool", tuple(after_tool))
        put(self, "system", tuple(system))
        put(self, "effects", {name: tuple(outcomes) for name, outcomes in (effects or {}).items()})
        put(self, "acts", tuple(acts))
        put(self, "limits", dict(limits or {}))
        put(self, "history", tuple(history))
        put(self, "chunking", chunking or Chunking())
        put(self, "schedule", schedule or Schedule())

    def as_json(self) -> dict[str, Any]:
        """The scenario as JSON data; what has its default is left out."""
        found: dict[str, Any] = {"format": FORMAT}
        for name, value in _given(self).items():
            if name == "script":
                found[name] = [words_of(item) for item in self.script]
            elif name == "schedule":
                found[name] = [list(deviation) for deviation in self.schedule.deviations]
            else:
                found[name] = _plain(value)
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """A scenario from its JSON data. Raises `ValueError` for what is none, saying what is wrong."""
        words = dict(data)
        if words.pop("format", FORMAT) != FORMAT:
            raise ValueError(f"The scenario has format {data['format']!r}; this version reads format {FORMAT}.")
        if "state_machine" in words:
            raise ValueError(f"it has the steps of {words['state_machine']}; play them with replay_scenario(path).")
        unknown = sorted(set(words) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"A scenario has no {', '.join(unknown)}; take it out, or mend the spelling.")
        made: dict[str, Any] = dict(words)
        try:
            made["script"] = [item_of(item) for item in words.get("script", [])]
            made["tools"] = {name: _acts(ToolAct, acts) for name, acts in words.get("tools", {}).items()}
            for name in ("stop_hooks", "permissions", "before_tool", "after_tool", "system"):
                made[name] = _acts(HookAct, words.get(name, []))
            made["acts"] = _acts(UserAct, words.get("acts", []))
            made["chunking"] = Chunking(**words.get("chunking", {}))
            made["schedule"] = Schedule(words.get("schedule", ()))
        except TypeError as error:
            raise ValueError(f"The scenario cannot be read: {error}.") from error
        return cls(**made)

    def save(self, path: str | Path) -> Path:
        """Write the scenario to a JSON file; folders are made."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.as_json(), indent=1, ensure_ascii=True)
        path.write_text(text + "\n", encoding="utf-8")
        return path


def load_scenario(path: str | Path) -> Scenario:
    """Read a file that `Scenario.save` wrote. Raises `ValueError` for what is none."""
    try:
        data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        return Scenario.from_json(cast("dict[str, Any]", data if isinstance(data, dict) else {"format": data}))
    except ValueError as error:
        raise ValueError(f"{path} is no scenario: {error}") from error


def program(scenario: Scenario, machine: str = "machine") -> str:
    """A short program that plays the scenario and checks every invariant. `machine` is `module:name` of yours.

    >>> print(program(Scenario(prompt="Hi."), "my_project.agent:machine"))
    from fsm_agent.testing import Scenario, check_scenario
    from my_project.agent import machine
    <BLANKLINE>
    check_scenario(machine, Scenario(prompt='Hi.'))
    """
    module, colon, name = machine.partition(":")
    outermost = re.split(r"[.(]", name)[0]
    imported = [f"from {module} import {outermost}"] if colon else []
    call = f"check_scenario({name or module}, {scenario!r})"
    names = [word for word in _IMPORTABLE if re.search(rf"\b{word}\(", call)]
    return "\n".join([f"from fsm_agent.testing import {', '.join(names)}", *imported, "", call])


_IMPORTABLE = (
    *("ApiError", "Chunking", "Fault", "HookAct", "RawResponse", "Reply", "Scenario", "Schedule", "Stream", "ToolAct"),
    *("UserAct", "check_scenario", "thinking", "tool_use"),
)


def _acts(kind: type[Any], words: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [kind(**act) for act in words]


def _plain(value: Any) -> Any:
    """Acts and settings as JSON data."""
    if isinstance(value, _Brief | Chunking):
        return {name: _plain(each) for name, each in _given(value).items()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Sequence[Any]", value)]
    return value


def _given(value: Any) -> dict[str, Any]:
    """The fields that differ from their default."""
    kind: Any = value.__class__
    defaults = _DEFAULTS.get(kind)
    if defaults is None:
        made = UserAct("abort") if kind is UserAct else kind()
        defaults = _DEFAULTS[kind] = {field.name: getattr(made, field.name) for field in fields(made)}
        if isinstance(value, UserAct):
            defaults["do"] = None
    return {name: each for name, default in defaults.items() if (each := getattr(value, name)) != default}


_DEFAULTS: dict[Any, dict[str, Any]] = {}


def _arguments(value: Any) -> Iterable[str]:
    for name, each in _given(value).items():
        if name == "do":
            yield repr(each)
        elif name == "script":
            yield f"script=[{', '.join(code_of(item) for item in each)}]"
        elif isinstance(each, tuple):
            yield f"{name}={list(cast('tuple[object, ...]', each))!r}"
        elif name in {"tools", "effects"}:
            yield f"{name}={ {key: list(acts) for key, acts in each.items()}!r}"
        elif isinstance(each, Chunking):
            yield f"chunking=Chunking({', '.join(f'{key}={one!r}' for key, one in _given(each).items())})"
        else:
            yield f"{name}={each!r}"
