"""What must hold of a loop, judged from what was seen of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from fsm_agent.testing.other_loops.observed import Observed, Outcome, merged_turns
from fsm_agent.testing.other_loops.scenarios import ANSWER, WireScenario
from fsm_agent.testing.rules import ApiRefusal
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.sse import compact_json

__all__ = ["PROPERTIES", "PROPERTY_WORDS", "Judgement", "Property", "judged"]

Property: TypeAlias = Literal["accepted", "paired", "ends", "calls", "goal", "case", "follow-up"]

PROPERTIES: tuple[Property, ...] = get_args(Property)

PROPERTY_WORDS: dict[Property, str] = {
    "accepted": "the rules of the API refuse no request",
    "paired": "each call has one result, in the order of the calls, at the start of the next turn",
    "ends": "the run ends by itself, in bounded time and requests; an aborted one ends at once",
    "calls": "only calls of whole replies run, none of a reply that was cut, and none twice",
    "goal": "the answer comes in spite of the fault; where none can come, that is not told as a success",
    "case": "what the scenario is about",
    "follow-up": "the next run on what this one left is accepted, and knows what was asked and done",
}

RESULT_RULES = frozenset({"R130", "R131", "R132", "R133", "R134", "R135"})
"""Rules of the API on calls and their results."""

WELCOME = "Welcome back."
"""What the model says in the run that follows."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a property holds in a scenario.

    >>> Judgement("no", "R134").cell, Judgement("yes").cell
    ('NO', 'yes')
    """

    verdict: Literal["yes", "no", "does not apply", "not offered"]
    why: str = ""
    """What was seen instead, for `no`."""

    @property
    def cell(self) -> str:
        """As the table has it."""
        return {"yes": "yes", "no": "NO", "does not apply": "", "not offered": "none"}[self.verdict]


YES = Judgement("yes")
DOES_NOT_APPLY = Judgement("does not apply")


def _holds(faults: Iterator[str]) -> Judgement:
    first = next(faults, None)
    return YES if first is None else Judgement("no", first)


def judged(scenario: WireScenario, seen: Observed, prompt: str) -> dict[Property, Judgement]:
    """Every property of one scenario."""
    return {
        "accepted": _holds(map(_refused, seen.refusals)),
        "paired": _paired(seen),
        "ends": _ends(scenario, seen),
        "calls": DOES_NOT_APPLY if scenario.calls is None else _holds(_wrong_calls(scenario, seen)),
        "goal": _goal(scenario, seen),
        "case": _case(scenario, seen),
        "follow-up": _follow_up(scenario, seen, prompt),
    }


def _paired(seen: Observed) -> Judgement:
    refused = [refusal for refusal in seen.refusals if refusal.rule in RESULT_RULES]
    if refused:
        return Judgement("no", _refused(refused[0]))
    bodies = [*seen.bodies, *([seen.follow_up_body] if seen.follow_up_body is not None else [])]
    if not any(_calls_in(body) for body in bodies):
        return DOES_NOT_APPLY
    return _holds(fault for body in bodies for fault in pairing_faults(body))


def _refused(refusal: ApiRefusal) -> str:
    return f"{refusal.rule}: {_short(refusal.message)}"


def _short(words: str, most: int = 120) -> str:
    words = " ".join(words.split())
    return words if len(words) <= most else f"{words[: most - 3]}..."


def _calls_in(body: JsonObject) -> bool:
    return any(block.get("type") == "tool_use" for _, blocks in merged_turns(body) for block in blocks)


def pairing_faults(body: JsonObject) -> Iterator[str]:
    """What is wrong with the results in a request.

    >>> call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}, {"type": "tool_use", "id": "b"}]}
    >>> results = [{"type": "tool_result", "tool_use_id": "b"}, {"type": "tool_result", "tool_use_id": "a"}]
    >>> list(pairing_faults({"messages": [call, {"role": "user", "content": results}]}))
    ['the calls are a, b; the next turn begins with the results of b, a']
    """
    calls = list[str]()
    for role, blocks in merged_turns(body):
        if role == "user":
            first = blocks[: len(calls)]
            given = [str(block.get("tool_use_id")) for block in first if block.get("type") == "tool_result"]
            if given != calls:
                yield f"the calls are {', '.join(calls)}; the next turn begins with the results of {', '.join(given)}"
        if role != "system":
            calls = [str(block["id"]) for block in blocks if role == "assistant" and block.get("type") == "tool_use"]
    if calls:
        yield f"the request ends with the calls {', '.join(calls)}, which have no results"


def _ends(scenario: WireScenario, seen: Observed) -> Judgement:
    wanted = "by itself" if scenario.abort is None else "aborted"
    if seen.ended == wanted:
        return YES
    if seen.ended == "by itself":
        return Judgement("no", "it ended before it could be aborted")
    told = {"deaf": "it went on after it was cancelled", "aborted": "it had to be aborted"}
    return Judgement("no", f"{told.get(seen.ended, seen.ended)}, after {seen.requests} requests")


def _wrong_calls(scenario: WireScenario, seen: Observed) -> Iterator[str]:
    wanted = Counter(scenario.calls or ())
    for call in seen.calls:
        made = (call.name, str(call.input["key"]))
        if made not in wanted:
            yield f"{call} ran, which no whole reply asked for"
        elif not wanted[made]:
            yield f"{call} ran once more"
        wanted[made] -= 1


def _goal(scenario: WireScenario, seen: Observed) -> Judgement:
    outcome = seen.outcome
    if scenario.goal == "failure":
        if outcome is not None and outcome.ok:
            return Judgement("no", f"it is told as a success: {_told(outcome)}")
        return YES
    if outcome is None:
        return Judgement("no", _raised(seen.raised) or f"it was stopped: {seen.ended}")
    if outcome.text.count(ANSWER) != 1 or not outcome.ok:
        return Judgement("no", f"it ended with {_told(outcome)}")
    return YES


def _told(outcome: Outcome) -> str:
    return f"{outcome.ended!s} and the text {_short(outcome.text)!r}"


def _raised(error: BaseException | None) -> str:
    return "" if error is None else _short(f"{type(error).__name__}: {error}")


def _case(scenario: WireScenario, seen: Observed) -> Judgement:
    if scenario.case is None:
        return DOES_NOT_APPLY
    if scenario.case(seen):
        return YES
    return Judgement("no", f"not so: {scenario.case_words} ({seen.requests} requests)")


def _follow_up(scenario: WireScenario, seen: Observed, prompt: str) -> Judgement:
    if seen.outcome is None or seen.outcome.follow_up is None:
        return Judgement("not offered")
    return _holds(_follow_up_faults(scenario, seen, prompt))


def _follow_up_faults(scenario: WireScenario, seen: Observed, prompt: str) -> Iterator[str]:
    if seen.follow_up is None or seen.follow_up_body is None or WELCOME not in seen.follow_up.text:
        yield from map(_refused, seen.follow_up_refusals)
        if seen.follow_up is not None:
            yield f"it ended with {_told(seen.follow_up)}"
        yield _raised(seen.follow_up_raised) or "no answer came"
        return
    written = compact_json(seen.follow_up_body.get("messages"))
    if prompt not in written and "The five files were read." not in written:
        yield "the prompt of the run before is forgotten"
    if scenario.kept not in written:
        yield f"the finished work is forgotten: {scenario.kept!r}"
