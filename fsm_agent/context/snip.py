"""Stage 2: old groups that say the same as a later one are dropped.

A group is redundant if each of its calls was made again later, with the same input and the same result, and the model
said nothing beside them. So nothing is lost, but how often it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fsm_agent.context.view import Draft, pressure_threshold
from fsm_agent.session.history import Entry, History
from fsm_agent.session.message import THINKING, blocks_of

STAGE: Final = "snip"
MIN_FREED: Final = 0.05
"""Share of the window that must be freed, for it costs the prompt cache."""


def apply(draft: Draft) -> None:
    """The stage: acts under pressure, and only if it frees enough."""
    limits = draft.view.limits
    if draft.tokens < pressure_threshold(limits):
        return
    groups = redundant_groups(draft.history)
    if not groups:
        return
    freed = sum(draft.history[index].tokens + draft.history[index + 1].tokens for index in groups)
    share = freed / max(1, draft.view.fixed_tokens + draft.history.tokens)
    if share * draft.tokens < MIN_FREED * limits.context_window:
        return
    start, stop = groups[0], groups[-1] + 2
    gone = {index for group in groups for index in (group, group + 1)}
    kept = [draft.history[index].message for index in range(start, stop) if index not in gone]
    draft.replace(STAGE, start, stop, kept, f"{len(groups)} calls were dropped that were repeated later.")


def redundant_groups(history: History) -> list[int]:
    """Indexes of the assistant messages that can be dropped together with the results behind them."""
    later: set[str] = set()
    groups: list[int] = []
    for index in range(len(history) - 2, -1, -1):
        entry, after = history[index], history[index + 1]
        if not entry.calls:
            continue
        facts = _facts(entry, after)
        if _is_only_calls(entry, after) and all(fact in later for fact in facts):
            groups.append(index)
        later.update(facts)
    return groups[::-1]


def _is_only_calls(entry: Entry, after: Entry) -> bool:
    kinds = {block.get("type") for block in blocks_of(entry.message)}
    return kinds <= THINKING | {"tool_use"} and all(
        block.get("type") == "tool_result" for block in blocks_of(after.message)
    )


def _facts(entry: Entry, after: Entry) -> list[str]:
    """Each call with its result, without its id."""
    results = {
        block.get("tool_use_id"): block for block in blocks_of(after.message) if block.get("type") == "tool_result"
    }
    return [
        _canonical([block.get("name"), block.get("input"), _without_id(results.get(block.get("id"), {}))])
        for block in blocks_of(entry.message)
        if block.get("type") == "tool_use"
    ]


def _without_id(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "tool_use_id"}


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
