"""``spark.readStream.format("lakewright")``: new commits, a window of them per micro-batch.

An offset is ``{"completed": <completion time>}``: everything up to it was read.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from lakewright.actions.follow import (
    EARLIEST,
    LATEST,
    Follow,
    WhenGone,
    check_read,
    first_offset,
    next_offset,
    plan_window,
)
from lakewright.actions.scan import ScanRequest
from lakewright.engine.spark.schema import from_spark_schema, nullable, to_spark_schema
from lakewright.engine.spark.worker import read_packed
from lakewright.interfaces.spark_source.options import FOLLOW, columns, count, flag, given, mode
from lakewright.interfaces.spark_source.reader import bundles
from lakewright.model.errors import Invalid, InvalidOption, UnknownColumn
from lakewright.model.files import ReadingMode
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state

_EXAMPLE = 'spark.readStream.format("lakewright").load(path)'
#: Seconds between two looks at a timeline that had nothing new; Spark asks a hundred times that.
_PATIENCE = 0.5


@dataclass(frozen=True, slots=True)
class Source:
    """A table that is followed, as the options of a stream describe it."""

    path: str
    storage: Mapping[str, str] = field(repr=False)
    start: str
    follow: Follow

    @staticmethod
    def of(options: Mapping[str, str]) -> "Source":
        """Read and check the options; the table is not looked at."""
        told = given(options, FOLLOW, example=_EXAMPLE)
        own = told.own
        kind = mode(own, ReadingMode.INCREMENTAL)
        if flag(own, "readchangefeed"):
            kind = ReadingMode.CDC
        if kind not in (ReadingMode.INCREMENTAL, ReadingMode.CDC):
            raise InvalidOption(
                f"a stream has no mode {kind.value!r}.",
                next_step="Allowed: incremental (rows that changed), changes (or cdc).",
                value=kind.value,
            )
        request = ScanRequest(
            where=own.get("where"), columns=columns(own), meta=flag(own, "meta"), mode=kind
        )
        when_gone = own.get("history", WhenGone.FAIL.value).lower()
        if when_gone not in tuple(WhenGone):
            raise InvalidOption(
                f"history is {when_gone!r}.", next_step=f"Allowed: {', '.join(WhenGone)}."
            )
        follow = Follow(request, count(own, "max_instants"), WhenGone(when_gone))
        return Source(told.path, told.storage, own.get("start", EARLIEST), follow)

    def state(self) -> TableState:
        """Open the table as it stands now."""
        return open_state(open_storage(self.path, self.storage))


class StreamReader(DataSourceStreamReader):
    """Follows a table; what it knows beside its options is only there to spare listings."""

    def __init__(self, source: Source, schema: StructType) -> None:
        self._source = source
        self._schema = schema
        self._looked = (float("-inf"), "")
        self._reported = (float("-inf"), "")

    def initialOffset(self) -> dict[str, str]:
        """Return where a new query begins."""
        return offset_of(first_offset(self._source.state(), self._source.start))

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Plan one micro-batch; the same offsets give the same rows, after a restart too."""
        if start == end:
            return []
        follow = self._source.follow
        wanted = from_spark_schema(self._schema)
        pinned = replace(follow.request, columns=tuple(wanted.names), meta=False)
        state = self._source.state()
        self._check_read(state, start["completed"])
        try:
            plan = plan_window(
                state, replace(follow, request=pinned), start["completed"], end["completed"]
            )
        except UnknownColumn as gone:
            raise Invalid(
                f"the table lost a column that the stream began with: {gone.message}",
                next_step="Start the query anew: it takes the columns that the table has then.",
            ) from gone
        images = pinned.mode is ReadingMode.CDC
        if images and to_spark_schema(nullable(plan.schema)) != self._schema:
            raise Invalid(
                "the table's columns changed since the stream of changes began.",
                next_step="Start the query anew: its images take the columns of then.",
            )
        return bundles(plan, plan.schema if images else wanted)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401  (Spark's own port)
        """Stream the rows of one bundle."""
        return read_packed(partition.shared, partition.packed)

    def _next(self, after: str, limit: int | None, upto: str | None) -> str:
        looked, nothing_after = self._looked
        if nothing_after == after and time.monotonic() - looked < _PATIENCE:
            return after
        follow = replace(self._source.follow, limit=limit)
        state = self._source.state()
        self._check_read(state, after)
        found = next_offset(state, follow, after, upto)
        self._looked = (time.monotonic(), after if found == after else "")
        return found

    def _check_read(self, state: TableState, after: str) -> None:
        told = self._source.start.strip().lower() not in (EARLIEST, LATEST)
        if not told or after != first_offset(state, self._source.start):
            check_read(state, self._source.follow, after)

    def _newest(self) -> str:
        looked, newest = self._reported
        if time.monotonic() - looked >= _PATIENCE:
            newest = first_offset(self._source.state(), LATEST)
            self._reported = (time.monotonic(), newest)
        return newest


class PlainStreamReader(StreamReader):
    """For Spark before 4.2: every micro-batch reads all there is."""

    def latestOffset(self) -> dict[str, str]:  # type: ignore[override]
        """Return the end of what is there."""
        return offset_of(self._newest())


def offset_of(completed: str) -> dict[str, str]:
    """Return the offset up to a completion time."""
    return {"completed": completed}
