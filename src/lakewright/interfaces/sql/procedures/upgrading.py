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
from lakewright.model.shown import Shown

if TYPE_CHECKING:
    from lakewright.api.lake import Lake

_VERSIONS = {"SIX": 6, "EIGHT": 8, "NINE": 9}
_TO = Parameter(
    "to_version", default=None, doc="SIX, EIGHT or NINE, or the number.", aliases=("toVersion",)
)
_ANSWER = pa.schema([("result", FLAG), ("message", TEXT)])


def _plan_upgrade(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    version = _version(arguments, "upgrade_table")
    yield named_table(lake, arguments).upgrade(version, dry_run=True)


def _plan_downgrade(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    version = _version(arguments, "downgrade_table")
    yield named_table(lake, arguments).downgrade(version, dry_run=True)


@procedure("upgrade_table", _ANSWER, TABLE, _TO, PATH, writes=True, plan=_plan_upgrade)
def upgrade_table(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Give a table another version, newer or older."""
    done = named_table(lake, arguments).upgrade(_version(arguments, "upgrade_table"))
    yield {"result": True, "message": str(done)}


@procedure("downgrade_table", _ANSWER, TABLE, _TO, PATH, writes=True, plan=_plan_downgrade)
def downgrade_table(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Give a table an older version."""
    done = named_table(lake, arguments).downgrade(_version(arguments, "downgrade_table"))
    yield {"result": True, "message": str(done)}


def _version(arguments: Arguments, procedure: str) -> int:
    text = required(arguments, "to_version", procedure)
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
