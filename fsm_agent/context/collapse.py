"""Stage 4: early stretches of work are folded into short digests, ready to be committed when the context overflows.

Nothing changes as long as there is room: the stage only marks how far the history may be folded, and keeps the prompt
cache whole. `drain` commits it. A digest is extractive: it says which calls were made and how each began to answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fsm_agent.context.cuts import cut_keeping, cuts, is_summary, prompt_in
from fsm_agent.context.view import ContextView, Draft, Edit, pressure_threshold
from fsm_agent.session.history import Entry, History
from fsm_agent.session.message import Message, blocks_of, inner_blocks, text_of, user_message

STAGE: Final = "collapse"
STAGING_SHARE: Final = 0.5
"""Share of the pressure threshold from which stretches are staged."""
TAIL_SHARE: Final = 0.25
"""Share of the messages' tokens that is never folded: the newest."""
MIN_FREED: Final = 0.1
"""Share of the context that a drain must free, or it is not worth a request."""
DIGEST_OPENING: Final = "[Earlier steps, folded. What was done:]"
DIGEST_LINES: Final = 60
_CHARS: Final = 160


def apply(draft: Draft) -> None:
    """The stage: mark how far the history may be folded."""
    history = draft.view.history
    if draft.tokens < STAGING_SHARE * pressure_threshold(draft.view.limits):
        return
    staged = history.marks.get(STAGE)
    if staged is not None and staged[0] == history.version and history.tokens < staged[2] * 1.05:
        return  # little is new: what was staged stays as it is
    stop = cut_keeping(history, int(history.tokens * TAIL_SHARE))
    history.marks[STAGE] = (history.version, stop, history.tokens)


def drain(view: ContextView) -> list[Edit]:
    """The edits that commit what was staged; none if nothing was, or if it would free too little."""
    history = view.history
    version, stop, _ = history.marks.get(STAGE, (-1, 0, 0))
    if version != history.version or not stop:
        return []
    messages = folded(history, stop)
    after = _tokens(history, stop, messages)
    freed = history.part(0, stop).tokens - after
    if freed < MIN_FREED * history.tokens:
        return []
    draft = Draft(view)
    count = stop - len(messages)
    draft.replace("collapse_drain", 0, stop, messages, f"{count} early messages were folded into a digest.")
    return draft.edits


def _tokens(history: History, stop: int, messages: list[Message]) -> int:
    known = {id(entry.message): entry.tokens for entry in history[:stop]}
    return sum(known.get(id(message)) or History([message]).tokens for message in messages)


def folded(history: History, stop: int) -> list[Message]:
    """The messages before the legal cut `stop`: prompts and summaries as they are, each stretch of work as a digest."""
    messages: list[Message] = []
    legal = set(cuts(history))
    start = 0
    for index in range(stop + 1):
        if index < stop and not (index in legal and _stays(history[index])):
            continue
        if start < index:
            stretch = [entry.message for entry in history[start:index]]
            short = user_message("\n".join([DIGEST_OPENING, *digest(history, start, index)]), "digest")
            messages += [short] if History([short]).tokens < history.part(start, index).tokens else stretch
        if index < stop:
            messages.append(history[index].message)
        start = index + 1
    return messages


def _stays(entry: Entry) -> bool:
    """Prompts, summaries and earlier digests; a prompt behind tool results goes with them, and is quoted."""
    if entry.results:
        return False
    return is_summary(entry) or entry.purpose == "digest" or prompt_in(entry) is not None


def digest(history: History, start: int, stop: int, *, lines: int = DIGEST_LINES) -> list[str]:
    """One line for each thing said and each call made between the indexes; the middle is left out if it is long."""
    results = {
        str(block.get("tool_use_id")): block
        for entry in history[start:stop]
        for block in blocks_of(entry.message)
        if block.get("type") == "tool_result"
    }
    told = [line for entry in history[start:stop] for line in _told(entry, results)]
    if len(told) <= lines:
        return told
    lines = max(1, lines - 1)
    head, tail = lines // 3, lines - lines // 3
    return [*told[:head], f"- ({len(told) - lines} steps are left out here)", *told[-tail:]]


def _told(entry: Entry, results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    who = "said" if entry.role == "assistant" else "user"
    text = _short(text_of(entry.message))
    said = [f"- {who}: {text}"] if text else []
    return said + [
        f"- {block.get('name')}({_short(json.dumps(block.get('input'), ensure_ascii=False))})"
        f" -> {_result(results.get(str(block.get('id')), {}))}"
        for block in blocks_of(entry.message)
        if block.get("type") == "tool_use"
    ]


def _result(block: Mapping[str, Any]) -> str:
    content = block.get("content")
    text = content if isinstance(content, str) else "\n".join(str(p.get("text", "")) for p in inner_blocks(block))
    short = _short(text) or "(nothing)"
    return f"error: {short}" if block.get("is_error") else short


def _short(text: str) -> str:
    line = " ".join(text[: 4 * _CHARS].split())
    return line if len(line) <= _CHARS else f"{line[:_CHARS]}..."
