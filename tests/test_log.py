import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from fsm_agent.log import LOGGER_NAME, logger

ROOT = Path(__file__).parent.parent


def test_fields_are_in_one_mapping_so_that_none_clashes(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, LOGGER_NAME):
        logger.bind(run="r1").info("next_turn", name="n", args=1, module="m", message="x", turn=2)
    (record,) = caplog.records
    assert record.name == LOGGER_NAME
    assert record.getMessage() == "next_turn"
    assert record.__dict__["fsm"] == {"run": "r1", "name": "n", "args": 1, "module": "m", "message": "x", "turn": 2}


def test_the_record_names_the_caller_not_structlog(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG, LOGGER_NAME):
        logger.debug("here")
        logger.bind(a=1).warning("here", stacklevel=1)
    assert {record.funcName for record in caplog.records} == {"test_the_record_names_the_caller_not_structlog"}
    assert {record.pathname for record in caplog.records} == {__file__}


def test_an_exception_goes_with_its_traceback(caplog: pytest.LogCaptureFixture):
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("tool_failed", tool="read")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError
    assert record.__dict__["fsm"] == {"tool": "read"}


def test_a_level_that_is_off_makes_no_record(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, LOGGER_NAME):
        logger.info("quiet")
    assert not caplog.records


def test_context_variables_of_the_program_are_among_the_fields(caplog: pytest.LogCaptureFixture):
    with structlog.contextvars.bound_contextvars(request="q7"), caplog.at_level(logging.INFO, LOGGER_NAME):
        logger.info("started", turn=1)
    assert caplog.records[0].__dict__["fsm"] == {"request": "q7", "turn": 1}


def test_the_programs_own_structlog_configuration_changes_nothing(caplog: pytest.LogCaptureFixture):
    structlog.configure(processors=[structlog.processors.JSONRenderer()], wrapper_class=structlog.BoundLogger)
    try:
        with caplog.at_level(logging.INFO, LOGGER_NAME):
            logger.info("started", turn=1)
    finally:
        structlog.reset_defaults()
    assert caplog.records[0].__dict__["fsm"] == {"turn": 1}


def test_a_program_that_set_up_no_logging_sees_nothing_and_structlog_stays_unconfigured():
    program = (
        "import logging, structlog\n"
        "from fsm_agent.log import logger\n"
        "logger.error('bad', turn=1)\n"
        "assert not structlog.is_configured()\n"
        "assert not logging.getLogger().handlers\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
