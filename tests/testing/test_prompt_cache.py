"""The usage that the local API reports divides the prompt as the real prompt cache would."""

from typing import Any

import pytest

from fsm_agent.testing import MessagesServer, Repeat, Reply
from fsm_agent.testing.prompt import Prompt
from fsm_agent.testing.prompt_cache import LOOK_BACK, CacheUsage, PromptCache
from fsm_agent.testing.tokens import estimate_tokens
from tests.testing.calls import MODEL, client_of

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def words(tokens: int) -> str:
    return "x" * (4 * tokens)


def body_of(*turns: Any, **fields: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": turn} for at, turn in enumerate(turns)]
    return {"model": "m", "messages": messages, **fields}


def accounted(cache: PromptCache, body: dict[str, Any], minimum: int = 1024) -> CacheUsage:
    prompt = Prompt(body)
    usage = cache.account(body, prompt, minimum)
    assert usage.total == prompt.tokens
    return usage


def test_a_second_request_reads_what_the_first_wrote():
    cache = PromptCache(Clock())
    first = accounted(cache, body_of(words(2000), cache_control=MARK))
    assert (first.read_tokens, first.input_tokens) == (0, 0)
    assert first.written_5m > 2000
    second = accounted(cache, body_of(words(2000), "yes", words(500), cache_control=MARK))
    assert second.read_tokens == first.written_5m
    assert second.written_5m > 500
    assert second.input_tokens == 0


def test_without_a_mark_nothing_is_cached():
    cache = PromptCache(Clock())
    for _ in range(2):
        assert accounted(cache, body_of(words(2000))).input_tokens > 2000


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"system": "other"},
        {"tools": [{"name": "other"}]},
        {"messages": [{"role": "user", "content": words(2001)}]},
    ],
)
def test_a_change_anywhere_in_the_prefix_misses(change):
    body = body_of(words(2000), system="s", tools=[{"name": "t"}], cache_control=MARK)
    cache = PromptCache(Clock())
    accounted(cache, body)
    assert accounted(cache, body).read_tokens > 0
    assert accounted(cache, body | change).read_tokens == 0


def test_the_part_before_a_change_is_still_read_if_it_has_a_mark():
    cache = PromptCache(Clock())
    system = [{"type": "text", "text": words(2000), "cache_control": MARK}]
    first = accounted(cache, body_of("a", system=system))
    second = accounted(cache, body_of("b", system=system))
    assert second.read_tokens == first.written_5m > 2000
    assert second.input_tokens > 0


def test_a_prefix_below_the_minimum_is_silently_not_cached():
    cache = PromptCache(Clock())
    for _ in range(2):
        usage = accounted(cache, body_of(words(900), cache_control=MARK))
        assert (usage.read_tokens, usage.written_5m) == (0, 0)
        assert usage.input_tokens > 900


def test_a_prefix_lives_for_its_time_and_reading_renews_it():
    clock = Clock()
    cache = PromptCache(clock)
    body = body_of(words(2000), cache_control=MARK)
    accounted(cache, body)
    for later in (299.0, 598.0):
        clock.now = later
        assert accounted(cache, body).read_tokens > 0
    clock.now = 898.0
    assert accounted(cache, body).read_tokens == 0


def test_an_hour_is_an_hour_and_reported_apart():
    clock = Clock()
    cache = PromptCache(clock)
    system = [{"type": "text", "text": words(2000), "cache_control": HOUR}]
    body = body_of(words(1500), system=system, cache_control=MARK)
    first = accounted(cache, body)
    assert first.written_1h > 2000
    assert first.written_5m > 1500
    clock.now = 3599.0
    second = accounted(cache, body)
    assert second.read_tokens == first.written_1h
    assert second.written_5m == first.written_5m


@pytest.mark.parametrize(("blocks", "hit"), [(LOOK_BACK, True), (LOOK_BACK + 1, False)])
def test_the_search_looks_back_twenty_blocks(blocks, hit):
    cache = PromptCache(Clock())
    start = {"type": "text", "text": words(2000)}
    accounted(cache, body_of([{**start, "cache_control": MARK}]))
    more: list[dict[str, Any]] = [{"type": "text", "text": f"{at}"} for at in range(blocks)]
    more[-1] = {**more[-1], "cache_control": MARK}
    assert (accounted(cache, body_of([start, *more])).read_tokens > 0) is hit


def test_a_string_and_a_text_block_are_the_same_prompt_and_marks_do_not_count():
    cache = PromptCache(Clock())
    accounted(cache, body_of([{"type": "text", "text": words(2000), "cache_control": MARK}]))
    assert accounted(cache, body_of(words(2000), cache_control=MARK)).read_tokens > 0


async def test_usage_reports_the_cache_over_the_wire():
    question = [{"role": "user", "content": words(2000)}]
    async with MessagesServer([Repeat(Reply("a"), 2)]) as server, client_of(server) as client:
        request: Any = {"model": MODEL, "max_tokens": 9, "messages": question, "cache_control": MARK}
        first = (await client.messages.create(**request)).usage
        second = (await client.messages.create(**request)).usage
    assert first.cache_creation_input_tokens == second.cache_read_input_tokens
    assert first.cache_creation is not None
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens
    assert (first.input_tokens, first.cache_read_input_tokens, second.cache_creation_input_tokens) == (0, 0, 0)


def test_an_image_counts_the_same_whatever_its_size():
    def image(data: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    assert estimate_tokens(image("A" * 4)) == estimate_tokens(image("A" * 4_000_000))
