"""Queries on DuckDB, without Spark: the same language, translated, over streams of Arrow."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakewright.api.scan import Scan
from lakewright.interfaces.sql.query import Parsed, Use
from lakewright.interfaces.sql.text import teaching
from lakewright.model.errors import Invalid
from lakewright.model.extras import load_extra

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
    connection = _connection()
    for number, (_, scan) in enumerate(scans):
        connection.register(_view(number), scan)
    text = prefix + translated(parsed, [use for use, _ in scans], strict=strict)
    module = load_extra("duckdb", "duckdb", "lake.sql()")
    try:
        relation = connection.sql(text)
        reader = _reader(relation)  # which may compute rows already
    except module.Error as error:
        raise _failed(error, parsed.text) from error
    whole = [str(kind).upper() == "HUGEINT" for kind in relation.types]
    schema = pa.schema(
        [f.with_type(pa.int64()) if w else f for f, w in zip(reader.schema, whole, strict=True)]
    )

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
    """Refuse a query that DuckDB cannot read; what it names is not looked up."""
    module: Any = load_extra("duckdb", "duckdb", "lake.sql() without a Spark session")
    with module.connect() as connection:
        try:
            connection.extract_statements(translated(parsed, parsed.uses))
        except module.Error as error:
            raise _failed(error, parsed.text) from error


def _connection() -> "duckdb.DuckDBPyConnection":
    module: Any = load_extra("duckdb", "duckdb", "lake.sql() without a Spark session")
    connection = module.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # A name that is no table must not turn out to be a variable of whoever calls.
    connection.execute("SET python_enable_replacements = false")
    return connection  # type: ignore[no-any-return]


def _reader(relation: Any) -> pa.RecordBatchReader:  # noqa: ANN401 - releases differ
    make = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return make(_BATCH)


def translated(parsed: Parsed, uses: Sequence[Use], *, strict: bool = False) -> str:
    """Return the query in DuckDB's words, over the views that stand for the tables."""
    assert parsed.tree is not None
    tree = parsed.tree.copy()
    places = {id(node): n for n, node in enumerate(parsed.tree.walk())}
    copies = list(tree.walk())
    for number, use in enumerate(uses):
        table = copies[places[id(use.node)]]
        if use.alias is None:
            alias = exp.to_identifier(use.parts[-1], quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        table.set("this", exp.to_identifier(_view(number), quoted=True))
        for part in ("db", "catalog", "version"):
            table.set(part, None)
    known = {tuple(p.lower() for p in use.parts) for use in uses if len(use.parts) == 2}
    for column in tree.find_all(exp.Column):
        if column.args.get("db") and (column.db.lower(), column.table.lower()) in known:
            column.set("db", None)
    if strict:
        tree = tree.transform(_failing, copy=False)
    with teaching(parsed.text):
        return tree.sql(dialect="duckdb")


def _failing(node: exp.Expression) -> exp.Expression:
    """Return a conversion or a division that fails where it has no value."""
    if isinstance(node, exp.TryCast) and not node.args.get("safe"):
        return exp.Cast(this=node.this, to=node.args["to"])
    if not isinstance(node, exp.Div | exp.IntDiv):
        return node
    divisor = node.expression
    number = divisor.unnest()
    if isinstance(number, exp.Literal) and number.is_number and float(number.this) != 0:
        return node
    node.set("safe", False)
    nothing = exp.and_(
        exp.EQ(this=exp.paren(divisor), expression=exp.Literal.number(0)),
        exp.not_(exp.Is(this=exp.paren(node.this), expression=exp.Null())),
    )
    error = exp.Anonymous(this="error", expressions=[exp.Literal.string("Division by zero")])
    node.set("expression", exp.Case(ifs=[exp.If(this=nothing, true=error)], default=divisor.copy()))
    return node


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
