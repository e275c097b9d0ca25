"""Testing an agent: scripted models, a local Messages API, and the rules by which it judges a request.

A scripted model in process takes the place of `call_model`:

>>> from fsm_agent.testing import Reply, ScriptedModel, tool_use
>>> model = ScriptedModel([Reply(tool_use("read", {"path": "a.txt"})), Reply("All done.")])

and `MessagesServer` is the same over HTTP, for any client. `from_witness` makes a run of the engine from what the
checker found, and `covering_witnesses` gives runs through every two transitions that can follow each other.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsm_agent.testing.answers import count_events
    from fsm_agent.testing.coverage import Coverage
    from fsm_agent.testing.events import Chunking
    from fsm_agent.testing.playback import UnexpectedRequestError
    from fsm_agent.testing.playing import PlayedRun, check_scenario, play_scenario, replay_scenario
    from fsm_agent.testing.rate_limits import RateLimits
    from fsm_agent.testing.real_requests import RealRequestForbidden, forbid_real_requests
    from fsm_agent.testing.recorded import RecordedModel
    from fsm_agent.testing.recorder import Recorder, record
    from fsm_agent.testing.recordings import load_cassette, recorded_item, recorded_script, save_cassette
    from fsm_agent.testing.request_log import LoggedRequest
    from fsm_agent.testing.rules import ApiRefusal, ApiSettings, ModelProfile, validate
    from fsm_agent.testing.scenario import HookAct, Scenario, ToolAct, UserAct, load_scenario
    from fsm_agent.testing.script import (
        ApiError,
        Fault,
        FaultKind,
        Item,
        RawResponse,
        Repeat,
        Reply,
        Script,
        Stream,
        Usage,
        When,
        redacted_thinking,
        request_kind,
        text,
        thinking,
        tool_use,
        with_fault,
    )
    from fsm_agent.testing.scripted import ScriptedModel
    from fsm_agent.testing.server import MessagesServer
    from fsm_agent.testing.simulation import Schedule
    from fsm_agent.testing.state_machine import AgentStateMachine, invariant, precondition, rule
    from fsm_agent.testing.strategies import scenarios
    from fsm_agent.testing.witness import NotFollowedError, Rehearsal, Rehearsed, from_witness
    from fsm_agent.testing.witness_cover import Cover, covering_witnesses
    from fsm_agent.testing.written import Drawn, Result

# Each name is imported when it is first used: a scripted model has no use for the checker, nor a session for either.
_LATER = {
    "AgentStateMachine": "state_machine",
    "ApiError": "script",
    "ApiRefusal": "rules",
    "ApiSettings": "rules",
    "Chunking": "events",
    "Cover": "witness_cover",
    "Coverage": "coverage",
    "Drawn": "written",
    "Fault": "script",
    "FaultKind": "script",
    "HookAct": "scenario",
    "Item": "script",
    "LoggedRequest": "request_log",
    "MessagesServer": "server",
    "ModelProfile": "rules",
    "NotFollowedError": "witness",
    "PlayedRun": "playing",
    "RateLimits": "rate_limits",
    "RawResponse": "script",
    "RealRequestForbidden": "real_requests",
    "RecordedModel": "recorded",
    "Recorder": "recorder",
    "Rehearsal": "witness",
    "Rehearsed": "witness",
    "Repeat": "script",
    "Reply": "script",
    "Result": "written",
    "Scenario": "scenario",
    "Schedule": "simulation",
    "Script": "script",
    "ScriptedModel": "scripted",
    "Stream": "script",
    "ToolAct": "scenario",
    "UnexpectedRequestError": "playback",
    "Usage": "script",
    "UserAct": "scenario",
    "When": "script",
    "check_scenario": "playing",
    "count_events": "answers",
    "covering_witnesses": "witness_cover",
    "forbid_real_requests": "real_requests",
    "from_witness": "witness",
    "invariant": "state_machine",
    "load_cassette": "recordings",
    "load_scenario": "scenario",
    "play_scenario": "playing",
    "precondition": "state_machine",
    "record": "recorder",
    "recorded_item": "recordings",
    "recorded_script": "recordings",
    "redacted_thinking": "script",
    "replay_scenario": "playing",
    "request_kind": "script",
    "rule": "state_machine",
    "save_cassette": "recordings",
    "scenarios": "strategies",
    "text": "script",
    "thinking": "script",
    "tool_use": "script",
    "validate": "rules",
    "with_fault": "script",
}

__all__ = [
    "AgentStateMachine",
    "ApiError",
    "ApiRefusal",
    "ApiSettings",
    "Chunking",
    "Cover",
    "Coverage",
    "Drawn",
    "Fault",
    "FaultKind",
    "HookAct",
    "Item",
    "LoggedRequest",
    "MessagesServer",
    "ModelProfile",
    "NotFollowedError",
    "PlayedRun",
    "RateLimits",
    "RawResponse",
    "RealRequestForbidden",
    "RecordedModel",
    "Recorder",
    "Rehearsal",
    "Rehearsed",
    "Repeat",
    "Reply",
    "Result",
    "Scenario",
    "Schedule",
    "Script",
    "ScriptedModel",
    "Stream",
    "ToolAct",
    "UnexpectedRequestError",
    "Usage",
    "UserAct",
    "When",
    "check_scenario",
    "count_events",
    "covering_witnesses",
    "forbid_real_requests",
    "from_witness",
    "invariant",
    "load_cassette",
    "load_scenario",
    "play_scenario",
    "precondition",
    "record",
    "recorded_item",
    "recorded_script",
    "redacted_thinking",
    "replay_scenario",
    "request_kind",
    "rule",
    "save_cassette",
    "scenarios",
    "text",
    "thinking",
    "tool_use",
    "validate",
    "with_fault",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
