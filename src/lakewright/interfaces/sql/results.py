"""Answers: Arrow tables, or DataFrames where the lake has a Spark session."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lakewright.model.writing import WriteResult

if TYPE_CHECKING:
    from lakewright.engine.spark.names import DataFrame, SparkSession

Answer: TypeAlias = "pa.Table | DataFrame"

_WRITTEN = pa.schema(
    [
        ("operation", pa.string()),
        ("instant", pa.string()),
        ("inserted", pa.int64()),
        ("updated", pa.int64()),
        ("deleted", pa.int64()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
NOTHING = pa.table({})
DONE = pa.schema([("result", pa.string())])


def done(what: str) -> pa.Table:
    """Answer a statement that changed something other than rows."""
    return pa.table({"result": [what]}, schema=DONE)


def written(result: WriteResult) -> pa.Table:
    """Answer a statement that wrote rows."""
    row = {name: getattr(result, name) for name in _WRITTEN.names if name != "instant"}
    row["operation"] = result.operation.value
    row["instant"] = result.instant.requested if result.instant is not None else None
    return pa.Table.from_pylist([row], schema=_WRITTEN)


def table_of(schema: pa.Schema, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Answer with rows."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def answer(table: pa.Table, spark: "SparkSession | None") -> Answer:
    """Give an answer in the form that the lake speaks."""
    if spark is None:
        return table
    from lakewright.engine.spark.query import small_frame

    return small_frame(spark, table)
