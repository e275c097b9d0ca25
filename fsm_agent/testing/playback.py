"""One model played from a script, without a transport: what the in-process model and the server have in common."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from fsm_agent.testing.answers import answer_actions
from fsm_agent.testing.cursor import Cursor, describe_request
from fsm_agent.testing.diagnosis import Diagnosis
from fsm_agent.testing.events import Action, Answer, Chunking, fold_message
from fsm_agent.testing.prompt_cache import PromptCache
from fsm_agent.testing.reading import BodyReader, Reading
from fsm_agent.testing.rules import ApiRefusal, ApiSettings
from fsm_agent.testing.script import Item, Reply, RequestKind, Script, Stream, request_kind
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.signatures import ReplyWatcher, SignatureBook
from fsm_agent.testing.threads import Thread, ThreadStore
from fsm_agent.testing.truncation import within_limits

__all__ = ["Playback", "Received", "UnexpectedRequestError"]


class UnexpectedRequestError(AssertionError):
    """A request that the script has no item for."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request that may be answered."""

    reading: Reading
    """The whole request, also when only its end was sent."""
    betas: str
    threaded: bool
    continued: Thread | None


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
    reader: BodyReader = field(init=False)
    threads: ThreadStore = field(init=False)
    cache: PromptCache = field(init=False)
    diagnosis: Diagnosis = field(init=False, default_factory=Diagnosis)
    served: int = field(init=False, default=0)
    _tool_ids: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.cursor = Cursor(self.script)
        self.reader = BodyReader(self.settings, self.signatures)
        self.threads = ThreadStore(self.reader, self.clock)
        self.cache = PromptCache(self.clock)

    def receive(
        self, raw: bytes, headers: Mapping[str, str], *, judge: bool = True, counting: bool = False
    ) -> Received | ApiRefusal:
        """A request body read, completed from its thread and judged; or the refusal that the API would answer with.

        Of the headers (names in lower case) only `anthropic-beta` matters.
        """
        reading = self.reader.read(raw)
        if isinstance(reading, ApiRefusal):
            return reading
        betas = headers.get("anthropic-beta", "")
        completed = self.threads.complete(reading, betas)
        if isinstance(completed, ApiRefusal):
            return completed
        threaded = "thread" in reading.body
        received = Received(completed[0], betas, threaded=threaded, continued=completed[1])
        refusal = None
        if judge:
            refusal = self.reader.judge(received.reading, {"anthropic-beta": betas}, counting=counting)
        if refusal is not None or counting:
            self.threads.end(received.continued)
        return received if refusal is None else refusal

    def take(self, received: Received, kind: RequestKind | None = None) -> Item:
        """The item for a request; `UnexpectedRequestError` shows both when there is none."""
        body = received.reading.body
        kind = kind or self.kind_of(body)
        item = self.cursor.take(body, kind, len(received.reading.raw))
        if not isinstance(item, Reply | Stream):
            self.threads.end(received.continued)
        if item is None:
            raise UnexpectedRequestError(
                f"The script has no item for request {self.served + 1} ({kind}): {describe_request(body)}."
                f" Left in the script: {self.cursor.describe()}."
            )
        self.served += 1
        return item

    def play(self, item: Reply | Stream, received: Received, request_id: str | None = None) -> Iterator[Action]:
        """The actions that answer a request. Writes the prompt cache; what was said is remembered as it goes out."""
        answer = self._answer(received.reading)
        answer.request_id = request_id or answer.request_id
        actions = self._actions(item, received.reading.body, answer)
        return self._watched(actions, received)

    def _answer(self, reading: Reading) -> Answer:
        model = str(reading.body.get("model"))
        number = self.served
        message_id = f"msg_{number:024d}"
        minimum = self.settings.profile(model).minimum_cache_tokens
        more: JsonObject = {}
        if "diagnostics" in reading.body:
            more["diagnostics"] = self.diagnosis.of(reading.body, reading.prompt, message_id)
        return Answer(
            message_id=message_id,
            request_id=f"req_{number:024d}",
            model=model,
            usage=self.cache.account(reading.body, reading.prompt, minimum).as_usage(),
            more=more,
            new_tool_id=self._new_tool_id,
            sign=lambda thought: self.signatures.issue(model, thought),
        )

    def _new_tool_id(self) -> str:
        self._tool_ids += 1
        return f"toolu_{self._tool_ids:024d}"

    def _actions(self, item: Reply | Stream, body: JsonObject, answer: Answer) -> Iterator[Action]:
        if item.model is not None:
            answer.model = item.model
        if isinstance(item, Reply):
            item = within_limits(item, body, self.settings, sum_of_input(answer))
        return answer_actions(item, answer, self.chunking)

    def _watched(self, actions: Iterator[Action], received: Received) -> Iterator[Action]:
        watcher = ReplyWatcher(self.signatures, str(received.reading.body.get("model")))
        told: list[JsonObject] = []
        try:
            for action in actions:
                if isinstance(action, dict):
                    watcher.see(action)
                    if received.threaded:
                        told.append(action)
                        self._hold_when_complete(told, received)
                yield action
        finally:
            self.threads.end(received.continued)

    def _hold_when_complete(self, told: list[JsonObject], received: Received) -> None:
        if told[-1].get("type") == "message_stop" and told[0].get("type") == "message_start":
            self.threads.hold(received.reading, fold_message(told), received.betas, received.continued)

    def assert_complete(self) -> None:
        """Fail when items of the script were not served."""
        missing = self.cursor.missing()
        if missing:
            raise AssertionError(f"{self.served} requests came, and the script has items left: {', '.join(missing)}.")


def sum_of_input(answer: Answer) -> int:
    """All input tokens that an answer reports, cached ones included."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(int(answer.usage.get(name, 0)) for name in names)
