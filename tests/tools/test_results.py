"""What a tool returned or raised, as the model reads it: always text or blocks that the API takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from fsm_agent.tools import ToolError, ToolResult, refused, tool
from fsm_agent.tools.content import content_of
from fsm_agent.tools.faults import text_of_fault
from fsm_agent.tools.result import Answers
from tests.tools.batches import Recorder, answer, call

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
ANSWERS = Answers("toolu_1")


class Model(BaseModel):
    number: int


class TextBlock(BaseModel):
    type: str = "text"
    text: str
    citations: None = None


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", "(no output)"),
        (" \n", "(no output)"),
        (None, "(no output)"),
        (0, "0"),
        (False, "false"),
        ([], "[]"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (Model(number=4), '{"number":4}'),
        (Point(1), '{"x":1}'),
        (Decimal("1.50"), '"1.50"'),
        (Path("a/b"), '"a/b"'),
        (float("nan"), "null"),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ([{"type": "text", "text": "a"}, IMAGE], [{"type": "text", "text": "a"}, IMAGE]),
        ([{"type": "text", "text": " "}, IMAGE], [IMAGE]),
        ([{"type": "text", "text": ""}], "(no output)"),
        ([TextBlock(text="typed")], [{"type": "text", "text": "typed"}]),
        ([{"type": "text", "text": "\udfff"}], [{"type": "text", "text": "\ufffd"}]),
        ([{"type": "text"}], '[{"type":"text"}]'),
        ([{"type": "dog", "name": "Rex"}], '[{"type":"dog","name":"Rex"}]'),
        ([{"type": "text", "text": "a"}, 1], '[{"type":"text","text":"a"},1]'),
    ],
)
def test_the_content_of_what_was_returned(value: Any, content: Any) -> None:
    assert content_of(value) == content
    result = ANSWERS.returned(value)
    assert result.status == "ok"
    assert result.block() == {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}


def circular() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (object(), "a value of type builtins.object, which has no JSON form"),
        ((number for number in range(3)), "a value of type builtins.generator, which is no result"),
        (circular(), "a value of type builtins.list, which has no JSON form"),
        ([{"type": "text", "text": "a", "extra": object()}], "which has no JSON form"),
    ],
)
def test_a_value_that_has_no_json_form_is_an_error_result(value: Any, told: str) -> None:
    result = ANSWERS.returned(value)
    assert result.status == "error"
    assert told in result.content


def test_a_returned_object_whose_own_code_exits_is_an_error_result() -> None:
    class Hostile(dict[str, int]):
        def items(self) -> Any:
            raise SystemExit(3)

        __iter__ = keys = values = items

    result = ANSWERS.returned(Hostile(a=1))
    json.dumps(result.block())  # whether or not the serialiser runs that code, there is a result


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text for you")

    __repr__ = __str__


def raising(fault: BaseException) -> Callable[[], Any]:
    async def fail() -> None:
        raise fault

    return fail


FAULTS = [
    (ValueError("no such order"), "The tool failed: ValueError: no such order"),
    (KeyError(), "The tool failed: KeyError"),
    (ExceptionGroup("two", [OSError("a"), TypeError("b")]), "OSError: a; TypeError: b"),
    (BaseExceptionGroup("base", [SystemExit(2)]), "SystemExit: 2"),
    (SystemExit(1), "The tool failed: SystemExit: 1"),
    (KeyboardInterrupt(), "The tool failed: KeyboardInterrupt"),
    (Unspeakable(), "its text cannot be shown: str() raised ValueError"),
    (StopIteration(4), ""),
    (StopAsyncIteration(), "StopAsyncIteration"),
    (asyncio.CancelledError(), "The tool failed: CancelledError"),
    (TimeoutError(), "The tool failed: TimeoutError"),
    (GeneratorExit(), "GeneratorExit"),
]


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize(("fault", "told"), FAULTS, ids=lambda value: type(value).__name__)
async def test_whatever_a_tool_raises_is_a_bounded_error_result_and_its_sibling_runs(
    fault: BaseException, told: str, kind: str
) -> None:
    def fail() -> None:
        raise fault

    failing = tool(name="fail")(raising(fault) if kind == "async" else fail)

    @tool
    def fine() -> str:
        return "fine"

    recorder = Recorder(failing, fine)
    assert await recorder.run(call("1", "fail"), call("2", "fine")) == "done"
    first, second = recorder.batch.results()
    if isinstance(fault, StopIteration):
        told = "coroutine raised StopIteration"  # Python's own rule
    assert told in first.content
    assert "Traceback" not in first.content
    assert (first.is_error, first.status) == (True, "error")
    assert second.content == "fine"
    assert recorder.told("started") == ["1", "2"]
    recorder.assert_balanced()


async def test_an_endless_text_of_an_exception_is_cut_in_the_middle() -> None:
    @tool
    def fail() -> None:
        raise ValueError("begin " + "x" * 5_000_000 + " end")

    content = (await answer(fail)).content
    assert len(content) < 3_000
    assert "begin" in content
    assert "characters left out" in content
    assert content.endswith("end")


def test_a_large_exception_group_is_told_in_part() -> None:
    group = ExceptionGroup("many", [ValueError(str(number)) for number in range(1_000)])
    assert text_of_fault(group).endswith("and 991 more")


async def test_an_error_in_the_tools_own_words() -> None:
    @tool
    def fail() -> None:
        raise ToolError("There is no order 17.")

    result = await answer(fail)
    assert result == ToolResult("toolu_1", "There is no order 17.", is_error=True, status="error")


async def test_an_error_holds_only_text_and_is_never_blank() -> None:
    @tool
    def with_image() -> None:
        raise ToolError([{"type": "text", "text": "It looks wrong:"}, IMAGE])

    @tool
    def blank() -> None:
        raise ToolError("")

    result = await answer(with_image)
    assert [block["type"] for block in result.content] == ["text", "text"]
    assert result.content[1]["text"] == "[image left out]"
    assert (await answer(blank)).content == "(no output)"


async def test_an_error_with_content_that_is_none_is_still_an_error_result() -> None:
    @tool
    def fail() -> None:
        raise ToolError([object()])  # type: ignore[list-item]

    result = await answer(fail)
    assert result.is_error
    assert isinstance(result.content, str)


def test_a_note_goes_after_the_content_whatever_its_form() -> None:
    assert ToolResult("1", "text").noted("note").content == "text\n\nnote"
    assert ToolResult("1", [IMAGE]).noted("note").content == [IMAGE, {"type": "text", "text": "note"}]


def test_calls_that_are_not_run_at_all_are_answered_in_order() -> None:
    results = refused(["a", "b"], "the budget is spent")
    assert [result.tool_use_id for result in results] == ["a", "b"]
    assert {result.status for result in results} == {"not_run"}
    assert all(result.is_error for result in results)


def test_a_tools_own_bound_of_its_result_travels_with_the_result() -> None:
    assert Answers("1", max_chars=700).returned("x").max_chars == 700


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.fixed_dictionaries({"type": st.just("text"), "text": inner})
    ),
    max_leaves=10,
)


@given(JSON)
def test_any_value_gives_a_result_that_is_strict_json_and_not_blank(value: Any) -> None:
    block = ANSWERS.returned(value).block()
    json.dumps(block, ensure_ascii=False, allow_nan=False).encode("utf-8")
    content = block["content"]
    assert content
    if isinstance(content, str):
        assert content.strip()
    else:
        assert all(each["text"].strip() for each in content if each["type"] == "text")
