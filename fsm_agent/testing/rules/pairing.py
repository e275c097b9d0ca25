"""Rules on calls and their results, counted in merged turns (R130 to R135)."""

from collections.abc import Iterator

from fsm_agent.testing.rules.blocks import SERVER_RESULTS, SERVER_USES
from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request, Turn
from fsm_agent.testing.shapes import JsonObject

Refusals = Iterator[ApiRefusal]


def check_tool_ids(request: Request) -> Refusals:
    """R130: within one assistant turn, or within the history when the settings say so."""
    seen: set[str] = set()
    for at, turn in enumerate(request.turns):
        if turn.role == "assistant":
            if request.settings.unique_ids == "turn":
                seen = set()
            for position, block in _of_type(turn, "tool_use"):
                if block["id"] in seen:
                    yield refuse("R130", f"messages.{at}.content.{position}: `tool_use` ids must be unique")
                seen.add(block["id"])


def check_tool_results(request: Request) -> Refusals:
    """R131, R132, R134: each call is answered at the start of the next turn, once, and nothing else is answered."""
    turns = request.turns
    for at, turn in enumerate(turns):
        if turn.role == "assistant":
            yield from _answered(at, turn, turns[at + 1] if at + 1 < len(turns) else None)
        elif turn.role == "user":
            yield from _expected(at, turn, turns[at - 1] if at > 0 else None)


def _answered(at: int, turn: Turn, following: Turn | None) -> Refusals:
    answered: set[str] = set()
    for block in following.blocks if following is not None and following.role == "user" else []:
        if block["type"] != "tool_result":
            break
        answered.add(block["tool_use_id"])
    open_ids = [block["id"] for _, block in _of_type(turn, "tool_use") if block["id"] not in answered]
    if open_ids:
        yield refuse(
            "R134",
            f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after:"
            f" {', '.join(open_ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next"
            " message.",
        )


def _expected(at: int, turn: Turn, before: Turn | None) -> Refusals:
    asked = before is not None and before.role == "assistant"
    calls = {block["id"] for _, block in _of_type(before, "tool_use")} if before is not None and asked else set[str]()
    seen: set[str] = set()
    for position, block in _of_type(turn, "tool_result"):
        path, identifier = f"messages.{at}.content.{position}", block["tool_use_id"]
        if identifier not in calls:
            yield refuse("R131", f"{path}: {_unexpected('tool_result', identifier)}")
        elif identifier in seen:
            text = "each tool_use must have a single result. Found multiple `tool_result` blocks with id:"
            yield refuse("R132", f"{path}: {text} {identifier}")
        seen.add(identifier)


def _unexpected(kind: str, identifier: str) -> str:
    start = f"unexpected `tool_use_id` found in `{kind}` blocks: {identifier}. Each `{kind}` block must have a"
    if kind == "tool_result":
        return f"{start} corresponding `tool_use` block in the previous message."
    return f"{start} corresponding `{SERVER_RESULTS[kind]}` block before it."


def check_server_tools(request: Request) -> Refusals:
    """R133, R135: a server's result follows its call; a call has its result unless its turn is still going on.

    A call of an MCP server may stay open (recorded), and so may one whose turn waits for a client tool.
    """
    open_calls: dict[str, tuple[int, JsonObject]] = {}
    last = request.last_assistant()
    used: set[str] = set()
    for at, turn in enumerate(request.turns):
        for position, block in enumerate(turn.blocks if turn.role == "assistant" else []):
            kind = block["type"]
            if kind in SERVER_USES:
                used.add(block["id"])
                open_calls[block["id"]] = (at, block)
            elif kind in SERVER_RESULTS:
                if block["tool_use_id"] not in used:
                    text = _unexpected(kind, block["tool_use_id"])
                    yield refuse("R133", f"messages.{at}.content.{position}: {text}")
                open_calls.pop(block["tool_use_id"], None)
    for at, block in open_calls.values():
        if block["type"] == "server_tool_use" and at != last and not _calls_client_tool(request.turns[at]):
            name, identifier = block["name"], block["id"]
            text = f"`{name}` tool use with id `{identifier}` was found without a corresponding"
            yield refuse("R135", f"messages.{at}: {text} `{name}_tool_result` block")


def _calls_client_tool(turn: Turn) -> bool:
    return any(True for _ in _of_type(turn, "tool_use"))


def _of_type(turn: Turn | None, kind: str) -> list[tuple[int, JsonObject]]:
    blocks = [] if turn is None else turn.blocks
    return [(position, block) for position, block in enumerate(blocks) if block["type"] == kind]
