"""Wrong usage: a whole sentence that says what to write instead, on standard error, and exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.served import Caller

ROOT = Path(__file__).parent.parent.parent
BROKEN = "from fsm_agent.machine import AGENT_LOOP, Row\nAGENT_LOOP.with_rows(Row('nowhere', 'x', 'y'))\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "Missing argument 'PROMPT'."),
        (["run", "  "], "The prompt is blank; say what the agent should do."),
        (["run", "x", "--max-turns", "0"], "Invalid value for '--max-turns'"),
        (["run", "x", "--max-turns", "many"], "Invalid value for '--max-turns'"),
        (["run", "x", "--model", ""], "give the name of a model"),
        (["run", "x", "--cwd", "/no/such/folder"], "The directory '/no/such/folder' does not exist"),
        (["run", "x", "--base-url", "localhost:80"], "write one that begins with http:// or https://"),
        (["run", "x", "--nonsense"], "No such option: --nonsense"),
        (["draw", "machine"], "write MODULE:NAME, for example"),
        (["draw", "no_such_module:M"], "There is no module 'no_such_module'"),
        (["draw", "json:Machine"], "The module 'json' has no 'Machine'"),
        (["draw", "json:dumps"], "json:dumps is a function; name a Definition"),
        (["draw", "broken:M"], "'nowhere'"),
        (["draw", "--format", "gif"], "There is no format 'gif'; write one of dot, svg, mermaid, png."),
        (["draw", "--trace", "no.jsonl"], "The trace 'no.jsonl' cannot be read"),
        (["draw", "--trace", "broken.py"], "Line 1 of broken.py is no JSON"),
        (["draw", "--trace", "empty.jsonl"], "empty.jsonl holds no transition"),
        (["draw", "--trace", "other.jsonl"], "Step 1 of the trace is 'fly', but the state 'preprocess'"),
        (["draw", "-o", "no/such/folder/x.dot"], "The picture could not be written"),
        (["serve-model", "--script", "no.json"], "The model cannot be served"),
        (["serve-model", "--script", "broken.py"], "broken.py is no script"),
        (["serve-model"], "Missing option '--script'."),
        (["sing"], "No such command 'sing'."),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(
    fsm_agent: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "never-used")
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "empty.jsonl").write_text('{"type": "system"}\n')
    (tmp_path / "other.jsonl").write_text('{"type": "transition", "trigger": "fly"}\n')
    done = fsm_agent(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert words in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err


def test_help_names_every_verb_and_flag(fsm_agent: Caller):
    assert {"run", "verify", "draw", "serve-model"} <= set(fsm_agent("--help").out.split())
    flags = set(fsm_agent("run", "--help").out.split())
    assert {"--model", "--base-url", "--max-turns", "--cwd", "--json"} <= flags


def test_without_typer_or_rich_the_extra_is_named():
    program = "import sys; sys.modules['typer'] = None; sys.argv = ['fsm-agent']; import fsm_agent.cli as c; c.main()"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "The command line needs typer: pip install 'fsm_agent[cli]'.\n")
