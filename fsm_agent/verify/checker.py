"""The checker: `check(definition)` tells what a declared machine can and cannot do."""

from __future__ import annotations

import time
from collections.abc import Iterable

from fsm_agent.machine import AGENT_LOOP, Below, Definition, Flag, Limits
from fsm_agent.verify.agent_loop import AGENT_LOOP_CONTRACTS
from fsm_agent.verify.bounds import Bound, Measure
from fsm_agent.verify.bounds_given import Bounds, LimitsError, bounds_of, unbounded
from fsm_agent.verify.certificate import Certificate, certify
from fsm_agent.verify.conditions import bound as bound_condition
from fsm_agent.verify.conditions import parts
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.contracts import Contract, Enters, Fires, Performs, checked_names
from fsm_agent.verify.decisions import Decisions, atoms_of
from fsm_agent.verify.exhaustive import Exhaustive
from fsm_agent.verify.explore import StateCapError
from fsm_agent.verify.lassos import endless
from fsm_agent.verify.layout import GuardFaultError, Layout, UnboundedCounterError
from fsm_agent.verify.limits_at_edge import OtherLimits
from fsm_agent.verify.obligations import Judge, Verdict
from fsm_agent.verify.report import Cycle, DeadRow, Hole, Key, Report
from fsm_agent.verify.search import Found, Goal, Search, Undecided
from fsm_agent.verify.system import End, Move, System, happenings
from fsm_agent.verify.system import Hole as Gap
from fsm_agent.verify.witness import Lasso, Witness, replay
from fsm_agent.verify.worst_run import worst_case


def check(
    definition: Definition,
    limits: Bounds = None,
    contracts: Iterable[Contract] | None = None,
    *,
    exact: bool = False,
    turn: str | None = None,
    state_cap: int = 2_000_000,
) -> Report:
    """What a machine can and cannot do under its limits, and that it ends for all limits.

    - `limits`: a settings model such as `LoopLimits`, or the bounds by name; left out, the defaults.
    - `contracts`: what the machine should do (left out: those of the shipped machine, for that machine).
    - `exact`: visit every configuration of the product, at most `state_cap` of them. The default way is compositional:
      it gives the same verdicts without the product, and works for any limits. (Where it comes to no verdict because a
      guard is a function of your own, the exact way is tried.)
    - `turn`: the counter that counts turns, for the worst case per turn. Left out: the one named `turn`, or else the
      first of the ranking.

    Never raises for what is wrong with the machine, its limits or its contracts: the report says it.

    >>> from fsm_agent.machine import AGENT_LOOP, LoopLimits
    >>> report = check(AGENT_LOOP, LoopLimits(max_turns=20))
    >>> report.ok, report.reasons["refusal"].word
    (True, ('context_ready', 'response_ended', 'model_fallback', 'context_ready', 'response_ended', 'refuse'))
    """
    started = time.perf_counter()
    if contracts is None:
        contracts = AGENT_LOOP_CONTRACTS if definition == AGENT_LOOP else ()
    checked = _checked(definition, limits, tuple(contracts), turn, state_cap if exact else None)
    if checked.undecided and _has_guards_of_its_own(definition):
        # What such a guard answers cannot be abstracted; perhaps the whole product is small.
        whole = _checked(definition, limits, tuple(contracts), turn, state_cap)
        checked = checked if whole.undecided else whole
    return checked.report(time.perf_counter() - started)


def _checked(
    definition: Definition, limits: Bounds, contracts: tuple[Contract, ...], turn: str | None, exact: int | None
) -> _Check:
    checked = _Check(definition, contracts, turn)
    try:
        checked.prepare(limits, exact)
        checked.run()
    except StateCapError as error:
        checked.undecided = True
        checked.problems.append(str(error))
    except (LimitsError, GuardFaultError, UnboundedCounterError) as error:
        checked.problems.append(str(error))
    return checked


def _has_guards_of_its_own(definition: Definition) -> bool:
    atoms = atoms_of(guard for row in definition.rows for guard in row.when)
    return not all(isinstance(atom, (Below, Flag)) for atom in atoms)


class _Check:
    """The parts of a report, as they become known."""

    def __init__(self, definition: Definition, contracts: tuple[Contract, ...], turn: str | None) -> None:
        self.definition = definition
        self.contracts = contracts
        self.turn = turn
        self.limits: Limits = {}
        self.search: Search | None = None
        self.rows: dict[Key, Witness] = {}
        self.reasons: dict[str, Witness | None] = dict.fromkeys(definition.reasons)
        self.holes: list[Hole] = []
        self.dead_rows: list[DeadRow] = []
        self.dead_ends: list[str] = []
        self.switched_off: dict[Key, str] = {}
        self.cycles: list[Cycle] = []
        self.certificate = Certificate((), tuple(row.key for row in definition.rows))
        self.verdicts: list[Verdict] = []
        self.bounds: dict[tuple[Measure, bool], Bound] = {}
        self.problems: list[str] = []
        self.undecided = False
        self.notes: list[str] = []

    def prepare(self, limits: Bounds, exact: int | None) -> None:
        """`exact` is the most configurations that may be visited; None: the compositional way."""
        self.problems += checked_names(self.contracts, self.definition)
        self.limits = bounds_of(self.definition, limits)
        self.system = System(Decisions(self.definition, self.limits), remember=exact is None)
        named = [c for c in self.contracts if not any(c.unknown(self.definition))]
        whens = (c.when for c in named if isinstance(c, (Enters, Fires, Performs)) and c.when is not None)
        known = [part for when in whens for part in parts(bound_condition(when, self.definition))]
        self.layout = Layout(self.definition, self.limits, known)
        configurations = Configurations(self.system, self.layout)
        self.search = Search(configurations) if exact is None else Exhaustive(configurations, exact)
        self.others = OtherLimits(self.definition, self.limits)

    def run(self) -> None:
        self._find_rows()
        self._find_holes()
        self._prove_termination()
        self._judge_contracts()
        self._bound()

    # ---- what can happen

    def _find_rows(self) -> None:
        assert self.search is not None
        for row in self.definition.rows:
            answer = self.search.find(Goal(f"The row «{row}»", self.search.rows([row.key])))
            if isinstance(answer, Found):
                replay(self.definition, self.limits, answer.witness.steps)
                self.rows[row.key] = answer.witness
                if not answer.shortest:
                    self.notes.append(f"Whether the run through the row «{row}» is a shortest one.")
            elif isinstance(answer, Undecided):
                self._undecided(answer)
            else:
                self._explain_dead(row.key)
        for reason in self.reasons:
            runs = [self.rows[row.key] for row in self.definition.rows if row.reason == reason and row.key in self.rows]
            self.reasons[reason] = min(runs, key=lambda run: len(run.word), default=None)

    def _explain_dead(self, key: Key) -> None:
        off = self.others.allow(lambda search: Goal("", search.rows([key])))
        if off is not None:
            self.switched_off[key] = off
            return
        row = self.definition.row(*key)
        above = self.definition.rows_from(row.source)
        above = above[: above.index(row)]
        takers = {
            happening.row.trigger
            for number, node in enumerate(self.system.nodes)
            if self._fits(number, key)
            for _, happening in happenings(node)
            if isinstance(happening, Move)
        }
        self.dead_rows.append(DeadRow(row, tuple(other.trigger for other in above if other.trigger in takers)))

    def _fits(self, number: int, key: Key) -> bool:
        """Whether the outcomes of a situation are those that a row needs."""
        situation, row = self.system.situations[number], self.definition.row(*key)
        facts = dict(situation.facts)
        return situation.state == row.source and all(facts.get(e) in outcomes for e, outcomes in row.given.items())

    def _find_holes(self) -> None:
        assert self.search is not None
        for number, node in enumerate(self.system.nodes):
            gaps = frozenset((number, happening) for _, happening in happenings(node) if isinstance(happening, Gap))
            if not gaps:
                continue
            situation = self.system.situations[number]
            answer = self.search.find(Goal(f"A hole in {situation}", gaps))
            if isinstance(answer, Found):
                replay(self.definition, self.limits, answer.witness.steps)
                self.holes.append(Hole(situation.state, situation.facts, answer.witness))
            elif isinstance(answer, Undecided):
                self._undecided(answer)
        self._find_dead_ends()

    def _find_dead_ends(self) -> None:
        before: dict[int, list[int]] = {}
        for a, _, b in self.system.edges():
            before.setdefault(b, []).append(a)
        ends = [n for n, node in enumerate(self.system.nodes) if isinstance(node, End)]
        alive = set(ends)
        while ends:
            for number in before.get(ends.pop(), ()):
                if number not in alive:
                    alive.add(number)
                    ends.append(number)
        holes = {hole.state for hole in self.holes}
        reached = {step.dest for run in self.rows.values() for step in run.steps} | {self.definition.initial}
        states = dict.fromkeys(situation.state for situation in self.system.situations)
        living = {self.system.situations[n].state for n in alive}
        self.dead_ends = [s for s in states if s in reached and s not in holes | living]

    # ---- that it ends

    def _prove_termination(self) -> None:
        assert self.search is not None
        every = System(Decisions(self.definition, None), remember=True)
        self.certificate = certify(every)
        if not self.certificate.complete and not self._find_cycle(self.certificate, None):
            self.notes.append("Whether every run ends under other limits: the certificate is not complete.")
        declared = unbounded(self.definition, self.limits)
        if declared:
            open_ended = certify(every, declared)
            if set(open_ended.left) - set(self.certificate.left):
                self._find_cycle(open_ended, ", ".join(declared))

    def _find_cycle(self, certificate: Certificate, declared_by: str | None) -> bool:
        """Look for an endless run by the rows that a certificate leaves; whether one was found, or is not excluded."""
        assert self.search is not None
        found = endless(self.search, certificate)
        if isinstance(found, Lasso):
            replay(self.definition, self.limits, (*found.stem, *found.loop, *found.loop))
            self.cycles.append(Cycle(found, declared_by))
        elif found is not None:
            self._undecided(found)
        return found is not None

    def _undecided(self, answer: Undecided) -> None:
        self.undecided = True
        self.problems.append(answer.why)

    # ---- what it should do

    def _judge_contracts(self) -> None:
        assert self.search is not None
        judge = Judge(self.search, self.others)
        self.verdicts.append(judge.within_limits())
        if not self.contracts:
            self.notes.append("What the machine should do: no contracts were given.")
        known = [c for c in self.contracts if not any(c.unknown(self.definition))]
        self.verdicts += map(judge.judge, known)
        self.undecided = self.undecided or any(verdict.undecided for verdict in self.verdicts)

    # ---- what it costs

    def _bound(self) -> None:
        if not self.certificate.complete or self.holes:
            return
        turn = self._turn()
        endless_by = {
            peel.name for peel in self.certificate.peels if peel.limit in unbounded(self.definition, self.limits)
        }
        if endless_by - {turn} or any(cycle.declared_by is None for cycle in self.cycles):
            return
        limits = self.limits if not endless_by else _two_turns(self.definition, self.limits, turn)
        claims, seen = worst_case(self.definition, limits, self.certificate, turn)
        for (measure, one_turn), (value, formula) in claims.items():
            if (one_turn and turn is not None) or not (one_turn or endless_by):
                self.bounds[measure, one_turn] = Bound(value, formula, seen[measure, one_turn])

    def _turn(self) -> str | None:
        if self.turn is not None:
            return self.turn
        names = [counter.name for counter in self.definition.counters]
        ranked = [name for name in self.certificate.order if name in names]
        return "turn" if "turn" in names else ranked[0] if ranked else None

    # ---- all together

    def report(self, seconds: float) -> Report:
        size = self.search.size if self.search is not None else (0, 0)
        return Report(
            definition=self.definition,
            limits=self.limits,
            exact=isinstance(self.search, Exhaustive),
            configurations=size[0],
            edges=size[1],
            rows=self.rows,
            reasons=self.reasons,
            holes=tuple(self.holes),
            dead_rows=tuple(self.dead_rows),
            dead_ends=tuple(self.dead_ends),
            switched_off=self.switched_off,
            cycles=tuple(self.cycles),
            certificate=self.certificate,
            contracts=tuple(self.verdicts),
            requests_per_turn=self.bounds.get(("requests", True)),
            requests_per_run=self.bounds.get(("requests", False)),
            moves_per_turn=self.bounds.get(("moves", True)),
            moves_per_run=self.bounds.get(("moves", False)),
            problems=tuple(self.problems),
            notes=tuple(self.notes),
            seconds=seconds,
        )


def _two_turns(definition: Definition, limits: Limits, turn: str | None) -> Limits:
    """Limits under which a run has a second turn and no third, where turns have no bound: a turn is like any other."""
    counter = next(c for c in definition.counters if c.name == turn)
    return {**limits, str(counter.limit): counter.initial + 1}
