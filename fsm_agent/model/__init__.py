"""The Messages API: requests, the transport, putting replies together, and what every answer and failure means.

Nothing here decides what happens next: a request ends in one outcome of the declared machine. The SDK is imported when
the first request is sent.
"""

from fsm_agent.model.call import ModelCall
from fsm_agent.model.classify import Failure, classify
from fsm_agent.model.faults import StreamFault
from fsm_agent.model.outcomes import STOP_REASONS, outcome_of, outcome_of_lost
from fsm_agent.model.prices import Price, cost
from fsm_agent.model.reply import ReplyAssembler, ToolCall
from fsm_agent.model.request import ModelRequest, RequestTemplate
from fsm_agent.model.sdk_types import typed_event
from fsm_agent.model.transport import CallModel, SdkTransport
from fsm_agent.model.usage import Usage

__all__ = [
    "STOP_REASONS",
    "CallModel",
    "Failure",
    "ModelCall",
    "ModelRequest",
    "Price",
    "ReplyAssembler",
    "RequestTemplate",
    "SdkTransport",
    "StreamFault",
    "ToolCall",
    "Usage",
    "classify",
    "cost",
    "outcome_of",
    "outcome_of_lost",
    "typed_event",
]
