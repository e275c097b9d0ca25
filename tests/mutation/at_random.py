"""`python -m tests.mutation.at_random [-n 60] [--seed 1]`: bugs that nobody chose, to see what share the kit finds.

Each turns one expression of the engine around, changes a constant, or leaves a statement out. Some are no bugs: they
change a message or what never happens. The list of `mutants.py` grew by what this showed.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tests.mutation.mutant import PACKAGE, Mutant

PARTS = ("loop", "model", "tools", "session", "context")
OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


@dataclass(frozen=True)
class Change(Mutant):
    """A mutant at one place of a file; its old text may stand elsewhere too."""

    start: int = 0
    """Byte of the file at which the old text begins."""

    def source(self) -> str:
        data = self.path.read_bytes()
        stop = self.start + len(self.old.encode())
        return (data[: self.start] + self.new.encode() + data[stop:]).decode()


def changes(file: str) -> Iterator[Change]:
    """All changes of one file (a path below `fsm_agent`)."""
    data = (PACKAGE / file).read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _inside_functions(ast.parse(data)):
        for place, new in _replacements(node):
            assert place.end_lineno is not None
            assert place.end_col_offset is not None
            start = starts[place.lineno - 1] + place.col_offset
            old = data[start : starts[place.end_lineno - 1] + place.end_col_offset].decode()
            if "logger." not in old:
                yield Change(f"{file}:{place.lineno}: {' '.join(old.split())} -> {new}", file, old, new, start)


def _inside_functions(node: ast.AST, *, inside: bool = False) -> Iterator[ast.AST]:
    """The statements and expressions of all functions, but for formatted texts, whose parts have no true place."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr | ast.arguments):
            continue
        if inside:
            yield child
        yield from _inside_functions(child, inside=inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def _replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield node, f"({ast.unparse(left)} {OPPOSITES[type(op)]} {ast.unparse(right)})"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({word.join(f'({ast.unparse(value)})' for value in values)})"
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = "-" if isinstance(op, ast.Add) else "+"
            yield node, f"({ast.unparse(left)} {sign} {ast.unparse(right)})"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Assign(targets=[ast.Attribute()]):
            yield node, "pass"
        case ast.Constant(value=bool() as value):
            yield node, str(not value)
        case ast.Constant(value=int() as value):
            yield node, str(value + 1)
        case _:
            pass


def drawn(count: int, seed: int) -> list[Change]:
    """So many changes of the engine that are Python."""
    files = sorted(
        str(path.relative_to(PACKAGE))
        for part in PARTS
        for path in (PACKAGE / part).rglob("*.py")
        if "builtin" not in path.parts
    )
    found = [change for file in files for change in changes(file)]
    random.Random(seed).shuffle(found)
    return list(islice(filter(_compiles, found), count))


def _compiles(change: Change) -> bool:
    try:
        compile(change.source(), change.file, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def main() -> int:
    """Judge, and print the verdicts."""
    from tests.mutation.runner import kind_of, summary
    from tests.mutation.worker import judge, load

    parser = argparse.ArgumentParser(prog="python -m tests.mutation.at_random", description="Judge bugs at random.")
    parser.add_argument("-n", "--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    load()
    verdicts: dict[str, str] = {}
    for change in drawn(given.count, given.seed):
        verdicts[change.why] = verdict = judge(change)
        print(f"killed   {change.why} ({kind_of(verdict)})" if verdict else f"SURVIVED {change.why}", flush=True)
    print("\n".join(summary(verdicts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
