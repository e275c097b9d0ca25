"""An LLM agent loop as a declared finite state machine.

```python
from fsm_agent import AgentMachine, tool

machine = AgentMachine(model="claude-sonnet-5-5", tools=[...])
result = await machine.run("What is in this folder?")
```

Everything is imported when it is first used: `import fsm_agent` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsm_agent.loop.agent import AgentMachine
    from fsm_agent.loop.configuration import ConfigurationError
    from fsm_agent.loop.deps import Deps
    from fsm_agent.loop.events import Event
    from fsm_agent.loop.hooks import Block, Hooks, Prevent, StopHookInput
    from fsm_agent.loop.result import RunResult
    from fsm_agent.loop.run import Run
    from fsm_agent.loop.visit import Outcome, Visit
    from fsm_agent.machine import AGENT_LOOP, Definition, LoopLimits, State, TerminalReason, Trigger
    from fsm_agent.model.prices import Price
    from fsm_agent.model.usage import Usage
    from fsm_agent.session.history import History
    from fsm_agent.tools.declare import Tool, ToolContext, tool

_HOMES = {
    "AGENT_LOOP": "machine",
    "AgentMachine": "loop.agent",
    "Block": "loop.hooks",
    "ConfigurationError": "loop.configuration",
    "Definition": "machine",
    "Deps": "loop.deps",
    "Event": "loop.events",
    "History": "session.history",
    "Hooks": "loop.hooks",
    "LoopLimits": "machine",
    "Outcome": "loop.visit",
    "Prevent": "loop.hooks",
    "Price": "model.prices",
    "Run": "loop.run",
    "RunResult": "loop.result",
    "State": "machine",
    "StopHookInput": "loop.hooks",
    "TerminalReason": "machine",
    "Tool": "tools.declare",
    "ToolContext": "tools.declare",
    "Trigger": "machine",
    "Usage": "model.usage",
    "Visit": "loop.visit",
    "tool": "tools.declare",
}

__all__ = [
    "AGENT_LOOP",
    "AgentMachine",
    "Block",
    "ConfigurationError",
    "Definition",
    "Deps",
    "Event",
    "History",
    "Hooks",
    "LoopLimits",
    "Outcome",
    "Prevent",
    "Price",
    "Run",
    "RunResult",
    "State",
    "StopHookInput",
    "TerminalReason",
    "Tool",
    "ToolContext",
    "Trigger",
    "Usage",
    "Visit",
    "tool",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fsm_agent' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fsm_agent.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
