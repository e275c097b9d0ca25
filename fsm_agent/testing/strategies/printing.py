"""Makes Hypothesis print scenarios, and the items of a script, as the code that makes them."""

from __future__ import annotations

from typing import Any

from hypothesis.vendor import pretty

from fsm_agent.testing.item_words import code_of
from fsm_agent.testing.scenario import HookAct, Scenario, ToolAct, UserAct
from fsm_agent.testing.script import ApiError, RawResponse, Reply, Stream

__all__ = ["print_items_as_code"]


def print_items_as_code() -> None:
    """From now on, in this process."""

    def show(item: Any, printer: Any, cycle: bool) -> None:
        del cycle
        printer.text(code_of(item))

    def show_as_written(value: Any, printer: Any, cycle: bool) -> None:
        del cycle
        printer.text(repr(value))

    for kind in (Scenario, ToolAct, HookAct, UserAct):
        pretty.for_type_by_name(kind.__module__, kind.__name__, show_as_written)
    for item in (Reply, Stream, ApiError, RawResponse):
        pretty.for_type_by_name(item.__module__, item.__name__, show)
