"""The pictures say what the declaration says: each row, each reason, each guard, and nothing that is not there."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter as Multiset
from pathlib import Path

import pytest

from fsm_agent import diagram
from fsm_agent.diagram import GraphvizError, Kind, TraceError, kind_of
from fsm_agent.diagram.files import is_drawn_from, text_files, write_files
from fsm_agent.machine import (
    AGENT_LOOP,
    AnyOf,
    Below,
    Counter,
    Definition,
    EffectSpec,
    Increment,
    Not,
    Row,
    StateSpec,
)

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "diagrams"
ROWS = [pytest.param(row, id=" ".join(row.key)) for row in AGENT_LOOP.rows]
PATH = ["context_ready", "tools_requested", "next_turn", "context_ready", "response_ended", "complete"]


def traffic_light(**changes: object) -> Definition:
    """A machine of three states with words that need escaping."""
    parts: dict[str, object] = {
        "name": "traffic <light>",
        "initial": "red",
        "states": (StateSpec("red"), StateSpec("end", note='of "green" & more'), StateSpec("dark", final=True)),
        "effects": (EffectSpec("wait", "red", ("over", "power cut")), EffectSpec("drive", "end", ("past", "jam"))),
        "counters": (Counter("rounds", 3),),
        "flags": (),
        "rows": (
            Row("red", "go", "end", given={"wait": "over"}),
            Row("red", "fail", "dark", given={"wait": "power cut"}, reason="power cut"),
            Row("end", "stop", "red", given={"drive": "past"}, when=Below("rounds"), update=Increment("rounds")),
            Row("end", "finish", "dark", given={"drive": "past"}, reason="tired"),
            Row("end", "crash", "dark", given={"drive": "jam"}, reason="jam"),
        ),
    }
    return Definition(**(parts | changes))  # type: ignore[arg-type]


# ---- the files in the repository


@pytest.mark.parametrize("name", text_files(AGENT_LOOP))
def test_the_diagram_in_the_repository_is_up_to_date(name: str):
    stored = (FOLDER / name).read_text(encoding="utf-8")
    assert stored == text_files(AGENT_LOOP)[name], "Run `make diagrams`."


@pytest.mark.parametrize("name", ["agent_loop", "agent_loop_overview"])
def test_the_svg_in_the_repository_was_drawn_from_the_declaration(name: str):
    assert is_drawn_from(FOLDER / f"{name}.svg", text_files(AGENT_LOOP)[f"{name}.dot"]), "Run `make diagrams`."


@pytest.mark.parametrize("name", ["agent_loop", "agent_loop_overview"])
def test_graphviz_draws_the_same_structure_as_in_the_repository(name: str):
    """Places differ between versions of Graphviz and between fonts; texts, titles and their number do not."""
    drawn = diagram.render(text_files(AGENT_LOOP)[f"{name}.dot"], "svg").decode()
    assert structure(drawn) == structure((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))


def structure(svg: str) -> Multiset[str]:
    tags = (element for element in ET.fromstring(svg).iter() if element.tag.endswith(("}text", "}title")))
    return Multiset("".join(element.itertext()).strip() for element in tags)


def test_an_outdated_svg_is_noticed_and_drawn_again(tmp_path: Path):
    write_files(AGENT_LOOP, tmp_path)
    assert write_files(AGENT_LOOP, tmp_path) == []
    changed = AGENT_LOOP.without_row("calling_model", "spend_limit")
    assert not is_drawn_from(tmp_path / "agent_loop.svg", diagram.dot(changed))
    assert {path.name for path in write_files(changed, tmp_path)} >= {"agent_loop.dot", "agent_loop.svg"}


def test_the_texts_do_not_depend_on_the_hash_seed():
    program = (
        "from fsm_agent.diagram.files import text_files\nfrom fsm_agent.machine import AGENT_LOOP\n"
        "import hashlib; print(hashlib.sha256(repr(text_files(AGENT_LOOP)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(digests) == 1


# ---- each row and each reason


@pytest.mark.parametrize("row", ROWS)
def test_each_row_is_an_arrow_and_a_line_of_its_state_in_the_detailed_picture(row: Row):
    text = diagram.dot(AGENT_LOOP)
    assert text.count(f'tooltip="{row}"') == 1
    table = re.search(rf'^  "{row.source}" \[label=<(.*)>, tooltip', text, re.MULTILINE)
    assert table
    assert f"<B>{row.trigger}</B>" in table[1]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("overview", [True, False], ids=["overview", "detailed"])
@pytest.mark.parametrize("form", [diagram.dot, diagram.mermaid])
def test_each_trigger_and_reason_is_in_each_form(row: Row, overview: bool, form):
    text = form(AGENT_LOOP, overview=overview)
    assert re.search(rf"\b{row.trigger}\b", text)
    assert row.reason is None or re.search(rf"\b{row.reason}\b", text)


@pytest.mark.parametrize("reason", AGENT_LOOP.reasons)
def test_each_reason_is_a_final_node_with_a_double_border(reason: str):
    (line,) = (line for line in diagram.dot(AGENT_LOOP).splitlines() if line.startswith(f'  "reason {reason}" ['))
    assert "peripheries=2" in line


def test_a_row_tells_its_facts_guards_updates_and_actions():
    table = table_of(diagram.dot(AGENT_LOOP), "recovering")
    for text in (
        "response: cut, pause_turn",
        "or compact: aborted",
        "[max_output_tokens_recoveries &lt; max]",
        "[transport_retries &lt; overload_retries_before_fallback",
        "or fallbacks at max]",
        "[not reactive_compact_attempted]",
        "stop_hook_active set",
        "ask to continue truncated",
    ):
        assert text in table, text
    assert "response: any but tool_use, budget_spent, aborted" in table_of(diagram.dot(AGENT_LOOP), "calling_model")


def table_of(text: str, state: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f'  "{state}" [label='))


def test_rows_stand_in_document_order():
    table = table_of(diagram.dot(AGENT_LOOP), "recovering")
    _, *triggers = re.findall(r"<B>(\w+)</B></FONT><BR", table)  # the state's name comes first
    assert triggers == [row.trigger for row in AGENT_LOOP.rows_from("recovering")]


@pytest.mark.parametrize(
    ("source", "trigger", "kind"),
    [
        ("preprocess", "context_ready", Kind.STEP),
        ("executing_tools", "next_turn", Kind.TURN),
        ("recovering", "stop_hook_blocking", Kind.TURN),
        ("recovering", "model_fallback", Kind.REPAIR),
        ("recovering", "abort", Kind.ABORT),
        ("recovering", "complete", Kind.SUCCESS),
        ("executing_tools", "turn_limit", Kind.FAILURE),
    ],
)
def test_rows_are_coloured_by_what_they_declare(source: str, trigger: str, kind: Kind):
    assert kind_of(AGENT_LOOP, AGENT_LOOP.row(source, trigger)) is kind


# ---- overlays


def test_a_path_is_drawn_over_the_machine_with_its_steps():
    text = diagram.dot(AGENT_LOOP, trace=PATH)
    assert "steps 1, 4" in table_of(text, "preprocess")
    assert "step 6" in table_of(text, "recovering")
    untaken = next(line for line in text.splitlines() if line.startswith('  "reason refusal" ['))
    taken = next(line for line in text.splitlines() if line.startswith('  "reason completed" ['))
    assert "#b4bfcc" in untaken
    assert "#15803d" in taken


def test_steps_of_a_long_run_are_counted_not_listed():
    long = ["context_ready", "tools_requested", "next_turn"] * 50
    assert "steps 1, 4, 7, \N{HORIZONTAL ELLIPSIS} (50\N{MULTIPLICATION SIGN})" in diagram.dot(AGENT_LOOP, trace=long)


@pytest.mark.parametrize("form", [diagram.dot, diagram.mermaid])
@pytest.mark.parametrize("overview", [True, False])
def test_coverage_counts_each_row_and_shows_what_was_never_taken(form, overview: bool):
    text = form(AGENT_LOOP, coverage={("recovering", "refuse"): 7}, overview=overview)
    assert text.count("7\N{MULTIPLICATION SIGN}") == 1
    assert text.count("never") >= len(AGENT_LOOP.rows) - 1


@pytest.mark.parametrize(
    ("overlay", "sentence"),
    [
        ({"trace": ["context_ready", "complete"]}, "Step 2 of the trace is 'complete', but the state 'calling_model'"),
        ({"trace": [*PATH, "abort"]}, "the run has ended"),
        ({"coverage": {("recovering", "retry"): 1}}, "the row recovering --retry-->, which the machine"),
        ({"trace": [], "coverage": {}}, "a trace or a coverage, not both"),
    ],
)
def test_an_overlay_of_another_machine_is_refused(overlay, sentence: str):
    with pytest.raises((TraceError, ValueError), match=re.escape(sentence)):
        diagram.dot(AGENT_LOOP, **overlay)


# ---- machines of users


@pytest.mark.parametrize("overview", [True, False])
def test_any_words_are_escaped(overview: bool):
    svg = diagram.svg(traffic_light(), overview=overview)
    texts = structure(svg)
    assert any("power cut" in text for text in texts)
    assert any('of "green" & more' in text for text in texts)
    text = diagram.mermaid(traffic_light(), overview=overview)
    assert 'state "end" as end_' in text  # `end` is a word of Mermaid's own
    assert "power_cut" in text or "power cut" in text


def test_a_user_s_state_appears_with_its_rows():
    machine = AGENT_LOOP.with_changes(
        name="with_approval",
        states=[StateSpec("awaiting_approval", inherits=("response",), note="a person decides")],
        effects=[EffectSpec("approval", "awaiting_approval", ("granted", "denied"))],
        replace_rows=[Row("calling_model", "tools_requested", "awaiting_approval", given={"response": "tool_use"})],
        rows=[
            Row("awaiting_approval", "approve", "executing_tools", given={"approval": "granted"}),
            Row("awaiting_approval", "deny", "terminal", given={"approval": "denied"}, reason="denied"),
        ],
    )
    assert "a person decides" in structure(diagram.svg(machine))
    assert "awaiting_approval --> executing_tools : approve" in diagram.mermaid(machine)


def test_a_choice_among_other_guards_is_in_parentheses_in_one_line():
    guards = (Below("rounds"), AnyOf(Below("rounds", 1), Not(Below("rounds", 2))))
    rows = tuple(
        Row("end", "stop", "red", given={"drive": "past"}, when=guards, update=Increment("rounds"))
        if row.trigger == "stop"
        else row
        for row in traffic_light().rows
    )
    text = diagram.mermaid(traffic_light(rows=rows))
    assert "[rounds below max and (rounds below 1 or rounds at 2)]" in text


# ---- Graphviz


def test_a_png_is_drawn():
    assert diagram.png(traffic_light()).startswith(b"\x89PNG")


def test_without_graphviz_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(GraphvizError, match=r"apt-get install graphviz.*fsm_agent\[diagrams\]"):
        diagram.svg(AGENT_LOOP)


def test_a_text_that_graphviz_refuses_is_told():
    with pytest.raises(GraphvizError, match="syntax error"):
        diagram.render("digraph {", "svg")


def test_the_command_that_make_calls(tmp_path: Path):
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fsm_agent.diagram", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert call().returncode == 2
    first, second = call(str(tmp_path)), call(str(tmp_path))
    assert len(first.stdout.split()) == 6
    assert second.stdout == f"{tmp_path} is up to date.\n"
