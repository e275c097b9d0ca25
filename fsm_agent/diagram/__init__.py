"""Pictures of a declared machine. They are made from the declaration, so they cannot differ from what runs.

`dot` and `mermaid` are text and need nothing; `svg` and `png` need Graphviz. Each draws either every row with its
facts, guards and updates, or an overview; and over it, if you like, the path of a run or how often each row was taken.

>>> from fsm_agent.machine import AGENT_LOOP
>>> print(mermaid(AGENT_LOOP, overview=True).splitlines()[3])
stateDiagram-v2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fsm_agent.diagram.dot import DetailedDot
from fsm_agent.diagram.graphviz import GraphvizError, render
from fsm_agent.diagram.mermaid import MermaidText
from fsm_agent.diagram.overlay import Overlay, RowKey, TraceError
from fsm_agent.diagram.overview import OverviewDot
from fsm_agent.diagram.rows import Kind, kind_of
from fsm_agent.machine import Definition

__all__ = [
    "GraphvizError",
    "Kind",
    "Overlay",
    "RowKey",
    "TraceError",
    "dot",
    "kind_of",
    "mermaid",
    "png",
    "render",
    "svg",
]


def dot(
    definition: Definition,
    *,
    overview: bool = False,
    trace: Iterable[str] | None = None,
    coverage: Mapping[RowKey, int] | None = None,
) -> str:
    """The machine in Graphviz's language. The same declaration gives the same text, byte for byte.

    - `overview`: one box per state and one arrow per kind of move, instead of every row.
    - `trace`: triggers of a run, from the initial state (`result.trace`); what it did not take is drawn pale.
    - `coverage`: how often each row, by source and trigger, was taken by many runs; rows never taken stand out.

    Raises `TraceError` for a trace or a coverage that is not of this machine, and `ValueError` if both are given.
    """
    overlay = _overlay(definition, trace, coverage)
    return (OverviewDot(definition, overlay) if overview else DetailedDot(definition, overlay)).text()


def mermaid(
    definition: Definition,
    *,
    overview: bool = False,
    trace: Iterable[str] | None = None,
    coverage: Mapping[RowKey, int] | None = None,
) -> str:
    """The machine as a Mermaid `stateDiagram-v2`. Arguments and errors are those of `dot`."""
    return MermaidText(definition, _overlay(definition, trace, coverage), overview=overview).text()


def svg(
    definition: Definition,
    *,
    overview: bool = False,
    trace: Iterable[str] | None = None,
    coverage: Mapping[RowKey, int] | None = None,
) -> str:
    """The machine as SVG. Arguments are those of `dot`; raises `GraphvizError` where no Graphviz is installed."""
    return render(dot(definition, overview=overview, trace=trace, coverage=coverage), "svg").decode()


def png(
    definition: Definition,
    *,
    overview: bool = False,
    trace: Iterable[str] | None = None,
    coverage: Mapping[RowKey, int] | None = None,
) -> bytes:
    """The machine as a PNG image. Arguments are those of `dot`; raises `GraphvizError` without Graphviz."""
    return render(dot(definition, overview=overview, trace=trace, coverage=coverage), "png")


def _overlay(
    definition: Definition, trace: Iterable[str] | None, coverage: Mapping[RowKey, int] | None
) -> Overlay | None:
    if trace is not None and coverage is not None:
        raise ValueError("A diagram shows a trace or a coverage, not both; leave one out.")
    if trace is not None:
        return Overlay.of_trace(definition, trace)
    return None if coverage is None else Overlay.of_coverage(definition, coverage)
