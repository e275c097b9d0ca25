"""`fsm-agent export`: the shipped machine, or one's own, for other tools."""

from pathlib import Path

import pytest

from fsm_agent.machine import AGENT_LOOP
from fsm_agent.verify.export import FORMATS
from tests.cli.served import Caller


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_is_written(fsm_agent: Caller, tmp_path: Path, form: str):
    file = tmp_path / "machine"
    assert fsm_agent("export", "--format", form, "-o", str(file)).code == 0
    assert file.read_text() == FORMATS[form](AGENT_LOOP, None)
    assert fsm_agent("export", "--format", form).out == file.read_text()


def test_a_format_that_there_is_not(fsm_agent: Caller):
    done = fsm_agent("export", "--format", "tla")
    assert done.code == 2
    assert "There is no format 'tla'; write one of promela, scxml, xstate." in done.err


def test_a_file_that_cannot_be_written(fsm_agent: Caller, tmp_path: Path):
    done = fsm_agent("export", "-o", str(tmp_path / "no" / "such" / "folder"))
    assert done.code == 2
    assert "could not be written" in done.err
