"""What a model may answer: whole replies, tool calls, streams that are cut anywhere, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any, TypeVar

from hypothesis import strategies as st

from fsm_agent.testing.content import thinking, tool_use
from fsm_agent.testing.events import Chunking
from fsm_agent.testing.script import ApiError, Fault, FaultKind, Item, Reply, Step, Stream, with_fault
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.sse import compact_json
from fsm_agent.testing.strategies.json_schemas import misfits, values_of
from fsm_agent.tools.toolbox import Toolbox

__all__ = [
    "Inputs",
    "answers",
    "api_errors",
    "chunkings",
    "drawn_from",
    "faults",
    "replies",
    "streams",
    "tool_calls",
    "valid_calls",
    "weighted",
]

T = TypeVar("T")
Inputs = Mapping[str, st.SearchStrategy[Any]]
"""Your own strategy for the input of a tool, by its name."""

_WORDS = ("I see.", "Done.", "One. ", "Two.", "7", "", " ", "Ω≠🜨", "a long answer " * 6)
_FAULT_KINDS: tuple[FaultKind, ...] = ("eof", "cut", "reset", "error", "silence", "garbage")


def weighted(*choices: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """One of several strategies, each as often as its weight says; the first is what it shrinks to."""
    return drawn_from([strategy for weight, strategy in choices for _ in range(weight)])


def drawn_from(table: Sequence[Any]) -> st.SearchStrategy[Any]:
    """An entry of the table, or what is drawn from it if it is a strategy. Values take one draw, so they are cheap."""
    entries = st.sampled_from([(entry, isinstance(entry, st.SearchStrategy)) for entry in table])

    @st.composite
    def chosen(draw: st.DrawFn) -> Any:
        entry, has_more = draw(entries)
        return draw(entry) if has_more else entry

    return chosen()


# ---- tool calls


def _schemas(tools: Sequence[Any] | Toolbox) -> dict[str, JsonObject]:
    box = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    found = {name: box.get(name) for name in box.names}
    return {name: used.input_schema for name, used in found.items() if used is not None}


def valid_calls(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[JsonObject]:
    """Calls of these tools whose input fits their schema. Without any tool, a call of a tool that is not there.

    >>> from fsm_agent import tool
    >>> @tool
    ... def ping(): "Answer."
    >>> from hypothesis import find
    >>> find(valid_calls([ping]), lambda call: True)
    {'type': 'tool_use', 'id': None, 'name': 'ping', 'input': {}}
    """
    given = dict(inputs or {})
    schemas = _schemas(tools)
    unknown = sorted(set(given) - set(schemas))
    if unknown:
        raise ValueError(f"There are inputs for {', '.join(unknown)}; the tools are {', '.join(schemas) or 'none'}.")
    made = [given.get(name, values_of(each)).map(partial(tool_use, name)) for name, each in schemas.items()]
    return drawn_from(made or [tool_use("missing_tool")])


def tool_calls(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[JsonObject]:
    """Calls of these tools: most fit, some do not, some have JSON that is cut, an unknown name, or a used id."""
    return _calls(valid_calls(tools, inputs=inputs), tools)


def _calls(fitting: st.SearchStrategy[JsonObject], tools: Sequence[Any] | Toolbox) -> st.SearchStrategy[JsonObject]:
    wrong = [misfits(schema).map(partial(tool_use, name)) for name, schema in _schemas(tools).items()]
    cut = st.builds(_cut_input, fitting, st.integers(1, 40))
    again = fitting.map(lambda call: {**call, "id": "toolu_again"})
    unknown = [tool_use(name, {"x": 1}) for name in ("missing_tool", "Bash", "a" * 128)]
    return drawn_from(
        [*[fitting] * 48, *[drawn_from(wrong) if wrong else fitting] * 6, *[cut] * 3, *unknown, *[again] * 3]
    )


def _cut_input(call: JsonObject, left: int) -> JsonObject:
    written = compact_json(call["input"])
    return {**call, "input": written[: max(1, len(written) - left)]}


# ---- replies and streams


def replies(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[Reply]:
    """Whole replies with tool calls, text, thinking or nothing, and any stop reason, also one that does not fit."""
    return drawn_from(_replies(tool_calls(tools, inputs=inputs)))


def _replies(calls: st.SearchStrategy[JsonObject]) -> list[Any]:
    """A table of replies, and of strategies for those that call tools."""
    several = _calling(calls)
    return [*_WORDY[:1] * 12, *_WORDY, *[several] * 180, *_ODD, *[PAUSED] * 14]


_STOPS = (
    *("end_turn", "tool_use", "stop_sequence", "refusal", "max_tokens", "solar_flare"),
    "model_context_window_exceeded",
)


PAUSED = Reply(
    "Half of it.",
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "fsm"}},
    stop="pause_turn",
)
"""The API pauses while a tool of its own works: such a reply ends in the call."""


_USAGES: tuple[dict[str, int], ...] = (
    *({}, {}, {}, {}),
    {"output_tokens": 600},
    {"output_tokens": 6_000},
    {"input_tokens": 170_000, "output_tokens": 500},
)
_WORDY = [Reply(words, usage=usage) for usage in _USAGES for words in _WORDS]
_SAID = ((), *((words,) for words in _WORDS), *pairwise(_WORDS))
_ODD = [
    Reply(*said, stop=stop) for said, stop in zip((*_SAID, *_SAID), (*_STOPS, *["max_tokens"] * 3) * 4, strict=False)
]
"""Words, or nothing, with a stop reason of any kind."""


def _shapes() -> list[tuple[tuple[str | JsonObject, ...], int, str | None]]:
    """What a reply with calls has beside them: what is said before, how many calls, the stop reason."""
    plain = [(said, calls, None) for said in ((), (), *_SAID) for calls in (1, 1, 2, 3)]
    thought = [((thinking(words),), 1, None) for words in _WORDS[:5]]
    stopped = [(said, 1, stop) for said, stop in zip(_SAID, ("max_tokens", "max_tokens", *_STOPS), strict=False)]
    return [*plain, *thought, *stopped]


def _calling(calls: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[Reply]:
    shapes = st.sampled_from(_shapes())

    @st.composite
    def calling(draw: st.DrawFn) -> Reply:
        said, count, stop = draw(shapes)
        return Reply(*said, *(draw(calls) for _ in range(count)), stop=stop)

    return calling()


def streams(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[Stream]:
    """Answers told event by event: cut into pieces anywhere, with pings and unknown events, ended in any way."""
    return _streams(valid_calls(tools, inputs=inputs))


@st.composite
def _streams(draw: st.DrawFn, calls: st.SearchStrategy[JsonObject]) -> Stream:
    steps: list[Step] = ["message_start"]
    for part in draw(_PARTS):
        steps += _steps_of_call(draw(calls), draw(_PIECES)) if part is None else part
    return Stream([*steps, *draw(_ENDING)])


_BETWEEN: tuple[Step, ...] = (
    "ping",
    {"event": {"type": "content_block_sparkle", "index": 0, "sparkle": {"hue": 7}}},
    {"sleep": 20.0},
    {"sleep": 400.0},
)
_ENDS: tuple[tuple[Step, ...], ...] = (
    ({"message_delta": "end_turn"}, "message_stop"),
    ({"message_delta": "tool_use"}, "message_stop"),
    ({"message_delta": "max_tokens"}, "message_stop"),
    ({"message_delta": "end_turn"}, "eof"),
    ("eof",),
    ("cut",),
    ("reset",),
    ("silence",),
    ("garbage",),
    ({"error": "overloaded_error"},),
    ({"error": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},),
)


_TEXTS: tuple[tuple[Step, ...], ...] = tuple(
    tuple({"text": piece} for piece in pieces)
    for pieces in (("a",), ("bc ",), ("a", "bc "), ("\u00e9", "\U0001f71c"), ("a", "\n", "bc "))
)
_PARTS: st.SearchStrategy[list[tuple[Step, ...] | None]] = st.lists(
    st.sampled_from((*_TEXTS, *[None] * 6, *((step,) for step in _BETWEEN))), max_size=4
)
"""Text, calls (`None`), and what may come between them."""
_PIECES = st.integers(1, 9)
_ENDING = st.sampled_from(_ENDS)


def _steps_of_call(call: JsonObject, size: int) -> list[Step]:
    written = compact_json(call["input"])
    several = [written[start : start + size] for start in range(0, min(len(written), 10 * size), size)]
    rest = written[10 * size :]
    steps: list[Step] = [{"tool_use_open": [call["id"], call["name"]]}]
    steps += [{"partial_json": piece} for piece in (*several, *([rest] if rest else []))]
    return [*steps, "content_block_stop"]


def faults(events: int = 12) -> st.SearchStrategy[Fault]:
    """A break of an answer at one of its first events."""
    return st.sampled_from([Fault(event, kind) for event in range(events) for kind in _FAULT_KINDS])


def chunkings() -> st.SearchStrategy[Chunking]:
    """How answers are cut into events."""
    return st.sampled_from(_CHUNKINGS)


_CHUNKINGS = [
    Chunking(text=text, json=json, pings=pings, delay=delay)
    for delay, pings, json, text in product((0.0, 0.5), (False, True), (48, 1, 3, None), (48, 1, 3, None))
]


# ---- errors

_ERRORS = (
    ApiError(529, "overloaded_error"),
    ApiError(500, "api_error"),
    ApiError(429, "rate_limit_error", headers={"retry-after": "3"}),
    ApiError(429, "rate_limit_error", headers={"retry-after": "3600"}),
    ApiError(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ApiError(413, "request_too_large", "Request exceeds the maximum size"),
    ApiError(400, "invalid_request_error", "messages.0.content.0.image.source.base64: image cannot be empty"),
    ApiError(400, "invalid_request_error", "This request is wrong."),
    ApiError(401, "authentication_error"),
    ApiError(404, "not_found_error", "model: unknown"),
    ApiError(503, "api_error"),
    ApiError(408, "timeout_error"),
)


def api_errors() -> st.SearchStrategy[ApiError]:
    """Errors that the API answers with instead of a stream."""
    return st.sampled_from(_ERRORS)


_SUMMARIES = (
    ApiError(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", when="summary"),
    Reply("", when="summary"),
    ApiError(500, "api_error", when="summary"),
)


def answers(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[Item]:
    """Anything that a model, or the service before it, may answer."""
    return _answers(valid_calls(tools, inputs=inputs), tools)


def _answers(fitting: st.SearchStrategy[JsonObject], tools: Sequence[Any] | Toolbox) -> st.SearchStrategy[Item]:
    whole = _replies(_calls(fitting, tools))
    broken: st.SearchStrategy[Item] = st.builds(_broken, drawn_from(whole), faults())
    told: st.SearchStrategy[Item] = _streams(fitting)
    # Of 21 answers 12 are whole, 3 errors, 3 told event by event, 2 broken, and one is a summary.
    part = len(whole) // 12
    errors = [_ERRORS[number % len(_ERRORS)] for number in range(3 * part)]
    summaries = [_SUMMARIES[number % len(_SUMMARIES)] for number in range(part)]
    return drawn_from([*whole, *errors, *[broken] * (2 * part), *[told] * (3 * part), *summaries])


def _broken(reply: Reply, fault: Fault) -> Item:
    return with_fault(reply, fault)
