"""What procedures about one table share: how a call names it, and how answers are cut."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lakewright.api.opening import open_table
from lakewright.format.arrow.expression import residual_filter
from lakewright.format.arrow.schema import from_arrow_schema, normalised
from lakewright.interfaces.sql.procedures.registry import Arguments, Kind, Parameter
from lakewright.model.errors import Invalid
from lakewright.model.expression.bind import bind
from lakewright.model.expression.parse import parse_expression

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table

T = TypeVar("T")
Row = Mapping[str, object]

TEXT, LONG, INT, FLAG = pa.string(), pa.int64(), pa.int32(), pa.bool_()
_BOUND = re.compile(r"[0-9]{1,17}", re.ASCII)

TABLE = Parameter("table", default=None, doc="The table's name in the lake.")
PATH = Parameter("path", default=None, doc="Its path, instead of a name.")
LIMIT = Parameter("limit", Kind.WHOLE, 10, doc="At most so many rows.", least=0)
ARCHIVED = Parameter(
    "showArchived", Kind.FLAG, False, doc="Go on into the archive.", aliases=("archived", "history")
)
FILTER = Parameter("filter", default="", doc="A condition on the columns of the answer.")
OPTIONS = Parameter("options", default=None, doc="Settings of this call: 'key=value,key=value'.")


def named_table(lake: "Lake", arguments: Arguments) -> "Table":
    """Open the table that a call names, by its name or by its path."""
    table, path = arguments.get("table"), arguments.get("path")
    if (table is None) == (path is None):
        raise Invalid("give table or path, and one of them.", next_step="table => 'database.table'")
    if table is not None:
        return lake.table(str(table))
    return open_table(str(path), spark=lake.spark)


def limited(found: Iterable[T], arguments: Arguments) -> Iterator[T]:
    """Stream as many as the call asks for; NULL is all."""
    limit = arguments["limit"]
    if limit is None:
        return iter(found)
    assert isinstance(limit, int)
    return islice(found, limit)


def filtered(rows: Iterable[Row], columns: pa.Schema, arguments: Arguments) -> Iterator[Row]:
    """Stream the rows for which the condition of the call holds."""
    text = arguments["filter"]
    if not text:
        yield from rows
        return
    bound = bind(parse_expression(str(text)), from_arrow_schema(normalised(columns)))
    keep = residual_filter(bound)
    for row in rows:
        batch = pa.RecordBatch.from_pylist([dict(row)], schema=columns)
        if keep is None or keep(batch).num_rows:
            yield row


def text_of(arguments: Arguments, name: str) -> str | None:
    """Return an argument; an empty text counts as none, as in Hudi."""
    value = arguments[name]
    return None if value is None or value == "" else str(value)


def bound_of(arguments: Arguments, name: str) -> str | None:
    """Return an argument that bounds instants: one, or the digits that it begins with, as in Hudi.

    ``Invalid`` for anything else, which would be compared with instants all the same.
    """
    text = text_of(arguments, name)
    if text is not None and _BOUND.fullmatch(text) is None:
        raise Invalid(
            f"{name} is {text!r}, which is no instant.",
            next_step="Give 17 digits (yyyyMMddHHmmssSSS), or those that an instant begins with.",
            parameter=name,
            value=text,
        )
    return text


def whole_of(arguments: Arguments, name: str) -> int | None:
    """Return an argument that is a whole number, or None."""
    value = arguments[name]
    assert value is None or isinstance(value, int)
    return value


def required(arguments: Arguments, name: str, procedure: str) -> str:
    """Return an argument that the call must give, though ``path`` may stand for those before it."""
    value = text_of(arguments, name)
    if value is None:
        raise Invalid(f"{procedure} needs {name}.", next_step=f"Write {name} => '…'.")
    return value


def settings_of(arguments: Arguments) -> dict[str, str]:
    """Read the settings of a call."""
    found = {}
    for part in (text_of(arguments, "options") or "").split(","):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals:
            raise Invalid(f"options: {part!r} is no setting.", next_step="Write 'key=value,…'.")
        found[key.strip()] = value.strip()
    return found
