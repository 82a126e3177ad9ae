"""Table: the face of one Hudi table."""

import datetime as dt
import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.actions.fsck import FsckReport, fsck
from lakewright.actions.scan import ScanRequest
from lakewright.api.altering import Alterable
from lakewright.api.arguments import column_names
from lakewright.api.rowlevel import Editable
from lakewright.api.scan import Scan
from lakewright.api.streaming import Streaming
from lakewright.api.ttl import Retained
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import Invalid
from lakewright.model.expression.nodes import Expression
from lakewright.model.files import PartitionDescriptor, PartitionSnapshot, ReadingMode
from lakewright.model.instant import Instant, effective_time, parse_point_in_time
from lakewright.model.table import TableDef
from lakewright.storage.port import Storage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import TableState, open_state, table_def
from lakewright.timeline.view import TimelineView

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession

PointInTime = Instant | str | dt.datetime | dt.date
_MODES = {
    "snapshot": ReadingMode.SNAPSHOT,
    "read_optimized": ReadingMode.SNAPSHOT_READ_OPTIMIZED,
}


class Table(Editable, Alterable, Streaming, Retained):
    """One table. Every call looks at the table anew, so that it sees what others wrote meanwhile.

    What must not move while it is used (a ``Scan``, a ``TimelineView``) is pinned when it is made.
    """

    def __init__(
        self, storage: Storage, *, name: str | None = None, spark: "SparkSession | None" = None
    ) -> None:
        self._storage = storage
        self._spark = spark
        self._name = name or storage.uri.rstrip("/").rpartition("/")[2]
        open_state(storage)  # a path that holds no table is refused here, not at the first read

    @property
    def path(self) -> str:
        """Where the table lies: a plain path for a local table, a URI elsewhere."""
        return self._storage.uri

    @property
    def name(self) -> str:
        """The table's name in its catalog; by path, the last segment of the path."""
        return self._name

    @property
    def definition(self) -> TableDef:
        """Identity, place, latest schema, type, keys, ordering and properties as one value."""
        return table_def(self._state())

    @property
    def schema(self) -> pa.Schema:
        """The latest schema, without Hudi's meta columns."""
        return to_arrow_schema(self.definition.schema)

    @property
    def timeline(self) -> TimelineView:
        """The table's history as it stands now."""
        return self._state().timeline

    @property
    def files(self) -> FileIndex:
        """The file index: which file slices make up the table, at any instant."""
        return FileIndex(self._state())

    def partitions(self) -> Iterator[PartitionDescriptor]:
        """Stream the partitions that hold live files."""
        return self.files.partitions()

    def get_latest_snapshot(self) -> Iterator[PartitionSnapshot]:
        """Stream the latest snapshot, partition by partition."""
        return self.get_snapshot(None)

    def get_snapshot(self, instant: PointInTime | None) -> Iterator[PartitionSnapshot]:
        """Stream the snapshot as of an instant; None means the latest."""
        state = self._state()
        return FileIndex(state).list_files_at(_point(state, instant))

    def scan(
        self,
        where: Expression | str | None = None,
        columns: Sequence[str] | None = None,
        as_of: PointInTime | None = None,
        mode: str = "snapshot",
        *,
        meta: bool = False,
    ) -> Scan:
        """Read the table's rows, now or ``as_of`` an instant (``result.instant``) or a time.

        ``where`` is an expression or SQL text; ``columns`` names the columns wanted (``"*"``
        stands for all of the table's own, so ``["*", "_hoodie_commit_time"]`` adds one of
        Hudi's); ``meta=True`` puts Hudi's five in front. ``mode`` is ``"snapshot"`` or
        ``"read_optimized"`` (base files only).
        """
        reading = _mode(mode)
        state = self._state()
        request = ScanRequest(
            where=where,
            columns=column_names(columns),
            meta=meta,
            mode=reading,
            as_of=_point(state, as_of),
        )
        return self._scan(state, request)

    def incremental(
        self,
        start: PointInTime | None = None,
        end: PointInTime | None = None,
        *,
        where: Expression | str | None = None,
        columns: Sequence[str] | None = None,
        meta: bool = False,
    ) -> Scan:
        """Read the rows that changed after ``start`` (exclusive) up to ``end`` (inclusive).

        None or ``"000"`` as start means from the beginning, None as end means now. Times are
        completion times for tables of version 8 and later, instant times before; an ``Instant``
        (``result.instant``) stands for the right one of its two.
        """
        state = self._state()
        request = ScanRequest(
            where=where,
            columns=column_names(columns),
            meta=meta,
            mode=ReadingMode.INCREMENTAL,
            start=_edge(state, start),
            end=_edge(state, end),
        )
        return self._scan(state, request)

    def changes(
        self,
        start: PointInTime | None = None,
        end: PointInTime | None = None,
        *,
        where: Expression | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Scan:
        """Read the changes of a window: ``op`` (i, u, d), ``ts_ms``, ``before``, ``after``.

        ``where`` and ``columns`` are of these four and the fields of the images.
        """
        state = self._state()
        request = ScanRequest(
            where=where,
            columns=column_names(columns),
            mode=ReadingMode.CDC,
            start=_edge(state, start),
            end=_edge(state, end),
        )
        return self._scan(state, request)

    def fsck(self, *, deep: bool = False) -> FsckReport:
        """Check the invariants of the format; ``deep`` reads every live data file as well."""
        return fsck(self._state(), deep=deep)

    def _scan(self, state: TableState, request: ScanRequest) -> Scan:
        return Scan(state, request, name=self.name, spark=self._spark)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, path={self.path!r})"

    def _repr_html_(self) -> str:
        definition = self.definition
        facts = {
            "path": definition.base_path,
            "type": f"{definition.table_type}, version {definition.version}",
            "key": ", ".join(definition.record_key) or "none",
            "partitioned by": ", ".join(definition.partition_by) or "nothing",
            "ordering": ", ".join(definition.ordering) or "commit time",
        }
        rows = "".join(f"<tr><th>{k}</th><td>{html.escape(v)}</td></tr>" for k, v in facts.items())
        columns = "".join(
            f"<tr><td>{html.escape(f.name)}</td><td>{html.escape(str(f.type))}</td></tr>"
            for f in definition.schema
        )
        return (
            f"<b>{html.escape(self.name)}</b><table>{rows}</table>"
            f"<table><tr><th>column</th><th>type</th></tr>{columns}</table>"
        )


# What follows takes anything: these are values that a user typed.


def _mode(mode: object) -> ReadingMode:
    found = _MODES.get(mode) if isinstance(mode, str) else None
    if found is None:
        raise Invalid(
            f"mode {mode!r} is not known.",
            next_step=f"Allowed: {', '.join(_MODES)}.",
            mode=mode,
        )
    return found


def _point(state: TableState, value: PointInTime | None) -> str | None:
    """Return the requested time that ``value`` means, for time travel."""
    if isinstance(value, Instant):
        return value.requested
    return None if value is None else parse_point_in_time(value, state.config.timezone)


def _edge(state: TableState, value: PointInTime | None) -> str | None:
    """Return the time that ``value`` means as the edge of a window."""
    return effective_time(value) if isinstance(value, Instant) else _point(state, value)
