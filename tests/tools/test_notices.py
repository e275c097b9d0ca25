"""The buffer of what tools tell: bounded, in order, no start or end lost. Fault `unbounded-queue`."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.tools import NoticeQueue, ToolNotice
from fsm_agent.tools.notices import PROGRESS_TEXT_MAX, ProgressFeed, merged


def notice(kind: Any, call: str = "1", **known: Any) -> ToolNotice:
    return ToolNotice(kind, call, "tool", **known)


def drained(queue: NoticeQueue) -> list[ToolNotice]:
    return list(iter(queue.take, None))


def test_progress_that_nobody_reads_is_one_notice_of_bounded_size() -> None:
    queue = NoticeQueue()
    queue.put(notice("started"))
    for number in range(100_000):
        queue.put(notice("progress", data=f"line {number}\n"))
    queue.put(notice("finished"))
    assert len(queue) == 3
    started, progress, finished = drained(queue)
    assert (started.kind, finished.kind) == ("started", "finished")
    assert len(progress.data) == PROGRESS_TEXT_MAX
    assert progress.data.endswith("line 99999\n")


def test_progress_after_a_new_start_of_the_same_id_is_not_told_before_that_start() -> None:
    """A reply that is repeated may carry the same ids again."""
    queue = NoticeQueue()
    for data in ("old", "new"):
        queue.put(notice("started"))
        queue.put(notice("progress", data=data))
        queue.put(notice("finished"))
    assert [each.data or each.kind for each in drained(queue)] == [
        "started",
        "old",
        "finished",
        "started",
        "new",
        "finished",
    ]


def test_a_reader_waits_and_is_woken() -> None:
    async def program() -> list[str]:
        queue = NoticeQueue()
        reader = asyncio.ensure_future(queue.get())
        await asyncio.sleep(0)
        queue.put(notice("started"))
        first = await reader
        queue.put(notice("finished"))
        await queue.wait()
        return [first.kind, (await queue.get()).kind]

    assert asyncio.run(program()) == ["started", "finished"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["progress", "progress", "progress", "take"]), st.sampled_from("ab"), st.text(max_size=3))
)


@given(STEPS)
def test_whatever_the_reader_does_no_text_is_lost_and_the_order_of_each_call_is_kept(
    steps: list[tuple[str, str, str]],
) -> None:
    queue = NoticeQueue()
    read: list[ToolNotice] = []
    for call in "ab":
        queue.put(notice("started", call))
    for kind, call, text in steps:
        if kind == "take":
            taken = queue.take()
            read += [taken] if taken else []
        else:
            queue.put(notice("progress", call, data=text))
    for call in "ab":
        queue.put(notice("finished", call))
    assert len(queue) <= 6
    read += drained(queue)
    for call in "ab":
        mine = [each for each in read if each.tool_use_id == call]
        assert [mine[0].kind, mine[-1].kind] == ["started", "finished"]
        assert "".join(each.data or "" for each in mine) == "".join(t for k, c, t in steps if k != "take" and c == call)


def test_values_that_are_not_texts_replace_each_other() -> None:
    assert merged("text", {"done": 1}) == {"done": 1}
    assert merged(None, "text") == "text"


def test_a_feed_whose_loop_is_closed_drops_what_it_is_given() -> None:
    loop = asyncio.new_event_loop()
    heard: list[Any] = []
    feed = ProgressFeed(loop, heard.append)
    loop.close()
    feed.report("into the void")
    feed.report("again")
    assert heard == []
