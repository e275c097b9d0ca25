"""Message threads: the server holds a conversation, and each request brings only what is new (beta, November 2026).

A request with `thread: {"type": "create"}` is stored, with its reply, under the reply's id; one with `{"type":
"continue", "previous_message_id": ...}` is completed from there. A thread lasts for 300 seconds after its last reply,
each reply is continued at most once, and what shapes the prompt must stay as it was. Sources: the guide "Message
threads" and the error classes of the Anthropic SDK 2.14; the texts of the errors are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fsm_agent.testing.reading import BodyReader, Reading
from fsm_agent.testing.rules import ApiRefusal
from fsm_agent.testing.shapes import JsonObject, as_object, is_list, objects

__all__ = ["LIFETIME", "Thread", "ThreadStore"]

LIFETIME = 300.0
"""Seconds after the last reply."""
_SWEEP_AT = 1000
"""Held replies after which those that have expired are swept out."""
BETA = "message-threads-"
FIXED = (
    *("model", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"),
    *("context_management", "mcp_servers", "container"),
)
"""Fields that must be as they were when the thread was created. `system` and `tools` may be left out."""
UNSUPPORTED = ("context_management", "fallbacks")


@dataclass(slots=True)
class Thread:
    """What is held under the id of one reply."""

    reading: Reading
    """The request that the reply answered, completed."""
    reply: JsonObject
    fixed: JsonObject
    betas: str
    until: float
    continued: bool = False
    in_flight: bool = False


class ThreadStore:
    """The threads of one server. `clock` gives seconds."""

    def __init__(self, reader: BodyReader, clock: Callable[[], float]) -> None:
        self._reader = reader
        self._clock = clock
        self._threads: dict[str, Thread] = {}
        self._sweep_at = _SWEEP_AT

    def complete(self, reading: Reading, betas: str) -> tuple[Reading, Thread | None] | ApiRefusal:
        """The whole request that a reading stands for, and the thread that it continues; it is in flight from now on.

        A request without a thread, or without the beta header (the rules refuse it), is whole already.
        """
        thread = as_object(reading.body.get("thread"))
        if thread is None or BETA not in betas:
            return reading, None
        unsupported = [name for name in UNSUPPORTED if name in reading.body]
        if unsupported:
            text = f"Threads do not support {', '.join(unsupported)}; send the full conversation without `thread`."
            return _refusal("thread_unsupported_request", text, unsupported=unsupported)
        if thread.get("type") == "create":
            return self._reader.replaced(reading, _without_thread(reading.body)), None
        if thread.get("type") != "continue":
            text = f"Input tag '{thread.get('type')}' found using 'type' does not match any of the expected tags:"
            return ApiRefusal("thread", f"thread: {text} 'create', 'continue'")
        return self._continued(reading, str(thread.get("previous_message_id")), betas)

    def _continued(self, reading: Reading, previous: str, betas: str) -> tuple[Reading, Thread | None] | ApiRefusal:
        held = self._threads.get(previous)
        if held is None or held.until <= self._clock():
            text = f"No thread was found for previous_message_id '{previous}'. Replay the full conversation."
            return _refusal("thread_not_found", text, status=404, kind="not_found_error")
        if held.continued:
            return _refusal("thread_already_continued", f"The response '{previous}' has already been continued.")
        if held.in_flight:
            return _refusal("thread_continue_in_flight", f"Another request is still continuing from '{previous}'.")
        changed = [name for name in FIXED if _changed(name, reading.body, held.fixed)]
        changed += ["anthropic-beta"] if betas != held.betas else []
        if changed:
            text = f"These fields differ from the values stored with the thread: {', '.join(changed)}."
            return _refusal("thread_fingerprint_mismatch", text)
        held.in_flight = True
        return self._joined(reading, held), held

    def _joined(self, reading: Reading, held: Thread) -> Reading:
        new = reading.body.get("messages")
        added = [{"role": "assistant", "content": held.reply["content"]}, *objects(new)]
        fields = {**held.fixed, **_without_thread(reading.body)}
        if not is_list(new):  # the rules say what is wrong with it
            return self._reader.replaced(reading, fields)
        return self._reader.grown(reading.raw, held.reading, fields, added)

    def end(self, thread: Thread | None) -> None:
        """The continuation of a thread is over, with a reply or without."""
        if thread is not None:
            thread.in_flight = False

    def hold(self, reading: Reading, reply: JsonObject, betas: str, continued: Thread | None) -> None:
        """Keep a request and its whole reply under the reply's id. A refused turn is not held."""
        if continued is not None:
            continued.continued = True
        if reply.get("stop_reason") == "refusal":
            return
        fixed = {name: reading.body[name] for name in FIXED if name in reading.body}
        until = self._clock() + LIFETIME
        self._sweep()
        self._threads[reply["id"]] = Thread(reading, reply, fixed, betas, until)
        if continued is not None:
            continued.reading = reading  # what it held is part of that one now

    def _sweep(self) -> None:
        if len(self._threads) >= self._sweep_at:
            now = self._clock()
            self._threads = {name: held for name, held in self._threads.items() if held.until > now}
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._threads))


def _changed(name: str, body: JsonObject, fixed: JsonObject) -> bool:
    if name in ("system", "tools") and name not in body:
        return False
    return body.get(name) != fixed.get(name)


def _without_thread(body: JsonObject) -> JsonObject:
    return {key: value for key, value in body.items() if key != "thread"}


def _refusal(
    code: str,
    text: str,
    *,
    status: int = 400,
    kind: str = "invalid_request_error",
    unsupported: list[str] | None = None,
) -> ApiRefusal:
    details: JsonObject = {"error_code": code}
    if unsupported:
        details["unsupported"] = unsupported
    return ApiRefusal("thread", text, status, kind, details=details)
