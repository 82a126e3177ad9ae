"""The schema of a write: the table's columns, widened by what the rows bring.

What is accepted follows what real Hudi accepts without settings, so that it can go on with the
table:

* A column of the table that the rows lack is written as null, where it may be null.
* A column that the table lacks is added at the end, and may be null whatever the rows say.
* Numbers widen, in the table or in the rows: int, long, float, double, then text. Whole numbers of
  the rows beyond 2**24 in a float and 2**53 in a double are rounded, as they are in Hudi. Stored
  ones are not: a column of the table becomes a type that rounds only where a change of its schema
  says so, which is stricter than Hudi.
* Times of another unit are written in the table's, and refused by value where that cuts them.
  Times without a zone that meet a column with one are taken as UTC.
* Inside structs, lists and maps columns may be added and lacking too, but the table's types stay:
  real Hudi cannot read files across such a change. What the rows bring is widened.

* A struct without fields is refused, as is a new column with a time of day: files hold it, but
  Spark cannot read them. Tables that have such a column already keep it.

Anything else is refused with the column and both types. Names are compared exactly; two that
differ only by case are refused, since Spark could not tell them apart.
"""

from dataclasses import replace

from lakewright.format.hudi.config import TableConfig
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.schema import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    META_COLUMNS,
    OPERATION,
    STRING,
    DataType,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
    Time,
    Timestamp,
)
from lakewright.table.schemas import find_schema
from lakewright.table.state import TableState

_OWN_COLUMNS = frozenset({*META_COLUMNS, OPERATION})
#: Types of a table and of rows; with that of the rows stored numbers would be rounded.
_ROUNDS = frozenset({(INT, FLOAT), (LONG, FLOAT), (LONG, DOUBLE)})
#: Each type can be turned into those after it.
_LADDER: tuple[DataType, ...] = (INT, LONG, FLOAT, DOUBLE, STRING)


def stored_schema(state: TableState) -> Struct | None:
    """Return the columns as files hold them, Hudi's own left out; None where there are none yet.

    ``table_schema`` shows columns that a key generator formats as text; here they keep their
    type.
    """
    found = find_schema(state.storage, state.config, state.timeline)
    return None if found is None else found.without(_OWN_COLUMNS)


def written_schema(
    stored: Struct | None, incoming: Struct, config: TableConfig, *, rounds: bool = False
) -> Struct:
    """Return the columns that a write of rows with ``incoming`` leaves the table with.

    Hudi's own columns in the rows are left out. ``Invalid`` names the column and both types of
    a change that would lose something; with ``rounds`` stored numbers may become such as are
    rounded.
    """
    rows = incoming.without(_OWN_COLUMNS)
    result = rows if stored is None else _struct(stored, rows, "")
    check_columns(result, stored)
    partitions = tuple(field.name for field in config.partition_fields)
    for name in (*config.record_key, *partitions, *config.ordering):
        kind = result.find(name)
        if kind is None:
            raise Invalid(
                f"the table's key, partition or ordering column {name!r} is not in the rows.",
                next_step=f"The rows have {', '.join(rows.names) or 'no columns'}.",
                column=name,
            )
        before = None if stored is None else stored.find(name)
        if before is not None and not _same_sense(before, kind, ordering=name in config.ordering):
            raise _fixed(name, before, kind)
    for field in () if stored is None or rounds else stored.fields:
        after = result.field(field.name).type
        if (field.type, after) in _ROUNDS:
            raise _rounded(field.type, after, field.name)
    return result


def _same_sense(before: DataType, after: DataType, *, ordering: bool) -> bool:
    """Say whether values keep their text, and with ``ordering`` their order, in the new type."""
    if before == after:
        return True
    match before, after:
        case Decimal(), Decimal():
            return before.scale == after.scale
        case _ if after == STRING:
            return not ordering
        case _:
            return ordering or (before, after) in ((INT, LONG), (FLOAT, DOUBLE))


def _fixed(name: str, before: DataType, after: DataType) -> Invalid:
    return Invalid(
        f"column {name} is {before} in the table and would become {after}, but records are found "
        "or ordered by it, and their stored values would not match.",
        next_step=f"Cast the rows to {before}.",
        column=name,
        stored=str(before),
        incoming=str(after),
    )


def _struct(stored: Struct, incoming: Struct, prefix: str) -> Struct:
    given = {field.name: field for field in incoming}
    known = frozenset(stored.names)
    by_case = {name.lower(): name for name in stored.names}
    fields = [_kept(field, given.get(field.name), prefix) for field in stored]
    for field in incoming:
        if field.name in known:
            continue
        if field.name.lower() in by_case:
            raise _case(prefix + by_case[field.name.lower()], prefix + field.name)
        fields.append(replace(field, nullable=True, id=None))
    return Struct(tuple(fields))


def _kept(stored: Field, incoming: Field | None, prefix: str) -> Field:
    path = prefix + stored.name
    if incoming is None:
        if not stored.nullable:
            raise Invalid(
                f"the rows lack the column {path}, which may not be null.",
                next_step="Add it to the rows.",
                column=path,
            )
        return stored
    return replace(stored, type=_type(stored.type, incoming.type, path))


def _type(stored: DataType, incoming: DataType, path: str) -> DataType:
    if stored == incoming:
        return stored
    match stored, incoming:
        case Struct(), Struct():
            return _struct(stored, incoming, f"{path}.")
        case List(), List():
            element = _type(stored.element, incoming.element, f"{path}.element")
            return replace(stored, element=element)
        case Map(), Map() if stored.key == incoming.key:
            return replace(stored, value=_type(stored.value, incoming.value, f"{path}.value"))
        case _:
            kind = _leaf(stored, incoming, path)
            if kind != stored and "." in path:
                raise Invalid(
                    f"column {path} is {stored} in the table and {incoming} in the rows; inside of "
                    "another column a type cannot change, since Hudi could not read older files.",
                    next_step=f"Cast the rows to {stored}.",
                    column=path,
                    stored=str(stored),
                    incoming=str(incoming),
                )
            return kind


def _leaf(stored: DataType, incoming: DataType, path: str) -> DataType:
    if stored in _LADDER and incoming in _LADDER:
        return max(stored, incoming, key=_LADDER.index)
    match stored, incoming:
        case Decimal(), Decimal() if _holds(stored, incoming):
            return stored
        case Decimal(), Decimal() if _holds(incoming, stored):
            return incoming
        case Timestamp(), Timestamp() if stored.utc or not incoming.utc:
            return stored
        case Time(), Time():
            return stored
        case Fixed(), _ if incoming == BINARY:
            return stored  # Spark knows no other kind of bytes; their number is looked at by value
        case _, Fixed() if stored == BINARY:
            return stored
        case _:
            raise _lossy(stored, incoming, path)


def _holds(wide: Decimal, narrow: Decimal) -> bool:
    whole = wide.precision - wide.scale >= narrow.precision - narrow.scale
    return whole and wide.scale >= narrow.scale


def _lossy(stored: DataType, incoming: DataType, path: str) -> Invalid:
    return Invalid(
        f"column {path} is {stored} in the table and {incoming} in the rows; neither turns into "
        "the other without loss.",
        next_step=f"Cast the rows to {stored}. Without a cast, int, long, float, double and "
        "string turn into those after them, and decimals into ones with more digits.",
        column=path,
        stored=str(stored),
        incoming=str(incoming),
    )


def _rounded(stored: DataType, incoming: DataType, path: str) -> Invalid:
    return Invalid(
        f"column {path} is {stored} in the table and {incoming} in the rows; as {incoming} stored "
        "numbers could be rounded.",
        next_step=f"Cast the rows to {stored}, or change the table first: "
        f"table.widen_column({path!r}, {str(incoming)!r}).",
        column=path,
        stored=str(stored),
        incoming=str(incoming),
    )


def check_columns(schema: Struct, stored: Struct | None = None) -> None:
    """Refuse columns that Hudi could not hold, or could not read again.

    These are names that Avro or Spark cannot tell apart or write, maps whose keys are no text,
    structs without fields, fixed bytes of no size, and times of day. ``stored`` are the columns
    that the table has: a time of day among them stays, whoever put it there.
    """
    _check_type(schema, stored, "")


def _check_type(kind: DataType, stored: DataType | None, path: str) -> None:
    column = path.rstrip(".")
    match kind:
        case Struct():
            _check_fields(kind, stored, path)
        case List():
            inner = stored.element if isinstance(stored, List) else None
            _check_type(kind.element, inner, f"{path}element.")
        case Map():
            if kind.key != STRING:
                raise Invalid(
                    f"{column} is a map with keys of type {kind.key}.",
                    next_step="Hudi knows maps with string keys only.",
                    column=column,
                )
            inner = stored.value if isinstance(stored, Map) else None
            _check_type(kind.value, inner, f"{path}value.")
        case Fixed() if not kind.size:
            raise Invalid(
                f"column {column} is {kind}: bytes of which there are none.",
                next_step="Cast it to binary, or leave it out.",
                column=column,
            )
        case Time() if not isinstance(stored, Time):
            raise Unsupported(
                f"column {column} is a time of day ({kind}), and neither Spark nor Hudi on it "
                "reads files that hold one: the whole table could no longer be read there.",
                next_step="Cast it to string, or to a bigint of microseconds since midnight.",
                column=column,
                type=str(kind),
            )
        case _:
            pass


def _check_fields(struct: Struct, stored: DataType | None, path: str) -> None:
    if path and not struct.fields:
        column = path.rstrip(".")
        raise Invalid(
            f"column {column} is a struct without fields, which neither Parquet nor Avro can hold.",
            next_step="Give the struct a field, or leave the column out.",
            column=column,
        )
    known = {field.name: field.type for field in stored} if isinstance(stored, Struct) else {}
    seen: dict[str, str] = {}
    for field in struct:
        if not field.name.isidentifier():
            raise Invalid(
                f"{path}{field.name!r} is no column name for Hudi.",
                next_step="Use letters, digits and '_', and no digit first.",
                column=f"{path}{field.name}",
            )
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise _case(path + other, path + field.name)
        _check_type(field.type, known.get(field.name), f"{path}{field.name}.")


def _case(known: str, other: str) -> Invalid:
    return Invalid(
        f"the columns {known!r} and {other!r} differ only by case.",
        next_step=f"Rename {other!r}; Spark could not tell them apart.",
        column=other,
    )
