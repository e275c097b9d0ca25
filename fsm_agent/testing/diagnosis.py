"""Why a prompt-cache prefix was missed: the `diagnostics` of a request and of its reply.

Source: `anthropic.types.Diagnostics` of the Anthropic SDK 2.14. A client opts in with `diagnostics:
{"previous_message_id": ...}`, with `null` on its first turn.
"""

from collections import OrderedDict
from dataclasses import dataclass

from fsm_agent.testing.prompt import Prompt
from fsm_agent.testing.shapes import JsonObject, as_object

__all__ = ["Diagnosis"]

_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    model: str
    tools: bytes
    system: bytes
    whole: bytes
    size: int
    tokens: int


class Diagnosis:
    """Compares each request that asks for it with the one that it names.

    >>> diagnosis = Diagnosis()
    >>> first = {"model": "m", "system": "a", "messages": [], "diagnostics": {"previous_message_id": None}}
    >>> diagnosis.of(first, Prompt(first), "msg_1") is None
    True
    >>> second = first | {"system": "b", "diagnostics": {"previous_message_id": "msg_1"}}
    >>> diagnosis.of(second, Prompt(second), "msg_2")["cache_miss_reason"]["type"]
    'system_changed'
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Fingerprint] = OrderedDict()

    def of(self, body: JsonObject, prompt: Prompt, message_id: str) -> JsonObject | None:
        """The `diagnostics` of the reply `message_id` to a request; `None` when nothing was missed or asked."""
        asked = as_object(body.get("diagnostics"))
        if asked is None:
            return None
        model = str(body.get("model"))
        tools, system = prompt.keys[prompt.tools_size], prompt.keys[prompt.fixed_size]
        self._known[message_id] = _Fingerprint(model, tools, system, prompt.keys[-1], prompt.size, prompt.tokens)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        previous = asked.get("previous_message_id")
        if previous is None:
            return None
        reason = _reason(self._known.get(str(previous)), self._known[message_id], prompt)
        return None if reason is None else {"cache_miss_reason": reason}


def _reason(before: _Fingerprint | None, now: _Fingerprint, prompt: Prompt) -> JsonObject | None:
    if before is None:
        return {"type": "previous_message_not_found"}
    if before.size <= prompt.size and prompt.keys[before.size] == before.whole:
        return None
    changed = "messages"
    if before.model != now.model:
        changed = "model"
    elif before.tools != now.tools:
        changed = "tools"
    elif before.system != now.system:
        changed = "system"
    return {"type": f"{changed}_changed", "cache_missed_input_tokens": before.tokens}
