"""Structured logging: a message for people, and facts for programs.

    log.warning("a corrupt log block was passed over", extra=facts(path=path, offset=offset))

A handler that knows facts writes them too: ``lakewright`` behind its messages, and with
``--log-format json`` as fields. Any other writes the message alone. Without a handler of the
application's, nothing is written.
"""

from collections.abc import Mapping


def facts(**values: object) -> Mapping[str, object]:
    """Return the ``extra`` of a log call that carries these values."""
    return {"facts": values}
