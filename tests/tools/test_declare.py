"""What `@tool` makes of a function."""

from __future__ import annotations

import contextvars
import functools
import math
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from fsm_agent.tools import ToolConfigError, ToolContext, tool
from tests.tools.batches import answer


class Unit(StrEnum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Place(BaseModel):
    town: str
    country: str = "NO"


def test_the_schema_says_types_defaults_and_what_is_required() -> None:
    @tool
    def weather(place: Place, day: date, unit: Unit = Unit.CELSIUS, hours: list[int] | None = None) -> str:
        return ""

    schema = weather.input_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["place", "day"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["day"] == {"type": "string", "format": "date"}
    assert schema["properties"]["unit"]["default"] == "C"
    assert schema["$defs"]["Place"]["properties"]["country"] == {"type": "string", "default": "NO"}


@pytest.mark.parametrize(
    "docstring",
    [
        "Find a town.\n\nIn any country.\n\nArgs:\n    name: How it is called.\n\nReturns:\n    Nothing.",
        "Find a town.\n\nIn any country.\n\nParameters\n----------\nname : str\n    How it is called.",
        "Find a town.\n\nIn any country.\n\n:param name: How it is called.\n:returns: Nothing.",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_descriptions_come_from_the_docstring(docstring: str) -> None:
    def find(name: str) -> None: ...

    find.__doc__ = docstring
    made = tool(find)
    assert made.definition["description"] == "Find a town.\n\nIn any country."
    assert made.input_schema["properties"]["name"]["description"] == "How it is called."


def test_a_description_in_the_annotation_beats_the_docstring() -> None:
    @tool
    def find(name: Annotated[str, Field(description="The name.", max_length=9)]) -> None:
        """Find.

        Args:
            name: Something else.
        """

    assert find.input_schema["properties"]["name"] == {"type": "string", "maxLength": 9, "description": "The name."}


def test_a_tool_without_a_docstring_has_no_description() -> None:
    @tool
    def find(name: str) -> None: ...

    assert "description" not in find.definition


@pytest.mark.parametrize("place", ["first", "last", "keyword", "optional"])
async def test_the_context_is_handed_in_whatever_its_place_and_never_in_the_schema(place: str) -> None:
    def first(context: ToolContext[str], number: int) -> str:
        return f"{context.tool_use_id} {number}"

    def last(number: int, ctx: ToolContext[str]) -> str:
        return f"{ctx.tool_use_id} {number}"

    def keyword(number: int, *, anything: Annotated[ToolContext[Any], "how it is named does not matter"]) -> str:
        return f"{anything.tool_use_id} {number}"

    def optional(number: int, context: ToolContext | None = None) -> str:
        assert context is not None
        return f"{context.tool_use_id} {number}"

    made = tool(locals()[place])
    assert list(made.input_schema["properties"]) == ["number"]
    assert (await answer(made, number=4)).content == "toolu_1 4"


async def test_parameters_may_have_names_that_pydantic_uses_itself() -> None:
    @tool
    def odd(schema: str, model_config: int, json: bool, _private: str = "p", self_: int = 1) -> list[Any]:
        return [schema, model_config, json, _private, self_]

    assert (await answer(odd, schema="a", model_config=2, json=True)).content == '["a",2,true,"p",1]'


async def test_validated_values_reach_the_function_as_their_types() -> None:
    @tool
    def plan(place: Place, day: date, unit: Unit, tags: set[str]) -> str:
        assert isinstance(place, Place)
        assert isinstance(day, date)
        assert unit is Unit.FAHRENHEIT
        return f"{place.town} {day.year} {sorted(tags)}"

    result = await answer(plan, place={"town": "Oslo"}, day="2026-11-30", unit="F", tags=["b", "a"])
    assert result.content == "Oslo 2026 ['a', 'b']"


def test_local_classes_can_be_annotations_although_annotations_are_strings_here() -> None:
    class Local(BaseModel):
        number: int

    @tool
    def use(local: Local) -> None: ...

    @tool(name="use_2")
    def use_with_brackets(local: Local) -> None: ...

    assert use.input_schema["$defs"]["Local"]["properties"]["number"] == {"type": "integer"}
    assert use_with_brackets.input_schema == use.input_schema


async def test_a_default_without_a_json_form_is_left_out_of_the_schema_and_still_used() -> None:
    marker = object()

    @tool
    def use(thing: Any = marker) -> str:
        return "default" if thing is marker else "given"

    assert use.input_schema["properties"]["thing"] == {}
    assert (await answer(use)).content == "default"


def test_calling_a_tool_calls_the_function() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        "Add."
        return a + b

    assert add(1) == 3
    assert add.__doc__ == "Add."


async def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Shop:
        def buy(self, item: str) -> str:
            "Buy an item."
            return f"bought {item}"

    class Greeter:
        "Greets."

        async def __call__(self, name: str) -> str:
            return f"hello {name}"

    def power(base: int, exponent: int) -> float:
        return float(base**exponent)

    assert (await answer(tool(Shop().buy), item="bread")).content == "bought bread"
    assert (await answer(tool(name="greet")(Greeter()), name="Ada")).content == "hello Ada"
    square = tool(functools.partial(power, exponent=2))
    assert square.name == "power"
    assert (await answer(square, base=3)).content == "9.0"


async def test_a_schema_given_by_hand_is_shown_and_the_annotations_still_validate() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": "A number."}}}

    @tool(input_schema=schema)
    def show(n: int) -> int:
        return n

    assert show.input_schema == schema
    assert (await answer(show, n="four")).status == "invalid_input"

    @tool(name="raw", input_schema=Place)
    def raw(**given: Any) -> str:
        return str(given)

    assert raw.input_schema["required"] == ["town"]
    assert (await answer(raw, town="Oslo")).content == "{'town': 'Oslo'}"


async def test_a_sync_function_that_returns_an_awaitable_is_awaited() -> None:
    async def later(number: int) -> int:
        return number + 1

    @tool
    def indirect(number: int) -> Any:
        return later(number)

    assert (await answer(indirect, number=1)).content == "2"


async def test_a_sync_tool_sees_the_context_variables_of_the_host() -> None:
    user = contextvars.ContextVar("user", default="nobody")

    @tool
    def whoami() -> str:
        return user.get()

    user.set("Ada")
    assert (await answer(whoami)).content == "Ada"


def test_what_is_known_of_a_tools_effects() -> None:
    def reader() -> None: ...

    assert tool(read_only=True)(reader).safe_with_others({})
    assert tool(read_only=True)(reader).repeatable
    assert not tool(reader).safe_with_others({})
    assert not tool(reader).repeatable
    assert tool(idempotent=True)(reader).repeatable
    assert not tool(idempotent=True)(reader).safe_with_others({})
    assert not tool(read_only=True, concurrency_safe=False)(reader).safe_with_others({})


def test_safety_may_depend_on_the_input_and_a_predicate_that_fails_says_no() -> None:
    @tool(concurrency_safe=lambda given: given["command"] == "ls")
    def shell(command: str) -> None: ...

    assert shell.safe_with_others({"command": "ls"})
    assert not shell.safe_with_others({"command": "rm"})
    assert not shell.safe_with_others({})


def test_a_deferred_tool_is_declared_so() -> None:
    @tool(defer=True)
    def rare() -> None: ...

    assert rare.definition["defer_loading"] is True


def test_no_bound_of_time_can_be_asked_for() -> None:
    @tool(timeout=math.inf)
    def slow() -> None: ...

    assert slow.timeout == math.inf


class TestWrong:
    """Declarations that cannot work fail at once, in whole sentences that name the culprit."""

    def test_positional_only(self) -> None:
        def wrong(a: int, /) -> None: ...

        with pytest.raises(ToolConfigError, match=r"parameter `a` of .*wrong is positional-only"):
            tool(wrong)

    def test_star_arguments(self) -> None:
        def wrong(*numbers: int) -> None: ...

        with pytest.raises(ToolConfigError, match="parameter `numbers`"):
            tool(wrong)

    def test_an_undecorated_method(self) -> None:
        class Shop:
            def buy(self, item: str) -> None: ...

        with pytest.raises(ToolConfigError, match=r"Declare the bound method instead: `tool\(thing.method\)`"):
            tool(Shop.buy)

    def test_a_generator(self) -> None:
        async def wrong() -> Any:
            yield 1

        with pytest.raises(ToolConfigError, match="is a generator; a tool returns one result"):
            tool(wrong)

    def test_two_contexts(self) -> None:
        def wrong(a: ToolContext, b: ToolContext[int]) -> None: ...

        with pytest.raises(ToolConfigError, match="more than one ToolContext: a, b"):
            tool(wrong)

    def test_an_annotation_that_does_not_exist(self) -> None:
        def wrong(a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        with pytest.raises(ToolConfigError, match=r"name 'Missing' is not defined.*Import the name at run time"):
            tool(wrong)

    def test_a_type_without_a_schema(self) -> None:
        class Plain: ...

        def wrong(a: Plain) -> None: ...

        with pytest.raises(ToolConfigError, match="have no JSON schema"):
            tool(wrong)

    @pytest.mark.parametrize("name", ["", "two words", "a.b", "x" * 129, "naïve"])
    def test_a_name_that_the_api_refuses(self, name: str) -> None:
        def wrong() -> None: ...

        with pytest.raises(ToolConfigError, match=r"The API takes no tool with the name .*wrong\)"):
            tool(name=name)(wrong)

    @pytest.mark.parametrize("timeout", [0, -1, math.nan])
    def test_a_timeout_that_is_none(self, timeout: float) -> None:
        def wrong() -> None: ...

        with pytest.raises(ToolConfigError, match="must be above 0 seconds"):
            tool(timeout=timeout)(wrong)

    def test_a_bound_of_results_that_is_none(self) -> None:
        def wrong() -> None: ...

        with pytest.raises(ToolConfigError, match=r"max_result_chars .* must be above 0"):
            tool(max_result_chars=0)(wrong)

    @pytest.mark.parametrize(
        ("schema", "why"),
        [
            ({"type": "string"}, '"type": "object"'),
            ({"type": "object", "anyOf": []}, "no `anyOf` at the top"),
        ],
    )
    def test_a_schema_that_the_api_refuses(self, schema: dict[str, Any], why: str) -> None:
        def wrong(**given: Any) -> None: ...

        with pytest.raises(ToolConfigError, match=why):
            tool(input_schema=schema)(wrong)

    def test_twice(self) -> None:
        @tool
        def once() -> None: ...

        with pytest.raises(ToolConfigError, match="is a tool already"):
            tool(once)


class Guarded(BaseModel):
    value: int

    @field_validator("value")
    @classmethod
    def odd(cls, value: int) -> int:
        if value == 13:
            raise RuntimeError("unlucky")
        if value % 2 == 0:
            raise ValueError("must be odd")
        return value


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "- kind: this field is required, and it is missing"),
        ({"kind": "c"}, "- kind: Input should be 'a' or 'b' (given: 'c')"),
        ({"kind": "a", "extra": 1}, "- extra: the tool has no such field"),
        ({"kind": "a", "guarded": {"value": 2}}, "- guarded.value: Value error, must be odd"),
        ({"kind": "a", "guarded": {"value": 13}}, "RuntimeError: unlucky"),
        ({"kind": "a", "guarded": 5}, "- guarded: Input should be"),
    ],
)
async def test_an_input_that_does_not_fit_is_told_field_by_field(given: dict[str, Any], told: str) -> None:
    @tool
    def pick(kind: Literal["a", "b"], guarded: Guarded | None = None) -> str:
        raise AssertionError("the tool must not run")

    result = await answer(pick, **given)
    assert result.status == "invalid_input"
    assert result.is_error
    assert told in result.content


async def test_many_wrong_fields_do_not_flood_the_model() -> None:
    @tool
    def pick(numbers: list[int]) -> str:
        raise AssertionError("the tool must not run")

    result = await answer(pick, numbers=["x" * 10_000] * 500)
    assert "- and 490 more" in result.content
    assert len(result.content) < 10_000
