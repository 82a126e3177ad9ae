"""Queries over the tables that they name, on Spark or on DuckDB."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lakewright.api.scan import Scan
from lakewright.interfaces.sql.creating import sql_columns
from lakewright.interfaces.sql.duck import duck_rows
from lakewright.interfaces.sql.names import no_table
from lakewright.interfaces.sql.needs import Need, needs
from lakewright.interfaces.sql.query import Parsed, Use, parse_query, rewritten, scan_query
from lakewright.interfaces.sql.spark_texts import for_spark
from lakewright.interfaces.sql.text import place_of
from lakewright.model.errors import Invalid, LakewrightError, TableNotFound
from lakewright.model.schema import Struct

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table
    from lakewright.engine.spark.names import DataFrame, SparkSession

Rows: TypeAlias = "pa.RecordBatchReader | DataFrame"


def run_query(lake: "Lake", text: str, prefix: str = "", *, stored: bool = False) -> Rows:
    """Run a query; its rows are a DataFrame where the lake has a session, else an Arrow reader.

    Every table is opened anew, so that the query sees what was committed before it; only the
    columns that it names, and rows that can meet its conditions, are read. Rows that are to be
    ``stored`` must not lose a value: one that cannot be computed is an error and not null. On
    Spark it is the session that says so (``spark.sql.ansi.enabled``, on by itself since 4.0).
    """
    if lake.spark is not None:
        return _on_spark(lake, lake.spark, text, prefix)
    parsed = parse_query(text)
    found = [(use, _opened(lake, use, text)) for use in parsed.uses]
    return duck_rows(parsed, _scans(parsed, found), prefix, strict=stored)


def _on_spark(lake: "Lake", spark: "SparkSession", text: str, prefix: str) -> Rows:
    from lakewright.engine.spark.query import knows_table, run_text

    # Before anything is read from it: files are left out by the constants that Spark compares.
    text = for_spark(text)
    try:
        parsed = parse_query(text)
    except LakewrightError:
        parsed = scan_query(text)  # Spark's own parser knows more, and answers for itself
    found: list[tuple[Use, Table]] = []
    for use in parsed.uses:
        table = _find(lake, use)
        if table is not None:
            found.append((use, table))
        elif parsed.tree is not None and not knows_table(spark, use.parts):
            raise no_table(use.name, lake.tables(), place_of(text, use.start))
    scans = _scans(parsed, found, zone_of(lake))
    pieces = [prefix, *rewritten(parsed, [use for use, _ in scans])]
    return run_text(spark, pieces, [scan.to_spark(spark) for _, scan in scans])


def zone_of(lake: "Lake") -> str | None:
    """Return the zone in which the statements of a lake read times, None for UTC."""
    if lake.spark is None:
        return None
    from lakewright.engine.spark.session import session_zone

    return session_zone(lake.spark)


def _scans(
    parsed: Parsed, found: Sequence[tuple[Use, "Table"]], zone: str | None = None
) -> list[tuple[Use, Scan]]:
    definitions = [table.definition for _, table in found]
    shown = [sql_columns(d.schema, d.partition_by) for d in definitions]
    uses = [use for use, _ in found]
    wanted = needs(parsed, list(zip(uses, shown, strict=True)), zone)
    return [
        (use, _scan(table, use, need, columns))
        for (use, table), need, columns in zip(found, wanted, shown, strict=True)
    ]


def _scan(table: "Table", use: Use, need: Need, columns: Struct) -> Scan:
    if use.as_of is not None:
        # The columns of that time may be others: take them all.
        return table.scan(as_of=use.as_of)
    names = columns.names if need.columns is None else need.columns
    # A view needs a column, though COUNT(*) names none.
    return table.scan(where=need.where, columns=names or columns.names[:1])


def _find(lake: "Lake", use: Use) -> "Table | None":
    if len(use.parts) > 2 or any("." in part for part in use.parts):
        return None
    try:
        return lake.table(use.name)
    except (TableNotFound, Invalid):
        return None


def _opened(lake: "Lake", use: Use, text: str) -> "Table":
    table = _find(lake, use)
    if table is None:
        raise no_table(use.name, lake.tables(), place_of(text, use.start))
    return table
