"""What of the fault list does not run yet, by the part that it waits for: a list that has to shrink."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.faults.loader import load

ROOT = Path(__file__).parents[2]


def test_what_waits_for_a_part_that_does_not_exist_yet() -> None:
    waiting: dict[str, list[str]] = defaultdict(list)
    for case in load():
        if "waits_for" in case.words:
            waiting[case.words["waits_for"]].append(case.name)
    for part, names in sorted(waiting.items()):
        print(f"{part}: {len(names)} scenarios wait: {', '.join(names)}")
    assert dict(waiting) == {
        "durability": ["torn-tail", "crash-reexecutes", "mid-file-corruption", "two-writers"],
        "sub-agents": ["abort-children", "sub-hang", "sub-usage", "sub-empty-result"],
    }


def test_each_scenario_that_is_no_script_is_a_test_of_its_name() -> None:
    for case in load():
        if "elsewhere" not in case.words:
            continue
        module = ast.parse((ROOT / case.words["elsewhere"]).read_text(encoding="utf-8"))
        names = [node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        wanted = "test_" + case.words["id"].replace("-", "_")
        assert any(name.startswith(wanted) for name in names), f"no {wanted} in {case.words['elsewhere']}"


def test_every_scenario_of_the_list_is_there() -> None:
    cases = load()
    assert len({case.words["id"] for case in cases}) == 54
    assert all(sum(key in case.words for key in ("script", "waits_for", "elsewhere")) == 1 for case in cases)
