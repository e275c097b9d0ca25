"""Rules on `tools` and `tool_choice` (R070 to R083)."""

import re
from collections.abc import Iterator
from typing import Any

from fsm_agent.testing.rules.blocks import expected_tags
from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request
from fsm_agent.testing.shapes import JsonObject, as_object, is_list, is_object, objects

Refusals = Iterator[ApiRefusal]

TOOL_TYPES = frozenset(
    [
        "advisor_20260301",
        "bash_20241022",
        "bash_20250124",
        "browser_toolset_20260801",
        "code_execution_20250522",
        "code_execution_20250825",
        "code_execution_20260120",
        "code_execution_20260521",
        "computer_20241022",
        "computer_20250124",
        "computer_20251124",
        "computer_toolset_20260801",
        "custom",
        "mcp_toolset",
        "memory_20250818",
        "text_editor_20241022",
        "text_editor_20250124",
        "text_editor_20250429",
        "text_editor_20250728",
        "tool_search_tool_bm25",
        "tool_search_tool_bm25_20251119",
        "tool_search_tool_regex",
        "tool_search_tool_regex_20251119",
        "web_fetch_20250910",
        "web_fetch_20260209",
        "web_fetch_20260309",
        "web_fetch_20260318",
        "web_search_20250305",
        "web_search_20260209",
        "web_search_20260318",
    ]
)
CUSTOM_KEYS = frozenset(
    [
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "description",
        "eager_input_streaming",
        "input_examples",
        "input_schema",
        "name",
        "strict",
        "type",
    ]
)
CHOICES = ("auto", "any", "tool", "none")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

MAX_STRICT_TOOLS = 20
MAX_OPTIONAL_PARAMETERS = 24
MAX_UNION_PARAMETERS = 16


def check_tool_choice(request: Request) -> Refusals:
    """R080."""
    if "tool_choice" not in request.body:
        return
    choice = request.body["tool_choice"]
    if not is_object(choice):
        yield refuse("R080", "tool_choice: Input should be a valid dictionary or object to extract fields from")
    elif "type" not in choice:
        yield refuse("R080", "tool_choice.type: Field required")
    elif choice["type"] not in CHOICES:
        tags = ", ".join(f"'{tag}'" for tag in CHOICES)
        text = f"Input tag '{choice['type']}' found using 'type' does not match any of the expected tags: {tags}"
        yield refuse("R080", f"tool_choice: {text}")
    elif choice["type"] == "tool" and not isinstance(choice.get("name"), str):
        yield refuse("R080", "tool_choice.tool.name: Field required")


def check_tools(request: Request) -> Refusals:
    """R070 to R077."""
    tools = request.body.get("tools", [])
    if not is_list(tools):
        yield refuse("R070", "tools: Input should be a valid array")
        return
    for at, tool in enumerate(tools):
        yield from _tool(f"tools.{at}", tool)
    names = [tool["name"] for tool in objects(tools) if isinstance(tool.get("name"), str)]
    if len(names) != len(set(names)):
        yield refuse("R076", "tools: Tool names must be unique.")


def _tool(path: str, tool: object) -> Refusals:
    if not is_object(tool):
        yield refuse("R070", f"{path}: Input should be a valid dictionary or object to extract fields from")
        return
    kind = "custom" if tool.get("type") is None else tool["type"]
    if kind not in TOOL_TYPES:
        text = f"Input tag '{kind}' found using 'type' does not match any of the expected tags: "
        yield refuse("R071", f"{path}: {text}{expected_tags(TOOL_TYPES)}")
    elif kind == "custom":
        yield from _name(f"{path}.custom", tool)
        yield from _schema(f"{path}.custom", tool)
        for key in tool:
            if key not in CUSTOM_KEYS:
                yield refuse("R075", f"{path}.custom.{key}: Extra inputs are not permitted")


def _name(path: str, tool: JsonObject) -> Refusals:
    """R072, R073."""
    name = tool.get("name")
    if "name" not in tool:
        yield refuse("R072", f"{path}.name: Field required")
    elif not isinstance(name, str):
        yield refuse("R072", f"{path}.name: Input should be a valid string")
    elif len(name) > 128:
        yield refuse("R073", f"{path}.name: String should have at most 128 characters")
    elif not _NAME.fullmatch(name):
        yield refuse("R073", f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")


def _schema(path: str, tool: JsonObject) -> Refusals:
    """R072, R074, R077."""
    schema = tool.get("input_schema")
    if "input_schema" not in tool:
        yield refuse("R072", f"{path}.input_schema: Field required")
    elif not is_object(schema):
        yield refuse("R074", f"{path}.input_schema: Input should be a valid dictionary")
    elif "type" not in schema:
        yield refuse("R074", f"{path}.input_schema.type: Field required")
    elif schema["type"] != "object":
        yield refuse("R074", f"{path}.input_schema.type: Input should be 'object'")
    elif any(key in schema for key in ("oneOf", "allOf", "anyOf")):
        text = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        yield refuse("R077", f"{path}.input_schema: {text}")


# ---- after the conversation's shape


def check_forced_choice(request: Request) -> Refusals:
    """R081 to R083."""
    kind = request.forced_tool_choice
    if kind is None:
        return
    tools = objects(request.body.get("tools"))
    name = (as_object(request.body.get("tool_choice")) or {}).get("name")
    if not tools:
        yield refuse("R081", f"tool_choice.{kind} may only be specified while providing tools")
    elif kind == "tool" and name not in [tool.get("name", tool.get("type")) for tool in tools]:
        yield refuse("R082", f"Tool '{name}' not found in provided tools")
    if not request.profile.takes_forced_tools:
        yield refuse("R083", 'tool_choice: type "tool" and "any" are not supported for this model.')


def check_strict_tools(request: Request) -> Refusals:
    """R078, R079: what a schema must be when the tool is `strict`."""
    strict = [(at, tool) for at, tool in enumerate(objects(request.body.get("tools"))) if tool.get("strict") is True]
    for at, tool in strict:
        problem = _strict_problem(as_object(tool.get("input_schema")) or {})
        if problem is not None:
            yield refuse("R078", f"tools.{at}.custom: {problem}")
    if len(strict) > MAX_STRICT_TOOLS:
        text = f"Too many strict tools ({len(strict)}). The maximum number of strict tools supported is"
        yield refuse("R079", f"{text} {MAX_STRICT_TOOLS}. Try reducing the number of tools marked as strict.")
    yield from _strict_limits([as_object(tool.get("input_schema")) or {} for _, tool in strict])


def _strict_limits(schemas: list[JsonObject]) -> Refusals:
    parts = [part for schema in schemas for part in _subschemas(schema)]
    optional = sum(_optional(part) for part in parts)
    unions = sum(1 for part in parts if is_list(part.get("type")) or "anyOf" in part)
    if optional > MAX_OPTIONAL_PARAMETERS:
        yield refuse(
            "R079",
            f"Schemas contains too many optional parameters ({optional}), which would make grammar compilation"
            " inefficient. Reduce the number of optional parameters in your tool schemas (limit:"
            f" {MAX_OPTIONAL_PARAMETERS}).",
        )
    if unions > MAX_UNION_PARAMETERS:
        yield refuse(
            "R079",
            f"Schemas contains too many parameters with union types ({unions} parameters with type arrays or anyOf)."
            " This causes exponential compilation cost. Reduce the number of nullable or union-typed parameters"
            f" (limit: {MAX_UNION_PARAMETERS} parameters with unions).",
        )


def _optional(schema: JsonObject) -> int:
    properties = as_object(schema.get("properties")) or {}
    required = schema.get("required")
    return len(properties.keys() - set(map(str, required if is_list(required) else [])))


def _children(schema: JsonObject) -> list[Any]:
    children: list[Any] = []
    for key in ("properties", "$defs", "definitions"):
        children += (as_object(schema.get(key)) or {}).values()
    for key in ("anyOf", "allOf", "oneOf", "prefixItems"):
        several = schema.get(key)
        children += several if is_list(several) else []
    return [*children, *(schema[key] for key in ("items",) if key in schema)]


def _subschemas(schema: JsonObject) -> Iterator[JsonObject]:
    yield schema
    for child in _children(schema):
        if is_object(child):
            yield from _subschemas(child)


def _strict_problem(schema: JsonObject) -> str | None:
    """The first thing that keeps a schema from being compiled; the second and third text are guessed."""
    for part in _subschemas(schema):
        if part.get("type") == "object" and part.get("additionalProperties") is not False:
            return "For 'object' type, 'additionalProperties' must be explicitly set to false"
        if any(isinstance(child, bool) for child in _children(part)):
            return "Boolean schemas are not supported"
    return "Circular $ref is not supported" if _is_circular(schema) else None


def _is_circular(schema: JsonObject) -> bool:
    definitions = (as_object(schema.get("$defs")) or {}) | (as_object(schema.get("definitions")) or {})
    edges = {name: _references(definition) for name, definition in definitions.items()}

    def reaches(start: str, seen: frozenset[str]) -> bool:
        return start in seen or any(reaches(target, seen | {start}) for target in edges.get(start, ()))

    return any(reaches(name, frozenset()) for name in edges) or "#" in _references(schema)


def _references(schema: object) -> set[str]:
    if not is_object(schema):
        return set()
    targets = [part["$ref"] for part in _subschemas(schema) if isinstance(part.get("$ref"), str)]
    return {target.rsplit("/", 1)[-1] for target in targets}
