"""Structured logging: a message for people, and facts for programs.

    log.warning("a corrupt log block was passed over", extra=facts(path=path, offset=offset))

A handler that knows facts (``lakewright --log-format json`` has one) writes them as fields; any
other writes the message alone. Without a handler of the application's, nothing is written.
"""

from collections.abc import Mapping


def facts(**values: object) -> Mapping[str, object]:
    """Return the ``extra`` of a log call that carries these values."""
    return {"facts": values}
