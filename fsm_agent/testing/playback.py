"""One model played from a script, without a transport: what the in-process model and the server have in common."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from fsm_agent.testing.answers import answer_actions
from fsm_agent.testing.cursor import Cursor, describe_request
from fsm_agent.testing.events import Action, Answer, Chunking
from fsm_agent.testing.prompt_cache import CacheUsage, PromptCache
from fsm_agent.testing.rules import ApiRefusal, ApiSettings, validate
from fsm_agent.testing.script import Item, Reply, RequestKind, Script, Stream, request_kind
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.signatures import ReplyWatcher, SignatureBook
from fsm_agent.testing.tokens import prompt_tokens
from fsm_agent.testing.truncation import within_limits

__all__ = ["Playback", "UnexpectedRequestError"]


class UnexpectedRequestError(AssertionError):
    """A request that the script has no item for."""


@dataclass(slots=True)
class Playback:
    """The state of a scripted model: where the script stands, what was signed, what is cached."""

    script: Script
    settings: ApiSettings = field(default_factory=ApiSettings)
    chunking: Chunking = field(default_factory=Chunking)
    clock: Callable[[], float] = time.monotonic
    kind_of: Callable[[JsonObject], RequestKind] = request_kind
    signatures: SignatureBook = field(default_factory=SignatureBook)
    cursor: Cursor = field(init=False)
    cache: PromptCache = field(init=False)
    served: int = field(init=False, default=0)
    _tool_ids: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.cursor = Cursor(self.script)
        self.cache = PromptCache(self.clock)

    def validate(self, body: JsonObject, headers: Mapping[str, str], *, counting: bool = False) -> ApiRefusal | None:
        """The refusal that the API would answer with."""
        return validate(body, headers, settings=self.settings, signatures=self.signatures, counting=counting)

    def take(self, body: JsonObject, size: int, kind: RequestKind | None = None) -> Item:
        """The item for a request of `size` bytes; `UnexpectedRequestError` shows both when there is none."""
        kind = kind or self.kind_of(body)
        item = self.cursor.take(body, kind, size)
        if item is None:
            raise UnexpectedRequestError(
                f"The script has no item for request {self.served + 1} ({kind}): {describe_request(body)}."
                f" Left in the script: {self.cursor.describe()}."
            )
        self.served += 1
        return item

    def answer(self, body: JsonObject) -> Answer:
        """Ids, counted usage and signatures for the answer to a request. Writes the prompt cache."""
        model = str(body.get("model"))
        number = self.served
        return Answer(
            message_id=f"msg_{number:024d}",
            request_id=f"req_{number:024d}",
            model=model,
            usage=self._usage(body, model).as_usage(),
            new_tool_id=self._new_tool_id,
            sign=lambda thought: self.signatures.issue(model, thought),
        )

    def _usage(self, body: JsonObject, model: str) -> CacheUsage:
        minimum = self.settings.profile(model).minimum_cache_tokens
        return self.cache.account(body, minimum, self.settings.characters_per_token)

    def _new_tool_id(self) -> str:
        self._tool_ids += 1
        return f"toolu_{self._tool_ids:024d}"

    def watch(self, body: JsonObject) -> ReplyWatcher:
        """What is to see the events of the answer to a request, so that its thinking is known when it comes back."""
        return ReplyWatcher(self.signatures, str(body.get("model")))

    def actions(self, item: Reply | Stream, body: JsonObject, answer: Answer) -> Iterator[Action]:
        """The actions of an item for a request."""
        if item.model is not None:
            answer.model = item.model
        if isinstance(item, Reply):
            item = within_limits(item, body, self.settings, sum_of_input(answer))
        return answer_actions(item, answer, self.chunking)

    def count(self, body: JsonObject) -> int:
        """Input tokens of a request."""
        return prompt_tokens(body, self.settings.characters_per_token)

    def assert_complete(self) -> None:
        """Fail when items of the script were not served."""
        missing = self.cursor.missing()
        if missing:
            raise AssertionError(f"{self.served} requests came, and the script has items left: {', '.join(missing)}.")


def sum_of_input(answer: Answer) -> int:
    """All input tokens that an answer reports, cached ones included."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(int(answer.usage.get(name, 0)) for name in names)
