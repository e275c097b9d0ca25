"""The arrows between the parts point one way, as the README draws them: read from the imports themselves."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fsm_agent"

# Each part and the other parts that it may import. What is not named here may be imported by every part that
# may import anything (`log`), or is the package's own lazy front (`__init__`), which imports for others.
ALLOWED = {
    "machine": set(),
    "log": set(),
    "verify": {"machine"},
    "diagram": {"machine"},
    "context": {"machine", "log", "model", "session"},
    "model": {"machine", "log", "session"},
    "session": {"machine", "log"},
    "tools": {"machine", "log", "model", "session"},
    "loop": {"machine", "log", "context", "tools", "model", "session"},
    "testing": {"machine", "log", "verify", "diagram", "context", "model", "session", "tools", "loop"},
    "cli": {"machine", "log", "verify", "diagram", "context", "model", "session", "tools", "loop", "testing"},
}

HEAVY = ["anthropic", "dbos", "httpx2", "hypothesis", "mcp", "networkx", "pydantic", "rich", "structlog", "typer"]


def modules() -> Iterator[Path]:
    yield from sorted(PACKAGE.rglob("*.py"))


def part_of(module: Path) -> str:
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_names(module: Path) -> Iterator[str]:
    """Dotted names that the module imports, also inside functions and under TYPE_CHECKING."""
    here = ["fsm_agent", *module.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def imported_parts(module: Path) -> set[str]:
    names = (name.split(".") for name in imported_names(module))
    return {name[1] for name in names if name[0] == "fsm_agent" and len(name) > 1} - {part_of(module)}


def test_every_part_has_its_arrows_declared():
    undeclared = {part_of(module) for module in modules()} - set(ALLOWED) - {"__init__", "__main__"}
    assert not undeclared, f"Say in ALLOWED what these may import: {sorted(undeclared)}"


@pytest.mark.parametrize("part", ALLOWED)
def test_a_part_imports_only_what_lies_below_it(part: str):
    wrong = {
        str(module.relative_to(ROOT)): sorted(beyond)
        for module in modules()
        if part_of(module) == part and (beyond := imported_parts(module) & set(ALLOWED) - ALLOWED[part])
    }
    assert not wrong, f"Imports against the arrows: {wrong}"


def test_the_arrows_make_no_circle():
    below = {part: set(parts) for part, parts in ALLOWED.items()}
    while leaves := [part for part, parts in below.items() if not parts]:
        below = {part: parts - set(leaves) for part, parts in below.items() if part not in leaves}
    assert not below


def test_the_reader_of_imports_sees_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    module = tmp_path / "verify" / "explore.py"
    module.parent.mkdir()
    module.write_text(
        "import fsm_agent.loop.driver\n"
        "from fsm_agent import tools\n"
        "from ..model import request\n"
        "from .. import context\n"
        "from .report import Report\n"
        "def late():\n    from fsm_agent.testing.script import Reply\n"
    )
    assert imported_parts(module) == {"loop", "tools", "model", "context", "testing"}


def loaded_after(statement: str) -> set[str]:
    """The top-level modules that are there after the statement ran in a fresh interpreter."""
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_import_fsm_agent_loads_no_heavy_library():
    assert not loaded_after("import fsm_agent") & set(HEAVY)


def test_the_machine_stands_on_two_small_libraries_and_the_standard_library():
    names = {
        name.partition(".")[0]
        for module in modules()
        if part_of(module) == "machine"
        for name in imported_names(module)
    }
    assert names - sys.stdlib_module_names - {"fsm_agent"} <= {"transitions", "pydantic"}


@pytest.mark.parametrize("name", ["typer", "rich"])
def test_only_the_command_line_imports(name: str):
    users = {part_of(module) for module in modules() if name in {n.partition(".")[0] for n in imported_names(module)}}
    assert users <= {"cli"}


def test_only_the_test_kit_imports_hypothesis_and_pytest():
    users = {
        part_of(module)
        for module in modules()
        if {"hypothesis", "pytest"} & {name.partition(".")[0] for name in imported_names(module)}
    }
    assert users <= {"testing"}
