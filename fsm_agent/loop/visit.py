"""What an effect sees of its run, and how it says how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fsm_agent.machine import Control, LoopLimits

if TYPE_CHECKING:
    from fsm_agent.loop.channel import Channel
    from fsm_agent.loop.conversation import Conversation
    from fsm_agent.loop.deps import Deps
    from fsm_agent.loop.events import Event


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an effect ended: one of the outcomes that it declares, why, and a value for later effects and actions."""

    name: str
    detail: str = ""
    value: Any = None


class Visit:
    """An effect's view of the run.

    `facts` are the outcomes known in this visit, `values` what effects of a user's own returned with them.
    """

    __slots__ = ("_channel", "conversation", "facts")

    def __init__(self, conversation: Conversation, facts: Mapping[str, str], channel: Channel[Event]) -> None:
        self.conversation = conversation
        self.facts = facts
        self._channel = channel

    @property
    def listening(self) -> bool:
        """Whether anybody wants the events."""
        return self._channel.listening

    async def emit(self, event: Event) -> None:
        """Hand an event to the consumer; waits until the consumer wants the next one."""
        if self._channel.listening:
            await self._channel.emit(event)

    @property
    def control(self) -> Control:
        return self.conversation.control

    @property
    def limits(self) -> LoopLimits:
        return self.conversation.machine.limits

    @property
    def deps(self) -> Deps:
        return self.conversation.machine.deps

    @property
    def values(self) -> Mapping[str, Any]:
        return self.conversation.values

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The history as plain dicts."""
        return list[dict[str, Any]](self.conversation.history.messages)

    @property
    def calls(self) -> list[Any]:
        """The tool calls of the reply in hand (`id`, `name`, `input`)."""
        return list(self.conversation.calls)


EffectFunction: TypeAlias = Callable[[Visit], Awaitable[Outcome | str]]
"""An effect of a user's own: an async callable that ends in one of the outcomes that the declaration gives it."""
