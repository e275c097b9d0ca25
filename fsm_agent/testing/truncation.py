"""What a model does to its own answer: it stops at `max_tokens`, and where the context window ends."""

from fsm_agent.testing.rules.settings import ApiSettings
from fsm_agent.testing.script import Reply
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.sse import compact_json
from fsm_agent.testing.tokens import estimate_tokens

__all__ = ["within_limits"]


def within_limits(reply: Reply, body: JsonObject, settings: ApiSettings, input_tokens: int) -> Reply:
    """The reply as a model with these limits can give it. A reply with a stop reason of its own is left alone.

    An answer that passes the end of the context window stops with `model_context_window_exceeded`; one that is longer
    than the request's `max_tokens` stops with `max_tokens` when `settings.enforce_max_tokens` says so.
    """
    if reply.stop is not None:
        return reply
    room = settings.window(str(body.get("model"))) - input_tokens
    asked = int(body.get("max_tokens", room)) if settings.enforce_max_tokens else room
    budget = min(asked, room)
    if sum(map(estimate_tokens, reply.blocks)) <= budget:
        return reply
    stop = "max_tokens" if settings.enforce_max_tokens and asked <= room else "model_context_window_exceeded"
    blocks = _cut(reply.blocks, budget, settings.characters_per_token)
    usage = {"output_tokens": budget} | reply.usage.given()
    return Reply(*blocks, stop=stop, usage=usage, model=reply.model, fault=reply.fault, extra=reply.extra)


def _cut(blocks: tuple[JsonObject, ...], budget: int, characters_per_token: float) -> list[JsonObject]:
    """The blocks up to the budget, the last one cut: a tool call in the middle of its JSON."""
    kept: list[JsonObject] = []
    for block in blocks:
        tokens = estimate_tokens(block)
        if tokens > budget:
            cut = _cut_block(block, int(max(0, budget) * characters_per_token))
            return kept if cut is None else [*kept, cut]
        kept.append(block)
        budget -= tokens
    return kept


def _cut_block(block: JsonObject, characters: int) -> JsonObject | None:
    if block["type"] == "text":
        return {**block, "text": block["text"][:characters]} if characters else None
    if block["type"] == "tool_use":
        written = compact_json(block["input"])
        return {**block, "input": written[: min(characters, len(written) - 1)]}
    return None
