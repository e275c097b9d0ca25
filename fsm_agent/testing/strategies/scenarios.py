"""Whole scenarios for any machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

from hypothesis import strategies as st

from fsm_agent.loop.agent import AgentMachine
from fsm_agent.machine import Definition
from fsm_agent.testing.content import text
from fsm_agent.testing.playing import MachineUnderTest, made
from fsm_agent.testing.scenario import Scenario, ToolAct
from fsm_agent.testing.script import Item, Reply
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.simulation.strategies import simulation_choices
from fsm_agent.testing.strategies import behaviour
from fsm_agent.testing.strategies.answers import Inputs, answers, chunkings, valid_calls
from fsm_agent.testing.strategies.seeds import SHIPPED_EFFECTS, fills_up, seeds
from fsm_agent.testing.strategies.settings import histories, loop_limits
from fsm_agent.testing.witness_script import TOOL

__all__ = ["StandIns", "scenarios"]

StandIns = Literal["some", "all", "none"]


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
        self.calls: st.SearchStrategy[JsonObject] = valid_calls(tools, inputs=inputs)
        self.script: st.SearchStrategy[list[Item]] = st.lists(answers(tools, inputs=inputs), max_size=at_most)
        self.features: dict[str, st.SearchStrategy[Any]] = {
            "acts": st.lists(behaviour.user_acts(), min_size=1, max_size=2),
            "limits": loop_limits(self.definition),
            "stop_hooks": _several(behaviour.stop_hook_acts()),
            "permissions": _several(behaviour.permission_acts()),
            "before_tool": _several(behaviour.before_tool_acts()),
            "after_tool": _several(behaviour.after_tool_acts()),
            "history": histories(tools),
            "chunking": chunkings(),
            "schedule": simulation_choices(),
        }
        self.always: dict[str, st.SearchStrategy[Any]] = {}
        self.names: Sequence[str] = tools.names
        self.may_stand_in = stand_ins != "none"
        acts = dict.fromkeys(tools.names, _several(behaviour.tool_acts()))
        if acts and stand_ins == "all":
            self.always["tools"] = st.fixed_dictionaries(acts)
        elif acts and stand_ins == "some":
            self.features["tools"] = st.fixed_dictionaries({}, optional=acts)
        effects = _own_effects(self.definition)
        if effects:
            self.always["effects"] = st.fixed_dictionaries(effects)

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        return st.one_of(self._free(), self._seeded())

    def _free(self) -> st.SearchStrategy[Scenario]:
        @st.composite
        def scenario(draw: st.DrawFn) -> Scenario:
            return Scenario(draw(self.script), **self._drawn(draw, ()))

        return scenario()

    def _seeded(self) -> st.SearchStrategy[Scenario]:
        @st.composite
        def scenario(draw: st.DrawFn) -> Scenario:
            seed = draw(st.sampled_from(seeds(self.definition)))
            script = [self._fitted(draw, item) for item in seed.script]
            if draw(_YES_OR_NO):
                script += draw(self.script)
            given = {name: value for name in _OF_A_SEED if (value := getattr(seed, name))}
            drawn = self._drawn(draw, (*given, "history"))
            if "limits" in given and "limits" in drawn:
                given["limits"] = {**given["limits"], **drawn["limits"]}
            if self.may_stand_in and fills_up(seed):
                given["tools"] = {name: [_MUCH] for name in self.names}
            return Scenario(script, **{**drawn, **given})

        return scenario()

    def _drawn(self, draw: st.DrawFn, but: Sequence[str]) -> dict[str, Any]:
        """What the scenario has beside its script: now and then something, seldom much."""
        wanted = [name for name in draw(_FEATURES) if name in self.features and (name == "limits" or name not in but)]
        drawn = {name: draw(self.features[name]) for name in wanted}
        return drawn | {name: draw(each) for name, each in self.always.items() if name not in but}

    def _fitted(self, draw: st.DrawFn, item: Item) -> Item:
        """The item with calls of the machine's own tools."""
        if not isinstance(item, Reply) or not any(block.get("name") == TOOL for block in item.blocks):
            return item
        blocks = [draw(self.calls) if block.get("name") == TOOL else block for block in item.blocks]
        return Reply(*(blocks or [text("")]), stop=item.stop, usage=item.usage)


def _several(acts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(acts, min_size=1, max_size=3)


def _own_effects(definition: Definition) -> dict[str, st.SearchStrategy[list[str]]]:
    """Outcomes of a user's own effects; `aborted` is what an abort makes of them, and nothing else."""
    found: dict[str, st.SearchStrategy[list[str]]] = {}
    for spec in definition.effects:
        if spec.name not in SHIPPED_EFFECTS:
            outcomes = [outcome for outcome in spec.outcomes if outcome != "aborted"] or ["aborted"]
            found[spec.name] = st.lists(st.sampled_from(outcomes), min_size=1, max_size=4)
    return found


_MUCH = ToolAct("word " * 2_000)
_YES_OR_NO = st.booleans()
_OF_A_SEED = ("stop_hooks", "permissions", "after_tool", "effects", "acts", "limits", "history")
_WEIGHTS = {
    "acts": 6,
    "tools": 4,
    "limits": 3,
    "stop_hooks": 2,
    "permissions": 2,
    "schedule": 2,
    "chunking": 2,
    "before_tool": 1,
    "after_tool": 1,
    "history": 1,
}
_ONE = [(name,) for name, weight in _WEIGHTS.items() for _ in range(weight)]
_FEATURES: st.SearchStrategy[tuple[str, ...]] = st.sampled_from(
    [*[()] * 16, *_ONE, *combinations(_WEIGHTS, 2), *combinations(list(_WEIGHTS)[:7], 3)]
)
