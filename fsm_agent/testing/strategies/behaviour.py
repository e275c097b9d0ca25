"""What tools, hooks, whoever gives permissions, and the user may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from fsm_agent.testing.scenario import HookAct, ToolAct, UserAct
from fsm_agent.testing.stand_ins import ODD_RESULTS
from fsm_agent.testing.strategies.answers import drawn_from
from fsm_agent.testing.strategies.json_schemas import json_values

__all__ = [
    "LATER",
    "after_tool_acts",
    "before_tool_acts",
    "permission_acts",
    "stop_hook_acts",
    "system_acts",
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
_SECONDS = (0.0, 0.0, 0.1, 1.0, 10.0)
_PROGRESS: tuple[tuple[Any, ...], ...] = (("half",), ({"done": 3},), (None,), ("half", {"done": 3}))
_TOOL_ACTS = [
    *[ToolAct(returns=result, seconds=seconds) for seconds in _SECONDS for result in _RESULTS],
    *[ToolAct(raises=name, seconds=seconds) for seconds in _SECONDS for name in _EXCEPTIONS],
    *[ToolAct(progress=progress, seconds=seconds) for seconds in _SECONDS for progress in _PROGRESS],
    *[ToolAct(hangs=True)] * 15,
    *[ToolAct(hangs=hangs, seconds=30.0, deaf=deaf) for hangs in (False, True) for deaf in (0.2, 5.0)] * 4,
]


def tool_acts() -> st.SearchStrategy[ToolAct]:
    """Results of all shapes, errors, delays, progress, calls that hang, and calls that swallow a cancellation."""
    others = st.builds(ToolAct, returns=json_values(), seconds=st.sampled_from(_SECONDS))
    return drawn_from([*_TOOL_ACTS, *[others] * 10])


def _hook_acts(*says: str, hangs: bool = True) -> st.SearchStrategy[HookAct]:
    words = (*says, *says, "raise", *(["hang"] if hangs else []), "nonsense")
    return st.sampled_from([HookAct(word, seconds=seconds) for seconds in (0.0, 0.0, 2.0) for word in words])


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


def system_acts() -> st.SearchStrategy[HookAct]:
    """What the function that makes the system prompt may do. The library sets it no time, so it does not hang."""
    return _hook_acts("pass", hangs=False)


def user_acts(
    do: Sequence[str] = ("abort", "send", "close", "cancel"), *, requests: int = 4
) -> st.SearchStrategy[UserAct]:
    """What the user may do, at any step of the first requests and of what follows, or after some time."""
    whats: list[Any] = [(act, request) for request in range(requests + 1) for act in do]
    what: st.SearchStrategy[Any] = st.sampled_from(whats)
    timed: list[UserAct] = [UserAct(act, request, seconds=seconds) for seconds in LATER for act, request in whats]
    near, far = (
        st.tuples(what, st.integers(0, most)).map(lambda drawn: UserAct(drawn[0][0], drawn[0][1], drawn[1]))
        for most in (60, 300)
    )
    return drawn_from([*[near] * len(timed), *timed, *[far] * len(timed)])


LATER = (0.1, 1.0, 15.0)
"""Seconds after which a user does something: while a tool works, while the run waits to repeat a request."""
