"""Queries on DuckDB, without Spark: the same language, translated, over streams of Arrow."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakewright.api.scan import Scan
from lakewright.format.arrow.schema import from_arrow_schema, to_arrow_type
from lakewright.interfaces.sql.duck_macros import MACROS
from lakewright.interfaces.sql.duck_meaning import NAMELESS, check_functions, meant, read_plainly
from lakewright.interfaces.sql.duck_scopes import Columns
from lakewright.interfaces.sql.query import Parsed, Use
from lakewright.interfaces.sql.text import teaching
from lakewright.model.errors import Invalid
from lakewright.model.expression.types import is_nested
from lakewright.model.extras import load_extra
from lakewright.model.schema import BINARY, DataType, Fixed, Timestamp, Unit

if TYPE_CHECKING:
    import duckdb

#: Rows in a batch that DuckDB hands out.
_BATCH = 64 << 10


def duck_rows(
    parsed: Parsed, scans: Sequence[tuple[Use, Scan]], prefix: str = "", *, strict: bool = False
) -> pa.RecordBatchReader:
    """Run a query; the rows stream, and so do those of the tables, as often as DuckDB asks.

    With ``strict`` a value that cannot be computed is an error, else it is null.
    """
    text, columns = translated(parsed, [(use, scan.schema) for use, scan in scans], strict=strict)
    connection = _connection()
    for number, (_, scan) in enumerate(scans):
        connection.register(_view(number), scan)
    module = load_extra("duckdb", "duckdb", "lake.sql()")
    try:
        relation = connection.sql(prefix + text)
        reader = _reader(relation)  # which may compute rows already
    except module.Error as error:
        raise _failed(error, parsed.text) from error
    schema = reader.schema if prefix else _as_spark(reader.schema, columns)

    def batches() -> Iterator[pa.RecordBatch]:
        # The connection lives as long as somebody takes rows of it.
        with connection:
            try:
                for batch in reader:
                    yield _narrowed(batch, schema)
            except (module.Error, pa.ArrowException) as error:
                raise _failed(error, parsed.text) from error

    return pa.RecordBatchReader.from_batches(schema, batches())


def check_duck_form(parsed: Parsed) -> None:
    """Refuse a query that DuckDB cannot read, or that calls what is not known without Spark.

    What it names is not looked up, and so the types of its columns are not known.
    """
    assert parsed.tree is not None
    check_functions(parsed.text)
    module: Any = load_extra("duckdb", "duckdb", "lake.sql() without a Spark session")
    with module.connect() as connection, teaching(parsed.text):
        try:
            connection.extract_statements(parsed.tree.sql(dialect="duckdb"))
        except module.Error as error:
            raise _failed(error, parsed.text) from error


def _connection() -> "duckdb.DuckDBPyConnection":
    module: Any = load_extra("duckdb", "duckdb", "lake.sql() without a Spark session")
    connection = module.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # A name that is no table must not turn out to be a variable of whoever calls.
    connection.execute("SET python_enable_replacements = false")
    connection.execute(";".join(f"CREATE MACRO {macro}" for macro in MACROS))
    return connection  # type: ignore[no-any-return]


def _reader(relation: Any) -> pa.RecordBatchReader:  # noqa: ANN401 - releases differ
    make = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return make(_BATCH)


def translated(
    parsed: Parsed, tables: Sequence[tuple[Use, pa.Schema]], *, strict: bool = False
) -> tuple[str, Columns]:
    """Return the query in DuckDB's words, over views that stand for the tables, and its columns.

    ``strict`` makes an error of a value that cannot be computed.
    """
    tree = read_plainly(parsed.text)
    places = {_place(table): table for table in tree.find_all(exp.Table) if table.parts}
    found: dict[int, Columns] = {}
    for number, (use, schema) in enumerate(tables):
        table = places[_place(use.node)]
        if use.alias is None:
            alias = exp.to_identifier(use.parts[-1], quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        table.set("this", exp.to_identifier(_view(number), quoted=True))
        for part in ("db", "catalog", "version"):
            table.set(part, None)
        found[id(table)] = [(f.name, _kind(f.type)) for f in from_arrow_schema(schema)]
    uses = [use for use, _ in tables]
    known = {tuple(p.lower() for p in use.parts) for use in uses if len(use.parts) == 2}
    for column in tree.find_all(exp.Column):
        if column.args.get("db") and (column.db.lower(), column.table.lower()) in known:
            column.set("db", None)
    with teaching(parsed.text):
        columns = meant(tree, found, strict=strict)
        return tree.sql(dialect="duckdb", identify=True, normalize_functions=False), columns


def _place(table: exp.Table | None) -> int:
    """Return where in the text a table is named."""
    assert table is not None
    place = table.parts[0].meta.get("start", -1)
    assert isinstance(place, int)
    return place


def _kind(kind: DataType) -> DataType:
    """Return the type that Spark has for a column."""
    match kind:
        case Timestamp(utc=utc):
            return Timestamp(Unit.MICROS, utc=utc)
        case Fixed():
            return BINARY
        case _:
            return kind


def _as_spark(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """Return the columns as Spark gives them, where DuckDB has other types or needs a name."""
    fields = []
    for field, (name, kind) in zip(schema, columns, strict=True):
        shown = field.with_name("") if name == NAMELESS else field
        if kind is not None and not is_nested(kind):
            shown = shown.with_type(to_arrow_type(kind))
        fields.append(shown)
    return pa.schema(fields)


def _view(number: int) -> str:
    return f"lakewright_{number}"


def _narrowed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    columns = [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


#: What DuckDB raises where a value cannot be computed.
_COMPUTING = frozenset({"ConversionException", "InvalidInputException", "OutOfRangeException"})


def _failed(error: Exception, text: str) -> Invalid:
    return Invalid(
        f"DuckDB cannot answer the query: {str(error).strip()}",
        next_step="A value cannot be computed: use CASE WHEN, or TRY_CAST for null."
        if type(error).__name__ in _COMPUTING
        else "The language is Spark's SQL; functions that only Spark knows need a session: "
        "lakewright.connect(place, spark=spark).",
        sql=text,
    )
