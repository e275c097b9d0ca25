"""The content blocks that a request may hold, as data: their required and their optional fields.

Read from the request types of the Anthropic SDK 2.14 (`anthropic.types`, `anthropic.types.beta`). For results of server
tools the inner form is not checked.
"""

from dataclasses import dataclass

__all__ = ["BLOCKS", "RESULT_CONTENT", "SERVER_RESULTS", "SERVER_USES", "BlockShape", "expected_tags"]


@dataclass(frozen=True, slots=True)
class BlockShape:
    """Which fields a block type has, beside `type`."""

    required: tuple[str, ...]
    optional: frozenset[str] = frozenset()
    open: bool = False
    """Further fields are not refused."""
    roles: tuple[str, ...] = ("user", "assistant")


def _shape(required: str, optional: str = "", *, roles: str = "user assistant", further: bool = False) -> BlockShape:
    return BlockShape(tuple(required.split()), frozenset(optional.split()), further, tuple(roles.split()))


_SERVER_RESULT = _shape("tool_use_id content", "cache_control caller", roles="assistant", further=True)

SERVER_USES: frozenset[str] = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls that the API itself answers."""

SERVER_RESULTS: dict[str, str] = {
    "advisor_tool_result": "server_tool_use",
    "bash_code_execution_tool_result": "server_tool_use",
    "code_execution_tool_result": "server_tool_use",
    "mcp_tool_result": "mcp_tool_use",
    "text_editor_code_execution_tool_result": "server_tool_use",
    "tool_search_tool_result": "server_tool_use",
    "web_fetch_tool_result": "server_tool_use",
    "web_search_tool_result": "server_tool_use",
}
"""Result blocks of server tools, and the call that each needs before it."""

BLOCKS: dict[str, BlockShape] = {
    "text": _shape("text", "cache_control citations", roles="user assistant system"),
    "image": _shape("source", "cache_control transformations"),
    "document": _shape("source", "cache_control citations context title"),
    "search_result": _shape("content source title", "cache_control citations"),
    "thinking": _shape("thinking signature", roles="assistant"),
    "redacted_thinking": _shape("data", roles="assistant"),
    "tool_use": _shape("id name input", "cache_control caller toolset_name", roles="assistant"),
    "tool_result": _shape("tool_use_id", "cache_control content is_error toolset_name", roles="user"),
    "server_tool_use": _shape("id name input", "cache_control caller", roles="assistant"),
    "mcp_tool_use": _shape("id name input server_name", "cache_control", roles="assistant"),
    "container_upload": _shape("file_id", "cache_control"),
    "compaction": _shape("", "cache_control content encrypted_content signature tool_changes", further=True),
    "fallback": _shape("to", "trigger from", roles="assistant", further=True),
    "mcp_tool_listing": _shape("", further=True),
    "tool_addition": _shape("tool", "cache_control", roles="system user"),
    "tool_removal": _shape("tool", "cache_control", roles="system user"),
    **dict.fromkeys(SERVER_RESULTS, _SERVER_RESULT),
    "mcp_tool_result": _shape("tool_use_id", "cache_control content is_error", roles="assistant", further=True),
}

RESULT_CONTENT: frozenset[str] = frozenset(
    {"text", "image", "document", "search_result", "tool_reference", "browser_state"}
)
"""Block types inside a tool result."""


def expected_tags(tags: frozenset[str] | dict[str, BlockShape]) -> str:
    """The tags as an error lists them.

    >>> expected_tags(frozenset({"b", "a"}))
    "'a', 'b'"
    """
    return ", ".join(f"'{tag}'" for tag in sorted(tags))
