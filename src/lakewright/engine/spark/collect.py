"""Rows of a DataFrame as one Arrow table on the driver, if they are few.

Spark's estimate decides whether it is worth a try, and a limit bounds what comes when the
estimate was wrong. Where Spark says nothing of the size, a Python worker counts the bytes of the
first rows and hands on what stays within the limit.
"""

import importlib
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyspark.util
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import unwrap_spark_exception

from lakewright.engine.spark.estimate import Estimate
from lakewright.engine.spark.schema import from_spark_schema
from lakewright.engine.spark.session import ensure_workers, is_connect
from lakewright.engine.spark.workers import in_worker
from lakewright.engine.spark.write_worker import conformed
from lakewright.format.arrow.schema import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How much larger than the estimate rows may be in memory: files are compressed.
_EXPANSION = 4


def few_rows(frame: "DataFrame", expected: Estimate, limit: int) -> pa.Table | None:
    """Return all rows if they take at most ``limit`` bytes, None if more or if nobody knows.

    One run of the query makes the answer. No more than the limit comes to this process.
    """
    if limit <= 0:
        return None
    schema = to_arrow_schema(from_spark_schema(frame.schema))
    connect = is_connect(frame.sparkSession)
    if expected.known and expected.sober and expected.size <= limit:
        if not connect and hasattr(frame._jdf, "collectAsArrowToPython"):
            return _collected(frame, schema, limit)
        if connect and expected.size * _EXPANSION <= limit:
            batches = [conformed(batch, schema) for batch in frame.toArrow().to_batches()]
            return _within(pa.Table.from_batches(batches, schema=schema), limit)
        return _counted(frame, schema, limit)
    if expected.known and expected.size <= limit:
        return _counted(frame, schema, limit)
    # A run that is broken off costs more than its rows: Spark ends the worker that it leaves.
    worth_a_try = expected.narrow and (expected.shrinks or not expected.known)
    return _counted(frame, schema, limit) if worth_a_try else None


def _within(table: pa.Table, limit: int) -> pa.Table | None:
    return table if table.nbytes <= limit else None


class _TooMuch(Exception):
    """More bytes came than the limit allows."""


def _collected(frame: "DataFrame", schema: pa.Schema, limit: int) -> pa.Table | None:
    """Read the batches from the socket on which the JVM serves them, and break off at the limit.

    This is what ``toArrow`` does from Spark 4 on, except that it reads to the end, and that
    Spark 3.5 does not have it.
    """
    context = frame.sparkSession.sparkContext
    tag = f"lakewright-{uuid.uuid4()}"
    context.addJobTag(tag)
    try:
        batches = _served(frame, limit)
    except _TooMuch:
        context.cancelJobsWithTag(tag)
        return None
    except PySparkException as error:
        if "maxResultSize" in str(error):
            return None
        raise
    finally:
        context.removeJobTag(tag)
    return pa.Table.from_batches([conformed(batch, schema) for batch in batches], schema=schema)


def _served(frame: "DataFrame", limit: int) -> list[pa.RecordBatch]:
    port, secret, server = frame._jdf.collectAsArrowToPython()
    try:
        batches = _read_socket((port, secret), _Counting(limit))
    except RuntimeError:  # the socket tells that there is an error; the server has it
        with unwrap_spark_exception():
            server.getResult()
        raise
    with unwrap_spark_exception():
        server.getResult()
    return batches


def _read_socket(address: tuple[Any, Any], serializer: "_Counting") -> list[pa.RecordBatch]:
    # Spark 3.5 has the function in another place.
    module = "pyspark.util" if hasattr(pyspark.util, "_load_from_socket") else "pyspark.rdd"
    opened: Any = importlib.import_module(module)._load_from_socket(address, serializer)
    if hasattr(opened, "__enter__"):
        with opened as stream:
            return list(stream)
    return list(opened)


class _Counting:
    """Reads what ``collectAsArrowToPython`` serves: batches, then their order or an error."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def load_stream(self, stream: BinaryIO) -> Iterator[pa.RecordBatch]:
        """Return the batches in the order of the rows."""
        batches: list[pa.RecordBatch] = []
        seen = 0
        for batch in pa.ipc.open_stream(stream):
            seen += batch.nbytes
            if seen > self._limit:
                raise _TooMuch
            batches.append(batch)
        count = _number(stream)
        if count < 0:
            raise RuntimeError(stream.read(_number(stream)).decode())
        order = [_number(stream) for _ in range(count)]
        return iter([batches[number] for number in order])


def _number(stream: BinaryIO) -> int:
    return int.from_bytes(stream.read(4), "big", signed=True)


def _counted(frame: "DataFrame", schema: pa.Schema, limit: int) -> pa.Table | None:
    """Let one worker count; more rows than could fit need not even reach it."""
    ensure_workers(frame.sparkSession)
    most = limit // _least_width(schema) + 1
    rows = frame.limit(min(most, (1 << 31) - 1)).coalesce(1)
    found = rows.mapInArrow(in_worker("write_worker", "pass_few", limit), "data binary").collect()
    pieces = [bytes(row[0]) for row in found]
    if b"" in pieces:
        return None
    batches = [batch for data in pieces for batch in pa.ipc.open_stream(data)]
    return pa.Table.from_batches([conformed(batch, schema) for batch in batches], schema=schema)


def _least_width(schema: pa.Schema) -> int:
    """Return how many bytes a row takes at least in Arrow's memory."""
    bits = [f.type.bit_width if pa.types.is_primitive(f.type) else 32 for f in schema]
    return max(1, sum(bits) // 8)
