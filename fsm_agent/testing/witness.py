"""A witness of the checker as an end-to-end test: the real engine follows it, move by move.

>>> import asyncio
>>> from fsm_agent.machine import AGENT_LOOP
>>> from fsm_agent.verify import check
>>> report = check(AGENT_LOOP)
>>> rehearsal = from_witness(AGENT_LOOP, report.reasons["refusal"], report.limits)
>>> asyncio.run(rehearsal.run()).result.reason
<TerminalReason.REFUSAL: 'refusal'>

Nothing has to be written for that, also for a machine of your own: what the model says, the tools, the hooks, the
clock and the aborts are made from the outcomes of the witness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic import BaseModel, create_model

from fsm_agent.loop.actions import ACTIONS, ActionFunction
from fsm_agent.loop.agent import AgentMachine
from fsm_agent.loop.deps import Deps
from fsm_agent.loop.effects import EFFECTS
from fsm_agent.loop.events import Event, StreamEvent, Transition
from fsm_agent.loop.visit import EffectFunction
from fsm_agent.machine import Automaton, Control, Decision, Definition, HoleError, Limits, LoopLimits, Row
from fsm_agent.testing.invariants import ObservedRun
from fsm_agent.testing.observed import ObservedModel
from fsm_agent.testing.script import Item
from fsm_agent.testing.scripted import ScriptedModel
from fsm_agent.testing.witness_script import ALL_TOKENS, script_of, token_budget
from fsm_agent.testing.witness_world import ABORTED, Expected, Stage
from fsm_agent.verify import Lasso, Step, Witness, replay
from fsm_agent.verify.bounds_given import Bounds, bounds_of

if TYPE_CHECKING:
    import anthropic

    from fsm_agent.loop.conversation import Conversation
    from fsm_agent.loop.result import RunResult

__all__ = ["Expected", "NotFollowedError", "Rehearsal", "Rehearsed", "from_witness"]

MODEL: Final = "claude-sonnet-4-5"
FALLBACK: Final = "claude-haiku-4-5"
PROMPT: Final = "Do it."

Path: TypeAlias = Witness | Lasso | Sequence[Step]


class NotFollowedError(AssertionError):
    """The engine went another way than the witness. The message names the first step that differs."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """How the engine followed a witness."""

    trace: tuple[str, ...]
    """The triggers that fired: those of the witness."""
    events: tuple[Event, ...]
    """What the consumer of the run was given."""
    result: RunResult | None
    """The result of the run; None if the witness does not end in a final state, where the run was closed."""
    forced: tuple[Expected, ...]
    """Outcomes that the world could not bring about, and that were given in its place: the effect ran, and came to
    something else. Empty for the witnesses of the shipped machine."""
    hole: HoleError | None = None
    """Nothing fires where the witness ends: the machine has a hole there."""
    observed: ObservedRun | None = None
    """The run and what it sent, for `assert_invariants`; None for a run that was closed, or that had a client."""


def from_witness(
    definition: Definition,
    witness: Path,
    limits: Bounds = None,
    *,
    effects: Mapping[str, EffectFunction] | None = None,
    actions: Mapping[str, ActionFunction] | None = None,
) -> Rehearsal:
    """A witness of a check made playable: the script of the model, and the world around the run.

    - `limits`: those of the check (`report.limits` will do). A lasso is followed along its stem and twice around.
    - `effects`: the work of effects that the definition adds. Left out, a stand-in gives the outcome of the witness.
    - `actions`: those that it adds. Left out, a stand-in only mends the history (a call without a result gets one).

    Raises `WitnessError` if the machine under these limits does not have the witness, and `ValueError` if it is empty.
    """
    steps = _steps(witness)
    if not steps:
        raise ValueError("The witness has no step, so there is nothing to follow; take one that ends with a row.")
    bounds = bounds_of(definition, limits)
    replay(definition, bounds, steps)
    runnable = _runnable(definition)
    settings = _settings(runnable, bounds, limits, steps)
    return Rehearsal(runnable, steps, settings, bounds, effects=effects or {}, actions=actions or {})


def _steps(witness: Path) -> tuple[Step, ...]:
    match witness:
        case Witness(steps):
            return steps
        case Lasso(stem, loop):
            return (*stem, *loop, *loop)
        case _:
            return tuple(witness)


def _runnable(definition: Definition) -> Definition:
    """The machine with all the limits that the engine's own effects look at."""
    own = cast("type[BaseModel]", definition.limits)  # a machine that is only checked may have limits of any kind
    if issubclass(own, LoopLimits):
        return definition
    both = create_model(own.__name__, __base__=(own, LoopLimits))
    return definition.with_changes(limits=cast("type[LoopLimits]", both))


def _settings(definition: Definition, bounds: Limits, given: Bounds, steps: Sequence[Step]) -> LoopLimits:
    """The limits of the check, with budgets that the run can fill."""
    known = definition.limits.model_fields
    values: dict[str, Any] = given.model_dump() if isinstance(given, BaseModel) else {}
    values |= {name: bound for name, bound in bounds.items() if name in known}
    budget = token_budget(steps)
    if budget is not None:
        values["token_budget"] = budget
    if any(("response", "budget_spent") in step.outcomes for step in steps):
        values["max_total_tokens"] = ALL_TOKENS
    return definition.limits(**values)


class Rehearsal:
    """A witness, ready to be followed by the engine as often as you like. Made by `from_witness`.

    `script` is what the model says, for a `ScriptedModel` or a `MessagesServer`.
    """

    def __init__(
        self,
        definition: Definition,
        steps: Sequence[Step],
        limits: LoopLimits,
        bounds: Limits,
        *,
        effects: Mapping[str, EffectFunction],
        actions: Mapping[str, ActionFunction],
    ) -> None:
        self.definition = definition
        self.steps = tuple(steps)
        self.limits = limits
        self.script: list[Item] = script_of(self.steps)
        self._bounds = bounds
        self._effects: Mapping[str, EffectFunction] = {**EFFECTS, **effects}
        own = {name: _mend for name in definition.actions if name not in ACTIONS}
        self._actions: Mapping[str, ActionFunction] = {**own, **actions}

    @property
    def word(self) -> tuple[str, ...]:
        """The triggers of the witness."""
        return tuple(step.trigger for step in self.steps if step.trigger is not None)

    async def run(self, *, client: anthropic.AsyncAnthropic | None = None) -> Rehearsed:
        """Follow the witness with the real engine: in process, or over the SDK with `client`.

        The client speaks to a server that plays `script`. Raises `NotFollowedError` if the engine goes another way.
        """
        stage = Stage(self.steps)
        events: list[Event] = []
        result, observed, hole = None, None, None
        model = ObservedModel(ScriptedModel(self.script)) if client is None else None
        machine = self._machine(stage, client, model)
        try:
            async with machine.run(PROMPT) as run:
                stage.run = run
                async for event in run:
                    events.append(event)
                    self._see(stage, event)
        except _EndOfWitness:
            pass
        except HoleError as error:
            if not (stage.complete or stage.only_aborts_left):
                raise
            hole = error
        except Exception as error:
            if not stage.fault or isinstance(error, NotFollowedError):
                raise
            raise self._otherwise(stage, stage.fault) from error
        else:
            result = run.result
            if model is not None:
                observed = ObservedRun(machine, events, result, model.exchanges, aborted_at=stage.aborted_at)
        trace = tuple(event.trigger for event in events if isinstance(event, Transition))
        return Rehearsed(trace, tuple(events), result, tuple(stage.forced), hole, observed)

    def _machine(
        self, stage: Stage, client: anthropic.AsyncAnthropic | None, model: ObservedModel | None
    ) -> AgentMachine:
        fallbacks = self._bounds.get("max_fallbacks")
        if fallbacks is None:
            fallbacks = 1 + sum(step.trigger == "model_fallback" for step in self.steps)
        needs_output = any(("output", "invalid") in step.outcomes for step in self.steps)
        names = [spec.name for spec in self.definition.effects]
        machine = _Rehearsing(
            MODEL,
            client=client,
            fallback_models=[FALLBACK] * fallbacks,
            definition=self.definition,
            limits=self.limits,
            tools=[stage.tool],
            hooks=stage.hooks,
            can_use_tool=stage.permission,
            effects={name: stage.staged(name, self._effects.get(name)) for name in names},
            actions=self._actions,
            deps=Deps(call_model=model, sleep=stage.sleep, autocompact=stage.autocompact),
            output_type=int if needs_output else None,
            strict=True,
        )
        machine.stage = stage
        machine.call_model = stage.overheard(machine.call_model)
        machine.automaton = _UntilTheEnd(self.definition, self._bounds, stage)
        return machine

    def _see(self, stage: Stage, event: Event) -> None:
        """Compare the moves, and abort where the user has seen enough."""
        if isinstance(event, Transition):
            self._compare(stage, event)
            stage.moved()
        elif isinstance(event, StreamEvent) and event.text and stage.wants("response") == ABORTED:
            stage.abort()

    def _compare(self, stage: Stage, event: Transition) -> None:
        if stage.fault:
            raise self._otherwise(stage, stage.fault)
        step = self.steps[stage.moves]
        if (event.source, event.trigger, event.dest) != (step.state, step.trigger, step.dest):
            facts = ", ".join(f"{effect}: {outcome}" for effect, outcome in event.facts.items())
            raise self._otherwise(stage, f"{event.source} --{event.trigger}--> {event.dest} fires there, with {facts}")

    def _otherwise(self, stage: Stage, what: str) -> NotFollowedError:
        step = self.steps[min(stage.moves, len(self.steps) - 1)]
        return NotFollowedError(
            f"Step {stage.moves + 1} of the witness is {step.state} ({step}), and the engine does not follow: {what}."
        )


class _Rehearsing(AgentMachine):
    """An agent whose models allow as much output as the witness needs."""

    stage: Stage

    def output_ceiling(self, model: str) -> int:  # noqa: ARG002 - all models are alike here
        return self.stage.output_ceiling(self.limits)


class _EndOfWitness(Exception):  # noqa: N818 - no error
    """The run has taken the last step, and is not at its own end."""


class _UntilTheEnd(Automaton):
    """Decides what the machine says, under the bounds of the check, and nothing after the last step of the witness."""

    __slots__ = ("stage",)

    def __init__(self, definition: Definition, bounds: Limits, stage: Stage) -> None:
        super().__init__(definition, bounds)
        self.stage = stage

    def decide(self, control: Control, facts: Mapping[str, str]) -> Decision:
        decision = super().decide(control, facts)
        if self.stage.complete:
            raise _EndOfWitness
        return decision


def _mend(conversation: Conversation, row: Row) -> Sequence[Event]:  # noqa: ARG001 - an action's signature
    """In the place of an action that nobody gave: leave a history that can be sent."""
    conversation.history.repair()
    return []
