"""A prefix of the conversation becomes a summary that the model writes; the tail stays as it is.

What always stays, word for word: the user's latest prompt and what the user added to it. What never happens: a call cut
from its results, a second request for a summary in one go, a compaction that makes nothing smaller.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fsm_agent.context.collapse import digest
from fsm_agent.context.cuts import SUMMARY_OPENING, cut_keeping, is_summary, live_prompts, prompt_in
from fsm_agent.context.media import without_media
from fsm_agent.context.tool_result_budget import bounded_result
from fsm_agent.context.view import ContextView, Draft, Edit, SummaryRequest, SummaryResult
from fsm_agent.machine import ResponseOutcome
from fsm_agent.session.history import Entry, History
from fsm_agent.session.message import JsonObject, Message, blocks_of, inner_blocks, text_of, user_message, with_content

STAGE: Final = "autocompact"
TAIL_SHARE: Final = 0.25
"""Share of the messages' tokens that stays verbatim at the end, at most."""
ELIDED_CHARS: Final = 2_000
"""Characters of one tool result that the model is shown for a summary, from the second attempt on."""
PAST_PROMPTS: Final = 10
"""Earlier prompts that are quoted in a summary, each by its first characters."""
PAST_PROMPT_CHARS: Final = 200
MAX_SUMMARY_TOKENS: Final = 20_000
DIGEST_LINES: Final = 20
"""Lines that tell of the groups that a summary request leaves out, at most."""
TOKENS_PER_LINE: Final = 90
"""Tokens of the longest line of a digest."""

INSTRUCTION: Final = (
    "Stop working for a moment. Summarise the conversation above, so that you can go on from the summary alone.\n"
    "Write down: what the user asked for, in the user's own words where they matter, and which of it is done; what was "
    "found out (paths, names, values, errors); what was changed; what remains, and the next step.\n"
    "Call no tool. Answer with nothing but <summary>...</summary>."
)
BEGINNING_LEFT_OUT: Final = "[The beginning of the conversation is left out here. What was done in it:]"

CompactOutcome: TypeAlias = Literal["compacted", "head_too_long", "failed"]


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """How a compaction ended, and the edits that it proposes."""

    outcome: CompactOutcome
    edits: tuple[Edit, ...] = ()
    detail: str = ""


async def reactive(view: ContextView, *, attempt: int = 0) -> CompactionPlan:
    """The compaction that follows an overflow: one request for a summary at most.

    `attempt` counts from 0; each further one shows the model a head half as long, its oldest groups left out whole.
    `head_too_long` says that a further one may help, `failed` that it will not. The history is not touched.
    """
    draft = Draft(view)
    outcome = await compact(draft, choose_cut(draft.history), attempt=attempt, stage="reactive_compact")
    return CompactionPlan(outcome, tuple(draft.edits), draft.detail)


def choose_cut(history: History) -> int:
    """Where the tail begins that stays verbatim; 0 if there is nothing in front of it that could be removed."""
    cut = cut_keeping(history, int(history.tokens * TAIL_SHARE))
    return cut if removable_tokens(history, cut) else 0


def removable_tokens(history: History, cut: int) -> int:
    """Estimate of what a compaction before `cut` takes away: all but the live prompts and an earlier summary."""
    kept = {index for index in live_prompts(history) if index < cut}
    return sum(entry.tokens for index, entry in enumerate(history[:cut]) if index not in kept and not is_summary(entry))


async def compact(draft: Draft, cut: int, *, attempt: int = 0, stage: str = STAGE) -> CompactOutcome:
    """Ask for a summary of what stands before `cut`, and make the edit. The draft's `detail` says what went wrong."""
    if not cut:
        draft.detail = "There is nothing in the conversation that a compaction could remove."
        return "failed"
    request = summary_request(draft, cut, attempt)
    if request is None:
        draft.detail = "The request for a summary cannot be made any shorter."
        return "failed"
    result = await draft.view.summarise(request)
    if result.outcome == ResponseOutcome.PROMPT_TOO_LONG:
        draft.detail = _why(result) or "The request for a summary is itself too long."
        return "head_too_long"
    summary = _summary(result)
    if not summary:
        draft.detail = _why(result) or f"The model wrote no summary ({result.outcome})."
        return "failed"
    messages = compacted_messages(draft.history, cut, summary)
    before = draft.history.part(0, cut).tokens
    after = History(messages).tokens
    if after >= before:
        draft.detail = f"The summary is no shorter than what it replaces (about {after} tokens for {before})."
        return "failed"
    draft.replace(stage, 0, cut, messages, f"{cut} messages were replaced by a summary.")
    return "compacted"


def compacted_messages(history: History, cut: int, summary: str) -> list[Message]:
    """What stands in the place of the entries before `cut`: the summary, then the live prompts among them."""
    live = [index for index in live_prompts(history) if index < cut]
    past = [index for index in range(cut) if index not in live and prompt_in(history[index]) is not None]
    parts = [
        SUMMARY_OPENING,
        "This summary replaces the earlier part of the conversation.",
        summary,
        *_quoted([text_of(history[index].message) for index in past]),
        *(
            ["Work on the request that follows has begun; the summary tells how far it is."]
            if _begun(live, cut)
            else []
        ),
        "</conversation_summary>",
    ]
    kept = [prompt for index in live if (prompt := prompt_in(history[index])) is not None]
    return [user_message("\n".join(parts), "summary"), *kept]


def _begun(live: list[int], cut: int) -> bool:
    return bool(live) and live[0] < cut - len(live)


def _quoted(past: list[str]) -> list[str]:
    """Earlier prompts, marked as past, so that none is taken for the task of now."""
    texts = [" ".join(text.split()) for text in past[-PAST_PROMPTS:]]
    lines = [
        f"- {text[:PAST_PROMPT_CHARS]}..." if len(text) > PAST_PROMPT_CHARS else f"- {text}" for text in texts if text
    ]
    return ["Earlier requests of the user, which are past:", *lines] if lines else []


def summary_request(draft: Draft, cut: int, attempt: int) -> SummaryRequest | None:
    """The request for a summary of the entries before `cut`; None if this attempt would be no shorter than the last.

    The first attempt sends them as they were sent before, but for media, so that the prompt cache serves it. Where that
    is larger than the window, and in each further attempt, long results are elided and the oldest groups left out.
    """
    view = draft.view
    head = _textual(draft.history.part(0, cut))
    instruction = user_message(INSTRUCTION, "summary_instruction")
    room = view.limits.context_window - view.fixed_tokens - _summary_tokens(view) - History([instruction]).tokens
    whole = head.tokens
    if attempt or whole > room:
        shorter = _shortened(head, min(room, whole) // 2**attempt)
        if attempt and shorter.tokens >= _tried(head, room, attempt - 1):
            return None
        head = shorter
    head.append(instruction)
    return SummaryRequest(head.encode(view.model), _summary_tokens(view))


def _tried(head: History, room: int, attempt: int) -> int:
    """Tokens that an earlier attempt sent."""
    if not attempt and head.tokens <= room:
        return head.tokens
    return _shortened(head, min(room, head.tokens) // 2**attempt).tokens


def _summary_tokens(view: ContextView) -> int:
    return max(1, min(view.limits.max_output_tokens, MAX_SUMMARY_TOKENS, view.limits.context_window // 8))


def _textual(head: History) -> History:
    """Media are replaced by notes: they must not make the rescue fail too."""
    bare = [without_media(entry.message) for entry in head]
    if any(new is not entry.message for new, entry in zip(bare, head, strict=True)):
        head.replace(0, len(head), bare)
    return head


def _shortened(head: History, room: int) -> History:
    """The head within `room` tokens: long results elided, then the oldest groups left out whole but for a digest."""
    short = head.part()
    short.replace(0, len(short), [_short_message(entry) for entry in head])
    if short.tokens <= room:
        return short
    lines = min(DIGEST_LINES, room // 4 // TOKENS_PER_LINE)
    start = cut_keeping(short, room - lines * TOKENS_PER_LINE)
    tail = short.part(start)
    left_out = digest(short, 0, start, lines=lines)
    tail.replace(0, 0, [user_message("\n".join([BEGINNING_LEFT_OUT, *left_out]), "digest")])
    return tail


def _short_message(entry: Entry) -> Message:
    if len(entry.data) <= ELIDED_CHARS:
        return entry.message
    return with_content(entry.message, [_elided(block) for block in blocks_of(entry.message)])


def _elided(block: JsonObject) -> JsonObject:
    if block.get("type") == "text":
        return {**block, "text": bounded_result(str(block.get("text", "")), ELIDED_CHARS)}
    if block.get("type") != "tool_result":
        return block
    content = block.get("content")
    if isinstance(content, str):
        return {**block, "content": bounded_result(content, ELIDED_CHARS)}
    return {**block, "content": [_elided(part) for part in inner_blocks(block)]}


def _summary(result: SummaryResult) -> str:
    """The summary in the reply, or ''. One that was cut by the output limit is taken, and says so."""
    if result.outcome not in (ResponseOutcome.END_TURN, ResponseOutcome.MAX_TOKENS):
        return ""
    found = re.search(r"<summary>(.*?)(?:</summary>|\Z)", result.text, re.DOTALL)
    text = (found.group(1) if found else result.text).strip()
    if text and result.outcome == ResponseOutcome.MAX_TOKENS:
        text += "\n[The summary was cut here.]"
    return text


def _why(result: SummaryResult) -> str:
    if result.detail:
        return result.detail
    return "" if result.failure is None else result.failure.message
