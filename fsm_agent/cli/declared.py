"""Finding a machine that the user names: `MODULE:NAME`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from fsm_agent.cli.errors import UsageError
from fsm_agent.machine import AGENT_LOOP, Automaton, Definition, Limits


def named_machine(name: str | None) -> tuple[Definition, Limits | None]:
    """The declaration that `MODULE:NAME` means, with the bounds of an `AgentMachine`; the shipped one for None.

    Modules are looked for in the current directory too. Raises `UsageError` for a name that means no declaration.
    """
    if name is None:
        return AGENT_LOOP, None
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise UsageError(f"{name!r} names no machine; write MODULE:NAME, for example my_agent.loop:MACHINE.")
    found = _attribute(_module(module_name), attribute, name)
    definition = found if isinstance(found, Definition) else getattr(found, "definition", None)
    if not isinstance(definition, Definition):
        raise UsageError(
            f"{name} is a {type(found).__name__}; name a Definition of fsm_agent.machine, or an AgentMachine."
        )
    automaton = getattr(found, "automaton", None)
    return definition, automaton.limits if isinstance(automaton, Automaton) else None


def _module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"There is no module {name!r}; name one that Python finds from here, without '.py'."
            ) from None
        raise UsageError(f"The module {name!r} could not be imported: {error}.") from error
    except Exception as error:
        # Among them is DefinitionError: a table that cannot run says so in its own sentence.
        raise UsageError(f"The module {name!r} could not be imported: {type(error).__name__}: {error}") from error


def _attribute(module: Any, path: str, name: str) -> Any:
    found = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"The module {module.__name__!r} has no {path!r}, which {name!r} names.") from None
    return found
