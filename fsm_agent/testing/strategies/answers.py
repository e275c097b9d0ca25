"""What a model may answer: whole replies, tool calls, streams that are cut anywhere, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from fsm_agent.testing.content import text, thinking, tool_use
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
    strategies = [strategy for _, strategy in choices]
    table = [strategy for (weight, _), strategy in zip(choices, strategies, strict=True) for _ in range(weight)]
    places = st.integers(0, len(table) - 1)

    @st.composite
    def chosen(draw: st.DrawFn) -> T:
        return draw(table[draw(places)])

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
    made = [st.builds(tool_use, st.just(name), given.get(name, values_of(each))) for name, each in schemas.items()]
    return st.one_of(made) if made else st.just(tool_use("missing_tool"))


def tool_calls(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[JsonObject]:
    """Calls of these tools: most fit, some do not, some have JSON that is cut, an unknown name, or a used id."""
    fitting = valid_calls(tools, inputs=inputs)
    wrong = [st.builds(tool_use, st.just(name), misfits(schema)) for name, schema in _schemas(tools).items()]
    names = st.sampled_from(("missing_tool", "Bash", "a" * 128))
    return weighted(
        (16, fitting),
        (2, st.one_of(wrong) if wrong else fitting),
        (1, st.builds(_cut_input, fitting, st.integers(1, 40))),
        (1, st.builds(tool_use, names, st.just({"x": 1}))),
        (1, fitting.map(lambda call: {**call, "id": "toolu_again"})),
    )


def _cut_input(call: JsonObject, left: int) -> JsonObject:
    written = compact_json(call["input"])
    return {**call, "input": written[: max(1, len(written) - left)]}


# ---- replies and streams


def replies(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[Reply]:
    """Whole replies with tool calls, text, thinking or nothing, and any stop reason, also one that does not fit."""
    return _replies(tool_calls(tools, inputs=inputs))


def _replies(calls: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[Reply]:
    words = st.sampled_from(_WORDS)
    said = st.lists(words.map(text), max_size=2)
    return weighted(
        (6, st.builds(Reply, words, usage=_usages())),
        (10, st.builds(_reply, said, st.lists(calls, min_size=1, max_size=3))),
        (2, st.builds(_reply, said, st.lists(calls, max_size=1), st.just("max_tokens"))),
        (2, st.builds(_reply, said, st.lists(calls, max_size=1), st.sampled_from(_STOPS))),
        (1, st.just(PAUSED)),
        (1, st.builds(_reply, words.map(_thought), st.lists(calls, min_size=1, max_size=1))),
    )


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


def _reply(before: list[JsonObject], after: list[JsonObject], stop: str | None = None) -> Reply:
    return Reply(*before, *after, stop=stop)


def _thought(words: str) -> list[JsonObject]:
    return [thinking(words)]


def _usages() -> st.SearchStrategy[dict[str, int]]:
    full = {"input_tokens": 170_000, "output_tokens": 500}
    return st.sampled_from(({}, {}, {}, {}, {"output_tokens": 600}, {"output_tokens": 6_000}, full))


def streams(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[Stream]:
    """Answers told event by event: cut into pieces anywhere, with pings and unknown events, ended in any way."""
    return _streams(valid_calls(tools, inputs=inputs))


@st.composite
def _streams(draw: st.DrawFn, calls: st.SearchStrategy[JsonObject]) -> Stream:
    steps: list[Step] = ["message_start"]
    for _ in range(draw(st.integers(0, 3))):
        steps += draw(_steps_of_text()) if draw(st.booleans()) else _steps_of_call(draw(calls), draw(st.integers(1, 9)))
        if draw(st.integers(0, 3)) == 3:
            steps.append(draw(st.sampled_from(_BETWEEN)))
    return Stream([*steps, *draw(st.sampled_from(_ENDS))])


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


def _steps_of_text() -> st.SearchStrategy[list[Step]]:
    pieces = st.lists(st.sampled_from(("a", "bc ", "é", "🜨", "\n")), min_size=1, max_size=3)
    return pieces.map(lambda several: [{"text": piece} for piece in several])


def _steps_of_call(call: JsonObject, size: int) -> list[Step]:
    written = compact_json(call["input"])
    several = [written[start : start + size] for start in range(0, min(len(written), 10 * size), size)]
    rest = written[10 * size :]
    steps: list[Step] = [{"tool_use_open": [call["id"], call["name"]]}]
    steps += [{"partial_json": piece} for piece in (*several, *([rest] if rest else []))]
    return [*steps, "content_block_stop"]


def faults(events: int = 12) -> st.SearchStrategy[Fault]:
    """A break of an answer at one of its first events."""
    return st.builds(Fault, st.integers(0, events - 1), st.sampled_from(_FAULT_KINDS))


def chunkings() -> st.SearchStrategy[Chunking]:
    """How answers are cut into events."""
    sizes = st.sampled_from((48, 1, 3, None))
    return st.builds(Chunking, text=sizes, json=sizes, pings=st.booleans(), delay=st.sampled_from((0.0, 0.0, 0.5)))


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


def answers(tools: Sequence[Any] | Toolbox, *, inputs: Inputs | None = None) -> st.SearchStrategy[Item]:
    """Anything that a model, or the service before it, may answer."""
    whole: st.SearchStrategy[Item] = replies(tools, inputs=inputs)
    broken: st.SearchStrategy[Item] = st.builds(_broken, replies(tools, inputs=inputs), faults())
    errors: st.SearchStrategy[Item] = api_errors()
    told: st.SearchStrategy[Item] = streams(tools, inputs=inputs)
    summaries: st.SearchStrategy[Item] = st.sampled_from(
        (
            ApiError(
                400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", when="summary"
            ),
            Reply("", when="summary"),
            ApiError(500, "api_error", when="summary"),
        )
    )
    return weighted((12, whole), (3, errors), (2, broken), (3, told), (1, summaries))


def _broken(reply: Reply, fault: Fault) -> Item:
    return with_fault(reply, fault)
