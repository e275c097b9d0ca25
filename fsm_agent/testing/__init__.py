"""Testing an agent: scripted models, a local Messages API, and the rules by which it judges a request.

A scripted model in process takes the place of `call_model`:

>>> from fsm_agent.testing import Reply, ScriptedModel, tool_use
>>> model = ScriptedModel([Reply(tool_use("read", {"path": "a.txt"})), Reply("All done.")])

and `MessagesServer` is the same over HTTP, for any client.
"""

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

__all__ = [
    "ApiError",
    "ApiRefusal",
    "ApiSettings",
    "Chunking",
    "Fault",
    "FaultKind",
    "Item",
    "LoggedRequest",
    "MessagesServer",
    "ModelProfile",
    "RateLimits",
    "RawResponse",
    "RealRequestForbidden",
    "RecordedModel",
    "Recorder",
    "Repeat",
    "Reply",
    "Script",
    "ScriptedModel",
    "Stream",
    "UnexpectedRequestError",
    "Usage",
    "When",
    "count_events",
    "forbid_real_requests",
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
