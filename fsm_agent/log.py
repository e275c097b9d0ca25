"""Structured logging, the way a library does it: nothing is configured, and nothing is printed unless the program asks.

All of fsm_agent logs through one standard logger, named ``fsm_agent``. A record's message is a short event name; its
fields are in one mapping, ``record.fsm``, so that none of them can clash with the attributes that `logging` gives to
each record (a field called ``name`` in ``extra`` would raise). What the program bound with
`structlog.contextvars.bind_contextvars` is among them.

>>> import logging
>>> class Print(logging.Handler):
...     def emit(self, record):
...         print(record.levelname, record.getMessage(), record.fsm)
>>> handler = Print()
>>> logging.getLogger("fsm_agent").addHandler(handler)
>>> logger.bind(run="r1").warning("transport_retry", name="calling_model", wait_s=1.5)
WARNING transport_retry {'run': 'r1', 'name': 'calling_model', 'wait_s': 1.5}
>>> logging.getLogger("fsm_agent").removeHandler(handler)
"""

import logging
from typing import Final, cast

import structlog
from structlog.typing import EventDict, WrappedLogger

__all__ = ["LOGGER_NAME", "logger"]

LOGGER_NAME: Final = "fsm_agent"

_LOGGING_KEYWORDS: Final = ("exc_info", "stack_info", "stacklevel")
# structlog's own calls between the caller of `logger.info` and the standard logger.
_STRUCTLOG_FRAMES: Final = 3


def _to_logging(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
    """The last processor: make the event dict the keyword arguments of `logging.Logger`'s methods."""
    arguments: EventDict = {key: fields.pop(key) for key in _LOGGING_KEYWORDS if key in fields}
    arguments["stacklevel"] = arguments.get("stacklevel", 1) + _STRUCTLOG_FRAMES
    arguments["msg"] = fields.pop("event")
    arguments["extra"] = {"fsm": fields}
    return arguments


def _make_logger() -> structlog.stdlib.BoundLogger:
    standard = logging.getLogger(LOGGER_NAME)
    standard.addHandler(logging.NullHandler())  # else `logging` prints warnings of a program that set up nothing
    wrapped = structlog.wrap_logger(
        standard,
        # A level that is off costs one look-up: the filter comes first.
        processors=[structlog.stdlib.filter_by_level, structlog.contextvars.merge_contextvars, _to_logging],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
    )
    # `bind` takes all settings from the arguments above, once: a later `structlog.configure` of the program's own
    # changes nothing here.
    return cast("structlog.stdlib.BoundLogger", wrapped.bind())


logger: Final = _make_logger()
"""The library's logger. Bind fields with ``logger.bind(run=..., turn=...)``; events are snake_case names."""
