"""Cases of the rules on thinking that need no server's memory."""

from tests.testing.rule_cases import (
    OLD_MODEL,
    USER,
    accepted,
    assistant,
    call,
    custom_tool,
    refused,
    result,
    said,
    user,
)

GUIDE = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
BUDGET = {"type": "enabled", "budget_tokens": 1024}
ADAPTIVE = {"type": "adaptive"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
HIDDEN = {"type": "redacted_thinking", "data": "d"}


def must_start(found):
    return (
        f"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking`"
        " is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of"
        " `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid"
        f" this requirement, disable `thinking`. Please consult our documentation at {GUIDE}"
    )


CASES = [
    refused(
        "R030",
        "unknown type",
        "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'adaptive',"
        " 'between_tools', 'disabled', 'enabled'",
        thinking={"type": "on"},
    ),
    accepted("R030", "disabled", thinking={"type": "disabled"}),
    refused(
        "R031",
        "budget with adaptive",
        "thinking.adaptive.budget_tokens: Extra inputs are not permitted",
        thinking={"type": "adaptive", "budget_tokens": 2000},
    ),
    accepted("R031", "adaptive", thinking=ADAPTIVE),
    refused(
        "R032",
        "small budget",
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        model=OLD_MODEL,
        thinking={"type": "enabled", "budget_tokens": 1023},
    ),
    refused(
        "R032",
        "no budget",
        "thinking.enabled.budget_tokens: Field required",
        model=OLD_MODEL,
        thinking={"type": "enabled"},
    ),
    accepted("R032", "smallest budget", model=OLD_MODEL, max_tokens=1025, thinking=BUDGET),
    refused(
        "R033",
        "budget on a new model",
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and'
        ' "output_config.effort" to control thinking behavior.',
        model="claude-opus-4-7",
        max_tokens=2000,
        thinking=BUDGET,
    ),
    accepted("R033", "budget on 4.6", model="claude-opus-4-6", max_tokens=2000, thinking=BUDGET),
    refused(
        "R034",
        "adaptive on an old model",
        "adaptive thinking is not supported on this model",
        model=OLD_MODEL,
        thinking=ADAPTIVE,
    ),
    accepted("R034", "adaptive on 4.6", model="claude-opus-4-6", thinking=ADAPTIVE),
    refused(
        "R035",
        "budget above max_tokens",
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at"
        f" {GUIDE}#max-tokens-and-context-window-size",
        model=OLD_MODEL,
        max_tokens=1024,
        thinking=BUDGET,
    ),
    accepted(
        "R035",
        "budget above max_tokens, interleaved",
        model=OLD_MODEL,
        max_tokens=1024,
        thinking=BUDGET,
        beta="interleaved-thinking-2025-05-14",
    ),
    refused(
        "R036",
        "forced tools with a budget",
        "Thinking may not be enabled when tool_choice forces tool use.",
        model=OLD_MODEL,
        max_tokens=2000,
        thinking=BUDGET,
        tools=[custom_tool()],
        tool_choice={"type": "any"},
    ),
    accepted(
        "R036",
        "forced tools with adaptive",
        model="claude-opus-4-6",
        thinking=ADAPTIVE,
        tools=[custom_tool()],
        tool_choice={"type": "any"},
    ),
    refused(
        "R037",
        "temperature with a budget",
        "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at"
        f" {GUIDE}#important-considerations-when-using-extended-thinking",
        model=OLD_MODEL,
        max_tokens=2000,
        thinking=BUDGET,
        temperature=0,
    ),
    accepted("R037", "temperature 1", model=OLD_MODEL, max_tokens=2000, thinking=BUDGET, temperature=1),
    refused(
        "R144",
        "thinking at the end",
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        thinking=ADAPTIVE,
        messages=[USER, assistant(said("a"), THOUGHT), USER],
    ),
    accepted("R144", "text at the end", thinking=ADAPTIVE, messages=[USER, assistant(THOUGHT, said("a")), USER]),
    refused(
        "R145",
        "nothing in a thinking block",
        "messages.1.content.0.thinking: each thinking block must contain thinking",
        messages=[USER, assistant({"type": "thinking", "thinking": "", "signature": ""}, said("a")), USER],
    ),
    accepted(
        "R145",
        "thinking left out, signature kept",
        messages=[USER, assistant({"type": "thinking", "thinking": "", "signature": "s"}, said("a")), USER],
    ),
    refused(
        "R146",
        "tool loop without thinking",
        must_start("tool_use"),
        model=OLD_MODEL,
        max_tokens=2000,
        thinking=BUDGET,
        messages=[USER, assistant(call("a")), user(result("a"))],
    ),
    accepted(
        "R146",
        "tool loop that started with thinking",
        model=OLD_MODEL,
        max_tokens=2000,
        thinking=BUDGET,
        messages=[
            USER,
            assistant(THOUGHT, call("a")),
            user(result("a")),
            assistant(call("b")),
            user(result("b")),
        ],
    ),
    accepted(
        "R146",
        "tool loop without thinking, adaptive",
        thinking=ADAPTIVE,
        messages=[USER, assistant(call("a")), user(result("a"))],
    ),
    refused(
        "R147",
        "thinking behind text",
        "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be `thinking`"
        " or `redacted_thinking`. Found `text`.",
        model=OLD_MODEL,
        max_tokens=2000,
        thinking=BUDGET,
        messages=[USER, assistant(said("a"), THOUGHT, said("b")), USER],
    ),
    accepted(
        "R147",
        "interleaved",
        model=OLD_MODEL,
        max_tokens=2000,
        thinking=BUDGET,
        messages=[USER, assistant(HIDDEN, said("a"), THOUGHT, said("b")), USER],
    ),
    refused(
        "R148",
        "thinking off, thinking at the end",
        "messages.1.content.0.type: When thinking is disabled, an `assistant` message in the final position cannot"
        " contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
        model=OLD_MODEL,
        messages=[USER, assistant(THOUGHT, said("So"))],
    ),
    accepted("R148", "thinking off, thinking earlier", messages=[USER, assistant(THOUGHT, said("a")), USER]),
]
