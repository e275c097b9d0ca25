"""SCXML, the W3C's notation for state machines (ECMAScript data model).

Send an event `effect.outcome` when the machine asks for that effect, and `go` when it asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from fsm_agent.machine import Definition
from fsm_agent.verify.bounds_given import Bounds
from fsm_agent.verify.export.steps import ALWAYS, NEVER, Arc, Steps, infix, steps


def scxml(definition: Definition, limits: Bounds = None) -> str:
    """A machine under its limits as an SCXML document."""
    return "\n".join(_lines(steps(definition, limits))) + "\n"


def _lines(machine: Steps) -> Iterator[str]:
    definition = machine.definition
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="ecmascript" '
        f"name={quoteattr(definition.name)} initial={quoteattr(definition.initial)}>"
    )
    if definition.reasons:
        reasons = ", ".join(f"{i} {reason}" for i, reason in enumerate(definition.reasons, 1))
        yield f"  <!-- reason: {escape(reasons)} -->"
    yield "  <datamodel>"
    yield from (f'    <data id="{v.name}" expr="{v.initial}"/>' for v in machine.variables)
    yield "  </datamodel>"
    for state in definition.states:
        if state.final:
            yield f"  <final id={quoteattr(state.name)}/>"
            continue
        yield f"  <state id={quoteattr(state.name)}>"
        for arc in machine.arcs[state.name]:
            if arc.condition != NEVER:
                yield from _transition(arc)
        yield "  </state>"
    yield "</scxml>"


def _transition(arc: Arc) -> Iterator[str]:
    attributes = f"event={quoteattr(arc.event)}"
    if arc.condition != ALWAYS:
        attributes += f" cond={quoteattr(infix(arc.condition))}"
    if arc.dest is not None:
        attributes += f" target={quoteattr(arc.dest)}"
    if not arc.assigns:
        yield f"    <transition {attributes}/>"
        return
    yield f"    <transition {attributes}>"
    if arc.trigger:
        yield f"      <!-- {escape(arc.trigger)} -->"
    for assign in arc.assigns:
        value = str(assign.number)
        if assign.raises:
            # A row that raises above the top is one whose counter stays there: see the layout of configurations.
            value = f"{assign.variable} + ({assign.variable} &lt; {assign.top})"
        yield f'      <assign location="{assign.variable}" expr="{value}"/>'
    yield "    </transition>"
