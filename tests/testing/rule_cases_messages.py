"""Cases of the rules on the form and the order of messages, and on calls and their results."""

from fsm_agent.testing.rules import ApiSettings
from fsm_agent.testing.rules.blocks import BLOCKS, expected_tags
from tests.testing.rule_cases import (
    DROPPED,
    MODEL,
    OLD_MODEL,
    USER,
    accepted,
    assistant,
    call,
    refused,
    result,
    said,
    user,
)

EXTRA = "Extra inputs are not permitted"
SYSTEM = {"role": "system", "content": [said("be brief")]}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


def unexpected(path: str, identifier: str) -> str:
    return (
        f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {identifier}. Each `tool_result` block must"
        " have a corresponding `tool_use` block in the previous message."
    )


def unanswered(at: int, *identifiers: str) -> str:
    return (
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after:"
        f" {', '.join(identifiers)}. Each `tool_use` block must have a corresponding `tool_result` block in the next"
        " message."
    )


SHAPE = [
    refused("R011", "messages missing", "messages: Field required", messages=DROPPED),
    refused("R011", "messages an object", "messages: Input should be a valid array", messages={}),
    accepted("R011", "messages a list"),
    refused("R012", "no message", "messages: at least one message is required", messages=[]),
    accepted("R012", "one message", messages=[USER]),
    refused(
        "R013",
        "too many messages",
        "messages: at most 2 messages are allowed, found 3",
        messages=[USER] * 3,
        settings=ApiSettings(max_messages=2),
    ),
    accepted("R013", "as many as allowed", messages=[USER] * 2, settings=ApiSettings(max_messages=2)),
    refused("R100", "message a string", "messages.0: Input does not match the expected shape.", messages=["hi"]),
    refused("R100", "no role", "messages.0.role: Field required", messages=[{"content": "hi"}]),
    refused("R100", "no content", "messages.1.content: Field required", messages=[USER, {"role": "user"}]),
    accepted("R100", "consecutive messages of one role", messages=[USER, USER]),
    accepted("R100", "the assistant begins", messages=[assistant(said("hello")), USER]),
    refused(
        "R101",
        "role tool",
        'messages: Unexpected role "tool". Allowed roles are "user" or "assistant"',
        messages=[{"role": "tool", "content": "x"}],
    ),
    accepted("R101", "role user", messages=[USER]),
    refused("R102", "extra key", f"messages.0.id: {EXTRA}", messages=[{**USER, "id": "m1"}]),
    accepted("R102", "role and content", messages=[USER]),
    refused(
        "R104",
        "unknown block",
        "messages.0.content.0: Input tag 'x' found using 'type' does not match any of the expected tags: "
        + expected_tags(BLOCKS),
        messages=[user({"type": "x"})],
    ),
    accepted("R104", "known blocks", messages=[user(said("look"), IMAGE)]),
    refused(
        "R105",
        "field missing",
        "messages.0.content.0.tool_result.tool_use_id: Field required",
        messages=[user({"type": "tool_result", "content": "x"})],
    ),
    refused(
        "R105",
        "thinking without signature",
        "messages.1.content.0.thinking.signature: Field required",
        messages=[USER, assistant({"type": "thinking", "thinking": "hm"}, said("a")), USER],
    ),
    accepted("R105", "fields given", messages=[USER, assistant(call("t1")), user(result("t1"))]),
    refused(
        "R106",
        "index left in a block",
        f"messages.1.content.0.tool_use.index: {EXTRA}",
        messages=[USER, assistant(call("t1", index=0)), user(result("t1"))],
    ),
    refused(
        "R106",
        "cache_control on thinking",
        f"messages.1.content.0.thinking.cache_control: {EXTRA}",
        messages=[
            USER,
            assistant(
                {"type": "thinking", "thinking": "a", "signature": "s", "cache_control": {"type": "ephemeral"}},
                said("a"),
            ),
            USER,
        ],
    ),
    accepted("R106", "citations null is accepted when resent", messages=[user(said("x", citations=None))]),
    refused(
        "R120",
        "id with a dot",
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        messages=[USER, assistant(call("a.b")), user(result("a.b"))],
    ),
    refused(
        "R120",
        "id of a server tool",
        "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
        messages=[USER, assistant({**SEARCH, "id": "toolu_1"}), USER],
    ),
    accepted("R120", "id as issued", messages=[USER, assistant(call("toolu_01A-b")), user(result("toolu_01A-b"))]),
    refused(
        "R121",
        "long name",
        "messages.1.content.0.tool_use.name: String should have at most 200 characters",
        messages=[USER, assistant(call("a", "n" * 201)), user(result("a"))],
    ),
    accepted("R121", "name of 200", messages=[USER, assistant(call("a", "n" * 200)), user(result("a"))]),
    refused(
        "R122",
        "input a string",
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        messages=[USER, assistant({**call("a"), "input": "{}"}), user(result("a"))],
    ),
    accepted("R122", "input an object", messages=[USER, assistant(call("a")), user(result("a"))]),
    accepted(
        "R123",
        "result without content",
        messages=[
            USER,
            assistant(call("a"), call("b"), call("c")),
            user({"type": "tool_result", "tool_use_id": "a"}, result("b", ""), result("c", [])),
        ],
    ),
    refused(
        "R105",
        "content a number",
        "messages.2.content.0.tool_result.content: Input should be a valid array",
        messages=[USER, assistant(call("a")), user(result("a", 3))],
    ),
    refused(
        "R124",
        "error with an image",
        "messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true",
        messages=[USER, assistant(call("a")), user(result("a", [said("no"), IMAGE], is_error=True))],
    ),
    accepted(
        "R124",
        "image without error",
        messages=[USER, assistant(call("a")), user(result("a", [said("see"), IMAGE], is_error=False))],
    ),
    refused(
        "R125",
        "caller null",
        "messages.1.content.0.tool_use.caller: Input does not match the expected shape.",
        messages=[USER, assistant(call("a", caller=None)), user(result("a"))],
    ),
    accepted(
        "R125", "caller direct", messages=[USER, assistant(call("a", caller={"type": "direct"})), user(result("a"))]
    ),
]

ORDER = [
    refused(
        "R110",
        "system turn on an old model",
        "role 'system' is not supported on this model",
        model="claude-opus-4-7",
        messages=[USER, SYSTEM],
    ),
    accepted("R110", "system turn on a new model", model="claude-opus-4-8", messages=[USER, SYSTEM]),
    refused(
        "R111",
        "system turn without content",
        "messages.1: system content must contain at least one block",
        messages=[USER, {"role": "system", "content": []}],
    ),
    refused(
        "R111",
        "blank system turn",
        "messages.1: system text blocks must contain non-whitespace text",
        messages=[USER, {"role": "system", "content": " "}],
    ),
    refused(
        "R111",
        "image in a system turn",
        "messages.1: system content supports text, tool_addition, and tool_removal blocks only",
        messages=[USER, {"role": "system", "content": [IMAGE]}],
    ),
    accepted("R111", "system turn with text", messages=[USER, SYSTEM]),
    accepted(
        "R111",
        "directive only",
        messages=[{"role": "system", "content": [], "output_config": {"effort": "low"}}, USER],
    ),
    refused(
        "R112",
        "system turn first",
        "messages.0: use the top-level 'system' parameter for the initial system prompt; the directive-only form"
        " (content: [] with output_config) is accepted at any position",
        messages=[SYSTEM, USER],
    ),
    refused(
        "R112",
        "system turn before a user turn",
        "messages.1: role 'system' must precede an 'assistant' message or end the array",
        messages=[USER, SYSTEM, USER],
    ),
    refused(
        "R112",
        "system turn behind an assistant turn",
        "messages.2: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool"
        " result",
        messages=[USER, assistant(said("a")), SYSTEM],
    ),
    accepted("R112", "system turn behind a user turn", messages=[USER, SYSTEM, assistant(said("a")), USER]),
    refused(
        "R113",
        "empty user turn",
        "messages.2: user messages must have non-empty content",
        messages=[USER, assistant(said("a")), {"role": "user", "content": ""}],
    ),
    accepted("R113", "empty message beside another of its turn", messages=[USER, {"role": "user", "content": ""}]),
    refused(
        "R114",
        "empty text",
        "messages: text content blocks must be non-empty",
        messages=[user(said("hi"), said(""))],
    ),
    accepted("R114", "text", messages=[user(said("hi"))]),
    refused(
        "R115",
        "blank turn",
        "messages: text content blocks must contain non-whitespace text",
        messages=[USER, assistant(said(" \n")), USER],
    ),
    accepted(
        "R115",
        "blank text beside other blocks",
        messages=[USER, assistant(said(" "), call("a")), user(result("a"))],
    ),
    refused(
        "R116",
        "result in an assistant turn",
        "messages.1: `tool_result` blocks can only be in `user` messages",
        messages=[USER, assistant(result("a")), USER],
    ),
    refused(
        "R116",
        "call in a user turn",
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
        messages=[user(call("a"))],
    ),
    accepted("R116", "each in its turn", messages=[USER, assistant(call("a")), user(result("a"))]),
    refused(
        "R140",
        "prefill on a new model",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        messages=[USER, assistant(said("The answer is"))],
    ),
    accepted("R140", "prefill on an old model", model=OLD_MODEL, messages=[USER, assistant(said("The answer is"))]),
    accepted("R140", "a paused turn is resent as it is", messages=[USER, assistant(said("wait"), SEARCH)]),
    refused(
        "R141",
        "prefill ends in a space",
        "messages: final assistant content cannot end with trailing whitespace",
        model=OLD_MODEL,
        messages=[USER, assistant(said("The answer is "))],
    ),
    accepted("R141", "earlier turn ends in a space", messages=[USER, assistant(said("Well ")), USER]),
]

PAIRING = [
    refused(
        "R130",
        "one id twice in a turn",
        "messages.1.content.1: `tool_use` ids must be unique",
        messages=[USER, assistant(call("a"), call("a")), user(result("a"))],
    ),
    refused(
        "R130",
        "one id in two turns, strict reading",
        "messages.3.content.0: `tool_use` ids must be unique",
        messages=[USER, assistant(call("a")), user(result("a")), assistant(call("a")), user(result("a"))],
        settings=ApiSettings(unique_ids="history"),
    ),
    accepted(
        "R130",
        "one id in two turns",
        messages=[USER, assistant(call("a")), user(result("a")), assistant(call("a")), user(result("a"))],
    ),
    refused("R131", "result without call", unexpected("messages.0.content.0", "a"), messages=[user(result("a"))]),
    refused(
        "R131",
        "result of an older call",
        unexpected("messages.4.content.0", "a"),
        messages=[USER, assistant(call("a")), user(result("a")), assistant(said("done")), user(result("a"))],
    ),
    refused(
        "R131",
        "turns are counted after merging",
        unexpected("messages.2.content.1", "b"),
        messages=[USER, USER, assistant(call("a")), user(result("a")), user(result("b"))],
    ),
    accepted("R131", "result of the call before", messages=[USER, assistant(call("a")), user(result("a"))]),
    refused(
        "R132",
        "two results for a call",
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
        messages=[USER, assistant(call("a")), user(result("a"), result("a"))],
    ),
    accepted("R132", "one each", messages=[USER, assistant(call("a"), call("b")), user(result("b"), result("a"))]),
    refused(
        "R133",
        "server result without call",
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1. Each"
        " `web_search_tool_result` block must have a corresponding `server_tool_use` block before it.",
        messages=[USER, assistant(FOUND, said("a")), USER],
    ),
    accepted("R133", "server result behind its call", messages=[USER, assistant(SEARCH, FOUND, said("a")), USER]),
    refused(
        "R134", "calls without results", unanswered(1, "a", "b"), messages=[USER, assistant(call("a"), call("b")), USER]
    ),
    refused(
        "R134",
        "text before the result",
        unanswered(1, "a"),
        messages=[USER, assistant(call("a")), user(said("here:"), result("a"))],
    ),
    refused("R134", "call as the last message", unanswered(1, "a"), messages=[USER, assistant(call("a"))]),
    refused(
        "R134",
        "one of two missing",
        unanswered(1, "b"),
        messages=[USER, assistant(call("a"), call("b")), user(result("a"), said("and?"))],
    ),
    accepted("R134", "text behind the result", messages=[USER, assistant(call("a")), user(result("a"), said("so"))]),
    accepted(
        "R134",
        "results over two messages",
        messages=[USER, assistant(call("a"), call("b")), user(result("a")), user(result("b"))],
    ),
    refused(
        "R135",
        "server call without result",
        "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding"
        " `web_search_tool_result` block",
        messages=[USER, assistant(SEARCH, said("a")), USER, assistant(said("b")), USER],
    ),
    accepted("R135", "server call in the turn that goes on", model=MODEL, messages=[USER, assistant(SEARCH)]),
]

CASES = [*SHAPE, *ORDER, *PAIRING]
