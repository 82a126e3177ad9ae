"""Logging for the command line: quiet by default, structured on request."""

import json
import logging
import sys
from enum import StrEnum

from lakewright.interfaces.cli.output import printable


class LogFormat(StrEnum):
    """How log lines look."""

    text = "text"
    json = "json"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the facts of the record."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record as one line of JSON."""
        line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """One line for people: time, level, logger, message, then the facts of the record."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Write the record as one line of text."""
        facts = getattr(record, "facts", {})
        told = "".join(f" {name}={value}" for name, value in facts.items())
        return printable(super().formatMessage(record) + told)


def configure(verbosity: int, form: LogFormat) -> None:
    """Send Lakewright's log to standard error at the level that ``-v`` asks for."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form is LogFormat.json else TextLines())
    logger = logging.getLogger("lakewright")
    logger.handlers[:] = [handler]
    logger.setLevel({0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG))
