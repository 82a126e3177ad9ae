"""Where the command line chooses its parts."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakewright.actions.disable_metadata import disable_metadata, find_metadata
from lakewright.api.opening import open_table
from lakewright.api.runner import ServicesRunner
from lakewright.api.table import Table
from lakewright.format.hudi.properties import load_properties
from lakewright.interfaces.entry import connect
from lakewright.interfaces.sql.run import SqlStatements
from lakewright.model.errors import Invalid
from lakewright.storage.open import open_storage
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.locks.port import TableLock

__all__ = [
    "ServicesRunner",
    "Table",
    "connect",
    "disable_metadata",
    "find_metadata",
    "open_storage",
    "open_table",
    "run_sql",
    "table_lock",
]


def table_lock(path: str, settings: Iterable[str]) -> TableLock:
    """Return the lock of the table at ``path``; ``settings`` are ``key=value`` texts."""
    options = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise Invalid(f"{text!r} is no setting.", next_step="Write it as key=value.")
        options[key.strip()] = value.strip()
    storage = open_storage(path, options)
    return open_lock(storage, {**load_properties(storage), **options})


def run_sql(place: str, text: str) -> Iterator[pa.Table]:
    """Run statements over a lake without Spark; each answer comes before the next one runs."""
    for answer in SqlStatements().each(connect(place), text):
        assert isinstance(answer, pa.Table)
        yield answer
