"""The machine that users make: everything that stays the same from run to run, checked once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fsm_agent.loop.actions import ACTIONS, ActionFunction
from fsm_agent.loop.blocking import run_blocking
from fsm_agent.loop.channel import Channel
from fsm_agent.loop.configuration import ConfigurationError, check_arguments, model_name, output_adapter
from fsm_agent.loop.conversation import Conversation
from fsm_agent.loop.deps import Deps
from fsm_agent.loop.driver import Driver
from fsm_agent.loop.effects import EFFECTS
from fsm_agent.loop.events import Event
from fsm_agent.loop.hooks import Hooks
from fsm_agent.loop.prompt import user_content
from fsm_agent.loop.run import Run
from fsm_agent.machine import AGENT_LOOP, Automaton, Definition, LoopLimits, TerminalReason, compiled

if TYPE_CHECKING:
    import anthropic

    from fsm_agent.context.pipeline import ContextPipeline
    from fsm_agent.context.results import ResultStore
    from fsm_agent.loop.result import RunResult
    from fsm_agent.loop.visit import EffectFunction
    from fsm_agent.model.prices import Price
    from fsm_agent.model.transport import CallModel, SdkTransport
    from fsm_agent.session.history import History

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]] | None
System: TypeAlias = str | Sequence[Mapping[str, Any]] | Callable[[], Any] | None

DEFAULT_OUTPUT_CEILING = 64_000
"""Largest `max_tokens` that every current model takes."""


class AgentMachine:
    """An agent: a model, its tools, and the declared loop that drives them.

    ```python
    machine = AgentMachine(model="claude-sonnet-5-5", tools=[...], system="...")
    result = await machine.run("What is in this folder?")
    ```

    One machine runs any number of conversations at once; no state of a run is on it.

    - `model`, `fallback_models`: names; the fallbacks are taken in order when a model does not answer.
    - `client`: an `anthropic.AsyncAnthropic`; left out, the SDK makes one from the environment. Retries of the SDK are
      switched off: the loop's own are declared.
    - `tools`: functions with `@tool`, tool objects of the SDK, or API dicts of server tools.
    - `system`: text, blocks, or a (possibly async) callable asked once per run.
    - `limits`: every bound, see `LoopLimits`. `prices`: per model, needed by `limits.max_cost_usd`.
    - `hooks`, `can_use_tool`: the host's say. `output_type`: the answer must be JSON of this type.
    - `definition`, `effects`, `actions`: another declared machine, and the work of what it adds.
    - `deps`: what touches the world. `tool_deps`: an object of yours that tools get as `ctx.deps`.
    - `thinking`, `tool_choice`, `extra`, `betas`: passed to the API. `cache`: let the API cache the prefix.
    - `output_ceilings`: the most output tokens of a model, where it is not 64,000.
    - `strict`: a history that breaks an invariant raises instead of being repaired (for tests).

    Raises `ConfigurationError`, `ToolConfigError` or `DefinitionError` for what could not run.
    """

    def __init__(
        self,
        model: str,
        *,
        client: anthropic.AsyncAnthropic | None = None,
        tools: Sequence[Any] = (),
        system: System = None,
        fallback_models: Sequence[str] = (),
        limits: LoopLimits | None = None,
        hooks: Hooks | None = None,
        can_use_tool: Any = None,
        definition: Definition = AGENT_LOOP,
        effects: Mapping[str, EffectFunction] | None = None,
        actions: Mapping[str, ActionFunction] | None = None,
        deps: Deps | None = None,
        tool_deps: Any = None,
        output_type: Any = None,
        prices: Mapping[str, Price] | None = None,
        thinking: Mapping[str, Any] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        betas: Sequence[str] = (),
        cache: bool = True,
        output_ceilings: Mapping[str, int] | None = None,
        result_store: ResultStore | None = None,
        strict: bool = False,
    ) -> None:
        self._given = {name: value for name, value in locals().items() if name not in {"self", "__class__"}}
        from fsm_agent.context.pipeline import ContextPipeline
        from fsm_agent.context.results import ResultStore
        from fsm_agent.model.request import RequestTemplate
        from fsm_agent.tools.toolbox import Toolbox

        check_arguments(
            client=client,
            tools=tools,
            system=system,
            fallback_models=fallback_models,
            hooks=hooks,
            can_use_tool=can_use_tool,
            definition=definition,
            effects=effects,
            actions=actions,
            deps=deps,
            prices=prices,
            thinking=thinking,
            tool_choice=tool_choice,
            extra=extra,
            betas=betas,
            output_ceilings=output_ceilings,
            result_store=result_store,
        )
        self.model = model_name(model)
        self.models = (self.model, *map(model_name, fallback_models))
        self.limits = limits if limits is not None else definition.limits()
        self.hooks = hooks or Hooks()
        self.can_use_tool = can_use_tool
        self.definition = definition
        self.deps = deps or Deps()
        self.tool_deps = tool_deps
        self.system = _system(system)
        self.prices = dict(prices or {})
        self.strict = strict
        self.toolbox = Toolbox(tools)
        self.template = RequestTemplate(
            tools=self.toolbox.definitions,
            tool_choice=tool_choice,
            thinking=thinking,
            extra=extra,
            betas=betas,
            cache=cache,
        )
        self.pipeline: ContextPipeline = ContextPipeline()
        self.result_store: ResultStore = result_store or ResultStore()
        self.output_adapter, self.output_schema = output_adapter(output_type)
        self._ceilings = dict(output_ceilings or {})
        self.effects = {**EFFECTS, **(effects or {})}
        self.actions = {**ACTIONS, **(actions or {})}
        self._check()
        bounds = self.limits.resolved(fallback_models=len(self.models) - 1)
        self.automaton = Automaton(definition, bounds)
        self._machine = compiled(definition)
        self._transport, self.call_model = _calling(client, self.deps.call_model)

    def with_changes(self, **changes: Any) -> AgentMachine:
        """Another machine, made with the same arguments but for these; this one stays as it is.

        >>> machine = AgentMachine("claude-sonnet-5-5", system="Be brief.")
        >>> machine.with_changes(limits=LoopLimits(max_turns=3)).limits.max_turns, machine.limits.max_turns
        (3, 200)

        Raises what making a machine raises, and `TypeError` for an argument that there is not.
        """
        return AgentMachine(**{**self._given, **changes})

    def _check(self) -> None:
        if not isinstance(self.limits, self.definition.limits):
            raise ConfigurationError(
                f"The limits are a {type(self.limits).__name__}; the machine {self.definition.name!r} needs "
                f"{self.definition.limits.__name__}."
            )
        for spec in self.definition.effects:
            if spec.name not in self.effects:
                raise ConfigurationError(
                    f"The machine {self.definition.name!r} declares the effect {spec.name!r}, and nothing performs it; "
                    f"give AgentMachine(effects={{{spec.name!r}: ...}})."
                )
            if spec.name not in EFFECTS and "aborted" not in spec.outcomes:
                raise ConfigurationError(
                    f"The effect {spec.name!r} declares no outcome 'aborted', so an abort could not end it; add it and "
                    "a row that takes it."
                )
        for action in self.definition.actions:
            if action not in self.actions:
                raise ConfigurationError(
                    f"The machine {self.definition.name!r} declares the action {action!r}, and nothing does it; "
                    f"give AgentMachine(actions={{{action!r}: ...}})."
                )
        budget = (self.template.thinking or {}).get("budget_tokens")
        if isinstance(budget, int) and budget >= self.limits.max_output_tokens:
            raise ConfigurationError(
                f"The thinking budget of {budget} tokens is not below max_output_tokens="
                f"{self.limits.max_output_tokens}, as the API wants it; lower it, or raise LoopLimits(...)."
            )
        if self.limits.max_cost_usd is not None:
            missing = [name for name in self.models if name not in self.prices]
            if missing:
                raise ConfigurationError(
                    f"The limit max_cost_usd needs the prices of {', '.join(missing)}; give AgentMachine(prices=...)."
                )

    # ---- what effects ask

    def price_of(self, model: str) -> Price | None:
        return self.prices.get(model)

    def output_ceiling(self, model: str) -> int:
        """The most output tokens that a request to this model may ask for."""
        return self._ceilings.get(model, DEFAULT_OUTPUT_CEILING)

    def reason(self, name: str) -> TerminalReason | str:
        """The terminal reason as the enumeration's member, where it is one of the shipped ones."""
        try:
            return TerminalReason(name)
        except ValueError:
            return name

    # ---- running

    def run(self, prompt: Prompt, *, history: Sequence[Mapping[str, Any]] | History | RunResult | None = None) -> Run:
        """A run on this prompt. Nothing happens until it is iterated, entered or awaited.

        `prompt` is text or a list of content blocks; `None` goes on from a history that ends with a message of the
        user. `history` is a list of plain Messages-API dicts, or the result of an earlier run.

        Raises at once: `ValueError` for a blank prompt, `HistoryError` for a history that cannot be read, and
        `ConfigurationError` when there is no key for the API.
        """
        from fsm_agent.loop.result import RunResult
        from fsm_agent.session.history import History

        if isinstance(history, RunResult):
            history = history.history
        if self._transport is not None and (missing := self._transport.missing()):
            raise ConfigurationError(missing)
        loaded = History() if history is None else History.load(history, model=self.model)
        content = _prompt(prompt, loaded)
        if content is not None:
            loaded.append({"role": "user", "content": content}, purpose="prompt")
        conversation = Conversation(
            machine=self,
            run_id=self.deps.uuid(),
            history=loaded,
            control=self.automaton.initial,
            models=self.models,
            call_ids={call for entry in loaded for call in entry.calls},
            server_calls=any(entry.open_server_uses for entry in loaded),
        )
        channel: Channel[Event] = Channel()
        return Run(Driver(conversation, self._machine, self.automaton, self.effects, channel), channel)

    def run_sync(
        self, prompt: Prompt, *, history: Sequence[Mapping[str, Any]] | History | RunResult | None = None
    ) -> RunResult:
        """`run` to its end, from code that is not async. Raises `RuntimeError` inside a running event loop."""
        run = self.run(prompt, history=history)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError("run_sync was called inside a running event loop; write `await machine.run(...)` there.")

        async def finish() -> RunResult:
            try:
                return await run.finish()
            finally:
                await self.aclose()

        return run_blocking(finish)

    async def aclose(self) -> None:
        """Close the client that the machine made for this event loop. A client of yours stays open."""
        if self._transport is not None:
            await self._transport.aclose()


def _calling(
    client: anthropic.AsyncAnthropic | None, call_model: CallModel | None
) -> tuple[SdkTransport | None, CallModel]:
    if call_model is not None:
        return None, call_model
    from fsm_agent.model.transport import SdkTransport

    transport = SdkTransport(client)
    return transport, transport


def _system(system: System) -> Any:
    if callable(system) or system is None or isinstance(system, str):
        return system
    from fsm_agent.context.system_prompt import assembled

    try:
        return assembled(system)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def _prompt(prompt: Prompt, history: History) -> Any:
    if prompt is None:
        last = history.messages[-1]["role"] if len(history) else None
        if last != "user":
            raise ValueError("There is no prompt, and the history does not end with a user message; give a prompt.")
        return None
    return user_content(prompt, "prompt")
