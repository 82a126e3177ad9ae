"""Rows of Spark DataFrames in the form in which the rows of real Hudi are recorded."""

import datetime as dt
import decimal
import json
import math
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

#: Columns that the recorded rows leave out.
DROPPED = {"_hoodie_commit_seqno", "_hoodie_file_name"}


def golden_rows(frame: DataFrame) -> list[dict[str, Any]]:
    """Collect a frame as golden rows; the session must be in UTC."""
    fields = [f for f in frame.schema.fields if f.name not in DROPPED]
    rows = [{f.name: _golden(row[f.name], f.dataType) for f in fields} for row in frame.collect()]
    return in_order(rows)


def sample_rows(frame: DataFrame) -> list[dict[str, Any]]:
    """Collect a frame as the sample tables are recorded: most values as their text."""
    table = frame.toArrow()
    rows = [
        {f.name: _sample(row[f.name], f.type) for f in table.schema} for row in table.to_pylist()
    ]
    return in_order(rows)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows by their JSON text."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, ensure_ascii=False))


def _golden(value: Any, kind: DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {f.name: _golden(value[f.name], f.dataType) for f in kind.fields}
    if isinstance(kind, ArrayType):
        return [_golden(v, kind.elementType) for v in value]
    if isinstance(kind, MapType):
        pairs = [[_golden(k, kind.keyType), _golden(v, kind.valueType)] for k, v in value.items()]
        return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case dt.datetime():
            return _utc(value).isoformat(timespec="microseconds")
        case dt.date():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case bytes() | bytearray():
            return f"hex:{bytes(value).hex()}"
    return value


def _utc(value: dt.datetime) -> dt.datetime:
    # collect() gives wall-clock times of this process's zone.
    return value.astimezone(dt.UTC).replace(tzinfo=None)


def _sample(value: Any, kind: pa.DataType) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    if pa.types.is_struct(kind):
        return {f.name: _sample(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return sorted([key, held] for key, held in value)
    if pa.types.is_list(kind):
        return [_sample(v, kind.value_type) for v in value]
    return str(value)
