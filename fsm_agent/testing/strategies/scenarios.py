"""Whole scenarios for any machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Literal

from hypothesis import strategies as st

from fsm_agent.loop.agent import AgentMachine
from fsm_agent.machine import Definition
from fsm_agent.testing.content import text
from fsm_agent.testing.playing import MachineUnderTest, made
from fsm_agent.testing.scenario import Scenario
from fsm_agent.testing.script import Item, Reply
from fsm_agent.testing.sdk_errors import load as load_sdk_errors
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.simulation.strategies import simulation_choices
from fsm_agent.testing.strategies import behaviour
from fsm_agent.testing.strategies.answers import Inputs, answers, chunkings, valid_calls, weighted
from fsm_agent.testing.strategies.json_schemas import some_of, values_of
from fsm_agent.testing.strategies.seeds import SHIPPED_EFFECTS, beginnings
from fsm_agent.testing.strategies.settings import histories, loop_limits
from fsm_agent.testing.witness_script import TOOL, VALID

__all__ = ["StandIns", "scenarios"]

StandIns = Literal["some", "all", "none"]


def scenarios(
    machine: MachineUnderTest, *, inputs: Inputs | None = None, stand_ins: StandIns = "some", at_most: int = 6
) -> st.SearchStrategy[Scenario]:
    """Scenarios for a machine: what the model answers (`at_most` so many answers), what tools, hooks and the user do.

    - `inputs`: your own strategies for the inputs of tools, by name; else they are made from the schemas.
    - `stand_ins`: whether tools are stood in for. `some`: now the real tool, now a stand-in; `all`: no real tool ever
      runs; `none`: only real ones.

    Many begin with ways to rows that the checker found: as they are, one after another, or changed and gone on from.
    The simplest is the empty scenario.

    >>> from hypothesis import given
    >>> from fsm_agent import AgentMachine
    >>> from fsm_agent.testing import check_scenario
    >>> machine = AgentMachine("claude-sonnet-5-5")
    >>> @given(scenario=scenarios(machine))
    ... def test_nothing_breaks(scenario):
    ...     check_scenario(machine, scenario)
    """
    load_sdk_errors()
    return _Parts(made(machine), inputs, stand_ins, at_most).scenarios()


class _Parts:
    """The strategies for one machine, made once."""

    def __init__(self, machine: AgentMachine, inputs: Inputs | None, stand_ins: StandIns, at_most: int) -> None:
        tools = machine.toolbox
        self.definition: Definition = machine.definition
        self.calls: st.SearchStrategy[JsonObject] = valid_calls(tools, inputs=inputs)
        self.outputs = _outputs(machine)
        served = answers(tools, inputs=inputs)
        if self.outputs is not None:
            served = weighted((3, served), (1, self.outputs.map(Reply)))
        self.script: st.SearchStrategy[list[Item]] = st.lists(served, max_size=at_most)
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
        self.asks_for_system = callable(machine.system)
        if self.asks_for_system:
            self.features["system"] = _several(behaviour.system_acts())
        self.always: dict[str, st.SearchStrategy[Any]] = {}
        self.names: Sequence[str] = tools.names
        self.may_stand_in = stand_ins != "none"
        acts = dict.fromkeys(tools.names, _several(behaviour.tool_acts()))
        if acts and stand_ins == "all":
            self.always["tools"] = st.fixed_dictionaries(acts)
        elif acts and stand_ins == "some":
            self.features["tools"] = some_of(acts)
        effects = _own_effects(self.definition)
        if effects:
            self.always["effects"] = st.fixed_dictionaries(effects)

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        ways, chains = (
            [each for each in several if self.asks_for_system or not each.system]
            for several in beginnings(self.definition)
        )
        # A way without a call takes no further draw, and Hypothesis tries nothing twice: so all ways are soon gone.
        twice = [way for way in ways if self.outputs is not None or _calls_in(way)]
        others = [*["free"] * 14, *["changed"] * 10, *["chained"] * 4]
        first: st.SearchStrategy[Any] = st.sampled_from([*others, *ways, *twice])
        changed, chained = st.sampled_from([*ways, *chains]), st.sampled_from(chains or ways)

        @st.composite
        def scenario(draw: st.DrawFn) -> Scenario:
            begun = draw(first)
            if begun == "free":
                return Scenario(draw(self.script), **self._drawn(draw, (), _FEATURES))
            if begun == "changed":
                return self._seeded(draw, draw(changed), more=True)
            draw(_LESS_SIMPLE)
            return self._seeded(draw, draw(chained) if begun == "chained" else begun, more=False)

        return scenario()

    def _seeded(self, draw: st.DrawFn, seed: Scenario, *, more: bool) -> Scenario:
        """The seed with calls of the machine's own tools; with `more`, changed, and gone on from."""
        script = [self._fitted(draw, item) for item in seed.script]
        given = {name: value for name in _OF_A_SEED if (value := getattr(seed, name)) != getattr(_PLAIN, name)}
        if seed.tools and self.may_stand_in:
            given["tools"] = dict.fromkeys(self.names, seed.tools[TOOL])
        if not more:
            if self.outputs is not None:
                script.append(Reply(draw(self.outputs)))
            return Scenario(script, **{**self._always(draw, given), **given})
        script += draw(self.script)
        drawn = self._drawn(draw, (*given, "history"), _FEWER)
        if "limits" in given and "limits" in drawn:
            given["limits"] = {**given["limits"], **drawn["limits"]}
        return Scenario(script, **{**drawn, **given})

    def _drawn(self, draw: st.DrawFn, but: Iterable[str], features: st.SearchStrategy[Any]) -> dict[str, Any]:
        """What the scenario has beside its script: now and then something, seldom much."""
        wanted = [name for name in draw(features) if name in self.features and (name == "limits" or name not in but)]
        drawn = {name: draw(self.features[name]) for name in wanted}
        return drawn | self._always(draw, but)

    def _always(self, draw: st.DrawFn, but: Iterable[str]) -> dict[str, Any]:
        return {name: draw(each) for name, each in self.always.items() if name not in but}

    def _fitted(self, draw: st.DrawFn, item: Item) -> Item:
        """The item with calls of the machine's own tools, and an output of its type."""
        if not isinstance(item, Reply):
            return item
        blocks = [self._fitted_block(draw, block) for block in item.blocks]
        if all(one is other for one, other in zip(blocks, item.blocks, strict=True)):
            return item
        return Reply(*blocks, stop=item.stop, usage=item.usage, when=item.when)

    def _fitted_block(self, draw: st.DrawFn, block: JsonObject) -> JsonObject:
        if block.get("name") == TOOL:
            return draw(self.calls)
        if self.outputs is not None and block.get("text") == VALID:
            return text(draw(self.outputs))
        return block


def _outputs(machine: AgentMachine) -> st.SearchStrategy[str] | None:
    """Texts that are of the machine's output type."""
    if machine.output_adapter is None:
        return None
    return values_of(machine.output_schema).map(json.dumps)


def _calls_in(scenario: Scenario) -> bool:
    return any(block.get("name") == TOOL for item in scenario.script for block in getattr(item, "blocks", ()))


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


_LESS_SIMPLE = st.tuples(*[st.text("a", min_size=1, max_size=1)] * 5)
"""Choices that are none: with them a way counts as less simple than a short scenario that was found freely."""
_PLAIN = Scenario()
_OF_A_SEED = (
    *("prompt", "stop_hooks", "permissions", "after_tool", "system", "effects", "acts", "limits", "history"),
    "chunking",
)
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
    "system": 1,
}
_ONE = [(name,) for name, weight in _WEIGHTS.items() for _ in range(weight)]
_SEVERAL = [*_ONE, *combinations(list(_WEIGHTS)[:10], 2), *combinations(list(_WEIGHTS)[:7], 3)]
_FEATURES: st.SearchStrategy[tuple[str, ...]] = st.sampled_from([*[()] * 16, *_SEVERAL])
_FEWER: st.SearchStrategy[tuple[str, ...]] = st.sampled_from([*[()] * len(_SEVERAL), *_ONE * 2, *_SEVERAL[len(_ONE) :]])
