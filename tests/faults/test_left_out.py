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
        "MCP": ["duplicate-tool-names-two servers", "huge-tool-output-of a server"],
        "command hooks": ["hook-timeout-programs as hooks"],
        "durability": [
            *("torn-tail", "crash-reexecutes", "mid-file-corruption", "two-writers"),
            "interrupt-tool-unpaired-kill -9",
            "unsigned-thinking-from a session file",
            "cache-prefix-changes-resumed from a file",
        ],
        "sub-agents": [
            *("abort-children", "sub-hang", "sub-usage", "sub-empty-result"),
            "huge-tool-output-of a sub-agent",
            "overload-storm-five sub-agents at once",
            "generator-exit-with a sub-agent",
            "context-count-cumulative-a sub-agent of 150,000 tokens",
            "duplicate-tool-names-inherited tools",
            "stop-hook-on-error-a hook that starts a run",
            "loop-detection-one call to many sub-agents",
        ],
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
