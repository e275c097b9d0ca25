"""What the loop says to the model in its own words. Constant, so that the prompt cache is never missed for them."""

INTERRUPTED = "[The user interrupted this turn before it was finished.]"

CONTINUE_TRUNCATED = (
    "Your reply reached the output limit and was cut there. Go on exactly where it stops, without an apology or a "
    "recap. A tool call that was cut did not run: if you still need it, make it again with a smaller input, or in "
    "several steps."
)

CONTINUE_CUT = (
    "The connection was lost while you were replying; your reply stops where it was cut. "
    "Go on exactly from there, without a recap. A tool call after that point did not run."
)

VISIBLE_OUTPUT = "Your reply held nothing that the user can see. Answer in text, or call a tool."

HOOK_FEEDBACK = "A stop hook of the user checked your work and does not let you stop yet:\n{reasons}"

INVALID_OUTPUT = (
    "Your reply does not fit the output that is asked for:\n{errors}\n"
    "Reply again, with nothing but JSON that fits this schema:\n{schema}"
)

BUDGET_LEFT = (
    "You have used {used} of {budget} output tokens. If anything of the task is left, go on with it now; "
    "do not summarise what you have done."
)

BUDGET_REFUSAL = "Not run: the run has spent its budget."

UNREPAIRED = {
    "prompt_too_long": "The request and the reply together are larger than the context window of the model.",
    "max_tokens": "The reply reached the output limit again and again; what there is of it is kept.",
    "refusal": "The model refused to answer.",
    "empty": "The model ended its turn twice without anything that a user could see.",
    "malformed_tool_use": "The model announced a tool call and made none, again and again.",
    "pause_turn": "The service paused the reply more often than the limits allow.",
    "unknown": "The reply ended for a reason that this version does not know.",
}
"""What is told of a reply that no row could repair, where the service itself reported no error."""
