"""Cases of the rules on tools and tool_choice."""

from fsm_agent.testing.rules.blocks import expected_tags
from fsm_agent.testing.rules.tools import TOOL_TYPES
from tests.testing.rule_cases import accepted, custom_tool, refused


def with_schema(schema, **more):
    return {"name": "t", "input_schema": schema, **more}


def strict(schema):
    return with_schema(schema, strict=True)


CLOSED = {"type": "object", "additionalProperties": False, "properties": {}}
FORCED = {"type": "any"}


def closed(properties, required=()):
    return {**CLOSED, "properties": properties, "required": list(required)}


TOO_MANY_OPTIONAL = (
    "Schemas contains too many optional parameters (25), which would make grammar compilation inefficient. Reduce the"
    " number of optional parameters in your tool schemas (limit: 24)."
)
TOO_MANY_UNIONS = (
    "Schemas contains too many parameters with union types (17 parameters with type arrays or anyOf). This causes"
    " exponential compilation cost. Reduce the number of nullable or union-typed parameters (limit: 16 parameters with"
    " unions)."
)
PLAIN = {"type": "string"}
NULLABLE = {"type": ["string", "null"]}


def parameters(count, schema):
    return {f"p{at}": schema for at in range(count)}


CASES = [
    refused("R070", "tools null", "tools: Input should be a valid array", tools=None),
    accepted("R070", "no tools", tools=[]),
    refused(
        "R071",
        "type of another vendor",
        "tools.0: Input tag 'function' found using 'type' does not match any of the expected tags: "
        + expected_tags(TOOL_TYPES),
        tools=[{"type": "function", "function": {"name": "x"}}],
    ),
    accepted("R071", "server tool", tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    refused("R072", "no name", "tools.0.custom.name: Field required", tools=[{"input_schema": {"type": "object"}}]),
    refused("R072", "no schema", "tools.0.custom.input_schema: Field required", tools=[{"name": "x"}]),
    accepted("R072", "name and schema", tools=[custom_tool()]),
    refused(
        "R073",
        "name with a space",
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        tools=[custom_tool("my tool")],
    ),
    refused(
        "R073",
        "long name",
        "tools.0.custom.name: String should have at most 128 characters",
        tools=[custom_tool("n" * 129)],
    ),
    accepted("R073", "name of 128", tools=[custom_tool("n" * 128)]),
    refused("R074", "schema without type", "tools.0.custom.input_schema.type: Field required", tools=[with_schema({})]),
    refused(
        "R074",
        "schema of an array",
        "tools.0.custom.input_schema.type: Input should be 'object'",
        tools=[with_schema({"type": "array"})],
    ),
    accepted("R074", "schema of an object", tools=[with_schema({"type": "object"})]),
    refused(
        "R075",
        "extra key",
        "tools.0.custom.parameters: Extra inputs are not permitted",
        tools=[custom_tool(parameters={})],
    ),
    accepted("R075", "known keys", tools=[custom_tool(defer_loading=True, strict=False, description="d")]),
    refused("R076", "one name twice", "tools: Tool names must be unique.", tools=[custom_tool(), custom_tool()]),
    accepted("R076", "two names", tools=[custom_tool("a"), custom_tool("b")]),
    refused(
        "R077",
        "anyOf at the top",
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        tools=[with_schema({"type": "object", "anyOf": [{"required": ["a"]}]})],
    ),
    accepted(
        "R077",
        "anyOf inside",
        tools=[with_schema({"type": "object", "properties": {"a": {"anyOf": [PLAIN, {"type": "null"}]}}})],
    ),
    refused(
        "R078",
        "open object",
        "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
        tools=[strict({"type": "object", "properties": {}})],
    ),
    refused(
        "R078",
        "open object inside",
        "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
        tools=[strict(closed({"a": {"type": "object"}}, ["a"]))],
    ),
    refused(
        "R078",
        "boolean subschema",
        "tools.0.custom: Boolean schemas are not supported",
        tools=[strict(closed({"a": True}, ["a"]))],
    ),
    refused(
        "R078",
        "circular schema",
        "tools.0.custom: Circular $ref is not supported",
        tools=[
            strict(
                {
                    **closed({"a": {"$ref": "#/$defs/node"}}, ["a"]),
                    "$defs": {"node": closed({"next": {"$ref": "#/$defs/node"}}, ["next"])},
                }
            )
        ],
    ),
    accepted("R078", "closed object", tools=[strict(closed({"a": PLAIN}, ["a"]))]),
    accepted("R078", "open object of a tool that is not strict", tools=[custom_tool()]),
    refused(
        "R079",
        "21 strict tools",
        "Too many strict tools (21). The maximum number of strict tools supported is 20. Try reducing the number of"
        " tools marked as strict.",
        tools=[{**strict(CLOSED), "name": f"t{at}"} for at in range(21)],
    ),
    refused("R079", "25 optional", TOO_MANY_OPTIONAL, tools=[strict(closed(parameters(25, PLAIN)))]),
    refused(
        "R079",
        "17 unions",
        TOO_MANY_UNIONS,
        tools=[strict(closed(parameters(17, NULLABLE), parameters(17, NULLABLE)))],
    ),
    accepted("R079", "24 optional", tools=[strict(closed(parameters(24, PLAIN)))]),
    accepted("R079", "16 unions", tools=[strict(closed(parameters(16, NULLABLE), parameters(16, NULLABLE)))]),
    refused(
        "R080",
        "unknown choice",
        "tool_choice: Input tag 'x' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool',"
        " 'none'",
        tool_choice={"type": "x"},
    ),
    accepted("R080", "auto without tools", tool_choice={"type": "auto"}),
    refused(
        "R081",
        "forced without tools",
        "tool_choice.any may only be specified while providing tools",
        tool_choice=FORCED,
    ),
    accepted("R081", "forced with tools", tools=[custom_tool()], tool_choice=FORCED),
    refused(
        "R082",
        "tool that is not offered",
        "Tool 'write' not found in provided tools",
        tools=[custom_tool()],
        tool_choice={"type": "tool", "name": "write"},
    ),
    accepted("R082", "tool that is offered", tools=[custom_tool()], tool_choice={"type": "tool", "name": "read"}),
    refused(
        "R083",
        "forced on a model that cannot be",
        'tool_choice: type "tool" and "any" are not supported for this model.',
        model="claude-fable-5-1",
        tools=[custom_tool()],
        tool_choice=FORCED,
    ),
    accepted("R083", "forced on fable 5", model="claude-fable-5", tools=[custom_tool()], tool_choice=FORCED),
]
