"""`python -m tests.mutation.worker`: each line of the input names a mutant, each line of the output is a verdict.

Each mutant is judged in a child of this process, which has the library and the kit loaded: the functions of the
library that the bug changes get the code with the bug. Where the bug is in no function, the library is imported anew in
the child, one module of it from the text with the bug.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import inspect
import json
import logging
import os
import resource
import signal
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tests.mutation.mutant import PACKAGE, Mutant
from tests.mutation.mutants import MUTANTS

SECONDS = 60
"""What a mutant may take."""
CPU_SECONDS = 30
"""What of it may be work; the whole kit needs about six, a part's tests ten."""
MEMORY = 3 << 30
_OWN = {
    "tests.mutation",
    *(f"tests.mutation.{name}" for name in ("at_random", "mutant", "mutants", "runner", "worker")),
}
"""What is not of the kit, and knows nothing of the library."""
_LIVE: list[FunctionType] = []
"""The functions of the library (once frozen, the collector does not tell them any more)."""


class _Mutated(importlib.machinery.SourceFileLoader):
    """Loads one module from the text with the bug."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self._source = mutant.source()

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        file = str(self._mutant.path)
        return importlib.machinery.ModuleSpec(fullname, _Mutated(self._mutant), origin=file)


def _put_in(mutant: Mutant) -> bool:
    """Give the live functions of the module their code with the bug; False if the bug is not in functions alone."""
    file = str(mutant.path)
    sound = compile(mutant.path.read_text(encoding="utf-8"), file, "exec", dont_inherit=True)
    wrong = compile(mutant.source(), file, "exec", dont_inherit=True)
    before, after = _functions(sound), _functions(wrong)
    if before is None or after is None or before.keys() != after.keys():
        return False
    changed = {name: code for name, code in after.items() if _differ(before[name], code)}
    live = [
        function
        for function in _LIVE
        if function.__code__.co_filename == file and function.__code__.co_qualname in changed
    ]
    if {function.__code__.co_qualname for function in live} != set(changed) or not changed:
        return False
    if any(len(each.__code__.co_freevars) != len(changed[each.__code__.co_qualname].co_freevars) for each in live):
        return False
    for function in live:
        function.__code__ = changed[function.__code__.co_qualname]
    return True


def _functions(module: CodeType) -> dict[str, CodeType] | None:
    """The functions and methods of a module, by name; None where a name is not unique."""
    found: dict[str, CodeType] = {}
    waiting = [module]
    while waiting:
        for const in waiting.pop().co_consts:
            if not isinstance(const, CodeType):
                continue
            if not const.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
                waiting.append(const)
            elif const.co_qualname in found:
                return None
            else:
                found[const.co_qualname] = const
    return found


def _differ(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do something else: their constants and names, their nested functions, not their lines."""
    if (one.co_code, one.co_names, one.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return True
    if len(one.co_consts) != len(other.co_consts):
        return True
    return any(
        _differ(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) != (type(b), b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def _import_anew(mutant: Mutant | None) -> None:
    """Forget the library and all that was made with it."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "fsm_agent" or (name.startswith("tests.") and name not in _OWN):
            del sys.modules[name]
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))


def _kit() -> Any:
    """The kit, for the library that is there now."""
    return importlib.import_module("tests.mutation.kit")


def _judged(mutant: Mutant | None) -> str:
    """In the child: what kills the mutant, or '' if nothing does. Without one: what the library itself fails, as it was
    loaded and imported anew."""
    try:
        if mutant is None:
            failure = _kit().first_failure()
            _import_anew(None)
            return failure or _kit().first_failure() or ""
        if not _put_in(mutant):
            _import_anew(mutant)
        part = mutant.file.partition("/")[0]
        return _kit().first_failure() or _kit().first_failure_of_part(part) or ""
    except BaseException as error:  # the bug shows when the library is imported, or goes through everything
        return f"import or escape ({type(error).__name__}: {str(error)[:160]})"


def judge(mutant: Mutant | None) -> str:
    """What kills the mutant (None: the library as it is), or ''. In a child of this process, after `load`."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(SECONDS)  # ends the process: a run that never gives way is caught too
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.write(write, _judged(mutant).encode("utf-8", "replace")[:4_000] or b"-")
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read().decode("utf-8", "replace")
    os.waitpid(child, 0)
    return "" if told == "-" else told or f"nothing ends, or memory does, in {SECONDS} s"


def load() -> None:
    """Load the library and the kit, once for all children."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    _kit().first_failure(only=1)
    package = str(PACKAGE)
    functions = (each for each in gc.get_objects() if isinstance(each, FunctionType))
    _LIVE.extend(each for each in functions if each.__code__.co_filename.startswith(package))
    gc.collect()
    gc.freeze()  # the children share what is there, and need not look through it


def main() -> None:
    """Judge the mutants that the input names."""
    load()
    for line in sys.stdin:
        name = line.rstrip("\n")
        print(json.dumps([name, judge(MUTANTS[name] if name else None)]), flush=True)


if __name__ == "__main__":
    main()
