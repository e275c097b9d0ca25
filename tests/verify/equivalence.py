"""Whether two tables decide alike in every case, reachable or not."""

from collections.abc import Iterator

from fsm_agent.machine import Below, Definition, Limits
from fsm_agent.verify.decisions import Asked, Decisions, Facts, Fired, Leaf, Test, Tree, implied


def decide_alike(one: Definition, other: Definition, limits: Limits) -> bool:
    """The same effects asked for and the same rows fired, whatever the counters are."""
    mine, theirs = Decisions(one, limits), Decisions(other, limits)
    waiting: list[tuple[str, Facts]] = [(one.initial, ())]
    seen: set[tuple[str, Facts]] = set()
    while waiting:
        state, facts = waiting.pop()
        if (state, facts) in seen:
            continue
        seen.add((state, facts))
        for a, b in _pairs(mine.tree(state, facts), theirs.tree(state, facts), (), one, limits):
            if not _same(a, b):
                return False
            if isinstance(a, Asked):
                waiting += [(state, mine.with_outcome(facts, a.effect, o)) for o in one.effect(a.effect).outcomes]
            elif isinstance(a, Fired):
                waiting.append((a.row.dest, mine.inherited(a.row, facts)))
    return True


def _pairs(a: Tree, b: Tree, answers, definition: Definition, limits: Limits) -> Iterator[tuple[Leaf, Leaf]]:
    for tree in (a, b):
        if isinstance(tree, Test):
            known = dict(answers).get(tree.atom)
            if known is None and isinstance(tree.atom, Below):
                known = implied(tree.atom, answers, definition, limits)
            for answer in (True, False) if known is None else (known,):
                branch = tree.yes if answer else tree.no
                pair = (branch, b) if tree is a else (a, branch)
                yield from _pairs(*pair, (*answers, (tree.atom, answer)), definition, limits)
            return
    assert not isinstance(a, Test)
    assert not isinstance(b, Test)
    yield a, b


def _same(a: Leaf, b: Leaf) -> bool:
    if isinstance(a, Fired) and isinstance(b, Fired):
        alike = ("trigger", "dest", "update", "do", "reason")
        return all(getattr(a.row, name) == getattr(b.row, name) for name in alike)
    return a == b
