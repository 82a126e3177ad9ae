"""Where the command line chooses its parts."""

from collections.abc import Iterator

import pyarrow as pa

from lakewright.api.opening import open_table
from lakewright.interfaces.entry import connect
from lakewright.interfaces.sql.run import SqlStatements

__all__ = ["open_table", "run_sql"]


def run_sql(place: str, text: str) -> Iterator[pa.Table]:
    """Run statements over a lake without Spark; each answer comes before the next one runs."""
    for answer in SqlStatements().each(connect(place), text):
        assert isinstance(answer, pa.Table)
        yield answer
