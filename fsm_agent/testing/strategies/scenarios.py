"""Whole scenarios for any machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from hypothesis import strategies as st

from fsm_agent.loop.agent import AgentMachine
from fsm_agent.machine import Definition
from fsm_agent.testing.content import text
from fsm_agent.testing.playing import MachineUnderTest, made
from fsm_agent.testing.scenario import HookAct, Scenario, ToolAct, UserAct
from fsm_agent.testing.script import Item, Reply
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.simulation.choices import Schedule
from fsm_agent.testing.simulation.strategies import simulation_choices
from fsm_agent.testing.strategies import behaviour
from fsm_agent.testing.strategies.answers import Inputs, answers, chunkings, valid_calls, weighted
from fsm_agent.testing.strategies.seeds import seeds
from fsm_agent.testing.strategies.settings import histories, loop_limits
from fsm_agent.testing.witness_script import TOOL

__all__ = ["StandIns", "scenarios"]

StandIns = Literal["some", "all", "none"]
_SHIPPED = frozenset(
    ("context", "response", "tools", "backoff", "drain", "compact", "media", "escalation", "output", "hooks", "budget")
)


def scenarios(
    machine: MachineUnderTest, *, inputs: Inputs | None = None, stand_ins: StandIns = "some", at_most: int = 6
) -> st.SearchStrategy[Scenario]:
    """Scenarios for a machine: what the model answers (`at_most` so many answers), what tools, hooks and the user do.

    - `inputs`: your own strategies for the inputs of tools, by name; else they are made from the schemas.
    - `stand_ins`: whether tools are stood in for. `some`: now the real tool, now a stand-in; `all`: no real tool ever
      runs; `none`: only real ones.

    Half of them begin with the way to a row that the checker found. They shrink to one plain answer.

    >>> from hypothesis import given
    >>> from fsm_agent import AgentMachine
    >>> from fsm_agent.testing import check_scenario
    >>> machine = AgentMachine("claude-sonnet-5-5")
    >>> @given(scenario=scenarios(machine))
    ... def test_nothing_breaks(scenario):
    ...     check_scenario(machine, scenario)
    """
    return _Parts(made(machine), inputs, stand_ins, at_most).scenarios()


class _Parts:
    """The strategies for one machine, made once."""

    def __init__(self, machine: AgentMachine, inputs: Inputs | None, stand_ins: StandIns, at_most: int) -> None:
        tools = machine.toolbox
        self.definition: Definition = machine.definition
        self.names: Sequence[str] = tools.names
        self.stand_ins = stand_ins
        self.calls: st.SearchStrategy[JsonObject] = valid_calls(tools, inputs=inputs)
        self.items: st.SearchStrategy[Item] = answers(tools, inputs=inputs)
        self.script: st.SearchStrategy[list[Item]] = st.lists(self.items, max_size=at_most)
        self.histories: st.SearchStrategy[Any] = _rarely(histories(tools), (), 16)
        self.limits: st.SearchStrategy[dict[str, Any]] = _rarely(loop_limits(self.definition), {}, 3)
        self.tools: st.SearchStrategy[dict[str, list[ToolAct]]] = self._tools()
        self.effects = self._effects()

    def _tools(self) -> st.SearchStrategy[dict[str, list[ToolAct]]]:
        acts = st.lists(behaviour.tool_acts(), min_size=1, max_size=3)
        if self.stand_ins == "none" or not self.names:
            return st.just({})
        if self.stand_ins == "all":
            return st.fixed_dictionaries(dict.fromkeys(self.names, acts))
        return weighted((2, st.just({})), (1, st.fixed_dictionaries({}, optional=dict.fromkeys(self.names, acts))))

    def _effects(self) -> st.SearchStrategy[dict[str, list[str]]]:
        own = [spec for spec in self.definition.effects if spec.name not in _SHIPPED]
        outcomes = {
            spec.name: st.lists(st.sampled_from(spec.outcomes[::-1] if len(spec.outcomes) < 2 else spec.outcomes), min_size=1, max_size=4)
            for spec in own
        }
        return st.fixed_dictionaries(outcomes)

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        return weighted((1, self._free()), (1, self._seeded()))

    def _free(self) -> st.SearchStrategy[Scenario]:
        @st.composite
        def scenario(draw: st.DrawFn) -> Scenario:
            return Scenario(
                draw(self.script),
                tools=draw(self.tools),
                stop_hooks=draw(_STOP_HOOKS),
                permissions=draw(_PERMISSIONS),
                before_tool=draw(_BEFORE),
                after_tool=draw(_AFTER),
                effects=_aborting(draw(self.effects)),
                acts=draw(_USER),
                limits=draw(self.limits),
                history=draw(self.histories),
                chunking=draw(_CHUNKINGS),
                schedule=draw(_SCHEDULES),
            )

        return scenario()

    def _seeded(self) -> st.SearchStrategy[Scenario]:
        @st.composite
        def scenario(draw: st.DrawFn) -> Scenario:
            seed = draw(st.sampled_from(seeds(self.definition)))
            script = [self._fitted(draw, item) for item in seed.script]
            if draw(st.booleans()):
                script += draw(self.script)
            return Scenario(
                script,
                tools=draw(self.tools),
                stop_hooks=seed.stop_hooks or draw(_STOP_HOOKS),
                permissions=seed.permissions,
                after_tool=seed.after_tool,
                effects=seed.effects or _aborting(draw(self.effects)),
                acts=seed.acts or draw(_USER),
                limits={**seed.limits, **draw(self.limits)},
                history=seed.history,
                schedule=draw(_SCHEDULES),
            )

        return scenario()

    def _fitted(self, draw: st.DrawFn, item: Item) -> Item:
        """The item with calls of the machine's own tools."""
        if not isinstance(item, Reply) or not any(block.get("name") == TOOL for block in item.blocks):
            return item
        blocks = [draw(self.calls) if block.get("name") == TOOL else block for block in item.blocks]
        return Reply(*(blocks or [text("")]), stop=item.stop, usage=item.usage)


def _rarely(strategy: st.SearchStrategy[Any], otherwise: Any, one_in: int) -> st.SearchStrategy[Any]:
    return weighted((one_in - 1, st.just(otherwise)), (1, strategy))


def _acts(acts: st.SearchStrategy[HookAct], one_in: int) -> st.SearchStrategy[list[HookAct]]:
    return _rarely(st.lists(acts, min_size=1, max_size=3), [], one_in)


def _aborting(effects: dict[str, list[str]]) -> dict[str, list[str]]:
    """An effect of a user's own ends in `aborted` only by an abort, which the user's acts bring."""
    return {
        name: [outcome for outcome in outcomes if outcome != "aborted"] or ["aborted"]
        for name, outcomes in effects.items()
    }


_STOP_HOOKS = _acts(behaviour.stop_hook_acts(), 5)
_PERMISSIONS = _acts(behaviour.permission_acts(), 6)
_BEFORE = _acts(behaviour.before_tool_acts(), 8)
_AFTER = _acts(behaviour.after_tool_acts(), 8)
_USER: st.SearchStrategy[list[UserAct]] = weighted(
    (3, st.just([])), (2, st.lists(behaviour.user_acts(), min_size=1, max_size=2))
)
_CHUNKINGS = _rarely(chunkings(), None, 4)
_SCHEDULES: st.SearchStrategy[Schedule] = _rarely(simulation_choices(), Schedule(), 4)
