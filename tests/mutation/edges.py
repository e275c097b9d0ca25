"""Small programs for what no scenario shows. Each asserts what must hold; all run on the virtual clock."""

from collections.abc import Callable

from tests.mutation.edges_context import CONTEXT_EDGES
from tests.mutation.edges_machine import MACHINE_EDGES
from tests.mutation.edges_model import MODEL_EDGES
from tests.mutation.edges_run import RUN_EDGES
from tests.mutation.edges_tools import TOOL_EDGES

EDGES: tuple[Callable[[], None], ...] = (
    *RUN_EDGES,
    *TOOL_EDGES,
    *MODEL_EDGES,
    *CONTEXT_EDGES,
    *MACHINE_EDGES,
)
