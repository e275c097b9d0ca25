"""What tools, hooks, whoever gives permissions, and the user may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from fsm_agent.testing.scenario import HookAct, ToolAct, UserAct
from fsm_agent.testing.stand_ins import ODD_RESULTS
from fsm_agent.testing.strategies.answers import weighted
from fsm_agent.testing.strategies.json_schemas import json_values

__all__ = [
    "LATER",
    "after_tool_acts",
    "before_tool_acts",
    "permission_acts",
    "stop_hook_acts",
    "tool_acts",
    "user_acts",
]

_DATA = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _DATA}}
_RESULTS: tuple[Any, ...] = (
    "ok",
    "",
    None,
    {"found": [1, 2]},
    [{"type": "text", "text": "one"}, {"type": "text", "text": ""}],
    [{"type": "text", "text": "look"}, IMAGE],
    [],
    *ODD_RESULTS,
)
_EXCEPTIONS = ("ValueError", "KeyError", "OSError", "ExceptionGroup", "SystemExit", "KeyboardInterrupt", "TimeoutError")
_SECONDS = st.sampled_from((0.0, 0.0, 0.1, 1.0, 10.0))


def tool_acts() -> st.SearchStrategy[ToolAct]:
    """Results of all shapes, errors, delays, progress, calls that hang, and calls that swallow a cancellation."""
    results = st.sampled_from(_RESULTS) | json_values()
    progress = st.lists(st.sampled_from(("half", {"done": 3}, None)), max_size=2).map(tuple)
    return weighted(
        (5, st.builds(ToolAct, returns=results, seconds=_SECONDS)),
        (2, st.builds(ToolAct, raises=st.sampled_from(_EXCEPTIONS), seconds=_SECONDS)),
        (1, st.builds(ToolAct, progress=progress, seconds=_SECONDS)),
        (1, st.just(ToolAct(hangs=True))),
        (1, st.builds(ToolAct, hangs=st.booleans(), seconds=st.just(30.0), deaf=st.sampled_from((0.2, 5.0)))),
    )


def _hook_acts(*says: str) -> st.SearchStrategy[HookAct]:
    words = st.sampled_from((*says, *says, "raise", "hang", "nonsense"))
    return st.builds(HookAct, words, seconds=st.sampled_from((0.0, 0.0, 2.0)))


def stop_hook_acts() -> st.SearchStrategy[HookAct]:
    """What a stop hook may answer."""
    return _hook_acts("pass", "block", "prevent")


def permission_acts() -> st.SearchStrategy[HookAct]:
    """What whoever is asked whether a tool may run may answer."""
    return _hook_acts("pass", "allow", "deny", "deny_and_stop", "defer")


def before_tool_acts() -> st.SearchStrategy[HookAct]:
    """What a hook before a tool may answer."""
    return _hook_acts("pass", "note", "change", "deny", "deny_and_stop")


def after_tool_acts() -> st.SearchStrategy[HookAct]:
    """What a hook after a tool may answer."""
    return _hook_acts("pass", "note", "stop")


def user_acts(
    do: Sequence[str] = ("abort", "send", "close", "cancel"), *, requests: int = 4
) -> st.SearchStrategy[UserAct]:
    """What the user may do, at any step of the first requests and of what follows, or after some time."""
    acts: st.SearchStrategy[Any] = st.sampled_from(tuple(do))
    request = st.integers(0, requests)
    return st.one_of(
        st.builds(UserAct, acts, request, st.integers(0, 60)),
        st.builds(UserAct, acts, request, seconds=st.sampled_from(LATER)),
        st.builds(UserAct, acts, request, st.integers(0, 300)),
    )


LATER = (0.1, 1.0, 15.0)
"""Seconds after which a user does something: while a tool works, while the run waits to repeat a request."""
