"""Logging for the command line: quiet by default, structured on request."""

import json
import logging
import sys
from enum import StrEnum


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


def configure(verbosity: int, form: LogFormat) -> None:
    """Send Lakewright's log to standard error at the level that ``-v`` asks for."""
    handler = logging.StreamHandler(sys.stderr)
    if form is LogFormat.json:
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logger = logging.getLogger("lakewright")
    logger.handlers[:] = [handler]
    logger.setLevel({0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG))
