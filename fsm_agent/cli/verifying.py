"""`fsm-agent verify`: the checker's report, as a person or a program reads it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fsm_agent.cli.entries import Entry
from fsm_agent.cli.numbers import duration
from fsm_agent.cli.path import path_text
from fsm_agent.machine import Definition, Limits
from fsm_agent.verify import Report, check

OK = 0
NOT_OK = 1
PIPE_WIDTH = 120
"""Columns of the report where it does not go to a terminal."""


def verify(definition: Definition, limits: Limits | None, *, as_json: bool) -> int:
    """Check the machine, print the report, and give the exit code: 0 if nothing speaks against it, else 1."""
    report = check(definition, limits)
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), ensure_ascii=False) + "\n")
    else:
        _print(report_view(report))
    return OK if report.ok else NOT_OK


def _print(view: RenderableType) -> None:
    console = Console(highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        console.print(view)
        return
    console.width = PIPE_WIDTH
    with console.capture() as captured:
        console.print(view)
    # rich fills lines up with blanks, which nobody wants in a file.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def report_view(report: Report) -> RenderableType:
    """The report: the verdict, what speaks against it, and then what was proved."""
    return Group(*_parts(report))


def _parts(report: Report) -> Iterator[RenderableType]:
    yield Text.assemble(
        (report.definition.name, "bold"), ": ", ("ok", "bold green") if report.ok else ("not ok", "bold red")
    )
    how = "each was visited" if report.exact else "found by composition, not one by one"
    size = f"{report.configurations:,} configurations, {report.edges:,} edges ({how}) in {duration(report.seconds)}"
    yield Text(size, "dim")
    if faults := list(report.faults()):
        yield _section("What speaks against it", _sentences("✗", faults, "red"))
    yield _section("Terminal reasons, with the shortest run to each", [_reasons(report)])
    yield _section("Why every run ends", [_numbered(words) for words in report.certificate.words()])
    if declared := [str(cycle) for cycle in report.cycles if cycle.declared_by is not None]:
        yield _section("Declared to be without a bound", _sentences("!", declared, "yellow"))
    if any(report.bounds().values()):
        yield _section("The worst case", [_worst_case(report)])
    yield _section("Contracts", [_contracts(report)])
    if report.switched_off:
        off = [f"{trigger} in {state}, by {limit}" for (state, trigger), limit in report.switched_off.items()]
        yield _section("Rows that these limits switch off", _sentences("-", off, "yellow"))
    yield _section("What was not checked", _sentences("-", [*report.notes, *report.not_checked], "dim"))


def _section(title: str, body: Iterable[RenderableType]) -> RenderableType:
    return Group(Text(), Text(title, "bold"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in body))


def _numbered(words: str) -> RenderableType:
    """A sentence of the certificate; what follows its number is wrapped beside it."""
    number, _, rest = words.partition(" ")
    return Entry(number, Text(rest), "dim") if number.rstrip(".").isdigit() else Text(words)


def _sentences(mark: str, sentences: Iterable[str], style: str) -> Iterator[RenderableType]:
    return (Entry(mark, Text(sentence), style) for sentence in sentences)


def _grid() -> Table:
    return Table.grid(padding=(0, 2, 0, 0), pad_edge=False)


def _reasons(report: Report) -> RenderableType:
    table = _grid()
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for reason, run in report.reasons.items():
        if run is None:
            table.add_row(Text(reason, "red"), Text("-"), Text("no run ends so", "red"))
        else:
            moves = f"{len(run.word)} move{'' if len(run.word) == 1 else 's'}"
            table.add_row(Text(reason, "green"), Text(moves), Text(path_text(run.word)))
    return table


def _worst_case(report: Report) -> RenderableType:
    table = _grid()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", style="dim")
    for name, bound in report.bounds().items():
        if bound is not None:
            sure = "" if bound.exact else f" (a run with {bound.seen:,} is known)"
            table.add_row(Text(f"{bound.value:,}", "bold"), Text(name.replace("_", " ")), Text(bound.formula + sure))
    return table


def _contracts(report: Report) -> RenderableType:
    broken = sum(not verdict.holds for verdict in report.contracts)
    kept = len(report.contracts) - broken
    if not broken:
        return Text(f"{kept} hold, none is broken", "green")
    return Text(f"{broken} broken (told above), {kept} hold", "red")
