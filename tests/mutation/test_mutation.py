"""The kit finds deliberate bugs in the engine (`docs/mutation.md`)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.mutation.at_random import drawn
from tests.mutation.mutants import MUTANTS
from tests.mutation.runner import NOTHING, judged, kind_of
from tests.mutation.survivors import SURVIVORS

DOCS = Path(__file__).parents[2] / "docs" / "mutation.md"
LEAST_KILLED = 0.95
SAMPLE = [
    "a swallowed cancel",
    "usage is counted twice",
    "a tombstone is lost",
    "a result is lost",
    "a result goes to the wrong id",
    "results in the order of their end",
    "an unsafe tool starts early",
    "retry-after is ignored",
    "the response is not closed",
    "pings count as progress",
    "cut JSON is run",
    "thinking goes to a model that did not make it (a signature kept)",
]


@pytest.mark.parametrize("name", MUTANTS)
def test_the_text_that_a_mutant_changes_is_still_there_once(name: str) -> None:
    mutant = MUTANTS[name]
    assert mutant.occurrences() == 1, f"{mutant.file}: {mutant.old!r}"
    assert mutant.old != mutant.new
    ast.parse(mutant.source())


def test_there_are_enough_mutants_and_all_parts_have_some() -> None:
    assert len(MUTANTS) >= 60
    assert {mutant.file.partition("/")[0] for mutant in MUTANTS.values()} == {
        *("loop", "model", "tools", "session", "context")
    }


def test_the_survivors_are_told_with_reasons() -> None:
    assert set(SURVIVORS) <= set(MUTANTS)
    told = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    assert told == SURVIVORS


def test_bugs_at_random_are_the_same_for_a_seed_and_change_their_file() -> None:
    found = drawn(20, seed=3)
    assert found == drawn(20, seed=3) != drawn(20, seed=4)
    for change in found:
        assert change.path.read_text(encoding="utf-8") != change.source()


@pytest.mark.slow
def test_a_sample_of_the_mutants_is_killed_and_the_library_is_not() -> None:
    verdicts = judged([NOTHING, *SAMPLE], workers=2)
    assert verdicts.pop(NOTHING) == ""
    assert [name for name, verdict in verdicts.items() if not verdict] == []


@pytest.mark.deep
def test_nearly_all_mutants_are_killed() -> None:
    verdicts = judged([NOTHING, *MUTANTS])
    assert verdicts.pop(NOTHING) == ""
    survived = {name for name, verdict in verdicts.items() if not verdict}
    assert survived <= set(SURVIVORS)
    by_the_kit = [name for name, verdict in verdicts.items() if verdict and kind_of(verdict) != "own test"]
    assert len(by_the_kit) >= LEAST_KILLED * len(MUTANTS)
