"""Rules on `thinking` and on thinking blocks that come back (R030 to R037, R142 to R148)."""

from collections.abc import Iterator

from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request, Turn
from fsm_agent.testing.shapes import JsonObject, is_object

Refusals = Iterator[ApiRefusal]

THINKING_KEYS: dict[str, frozenset[str]] = {
    "adaptive": frozenset({"type", "display"}),
    "between_tools": frozenset({"type"}),
    "disabled": frozenset({"type"}),
    "enabled": frozenset({"type", "budget_tokens", "display"}),
}
MINIMUM_BUDGET = 1024
_GUIDE = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
_BLOCKS = ("thinking", "redacted_thinking")


def check_thinking(request: Request) -> Refusals:
    """R030 to R032: the shape."""
    if "thinking" not in request.body:
        return
    thinking = request.body["thinking"]
    if not is_object(thinking):
        yield refuse("R030", "thinking: Input should be a valid dictionary or object to extract fields from")
        return
    kind = thinking.get("type")
    if kind is None:
        yield refuse("R030", "thinking.type: Field required")
    elif kind not in THINKING_KEYS:
        tags = ", ".join(f"'{tag}'" for tag in sorted(THINKING_KEYS))
        text = f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        yield refuse("R030", f"thinking: {text}")
    else:
        for key in thinking:
            if key not in THINKING_KEYS[kind]:
                yield refuse("R031", f"thinking.{kind}.{key}: Extra inputs are not permitted")
        if kind == "enabled":
            yield from _budget(thinking)


def _budget(thinking: JsonObject) -> Refusals:
    path = "thinking.enabled.budget_tokens"
    budget = thinking.get("budget_tokens")
    if "budget_tokens" not in thinking:
        yield refuse("R032", f"{path}: Field required")
    elif not isinstance(budget, int) or isinstance(budget, bool):
        yield refuse("R032", f"{path}: Input should be a valid integer")
    elif budget < MINIMUM_BUDGET:
        yield refuse("R032", f"{path}: Input should be greater than or equal to {MINIMUM_BUDGET}")


def check_thinking_fits(request: Request) -> Refusals:
    """R033 to R037: thinking with this model and beside the other fields."""
    kind = request.thinking_type
    if kind == "enabled" and not request.profile.takes_thinking_budget:
        text = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        yield refuse("R033", f'"thinking.type.enabled" is not supported for this model. {text}')
    if kind == "adaptive" and not request.profile.takes_adaptive_thinking:
        yield refuse("R034", "adaptive thinking is not supported on this model")
    if kind == "enabled":
        yield from _budget_fits(request)
    if kind == "enabled" and request.forced_tool_choice is not None:
        yield refuse("R036", "Thinking may not be enabled when tool_choice forces tool use.")
    if kind in ("enabled", "adaptive") and request.body.get("temperature", 1) != 1:
        mode = "enabled" if kind == "enabled" else "enabled or in adaptive mode"
        page = f"{_GUIDE}#important-considerations-when-using-extended-thinking"
        text = f"`temperature` may only be set to 1 when thinking is {mode}."
        yield refuse("R037", f"{text} Please consult our documentation at {page}")


def _budget_fits(request: Request) -> Refusals:
    interleaved = any(beta.startswith("interleaved-thinking") for beta in request.betas)
    fits = request.body["thinking"]["budget_tokens"] < request.body.get("max_tokens", float("inf"))
    if not fits and not interleaved:
        page = f"{_GUIDE}#max-tokens-and-context-window-size"
        text = "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at"
        yield refuse("R035", f"{text} {page}")


def check_thinking_blocks(request: Request) -> Refusals:
    """R144, R146 to R148: where thinking blocks may and must stand."""
    turns = request.turns
    for at, turn in enumerate(turns):
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1]["type"] in _BLOCKS:
            yield refuse("R144", f"messages.{at}: The final block in an assistant message cannot be `thinking`.")
    if request.thinking_type == "enabled":
        yield from _starts_with_thinking(turns)
        yield from _thinking_first(turns)
    if request.thinking_type == "disabled" and turns[-1].role == "assistant":
        yield from _no_thinking_at_end(len(turns) - 1, turns[-1])


def _starts_with_thinking(turns: list[Turn]) -> Refusals:
    """R146. The tool loop that is going on is one turn of the model: its first message must begin with thinking."""
    at = _start_of_loop(turns)
    if at is None or not turns[at].blocks or turns[at].blocks[0]["type"] in _BLOCKS:
        return
    yield refuse(
        "R146",
        f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
        f" `{turns[at].blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start with a"
        " thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include"
        " thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our"
        f" documentation at {_GUIDE}",
    )


def _start_of_loop(turns: list[Turn]) -> int | None:
    start = None
    for at in reversed(range(len(turns))):
        turn = turns[at]
        if turn.role == "assistant":
            start = at
        elif not any(block["type"] == "tool_result" for block in turn.blocks):
            break
    return start


def _thinking_first(turns: list[Turn]) -> Refusals:
    """R147."""
    for at, turn in enumerate(turns):
        kinds = [block["type"] for block in turn.blocks] if turn.role == "assistant" else []
        if any(kind in _BLOCKS for kind in kinds) and kinds[0] not in _BLOCKS:
            text = "If an assistant message contains any thinking blocks, the first block must be `thinking` or"
            yield refuse("R147", f"messages.{at}.content.0: {text} `redacted_thinking`. Found `{kinds[0]}`.")


def _no_thinking_at_end(at: int, turn: Turn) -> Refusals:
    """R148."""
    for position, block in enumerate(turn.blocks):
        if block["type"] in _BLOCKS:
            text = "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`."
            how = "To use thinking blocks, enable `thinking` in your request."
            yield refuse("R148", f"messages.{at}.content.{position}.type: {text} {how}")


def check_signatures(request: Request) -> Refusals:
    """R142, R143: thinking comes back as it was issued, to the model that wrote it."""
    book = request.signatures
    if book is None or not request.settings.check_signatures:
        return
    last = request.last_assistant()
    for at, turn in enumerate(request.turns):
        for position, block in enumerate(turn.blocks if turn.role == "assistant" else []):
            path = f"messages.{at}.content.{position}"
            if block["type"] == "thinking":
                verdict = book.judge(block["signature"], request.model, block["thinking"])
                if verdict == "edited" and at == last:
                    yield _modified(path)
                elif verdict != "genuine":
                    yield refuse("R142", f"{path}: Invalid `signature` in `thinking` block")
            elif block["type"] == "redacted_thinking" and not book.knows_redacted(block["data"], request.model):
                yield refuse("R142", f"{path}: Invalid `data` in `redacted_thinking` block")
    if last is not None and request.thinking_type != "disabled":
        yield from _dropped(request, last)


def _modified(path: str) -> ApiRefusal:
    text = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    return refuse("R143", f"{path}: {text} These blocks must remain as they were in the original response.")


def _dropped(request: Request, at: int) -> Refusals:
    """R143: the latest assistant turn lacks thinking that came before one of its calls."""
    blocks = request.turns[at].blocks
    for position, block in enumerate(blocks):
        issued = _thinking_before(request, block)
        if any(thought not in blocks for thought in issued):
            yield _modified(f"messages.{at}.content.{position}")
            return


def _thinking_before(request: Request, block: JsonObject) -> list[JsonObject]:
    if request.signatures is None or block["type"] != "tool_use":
        return []
    return request.signatures.thinking_before(block["id"], request.model)
