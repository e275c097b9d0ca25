"""A request as the rules look at it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fsm_agent.testing.prompt import Prompt
from fsm_agent.testing.rules.profiles import ModelProfile
from fsm_agent.testing.rules.settings import ApiSettings
from fsm_agent.testing.shapes import JsonObject, as_object, is_list, is_object, objects
from fsm_agent.testing.signatures import SignatureBook

__all__ = ["Request", "Turn", "content_blocks", "sent_blocks"]


def content_blocks(content: object) -> list[JsonObject]:
    """The blocks of a message's content; a string is one text block, an empty string none.

    >>> content_blocks("hi"), content_blocks("")
    ([{'type': 'text', 'text': 'hi'}], [])
    """
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


@dataclass(slots=True)
class Turn:
    """Consecutive messages of one role, merged as the API merges them."""

    role: str
    blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    directive_only: bool = False
    """A system turn without content that carries an `output_config`."""


class Request:
    """A parsed body with what the rules need beside it. Lookups are total: a wrong shape reads as absent."""

    def __init__(
        self,
        body: JsonObject,
        headers: Mapping[str, str],
        settings: ApiSettings,
        signatures: SignatureBook | None,
        tokens: int | None = None,
    ) -> None:
        self.body = body
        self.settings = settings
        self.signatures = signatures
        self.betas = _betas(headers)
        self._tokens = tokens

    @property
    def model(self) -> str:
        """The name of the model, empty when it is missing."""
        name = self.body.get("model")
        return name if isinstance(name, str) else ""

    @cached_property
    def profile(self) -> ModelProfile:
        """What the model accepts."""
        return self.settings.profile(self.model)

    @cached_property
    def turns(self) -> list[Turn]:
        """The messages after the merging of consecutive ones of the same role. Errors of pairing count these."""
        turns: list[Turn] = []
        for message in objects(self.body.get("messages")):
            role = str(message.get("role"))
            if not turns or turns[-1].role != role or role == "system":
                turns.append(Turn(role))
            turns[-1].blocks += content_blocks(message.get("content"))
            turns[-1].directive_only = message.get("content") == [] and "output_config" in message
        return turns

    @cached_property
    def sent(self) -> list[tuple[str, JsonObject]]:
        """Each block of the messages with its path as sent (`sent_blocks`)."""
        return list(sent_blocks(self.body))

    @cached_property
    def tokens(self) -> int:
        """The estimate of the input tokens."""
        return Prompt(self.body, self.settings.characters_per_token).tokens if self._tokens is None else self._tokens

    @cached_property
    def thinking_type(self) -> str:
        """`enabled`, `adaptive`, ...; `disabled` when absent."""
        thinking = as_object(self.body.get("thinking")) or {}
        return str(thinking.get("type", "disabled"))

    @property
    def forced_tool_choice(self) -> str | None:
        """`any` or `tool` when the request forces a tool call."""
        choice = as_object(self.body.get("tool_choice")) or {}
        kind = choice.get("type")
        return kind if kind in ("any", "tool") else None

    def has_beta(self, *prefixes: str) -> bool:
        """Whether a beta header with one of these beginnings was sent (a redacted header counts as any)."""
        return any(beta.startswith((*prefixes, "**REDACTED")) for beta in self.betas)

    def last_assistant(self) -> int | None:
        """The index of the latest assistant turn."""
        return next((at for at in reversed(range(len(self.turns))) if self.turns[at].role == "assistant"), None)


def _betas(headers: Mapping[str, str]) -> frozenset[str]:
    named = {key.lower(): value for key, value in headers.items()}
    return frozenset(beta.strip() for beta in named.get("anthropic-beta", "").split(",") if beta.strip())


def sent_blocks(body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Each block of the messages with its path as sent, also those inside tool results.

    >>> [path for path, _ in sent_blocks({"messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}]})]
    ['messages.0.content.0']
    """
    messages = body.get("messages")
    for at, message in enumerate(messages if is_list(messages) else []):
        content = message.get("content") if is_object(message) else None
        for position, block in enumerate(content if is_list(content) else []):
            if is_object(block):
                path = f"messages.{at}.content.{position}"
                yield path, block
                yield from _inner_blocks(path, block)


def _inner_blocks(path: str, block: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    content = block.get("content")
    if block.get("type") == "tool_result" and is_list(content):
        for position, inner in enumerate(content):
            if is_object(inner):
                yield f"{path}.tool_result.content.{position}", inner
