"""Deterministic simulation: a virtual clock, an order that is drawn, and drivers that disturb a program everywhere.

    run = simulate(program, choices=Schedule([(3, 1)]))
    run.result, run.elapsed, run.steps

`simulation_choices()` (Hypothesis) explores orders and shrinks the failing one. What is drawn and what stays as asyncio
guarantees it is said in `fsm_agent.testing.simulation.virtual_loop`.
"""

from typing import TYPE_CHECKING, Any

from fsm_agent.testing.simulation.choices import FIFO, Choices, RandomChoices, Schedule
from fsm_agent.testing.simulation.drivers import (
    DriverReport,
    EventFault,
    Failure,
    FaultKind,
    Scenario,
    abort_points,
    each_point,
    every_event,
)
from fsm_agent.testing.simulation.errors import (
    BackgroundFailure,
    Deadlock,
    LeftBehind,
    Livelock,
    OutOfTime,
    SimulationError,
)
from fsm_agent.testing.simulation.patience import Patience
from fsm_agent.testing.simulation.run import Simulation, simulate
from fsm_agent.testing.simulation.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from fsm_agent.testing.simulation.strategies import simulation_choices

__all__ = [
    "FIFO",
    "BackgroundFailure",
    "Choices",
    "Deadlock",
    "DriverReport",
    "EventFault",
    "Failure",
    "FaultKind",
    "LeftBehind",
    "Livelock",
    "OutOfTime",
    "Patience",
    "RandomChoices",
    "Scenario",
    "Schedule",
    "Simulation",
    "SimulationError",
    "VirtualLoop",
    "abort_points",
    "each_point",
    "every_event",
    "simulate",
    "simulation_choices",
]


def __getattr__(name: str) -> Any:
    if name == "simulation_choices":  # Hypothesis is imported when it is used
        from fsm_agent.testing.simulation.strategies import simulation_choices

        return simulation_choices
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
