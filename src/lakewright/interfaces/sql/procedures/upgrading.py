"""Procedures that change a table's version, under Hudi's names."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.interfaces.sql.procedures.registry import Arguments, Parameter, procedure
from lakewright.interfaces.sql.procedures.tables import (
    FLAG,
    PATH,
    TABLE,
    TEXT,
    Row,
    named_table,
    required,
)
from lakewright.model.errors import Invalid

if TYPE_CHECKING:
    from lakewright.api.lake import Lake

_VERSIONS = {"SIX": 6, "EIGHT": 8, "NINE": 9}
_TO = Parameter(
    "to_version", default=None, doc="SIX, EIGHT or NINE, or the number.", aliases=("toVersion",)
)
_ANSWER = pa.schema([("result", FLAG), ("message", TEXT)])


@procedure("upgrade_table", _ANSWER, TABLE, _TO, PATH, writes=True)
def upgrade_table(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Give a table another version, newer or older."""
    table = named_table(lake, arguments)
    done = table.upgrade(_version(required(arguments, "to_version", "upgrade_table")))
    yield {"result": True, "message": str(done)}


@procedure("downgrade_table", _ANSWER, TABLE, _TO, PATH, writes=True)
def downgrade_table(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Give a table an older version."""
    table = named_table(lake, arguments)
    done = table.downgrade(_version(required(arguments, "to_version", "downgrade_table")))
    yield {"result": True, "message": str(done)}


def _version(text: str) -> int:
    word = text.strip().upper()
    numbers = {str(number): number for number in _VERSIONS.values()}
    found = _VERSIONS.get(word) or numbers.get(word)
    if found is None:
        raise Invalid(
            f"to_version is {text!r}.",
            next_step=f"Allowed: {', '.join(_VERSIONS)}.",
            parameter="to_version",
        )
    return found
