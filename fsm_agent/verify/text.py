"""A report in plain text, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from fsm_agent.verify.report import Report

WIDTH = 110


def text(report: Report) -> str:
    """The whole report."""
    return "\n".join(line.rstrip() for part in _parts(report) for line in part)


def _parts(report: Report) -> Iterator[Iterable[str]]:
    verdict = "ok" if report.ok else "NOT OK"
    how = "every configuration visited" if report.exact else "compositional"
    yield [
        f"{report.definition.name}: {verdict}",
        f"{report.configurations:,} configurations, {report.edges:,} edges ({how}), {report.seconds:.2f} s",
    ]
    faults = list(report.faults())
    if faults:
        yield ["", "What speaks against it", *_items(faults)]
    if any(cycle.declared_by is None for cycle in report.cycles):
        yield _items(["As a program to paste and run: print(report.program(report.cycles[0].lasso))"], mark="  ")
    yield ["", "Terminal reasons, with the shortest run to each", *_reasons(report)]
    yield ["", "Termination", *_items(report.certificate.words(), mark="")]
    declared = [str(cycle) for cycle in report.cycles if cycle.declared_by is not None]
    if declared:
        yield _items(declared)
    worst = list(_worst(report))
    if worst:
        yield ["", "The worst case", *worst]
    broken = sum(not verdict.holds for verdict in report.contracts)
    yield ["", f"Contracts: {len(report.contracts) - broken} hold, {broken} broken"]
    if report.switched_off:
        off = [f"{trigger} in {state}, by {limit}" for (state, trigger), limit in report.switched_off.items()]
        yield ["", "Switched off by these limits", *_items(off)]
    yield ["", "What was not checked", *_items([*report.notes, *report.not_checked])]


def _reasons(report: Report) -> Iterator[str]:
    width = max(map(len, report.reasons), default=0)
    for reason, run in report.reasons.items():
        if run is None:
            yield f"  {reason:<{width}}   -  not reachable"
        else:
            yield from _hanging(f"  {reason:<{width}} {len(run.word):>3}  ", str(run))


def _worst(report: Report) -> Iterator[str]:
    for name, bound in report.bounds().items():
        if bound is not None:
            what = name.replace("_", " ")
            sure = "" if bound.exact else f" at most (a run with {bound.seen:,} is known)"
            yield from _hanging(f"  {bound.value:>7,} {what}{sure} = ", bound.formula)


def _items(sentences: Iterable[str], mark: str = "- ") -> list[str]:
    return [line for sentence in sentences for line in _hanging(f"  {mark}", sentence)]


def _hanging(head: str, body: str) -> Iterator[str]:
    lines = wrap(body, max(40, WIDTH - len(head)), break_long_words=False, break_on_hyphens=False) or [""]
    yield head + lines[0]
    indent = " " * min(len(head), 40)
    yield from (indent + line for line in lines[1:])
