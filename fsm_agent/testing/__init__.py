"""Testing an agent: scripted models, a local Messages API, and the rules by which it judges a request.

A scripted model in process takes the place of `call_model`:

>>> from fsm_agent.testing import Reply, ScriptedModel, tool_use
>>> model = ScriptedModel([Reply(tool_use("read", {"path": "a.txt"})), Reply("All done.")])

and `MessagesServer` is the same over HTTP, for any client. `from_witness` makes a run of the engine from what the
checker found, and `covering_witnesses` gives runs through every two transitions that can follow each other.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fsm_agent.testing.answers import count_events
from fsm_agent.testing.events import Chunking
from fsm_agent.testing.playback import UnexpectedRequestError
from fsm_agent.testing.rate_limits import RateLimits
from fsm_agent.testing.real_requests import RealRequestForbidden, forbid_real_requests
from fsm_agent.testing.recorded import RecordedModel
from fsm_agent.testing.recorder import Recorder, record
from fsm_agent.testing.recordings import load_cassette, recorded_item, recorded_script, save_cassette
from fsm_agent.testing.request_log import LoggedRequest
from fsm_agent.testing.rules import ApiRefusal, ApiSettings, ModelProfile, validate
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

if TYPE_CHECKING:
    from fsm_agent.testing.witness import NotFollowedError, Rehearsal, Rehearsed, from_witness
    from fsm_agent.testing.witness_cover import Cover, covering_witnesses

# They need the loop and the checker, which a server or a scripted model has no use for.
_LATER = {
    "Cover": "witness_cover",
    "NotFollowedError": "witness",
    "Rehearsal": "witness",
    "Rehearsed": "witness",
    "covering_witnesses": "witness_cover",
    "from_witness": "witness",
}

__all__ = [
    "ApiError",
    "ApiRefusal",
    "ApiSettings",
    "Chunking",
    "Cover",
    "Fault",
    "FaultKind",
    "Item",
    "LoggedRequest",
    "MessagesServer",
    "ModelProfile",
    "NotFollowedError",
    "RateLimits",
    "RawResponse",
    "RealRequestForbidden",
    "RecordedModel",
    "Recorder",
    "Rehearsal",
    "Rehearsed",
    "Repeat",
    "Reply",
    "Script",
    "ScriptedModel",
    "Stream",
    "UnexpectedRequestError",
    "Usage",
    "When",
    "count_events",
    "covering_witnesses",
    "forbid_real_requests",
    "from_witness",
    "load_cassette",
    "record",
    "recorded_item",
    "recorded_script",
    "redacted_thinking",
    "request_kind",
    "save_cassette",
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
