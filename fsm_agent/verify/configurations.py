"""Configurations as whole numbers, and the one thing that happens in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fsm_agent.machine import Row
from fsm_agent.verify.layout import Change, Layout
from fsm_agent.verify.system import Ask, Choice, Happening, Move, Node, System, happenings
from fsm_agent.verify.witness import Event


class Configurations:
    """The product of situations and control records, both in one number: `situation << bits | control`."""

    def __init__(self, system: System, layout: Layout) -> None:
        self.system = system
        self.layout = layout
        self.bits = layout.bits
        self.control_mask = (1 << layout.bits) - 1
        self.initial = layout.initial
        self.reads = [layout.bits_of(_names(node)) for node in system.nodes]
        self._memo: list[dict[int, Happening]] = [{} for _ in system.nodes]
        self._changes: dict[tuple[str, str], Change] = {}

    def happening(self, configuration: int) -> Happening:
        """What happens here: an effect is asked for, a row fires, nothing, or it is the end."""
        number, control = configuration >> self.bits, configuration & self.control_mask
        key = control & self.reads[number]
        memo = self._memo[number]
        known = memo.get(key)
        if known is None:
            known = memo[key] = self._walk(self.system.nodes[number], control, self.system.situations[number].state)
        return known

    def _walk(self, node: Node, control: int, state: str) -> Happening:
        while isinstance(node, Choice):
            node = node.yes if self.layout.answer(node.atom, control, state) else node.no
        return node

    def change(self, row: Row) -> Change:
        change = self._changes.get(row.key)
        if change is None:
            change = self._changes[row.key] = self.layout.change(row)
        return change

    def after(self, happening: Happening, configuration: int) -> list[int]:
        """The configurations that follow."""
        match happening:
            case Move():
                return [happening.dest << self.bits | self.change(happening.row)(configuration & self.control_mask)]
            case Ask():
                control = configuration & self.control_mask
                return [dest << self.bits | control for _, dest in happening.branches]
            case _:
                return []

    def events(self, path: Iterable[int]) -> Iterator[Event]:
        """What happened between each two configurations of a path."""
        before: int | None = None
        for configuration in path:
            if before is not None:
                yield self.event(before, configuration)
            before = configuration

    def event(self, before: int, after: int) -> Event:
        happening = self.happening(before)
        if isinstance(happening, Move):
            return happening.row
        assert isinstance(happening, Ask)
        outcome = next(name for name, dest in happening.branches if dest == after >> self.bits)
        return happening.effect, outcome


def _names(node: Node) -> set[str]:
    """The counters and flags that anything on a node depends on."""
    return {name for path, _ in happenings(node) for atom, _ in path for name in atom.reads}
