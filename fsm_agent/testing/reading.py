"""Reading and judging request bodies, at a cost that does not grow with the conversation.

The body of each turn of an agent repeats all that came before. Where its bytes begin with those of a body that was read
before (`messages` being the last key, as the requests of this library have it), only what is new is parsed, counted and
judged. Any doubt, and any refusal, leads back to reading the whole body, so that the answer is the same.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from fsm_agent.testing.prompt import Prompt
from fsm_agent.testing.rules import (
    STAGES,
    STAGES_OF_FIELDS,
    STAGES_OF_MESSAGES,
    ApiRefusal,
    ApiSettings,
    parse_body,
    refusals,
    validate,
)
from fsm_agent.testing.shapes import JsonObject, is_list, objects
from fsm_agent.testing.signatures import SignatureBook
from fsm_agent.testing.sse import compact_json

__all__ = ["BodyReader", "Reading"]

_REMEMBERED = 32
"""Conversations that a reader knows at a time."""
_GLOBAL = (b'"cache_control"', b'"base64"')
"""Words in messages that bring rules about the request as a whole (marks and images are counted)."""


@dataclass(slots=True, eq=False)
class Reading:
    """A body that was read."""

    raw: bytes
    body: JsonObject
    prompt: Prompt
    local: bool
    """No rule about the messages as a whole is concerned, so new messages can be judged by themselves."""
    judged: Mapping[str, str] | None = None
    """The headers with which the body was judged and found right."""
    known: int = 0
    """How many messages stood in a body that was judged and found right with `known_headers`."""
    known_headers: Mapping[str, str] | None = None
    fields: bytes | None = None
    """The bytes before the messages, where `body` is what `raw` holds."""
    size: int = field(init=False)
    """Segments of the prompt; another reading may have added more to it since."""

    def __post_init__(self) -> None:
        self.size = self.prompt.size


class BodyReader:
    """Reads the bodies that come to one model."""

    def __init__(self, settings: ApiSettings, signatures: SignatureBook) -> None:
        self._settings = settings
        self._signatures = signatures
        self._recent: deque[Reading] = deque(maxlen=_REMEMBERED)

    def read(self, raw: bytes) -> Reading | ApiRefusal:
        """The body parsed and counted, or the refusal of R003."""
        reading = self._longer(raw) or self._whole(raw)
        if isinstance(reading, Reading):
            self._recent.append(reading)
        return reading

    def _whole(self, raw: bytes) -> Reading | ApiRefusal:
        body = parse_body(raw)
        if isinstance(body, ApiRefusal):
            return body
        messages_last = bool(body) and next(reversed(body)) == "messages" and raw.endswith(b"]}")
        start = raw.find(b'"messages"')
        local = messages_last and not any(raw.find(word, start) >= 0 for word in _GLOBAL)
        fields = raw[:start] if messages_last else None
        return Reading(raw, body, Prompt(body, self._settings.characters_per_token), local, fields=fields)

    def _longer(self, raw: bytes) -> Reading | None:
        """The reading, if the body is a known one with messages added."""
        before = next((known for known in reversed(self._recent) if _begins_with(raw, known)), None)
        if before is None:
            return None
        messages = before.body["messages"]
        new = _new_messages(raw, len(before.raw) - 2)
        if new is None or not is_list(messages):
            return None
        self._recent.remove(before)
        local = not any(raw.find(word, len(before.raw) - 2) >= 0 for word in _GLOBAL)
        reading = self._grown(raw, before, before.body, new, local=local)
        reading.fields = before.fields
        return reading

    def _grown(self, raw: bytes, before: Reading, fields: JsonObject, new: list[JsonObject], *, local: bool) -> Reading:
        messages = before.body["messages"]
        before.prompt.extend(objects(new))
        known = len(messages) if before.judged is not None else 0
        body = {**fields, "messages": messages + new}
        return Reading(raw, body, before.prompt, local, known=known, known_headers=before.judged)

    def replaced(self, reading: Reading, body: JsonObject) -> Reading:
        """The reading of another body in the place of the one that was sent."""
        prompt = Prompt(body, self._settings.characters_per_token)
        return Reading(reading.raw, body, prompt, _is_local(objects(body.get("messages"))))

    def grown(self, raw: bytes, before: Reading, fields: JsonObject, new: list[JsonObject]) -> Reading:
        """The reading of an earlier body with messages added, under the `fields` of the new one."""
        if before.size != before.prompt.size:
            messages = [*before.body["messages"], *new]
            body = {**fields, "messages": messages}
            return Reading(raw, body, Prompt(body, self._settings.characters_per_token), _is_local(messages))
        return self._grown(raw, before, fields, new, local=before.local and _is_local(new))

    def judge(self, reading: Reading, headers: Mapping[str, str], *, counting: bool = False) -> ApiRefusal | None:
        """The refusal that the API would answer with."""
        if counting or not self._new_part_is_right(reading, headers):
            refusal = self._judge(reading.body, reading, headers, counting=counting)
            if refusal is not None or counting:
                return refusal
        reading.judged = headers
        return None

    def _judge(
        self, body: JsonObject, reading: Reading, headers: Mapping[str, str], *, counting: bool = False
    ) -> ApiRefusal | None:
        settings, signatures, tokens = self._settings, self._signatures, reading.prompt.tokens
        right = reading.fields is not None and _are_right(reading.fields, headers.get("anthropic-beta", ""), settings)
        stages = STAGES_OF_MESSAGES if right else STAGES
        return validate(
            body, headers, settings=settings, signatures=signatures, counting=counting, tokens=tokens, stages=stages
        )

    def _new_part_is_right(self, reading: Reading, headers: Mapping[str, str]) -> bool:
        """Judge the last assistant turn of the known messages and what follows; False when that does not suffice."""
        messages = reading.body.get("messages")
        window = _window(messages, reading.known) if is_list(messages) else 0
        unfit = self._settings.unique_ids != "turn" or not reading.local or reading.known_headers != headers
        if not window or unfit or not is_list(messages) or len(messages) > self._settings.max_messages:
            return False
        return self._judge({**reading.body, "messages": messages[window:]}, reading, headers) is None


@lru_cache(maxsize=256)
def _are_right(fields: bytes, betas: str, settings: ApiSettings) -> bool:
    """Whether no rule has anything against what stands before the messages. Most requests of a suite begin alike."""
    body = parse_body(fields + b'"messages":[]}')
    if isinstance(body, ApiRefusal):
        return False
    found = refusals(body, {"anthropic-beta": betas}, settings=settings, stages=STAGES_OF_FIELDS)
    return next(found, None) is None


def _is_local(messages: list[JsonObject]) -> bool:
    written = compact_json(messages).encode()
    return not any(word in written for word in _GLOBAL)


def _begins_with(raw: bytes, known: Reading) -> bool:
    return (
        known.local
        and len(raw) > len(known.raw)
        and known.size == known.prompt.size
        and raw.startswith(memoryview(known.raw)[:-2])
    )


def _new_messages(raw: bytes, start: int) -> list[JsonObject] | None:
    tail = raw[start:]
    if not (tail.startswith(b",") and tail.endswith(b"]}")):
        return None
    parsed = parse_body(b'{"messages":[' + tail[1:])
    if isinstance(parsed, ApiRefusal) or len(parsed) != 1 or not is_list(parsed["messages"]):
        return None
    return parsed["messages"]


def _window(messages: list[JsonObject], known: int) -> int:
    """Where the last assistant turn of the first `known` messages begins; 0 when there is none."""
    at = known - 1
    while at > 0 and messages[at].get("role") != "assistant":
        at -= 1
    while at > 0 and messages[at - 1].get("role") == "assistant":
        at -= 1
    return max(at, 0)
