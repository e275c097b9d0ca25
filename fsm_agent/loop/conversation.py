"""The mutable data of one run: its history, the reply and the calls in hand, what the effects proposed.

Nothing in here decides anything. Effects put their results here; the actions of the row that fires apply them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fsm_agent.machine import Control
from fsm_agent.model.usage import Usage
from fsm_agent.session.validator import HistoryValidator
from fsm_agent.tools.notices import NoticeQueue

if TYPE_CHECKING:
    from fsm_agent.context.pipeline import ContextPlan, Edit
    from fsm_agent.loop.agent import AgentMachine
    from fsm_agent.model.classify import Failure
    from fsm_agent.model.reply import ReplyAssembler, ToolCall
    from fsm_agent.session.history import History
    from fsm_agent.tools.batch import ToolBatch
    from fsm_agent.tools.result import ToolResult


@dataclass(slots=True)
class Reply:
    """The model's reply in hand: what was received, and what has become of it."""

    assembler: ReplyAssembler
    message_id: str
    model: str
    shown: bool = False
    """Some of it was streamed to the consumer."""
    settled: bool = False
    """It was kept or discarded."""
    batch: ToolBatch | None = None


@dataclass(slots=True)
class Answer:
    """The text of the run's answer. What continues a cut reply is joined to it; a new start takes its place."""

    text: str = ""
    _joint: str | None = ""

    def goes_on(self, joint: str = "") -> None:
        """The next text is joined to this one."""
        self._joint = joint

    def starts_anew(self) -> None:
        """The next text takes the place of this one, as soon as there is one."""
        self._joint = None

    def add(self, text: str) -> None:
        if not text.strip():
            return
        self.text = self.with_(text)
        self._joint = ""

    def with_(self, text: str) -> str:
        """What the answer is when this text is added to it."""
        joint = "" if not self.text else self._joint
        return text if joint is None else self.text + joint + text


@dataclass(slots=True)
class Conversation:
    """Everything that one run changes as it goes."""

    machine: AgentMachine
    run_id: str
    history: History
    control: Control
    models: tuple[str, ...]
    system: Any = None

    model_index: int = 0
    requests: int = 0
    attempt: int = 0
    """Requests of this turn so far."""
    attempt_turn: int = 0
    last_wait: float = 0.0
    """Seconds of the last wait of this turn: waits never decrease."""
    usage: Usage = field(default_factory=Usage)
    usage_by_model: dict[str, Usage] = field(default_factory=dict[str, Usage])
    cost: float = 0.0
    last_usage: Usage | None = None
    last_compaction_turn: int | None = None
    autocompact_failures: int = 0
    continuation_outputs: list[int] = field(default_factory=list[int])
    output_tokens_before: int = 0

    reply: Reply | None = None
    failure: Failure | None = None
    results: list[ToolResult] = field(default_factory=list["ToolResult"])
    result_blocks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    plan: ContextPlan | None = None
    edits: list[Edit] = field(default_factory=list["Edit"])
    """What a drain, a compaction or a removal of media proposed."""
    feedback: tuple[str, ...] = ()
    output_errors: str = ""
    output: Any = None

    answer: Answer = field(default_factory=Answer)
    details: dict[str, str] = field(default_factory=dict[str, str])
    """A sentence about the outcome of an effect of this visit."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """What an effect of a user's own returned beside its outcome."""
    queued: deque[Any] = field(default_factory=deque[Any])
    notices: NoticeQueue = field(default_factory=NoticeQueue)
    call_ids: set[str] = field(default_factory=set[str])
    """Ids of all tool uses of the conversation: a reply that repeats one gets a fresh one."""
    server_calls: bool = False
    """A call of the API's own tools may wait for its result."""
    container: str | None = None
    """The code execution container that the last reply which used one told of; the next request goes on in it."""
    seen_message_ids: dict[str, int] = field(default_factory=dict[str, int])
    validator: HistoryValidator = field(default_factory=HistoryValidator)

    @property
    def model(self) -> str:
        return self.models[self.model_index]

    @property
    def turn(self) -> int:
        """The turn that the run is in, from 1; requests, for a machine that does not count turns."""
        return self.control["turn"] if "turn" in self.control.index else self.requests + 1

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls of the reply in hand."""
        return [] if self.reply is None else self.reply.assembler.tool_calls

    def unique_message_id(self, message_id: str) -> str:
        """An id that names one reply of this run, though the service may have given two the same."""
        count = self.seen_message_ids.get(message_id, 0) + 1
        self.seen_message_ids[message_id] = count
        return message_id if count == 1 else f"{message_id}#{count}"

    def begin_attempt(self) -> None:
        """Count a request of the turn that the run is in."""
        if self.turn != self.attempt_turn:
            self.attempt, self.attempt_turn, self.last_wait = 0, self.turn, 0.0
        self.attempt += 1

    def count(self, usage: Usage, model: str) -> None:
        """Add the usage of one response of the API."""
        self.usage = self.usage + usage
        self.usage_by_model[model] = self.usage_by_model.get(model, Usage()) + usage
        price = self.machine.price_of(model)
        if price is not None:
            from fsm_agent.model.prices import cost

            self.cost += cost(usage, price)

    def finish_history(self) -> None:
        """The run ends: a call of the API's own tools that waits for its result will never have one."""
        self.settle_server_calls(paused=False)

    def waiting_server_calls(self) -> set[str]:
        """Ids of the calls of the API's own tools that the next reply may answer: a pause, or a call of ours between,
        left them without a result."""
        return self.history.waiting_server_uses() if self.server_calls else set()

    def settle_server_calls(self, *, paused: bool) -> None:
        """A message came: what it leaves alone of the API's own tools is taken out, since the API would refuse it."""
        if self.server_calls:
            self.server_calls = self.history.settle_server_uses(paused=paused)

    def spent(self) -> str:
        """Why the hard spend limit is reached, or ''."""
        limits = self.machine.limits
        if limits.max_total_tokens is not None and self.usage.total >= limits.max_total_tokens:
            return f"The run used {self.usage.total} tokens; its limit is {limits.max_total_tokens}."
        if limits.max_cost_usd is not None and self.cost >= limits.max_cost_usd:
            return f"The run cost {self.cost:.4f} US dollars; its limit is {limits.max_cost_usd:g}."
        return ""

    def forget_visit(self, kept: Mapping[str, str]) -> None:
        """The facts of a visit are forgotten when its state is left; so is what was said of them."""
        for forgotten in self.details.keys() - kept.keys():
            del self.details[forgotten]
        for forgotten in self.values.keys() - kept.keys():
            del self.values[forgotten]
