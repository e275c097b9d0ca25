"""Tool results within their budget, from wherever they come, and the files with the whole of them."""

import gc
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.context import tool_result_budget
from fsm_agent.context.results import ResultStore
from fsm_agent.context.tool_result_budget import bounded_blocks, bounded_result
from fsm_agent.context.view import Draft, apply_edits
from fsm_agent.machine import LoopLimits
from fsm_agent.session.history import History
from fsm_agent.session.validator import violations
from tests.context.views import view
from tests.session.histories import assistant, call, image, result, text, user
from tests.session.noting import noting

LIMITS = LoopLimits(tool_result_max_chars=3_000, message_results_max_chars=5_000)


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "results")


def chars(block):
    content = block["content"]
    return len(content) if isinstance(content, str) else sum(len(part.get("text", "")) for part in content)


# ---- one result


@given(st.text(), st.integers(1, 300))
def test_a_result_is_never_longer_than_its_limit_and_short_ones_are_left_alone(content, limit):
    bounded = bounded_result(content, limit)
    assert len(bounded) <= limit
    assert (bounded == content) == (len(content) <= limit)
    assert bounded_result(bounded, limit) == bounded


def test_the_whole_text_is_in_the_file_that_the_notice_names(store, tmp_path):
    whole = "é" * 5_000
    bounded = bounded_result(whole, 3_000, store, "toolu_1")
    path = tmp_path / "results" / "toolu_1.txt"
    assert path.read_text() == whole
    preview, notice = bounded.split("\n")
    assert preview == "é" * 2_000
    assert notice == f"[Cut: this is the beginning of a result of 5000 characters. All of it is in {path}]"


def test_a_store_that_can_not_write_leaves_a_longer_beginning(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING, "fsm_agent"):
        bounded = bounded_result("x" * 5_000, 3_000, ResultStore(tmp_path / "file"))
    assert bounded.endswith("The rest was not kept.]")
    assert len(bounded) == 3_000
    assert [record.getMessage() for record in caplog.records] == ["tool_result_not_saved"]


def test_the_same_result_is_cut_the_same_way_again(store):
    first, second = (bounded_result("x" * 9_000, 3_000, store, "a") for _ in range(2))
    assert first == second


# ---- all results of a message


@given(st.lists(st.integers(0, 4_000), min_size=1, max_size=40))
def test_each_result_and_their_sum_are_within_the_budget(sizes):
    blocks = [result(f"c{number}", "x" * size) for number, size in enumerate(sizes)]
    bounded = bounded_blocks(blocks, LIMITS)
    assert all(chars(block) <= 3_000 for block in bounded)
    assert sum(map(chars, bounded)) <= 5_000
    assert [block["tool_use_id"] for block in bounded] == [block["tool_use_id"] for block in blocks]
    for old, new in zip(blocks, bounded, strict=True):
        if chars(old) <= min(3_000, 5_000 // len(sizes)):
            assert new is old


def test_many_results_are_cut_to_one_length(store):
    bounded = bounded_blocks([result(f"c{n}", "x" * 900) for n in range(40)] + [result("small", "ok")], LIMITS, store)
    assert {chars(block) for block in bounded[:40]} == {124}
    assert bounded[40] == result("small", "ok")


def test_an_error_is_cut_as_well_and_stays_one():
    (bounded,) = bounded_blocks([result("a", "x" * 5_000_000, is_error=True)], LIMITS)
    assert chars(bounded) == 3_000
    assert bounded["is_error"] is True


def test_blocks_of_any_kind_count_and_images_stay():
    found = {"type": "search_result", "source": "s", "title": "t", "content": [text("y" * 4_000)]}
    (bounded,) = bounded_blocks([result("a", [text("x" * 100), image(), found])], LIMITS)
    first, second = bounded["content"]
    assert first["text"].startswith("x" * 100 + '\n{"type": "search_result"')
    assert len(first["text"]) == 3_000
    assert second == image()


def test_images_do_not_count_as_text():
    blocks = [result("a", [image("A" * 9_000)])]
    assert bounded_blocks(blocks, LIMITS) == blocks


def test_fifty_megabytes_are_cut():
    (bounded,) = bounded_blocks([result("a", "x" * 50_000_000)], LIMITS)
    assert chars(bounded) == 3_000


# ---- the stage


def test_the_stage_cuts_what_came_from_outside_and_looks_at_each_message_once(store, monkeypatch):
    seen: list[Any] = []
    monkeypatch.setattr(tool_result_budget, "bounded_blocks", noting(seen, bounded_blocks))
    history = History([user("go"), assistant(call("a")), user(result("a", "x" * 9_000), text("and"))])
    draft = Draft(view(history, limits=LIMITS, store=store))
    tool_result_budget.apply(draft)
    (edit,) = draft.edits
    assert edit.removed == "1 tool results were cut to their budget."
    apply_edits(history, draft.edits)
    assert violations(history.messages) == []
    assert history.messages[2]["content"][1] == text("and")
    assert chars(history.messages[2]["content"][0]) < 3_000

    again = Draft(view(history, limits=LIMITS, store=store))
    tool_result_budget.apply(again)
    tool_result_budget.apply(again)
    assert again.edits == []
    assert seen == [store]


# ---- the files


def test_nothing_is_overwritten(store):
    paths = [store.save("a", content) for content in ("one", "two", "one", "two")]
    assert [path.read_text() for path in paths] == ["one", "two", "one", "two"]
    assert len(set(paths)) == 2


def test_an_id_can_not_leave_the_directory(store, tmp_path):
    path = store.save("../../etc/passwd", "x")
    assert path.parent == tmp_path / "results"


def test_a_directory_of_the_program_is_made_when_needed_and_never_removed(store, tmp_path):
    assert not (tmp_path / "results").exists()
    path = store.save("a", "x")
    store.close()
    assert path.exists()


def test_a_directory_of_its_own_goes_with_the_store():
    store = ResultStore()
    path = store.save("a", "x")
    assert path is not None
    assert path.parent.name.startswith("fsm_agent-results-")
    del store
    gc.collect()
    assert not path.parent.exists()


def test_a_directory_that_a_tool_removed_is_made_again(store, tmp_path):
    store.save("a", "x").unlink()
    (tmp_path / "results").rmdir()
    assert store.save("b", "y").read_text() == "y"
