"""Rules on the order of the conversation, counted in merged turns (R110 to R116, R140, R141, R173).

Roles need not alternate and the first turn may be the assistant's: consecutive messages of one role are merged
(recorded).
"""

from collections.abc import Iterator

from fsm_agent.testing.rules.blocks import BLOCKS
from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request, Turn
from fsm_agent.testing.shapes import JsonObject, as_object, is_list, objects

Refusals = Iterator[ApiRefusal]


def check_system_turns(request: Request) -> Refusals:
    """R110 to R112."""
    turns = request.turns
    systems = [at for at, turn in enumerate(turns) if turn.role == "system"]
    if systems and not request.profile.takes_system_turns:
        yield refuse("R110", "role 'system' is not supported on this model")
    for at in systems:
        if not turns[at].directive_only:
            yield from _system_content(at, turns[at])
            yield from _system_place(at, turns)


def _system_content(at: int, turn: Turn) -> Refusals:
    if not turn.blocks:
        yield refuse("R111", f"messages.{at}: system content must contain at least one block")
    for block in turn.blocks:
        if block.get("type") not in ("text", "tool_addition", "tool_removal"):
            text = "system content supports text, tool_addition, and tool_removal blocks only"
            yield refuse("R111", f"messages.{at}: {text}")
        if block.get("type") == "text" and not str(block.get("text")).strip():
            yield refuse("R111", f"messages.{at}: system text blocks must contain non-whitespace text")


def _system_place(at: int, turns: list[Turn]) -> Refusals:
    if at == 0:
        text = (
            "use the top-level 'system' parameter for the initial system prompt; the directive-only form"
            " (content: [] with output_config) is accepted at any position"
        )
        yield refuse("R112", f"messages.0: {text}")
        return
    before = next((turn for turn in reversed(turns[:at]) if turn.role != "system"), None)
    after = next((turn for turn in turns[at + 1 :] if turn.role != "system"), None)
    if after is not None and after.role != "assistant":
        yield refuse("R112", f"messages.{at}: role 'system' must precede an 'assistant' message or end the array")
    if before is not None and before.role == "assistant" and not _ends_in_server_result(before):
        text = "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result"
        yield refuse("R112", f"messages.{at}: {text}")


def _ends_in_server_result(turn: Turn) -> bool:
    return bool(turn.blocks) and str(turn.blocks[-1].get("type")).endswith("_tool_result")


def check_empty_content(request: Request) -> Refusals:
    """R113, R173, R114, R115."""
    for at, turn in enumerate(request.turns):
        if turn.role == "user" and not turn.blocks:
            yield refuse("R113", f"messages.{at}: user messages must have non-empty content")
    for path, block in request.sent:
        if block.get("text") == "" and as_object(block.get("cache_control")) is not None:
            yield refuse("R173", f"{path}.text: cache_control cannot be set for empty text blocks")
    if any(block.get("type") == "text" and block.get("text") == "" for _, block in request.sent):
        yield refuse("R114", "messages: text content blocks must be non-empty")
    for turn in request.turns:
        if turn.role != "system" and turn.blocks and all(map(_is_blank, turn.blocks)):
            yield refuse("R115", "messages: text content blocks must contain non-whitespace text")


def _is_blank(block: JsonObject) -> bool:
    return block.get("type") == "text" and not str(block.get("text")).strip()


def check_roles_of_blocks(request: Request) -> Refusals:
    """R116."""
    for at, turn in enumerate(request.turns):
        if turn.role != "system":
            for block in turn.blocks:
                roles = BLOCKS[block["type"]].roles
                if turn.role not in roles:
                    yield refuse(
                        "R116", f"messages.{at}: `{block['type']}` blocks can only be in `{roles[0]}` messages"
                    )


def check_final_assistant_turn(request: Request) -> Refusals:
    """R140, R141. A paused turn, which ends in a call of a server tool, is resent as it is and is no prefill."""
    last = request.turns[-1]
    if last.role != "assistant" or not last.blocks or _is_paused(last):
        return
    if not request.profile.takes_prefill and "fallback_credit_token" not in request.body:
        text = "This model does not support assistant message prefill. The conversation must end with a user message."
        yield refuse("R140", text)
    final = last.blocks[-1]
    if final.get("type") == "text" and final["text"] != final["text"].rstrip():
        yield refuse("R141", "messages: final assistant content cannot end with trailing whitespace")


def _is_paused(turn: Turn) -> bool:
    kind = str(turn.blocks[-1].get("type"))
    return kind in ("server_tool_use", "mcp_tool_use", "compaction") or kind.endswith("_tool_result")


def has_no_messages(request: Request) -> bool:
    """Whether the request lacks messages altogether (the shape rules have said so)."""
    messages = request.body.get("messages")
    return not is_list(messages) or not objects(messages)
