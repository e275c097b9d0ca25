"""Promela, for SPIN.

Two phases: the environment commits to an outcome, then a row must take it. So a case that no row takes is an invalid
end state. Each state that SPIN stores is one configuration of ours.

    fsm-agent export --format promela > loop.pml
    spin -o2 -a loop.pml && gcc -DSAFETY -DNOREDUCE -o pan pan.c && ./pan -m1000000

(`-o2`: SPIN would else leave out the variable `reason`, which nothing reads.) Switches for `spin`, before `-a`:

- `-DTARGET=3`: look for a run that ends for this reason; `spin -DTARGET=3 -t loop.pml` then prints it. Its lines begin
  with `T:` for a trigger and `O:` for an outcome.
- `-DENDLESS`: look for a run that never ends, as an acceptance cycle (without `-DSAFETY`, and `./pan -a -E`).
- `-DLENGTHS`: count moves too, and print `L:reason:moves` whenever a shorter run to a reason is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.machine import Definition, Row
from fsm_agent.verify.bounds_given import Bounds
from fsm_agent.verify.export.steps import GO, NEVER, REASON, Arc, Assign, Steps, infix, steps

COUNTED = """
#ifdef LENGTHS
short moves = 0;
c_decl {
  static int shortest[256];
  static void ended(int reason, int moves) {
    if (!shortest[reason] || moves < shortest[reason]) {
      shortest[reason] = moves;
      printf("L:%d:%d\\n", reason, moves);
    }
  }
}
#define MOVED moves++;
#define ENDED c_code { ended(now.reason, now.moves); };
#else
#define MOVED skip;
#define ENDED
#endif
"""


def promela(definition: Definition, limits: Bounds = None) -> str:
    """A machine under its limits as one Promela process."""
    return "\n".join(_lines(steps(definition, limits))) + "\n"


def _lines(machine: Steps) -> Iterator[str]:
    definition = machine.definition
    yield f"/* {definition.name}: each atomic step is one outcome or one move."
    yield "   Terminal reasons:" + "".join(f" {i}={reason}" for i, reason in enumerate(definition.reasons, 1)) + " */"
    for i, state in enumerate(definition.states):
        yield f"#define S_{state.name} {i}"
    yield ""
    yield f"byte state = S_{definition.initial};"
    for variable in machine.variables:
        kind = "bit" if variable.top <= 1 else "byte" if variable.top < 256 else "int"
        yield f"{kind} {variable.name} = {variable.initial};"
    yield from COUNTED.splitlines()
    yield "active proctype machine() {"
    yield from ("#ifdef ENDLESS", "accept:", "#else", "end:", "#endif")
    yield "  do"
    for state in definition.states:
        if not state.final:
            yield f"  :: atomic {{ state == S_{state.name} ->"
            yield from _decided(machine, definition.rows_from(state.name), 2)
            yield "     }"
    if definition.reasons:
        yield "#ifdef TARGET"
        yield f"  :: {REASON} == TARGET -> assert(false)"
        yield "#endif"
    finals = " || ".join(f"state == S_{name}" for name in machine.finals)
    yield from ("#ifdef ENDLESS", f"  :: {finals} -> break", "#endif")
    yield "  od"
    yield "}"


def _decided(machine: Steps, rows: tuple[Row, ...], depth: int) -> Iterator[str]:
    """The rows in document order, each in the `else` of the one above. No row: the process can go no further."""
    indent = "  " * depth
    if not rows:
        yield f"{indent}false"
        return
    row = rows[0]
    arcs = machine.arcs[row.source]
    mine = next(arc for arc in arcs if arc.event == GO and arc.trigger == row.trigger)
    at = arcs.index(mine)
    yield f"{indent}if"
    if mine.condition != NEVER:
        yield f'{indent}:: {_text(mine)} -> printf("T:{row.trigger}\\n"); {_assigned(mine)}state = S_{row.dest}; MOVED'
    if row.reason is not None:
        yield f"{indent}   ENDED"
    for offset, effect in enumerate(row.given, 1):
        ask = arcs[at + offset]
        if ask.condition != NEVER:
            yield f"{indent}:: {_text(ask)} ->"
            yield f"{indent}   if"
            for code, outcome in enumerate(machine.definition.effect(effect).outcomes, 1):
                yield f'{indent}   :: printf("O:{effect}.{outcome}\\n"); of_{effect} = {code}'
            yield f"{indent}   fi"
    yield f"{indent}:: else ->"
    yield from _decided(machine, rows[1:], depth + 1)
    yield f"{indent}fi"


def _text(arc: Arc) -> str:
    return infix(arc.condition)


def _assigned(arc: Arc) -> str:
    return "".join(f"{_assign(assign)}; " for assign in arc.assigns)


def _assign(assign: Assign) -> str:
    if assign.raises:
        return f"{assign.variable} = ({assign.variable} < {assign.top} -> {assign.variable} + 1 : {assign.top})"
    return f"{assign.variable} = {assign.number}"
