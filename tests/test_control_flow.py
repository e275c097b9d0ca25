"""The declaration is the only place where control flow is decided: what the rest of the code may not do.

The dynamic half of the proof is in tests/witness: the engine follows every path of the checker, and takes no other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fsm_agent

ROOT = Path(fsm_agent.__file__).parent
ENGINE = ("loop", "model", "tools", "session", "context")
FILES = sorted(path for folder in ENGINE for path in (ROOT / folder).rglob("*.py"))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def calls(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            function = inner.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in names:
                yield inner


def where(*names: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in FILES if any(calls(tree(path), *names))}


def test_only_the_driver_asks_what_is_next_and_moves() -> None:
    assert where("decide") == {"loop/driver.py"}
    assert where("move") == {"loop/driver.py"}


def test_a_request_to_the_model_is_made_in_one_place_for_each_effect_that_declares_one() -> None:
    assert where("ModelCall") == {"loop/effects/asking.py", "loop/effects/preparing.py"}
    assert where("_call_model", "call_model") == {"model/call.py"}


def test_no_request_stands_in_a_loop() -> None:
    for path in FILES:
        for loop in ast.walk(tree(path)):
            if isinstance(loop, (ast.While, ast.For, ast.AsyncFor)):
                body = ast.Module(body=loop.body, type_ignores=[])
                assert not any(calls(body, "ModelCall", "TurnCall", "summarise", "perform")), (path, loop.lineno)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_condition_looks_at_a_trigger_or_at_the_trace(path: Path) -> None:
    """A trigger may be told, but nothing may depend on it, nor on the trace."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                assert not (isinstance(side, ast.Attribute) and getattr(side.value, "id", "") == "Trigger"), node.lineno
                assert not (isinstance(side, ast.Attribute) and side.attr in ("trigger", "trace")), node.lineno
        if isinstance(node, ast.ImportFrom) and node.module == "fsm_agent.machine":
            assert "Trigger" not in {alias.name for alias in node.names}


def test_the_sdk_never_repeats_a_request_by_itself() -> None:
    text = (ROOT / "model" / "transport.py").read_text(encoding="utf-8")
    assert '"max_retries": 0' in text


def test_the_loop_is_not_an_async_machine() -> None:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("transitions"):
                assert "asyncio" not in (node.module or ""), path
                assert not {alias.name for alias in node.names} & {"AsyncMachine", "GraphMachine"}, path
