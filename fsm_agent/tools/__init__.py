"""Tools of an agent: declaring them, running the calls of a message, and the seams around each call.

`@tool` makes a function a tool; `ToolBatch` runs the calls of one message of the model. Nothing that a tool does gets
out of here but its result.
"""

from fsm_agent.tools.batch import ToolBatch
from fsm_agent.tools.calls import Call, ToolCall
from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.declare import Tool, tool
from fsm_agent.tools.faults import Content, InvalidInputError, ToolConfigError, ToolError
from fsm_agent.tools.gate import (
    AfterTool,
    Allow,
    AskPermission,
    BeforeTool,
    Change,
    Defer,
    Deny,
    Note,
    Permission,
    Stop,
    ToolHooks,
)
from fsm_agent.tools.notices import NoticeQueue, ToolNotice
from fsm_agent.tools.result import Status, ToolResult, refused
from fsm_agent.tools.sdk import sdk_tool
from fsm_agent.tools.toolbox import AnyTool, Toolbox

__all__ = [
    "AfterTool",
    "Allow",
    "AnyTool",
    "AskPermission",
    "BeforeTool",
    "Call",
    "Change",
    "Content",
    "Defer",
    "Deny",
    "InvalidInputError",
    "Note",
    "NoticeQueue",
    "Permission",
    "Status",
    "Stop",
    "Tool",
    "ToolBatch",
    "ToolCall",
    "ToolConfigError",
    "ToolContext",
    "ToolError",
    "ToolHooks",
    "ToolNotice",
    "ToolResult",
    "Toolbox",
    "refused",
    "sdk_tool",
    "tool",
]
