"""The machine in the notations of other tools, so that others can check what we say about it."""

from collections.abc import Callable

from fsm_agent.machine import Definition
from fsm_agent.verify.bounds_given import Bounds
from fsm_agent.verify.export.promela import promela
from fsm_agent.verify.export.scxml import scxml
from fsm_agent.verify.export.steps import ExportError
from fsm_agent.verify.export.xstate import RUNTIME as XSTATE_RUNTIME
from fsm_agent.verify.export.xstate import xstate

FORMATS: dict[str, Callable[[Definition, Bounds], str]] = {"promela": promela, "scxml": scxml, "xstate": xstate}
"""The exports by name: each takes a definition and limits and gives the text."""

__all__ = ["FORMATS", "XSTATE_RUNTIME", "ExportError", "promela", "scxml", "xstate"]
