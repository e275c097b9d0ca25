"""Each kind of contract holds where it should and is broken, with the shortest run, where it should be."""

import pytest

from fsm_agent.machine import AGENT_LOOP, AnyOf, Below, Counter, Flag, FlagSpec, Increment, Not, Row, Set
from fsm_agent.verify import (
    AGENT_LOOP_CONTRACTS,
    AllOf,
    Always,
    Answers,
    Counts,
    Enters,
    Fact,
    Fires,
    Never,
    Once,
    Performs,
    Verdict,
    amended,
    check,
)
from tests.verify.sketch import SKETCH

NOTED = SKETCH.with_changes(
    actions=["keep", "drop"],
    flags=[FlagSpec("failed_once")],
    replace_rows=[
        Row("calling", "replied", "over", given={"response": "text"}, do="keep", reason="completed"),
        Row("calling", "refuse", "over", given={"response": "refused"}, do="drop", reason="refused"),
        Row(
            "calling",
            "retry",
            "backoff",
            given={"response": "failed"},
            when=Below("retries"),
            update=[Increment("retries"), Set("failed_once")],
            do="drop",
        ),
        Row("calling", "give_up", "over", given={"response": "failed"}, do="drop", reason="api_error"),
        Row("calling", "called", "tools", given={"response": "tool_use"}, do="keep"),
    ],
)


def verdict(contract, definition=NOTED, **options) -> Verdict:
    return check(definition, contracts=[contract], **options).contracts[1]


HOLDING = [
    Answers("response", {"text": "replied", "tool_use": "called", "refused": "refuse", "failed": "retry give_up"}),
    Answers("tools", {"done": "turn_limit next_turn", "aborted": "abort"}),
    Enters("api_error", "give_up", when=Not(Below("retries"))),
    Enters("calling", "waited next_turn"),
    Enters("completed", "replied", when=Fact("response", "text")),
    Fires("next_turn called", when=AnyOf(Below("turn"), Fact("response", "tool_use"))),
    Fires("give_up", when=AllOf(Flag("failed_once"), Not(Below("retries")))),
    Performs("wait", when=Flag("failed_once")),
    Performs("tools", when=AnyOf(Below("turn"), Not(Below("turn")))),
    Counts("retries", "retry"),
    Counts("turn", "next_turn"),
    Counts("failed_once", "retry"),
    Once("response", "keep drop"),
    Never("response tools", after=("tools", "aborted")),
    Never("wait", after="called", until="next_turn"),
    Always("a run ends in over", lambda firing: firing.row.dest == "over" or firing.row.reason is None),
    Always(
        "a turn adds one",
        lambda f: f.row.trigger != "next_turn" or f.after["turn"] == f.before["turn"] + 1,
        frozenset(["turn"]),
    ),
    Always(
        "failures are remembered",
        lambda f: not f.before["retries"] or f.before["failed_once"] == 1,
        frozenset(["retries", "failed_once"]),
    ),
]

BROKEN = [
    (
        Answers("response", {"text": "replied", "tool_use": "called", "refused": "refuse", "failed": "give_up"}),
        "Another trigger answers: «calling --retry--> backoff».",
        ("retry",),
    ),
    (
        Answers("tools", {"done": "next_turn turn_limit abort", "aborted": "abort"}),
        "abort never answers tools: done in tools.",
        None,
    ),
    (Answers("wait", {}), "The effect 'wait' declares other outcomes than the contract lists: elapsed.", None),
    (
        Enters("api_error", "replied"),
        "It is also entered by «calling --give_up--> over: api_error».",
        ("retry", "waited", "retry", "waited", "give_up"),
    ),
    (Enters("completed", "replied waited"), "waited does not enter it.", None),
    (
        Enters("aborted", "abort", when=Not(Below("turn", 2))),
        "It is entered although not: not (turn < 2).",
        ("called", "abort"),
    ),
    (Enters("turn_limit", "turn_limit", when=Below("retries", 1)), "It is entered although not: retries < 1.", 8),
    (
        Performs("tools", when=Below("turn")),
        "It is performed although not: turn < its limit.",
        ("called", "next_turn", "called", "next_turn", "called"),
    ),
    (Fires("retry", when=Below("retries", 1)), "It fires although not: retries < 1.", ("retry", "waited", "retry")),
    (
        Performs("wait", when=Below("retries", 2)),
        "It is performed although not: retries < 2.",
        ("retry", "waited", "retry"),
    ),
    (
        Counts("retries", "retry", "called next_turn"),
        "The row «calling --called--> tools» does not put retries back.",
        None,
    ),
    (Counts("turn", "retry"), "The row «calling --retry--> backoff» does not raise turn.", None),
    (Once("response", "keep"), "It is broken by «calling --refuse--> over: refused».", ("refuse",)),
    (Once("tools", "keep drop"), "It is broken by", None),
    (Never("response", after="retry"), "It is broken by response.", ("retry", "waited")),
    (Never("wait", after=("tools", "done")), "It is broken by wait.", ("called", "next_turn", "retry")),
    (
        Always("no second retry", lambda f: f.after["retries"] < 2, frozenset(["retries"])),
        "It does not hold when «calling --retry--> backoff» fires.",
        ("retry", "waited", "retry"),
    ),
    (
        Always("never refused", lambda f: f.row.reason != "refused"),
        "It does not hold when «calling --refuse--> over: refused» fires.",
        ("refuse",),
    ),
]


@pytest.mark.parametrize("exact", [False, True], ids=["compositional", "exact"])
@pytest.mark.parametrize("contract", HOLDING, ids=str)
def test_it_holds(contract, exact):
    found = verdict(contract, exact=exact)
    assert found.holds, str(found)


@pytest.mark.parametrize("exact", [False, True], ids=["compositional", "exact"])
@pytest.mark.parametrize(("contract", "problem", "word"), BROKEN, ids=[str(contract) for contract, _, _ in BROKEN])
def test_it_is_broken_and_the_shortest_run_shows_how(contract, problem, word, exact):
    found = verdict(contract, exact=exact)
    assert not found.holds
    assert found.problem.startswith(problem)
    if word is not None:
        assert found.witness is not None
        assert found.witness.word == word or len(found.witness.word) == word


def test_a_broken_contract_makes_the_report_not_ok():
    report = check(SKETCH, contracts=[Counts("turn", "retry")])
    assert not report.ok
    assert "turn is raised by retry and never put back: broken." in str(report)


def test_a_contract_that_raises_is_a_sentence():
    report = check(SKETCH, contracts=[Always("odd", lambda firing: bool(firing.before["nothing"]))])
    assert report.problems == (
        "The contract «odd» raised KeyError('nothing') for the row «calling --replied--> over: completed».",
    )


def test_a_limit_of_zero_does_not_break_a_contract_about_the_row_it_switches_off():
    contract = Answers(
        "response", {"text": "replied", "tool_use": "called", "refused": "refuse", "failed": "retry give_up"}
    )
    assert check(SKETCH, {"max_turns": 3, "max_retries": 0}, [contract]).ok


def test_contracts_of_the_shipped_loop_can_be_amended_for_an_extension_of_it():
    stricter = AGENT_LOOP.with_changes(
        counters=[Counter("refusals", 1)],
        replace_rows=[
            Row(
                "recovering",
                "refuse",
                "terminal",
                given={"response": "refusal"},
                do="discard_reply",
                reason="model_error",
            )
        ],
    )
    before = check(stricter, contracts=AGENT_LOOP_CONTRACTS)
    assert any("refuse" in verdict.problem for verdict in before.contracts if not verdict.holds)
    changed = [c for c in AGENT_LOOP_CONTRACTS if c.subject != ("enters", "refusal")]
    after = check(
        stricter,
        contracts=amended(changed, Enters("model_error", "model_failure unfinished_reply unknown_stop_reason refuse")),
    )
    assert [str(v) for v in after.contracts if not v.holds] == []


def test_the_second_statement_of_intent_is_short():
    assert len(AGENT_LOOP_CONTRACTS) < 80
    assert len({contract.subject for contract in AGENT_LOOP_CONTRACTS}) == len(AGENT_LOOP_CONTRACTS)
