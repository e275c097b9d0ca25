"""Tools made with the Anthropic SDK run as they are."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import ToolError as SdkToolError

from fsm_agent.tools import Toolbox, sdk_tool
from tests.tools.batches import Recorder, answer, call


@beta_async_tool
async def temperature(town: str, days: int = 1) -> str:
    """Tell the temperature.

    Args:
        town: Name of the town.
    """
    if town == "Atlantis":
        raise SdkToolError([{"type": "text", "text": "It is under water."}])
    return f"21 C in {town} for {days}"


@beta_tool
def capital(country: str) -> Any:
    "Tell the capital."
    return [{"type": "text", "text": f"capital of {country}"}]


def test_the_definition_is_the_sdks_own() -> None:
    assert Toolbox([temperature]).definitions == [temperature.to_dict()]


async def test_async_and_sync_tools_of_the_sdk_run() -> None:
    recorder = Recorder(temperature, capital)
    await recorder.run(call("1", "temperature", town="Oslo"), call("2", "capital", country="Norway"))
    assert recorder.contents == ["21 C in Oslo for 1", [{"type": "text", "text": "capital of Norway"}]]


async def test_what_the_sdk_keeps_to_itself_about_a_wrong_input_is_told() -> None:
    result = await answer(temperature, town="Oslo", days="many")
    assert result.status == "invalid_input"
    assert "- days: Input should be a valid integer" in result.content


async def test_an_error_of_the_sdk_kind_is_told_in_its_own_words() -> None:
    result = await answer(temperature, town="Atlantis")
    assert result.status == "error"
    assert result.block()["content"] == [{"type": "text", "text": "It is under water."}]
    assert result.block()["is_error"] is True


async def test_a_value_error_of_the_tool_itself_is_not_taken_for_a_wrong_input() -> None:
    @beta_async_tool
    async def fail() -> str:
        "Fail."
        raise ValueError("Invalid arguments for function fail")

    assert (await answer(fail)).status == "error"


@pytest.mark.parametrize("read_only", [True, False])
def test_what_the_sdk_has_no_word_for_can_be_added(read_only: bool) -> None:
    made = sdk_tool(temperature, read_only=read_only, timeout=3)
    assert made.name == "temperature"
    assert made.timeout == 3
    assert made.safe_with_others({}) is read_only
    assert Toolbox([made]).definitions == [temperature.to_dict()]
