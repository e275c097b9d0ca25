"""The world around a run that follows a witness: each effect finds what makes it end as it must.

The effects themselves are the loop's own, and do their real work. What they look at is arranged just before: what a
hook, a tool, the clock or a replaced stage answers; and where an effect looks at the past of a run that a witness does
not have (an older conversation that can be folded, a compaction a turn ago), that past is put there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from fsm_agent.context import collapse
from fsm_agent.loop.hooks import Block, Hooks, Prevent, StopHookInput
from fsm_agent.loop.visit import EffectFunction, Outcome, Visit
from fsm_agent.testing.witness_script import TOOL
from fsm_agent.tools.declare import Tool, tool
from fsm_agent.tools.gate import Allow, Defer, Permission, Stop

if TYPE_CHECKING:
    from fsm_agent.context.view import ContextView
    from fsm_agent.loop.conversation import Conversation
    from fsm_agent.loop.run import Run
    from fsm_agent.model.transport import CallModel
    from fsm_agent.verify import Step

ABORTED: Final = "aborted"
ANSWER: Final = "What was found is written down here, word for word. " * 24
OLDER: Final[tuple[Mapping[str, Any], ...]] = tuple(
    message
    for number in range(24)
    for message in ({"role": "user", "content": f"Question {number}"}, {"role": "assistant", "content": ANSWER})
)
"""An older conversation, with enough in it to be folded, or summarised in several attempts."""
_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "role": "user",
        "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}],
    },
    {"role": "assistant", "content": "I see."},
)


@dataclass(frozen=True, slots=True)
class Expected:
    """An outcome that the witness gives to an effect. `step` counts from 1."""

    step: int
    effect: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.effect}: {self.outcome} in step {self.step}"


class Stage:
    """Where a run stands in its witness, and what the world answers there."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.moves = 0
        """Steps of the witness that the run has taken."""
        self.performed = 0
        """Effects of this step that the run has asked for."""
        self.now: Expected | None = None
        """What is being performed."""
        self.forced: list[Expected] = []
        """Outcomes that the world could not bring about, so that they were given in its place."""
        self.fault = ""
        """What the run did that the witness does not say."""
        self.aborted_at: float | None = None
        """Seconds of the event loop's clock."""
        self.run: Run | None = None

    @property
    def complete(self) -> bool:
        """The run has done all that the witness says. The last step may have outcomes without a row that fires."""
        rest = self.steps[self.moves :]
        return not rest or (rest[0].trigger is None and self.performed == len(rest[0].outcomes))

    @property
    def only_aborts_left(self) -> bool:
        """What is left of the last step is what an abort makes of effects: they are not begun."""
        rest = self.steps[self.moves :]
        left = [outcome for _, outcome in rest[0].outcomes[self.performed :]] if rest else []
        return self.aborted_at is not None and len(rest) <= 1 and set(left) <= {ABORTED}

    def wants(self, effect: str) -> str | None:
        """The outcome that an effect in progress must come to."""
        return self.now.outcome if self.now is not None and self.now.effect == effect else None

    def moved(self) -> None:
        self.moves += 1
        self.performed, self.now = 0, None

    def expect(self, effect: str) -> Expected:
        """The run asks for an effect: what the witness says of it."""
        outcomes = self.steps[self.moves].outcomes
        if self.performed < len(outcomes) and outcomes[self.performed][0] == effect:
            self.now = Expected(self.moves + 1, *outcomes[self.performed])
            self.performed += 1
            return self.now
        self.fault = f"it asks for the effect {effect!r} there"
        raise AssertionError(self.fault)

    def abort(self) -> None:
        """The user ends the run."""
        assert self.run is not None
        if self.aborted_at is None:
            self.aborted_at = asyncio.get_running_loop().time()
        self.run.abort("The witness says so.")

    async def hang(self) -> None:
        """Something takes long, and the user ends the run meanwhile."""
        self.abort()
        await asyncio.Event().wait()

    def staged(self, effect: str, real: EffectFunction | None) -> EffectFunction:
        """The effect with the world arranged for it; without a real one, it only says what it must come to."""

        async def perform(visit: Visit) -> Outcome:
            wanted = self.expect(effect)
            if real is None:
                if wanted.outcome == ABORTED:
                    await self.hang()
                return Outcome(wanted.outcome, str(wanted))
            if (effect, wanted.outcome) in ARRANGED:
                ARRANGED[effect, wanted.outcome](visit.conversation)
            given = await real(visit)
            given = Outcome(given) if isinstance(given, str) else given
            if given.name == wanted.outcome:
                return given
            self.forced.append(wanted)
            if wanted.outcome == ABORTED:
                await self.hang()
            return Outcome(wanted.outcome, given.detail, given.value)

        return perform

    def overheard(self, call_model: CallModel) -> CallModel:
        """The model, and a user who does not wait for its summary. (What is streamed of one is not shown.)"""

        async def call(request: Any) -> AsyncGenerator[dict[str, Any], None]:
            stream = call_model(request)
            try:
                async for event in stream:
                    if self.wants("compact") == ABORTED:
                        self.abort()
                    yield event
            finally:
                close = getattr(stream, "aclose", None)
                if close is not None:
                    await close()

        return call

    # ---- what the world answers

    @property
    def tool(self) -> Tool[..., Any]:
        async def act() -> str:
            """Do something that must not be repeated."""
            if self.wants("tools") == ABORTED:
                await self.hang()
            return "done"

        assert act.__name__ == TOOL
        return tool(act)

    @property
    def hooks(self) -> Hooks:
        return Hooks(stop=[self._stop], after_tool=[self._after_tool])

    async def _stop(self, given: StopHookInput) -> Block | Prevent | None:  # noqa: ARG002 - a hook's signature
        match self.wants("hooks"):
            case "block":
                return Block("The tests fail.")
            case "prevent":
                return Prevent("Enough.")
            case "aborted":
                await self.hang()
            case _:
                pass
        return None

    async def _after_tool(self, *_: object) -> Stop | None:
        return Stop("The host stops the run.") if self.wants("tools") == "hook_stopped" else None

    async def permission(self, *_: object) -> Permission:
        return Defer("A person must decide.") if self.wants("tools") == "deferred" else Allow()

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002 - no test waits
        if self.wants("backoff") == ABORTED:
            await self.hang()

    async def autocompact(self, view: ContextView) -> Sequence[Mapping[str, Any]] | None:
        """Stage 6 of the context pipeline."""
        messages = view.history.messages
        match self.wants("context"):
            case "compacted" | "refilled":
                return [{"role": "user", "content": "In short: do it."}, *messages[1:]]
            case "too_large":
                return [{"role": "user", "content": "word " * (2 * view.limits.context_window)}, *messages[1:]]
            case "failed":
                raise RuntimeError("The witness says that the context cannot be made.")
            case "aborted":
                await self.hang()
            case _:
                pass
        return None

    def output_ceiling(self, limits: Any) -> int:
        """The most output tokens that the model allows."""
        if self.wants("escalation") == "at_ceiling":
            return int(limits.max_output_tokens)
        return int(max(limits.max_output_tokens + 1, limits.escalated_max_output_tokens))


# ---- the past that an effect looks at


def _never_compacted(conversation: Conversation) -> None:
    conversation.last_compaction_turn = None


def _just_compacted(conversation: Conversation) -> None:
    conversation.last_compaction_turn = conversation.turn


def _told_to_wait(conversation: Conversation) -> None:
    """A lost stream cannot say how long to wait, though the table takes such a case."""
    failure = conversation.failure
    if failure is not None and failure.retry_after is None:
        conversation.failure = replace(failure, retry_after=86_400.0)


def _older_conversation(conversation: Conversation) -> None:
    messages = conversation.history.messages
    begins = (at for at, message in enumerate(messages) if message == OLDER[0])
    if not any(tuple(messages[at : at + len(OLDER)]) == OLDER for at in begins):
        conversation.history.replace(0, 0, OLDER)


def _staged_collapse(conversation: Conversation) -> None:
    history = conversation.history
    history.replace(0, 0, OLDER)
    history.marks[collapse.STAGE] = (history.version, len(OLDER) // 2, history.tokens)


def _nothing_staged(conversation: Conversation) -> None:
    conversation.history.marks.pop(collapse.STAGE, None)


def _image(conversation: Conversation) -> None:
    conversation.history.replace(0, 0, IMAGE)


ARRANGED: Mapping[tuple[str, str], Callable[[Conversation], None]] = {
    ("context", "compacted"): _never_compacted,
    ("context", "refilled"): _just_compacted,
    ("backoff", "too_long"): _told_to_wait,
    ("drain", "drained"): _staged_collapse,
    ("drain", "nothing"): _nothing_staged,
    ("compact", "compacted"): _older_conversation,
    ("compact", "head_too_long"): _older_conversation,
    ("compact", "failed"): _older_conversation,
    ("compact", "aborted"): _older_conversation,
    ("media", "removed"): _image,
}
