"""FileSliceReader: the rows of a file slice as a stream of Arrow batches."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.expression import residual_filter
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.partition_paths import partition_values
from lakewright.model.errors import Invalid
from lakewright.model.expression.analyse import conjunction, references
from lakewright.model.expression.bound import BoundExpression, BoundIn, BoundReference
from lakewright.model.expression.filters import Filters, bind_filters
from lakewright.model.files import FileSlice, ReadingMode
from lakewright.model.schema import COMMIT_TIME, META_COLUMNS, META_FIELDS, STRING, Struct
from lakewright.storage.port import Storage
from lakewright.table.merge.merger import RecordMerger
from lakewright.table.merge.policy import NOTHING_TO_MERGE, MergePolicy
from lakewright.table.merge.winners import Flags, Places
from lakewright.table.reader.counts import MergeCounts
from lakewright.table.reader.deleted import deleted_by_logs
from lakewright.table.reader.folded import folded_rows
from lakewright.table.reader.instants import SeenInstants
from lakewright.table.reader.keys import key_columns, record_keys
from lakewright.table.reader.logs import LOG_MEMORY, LogColumns, SliceLogs
from lakewright.table.reader.merged import merged_rows
from lakewright.table.reader.merged_logs import MergedLogs
from lakewright.table.reader.names import NameHistory, name_history
from lakewright.table.reader.overlay import SliceOverlay
from lakewright.table.reader.plain import plain_rows
from lakewright.table.reader.projection import Projection
from lakewright.table.reader.source import RowFilter, SliceSource
from lakewright.table.state import TableState, table_schema
from lakewright.timeline.bodies import Bodies
from lakewright.timeline.moments import whole_second


@dataclass(frozen=True, slots=True)
class FileSliceReader:
    """Reads file slices of one table; every method returns another reader, none changes this.

    ``schema`` holds the table's own columns as the reader sees them, which may be an evolved
    schema; ``seen`` the instants whose records count. ``target`` is what is read, all of
    ``schema`` at first. ``changed_by`` restricts records to those written by these instants: as
    in Hudi, what others wrote has no say in who wins among them. Where records are merged column
    by column it restricts rows to those that these instants wrote to, with the values that they
    have at the end. ``keys`` (an Arrow array) restricts them to the records that they name.
    ``history`` knows renamed columns. With ``as_stored`` partition columns have the values that
    files hold, not those of the path. ``merger`` is the one of a custom merge mode, where this
    process has not registered it. With ``codes`` texts may come as dictionaries.
    """

    storage: Storage
    config: TableConfig
    schema: Struct
    seen: SeenInstants
    target: Struct | None = None
    filters: tuple[BoundExpression, ...] = ()
    mode: ReadingMode = ReadingMode.SNAPSHOT
    changed_by: frozenset[str] | None = None
    keys: pa.Array | None = field(default=None, compare=False)
    history: NameHistory = field(default_factory=NameHistory)
    options: Mapping[str, str] = field(default_factory=dict)
    as_stored: bool = False
    merger: RecordMerger | None = field(default=None, compare=False)
    codes: bool = False

    def __post_init__(self) -> None:
        if self.seen.history is None:
            asking = replace(self.seen, history=Bodies(self.storage, self.config))
            object.__setattr__(self, "seen", asking)

    @staticmethod
    def of(state: TableState, as_of: str | None = None) -> "FileSliceReader":
        """Read slices of a table as it stands in ``state``, or as of an instant."""
        bound = None if as_of is None else whole_second(as_of)
        return FileSliceReader(
            state.storage,
            state.config,
            table_schema(state, as_of),
            SeenInstants.of(state.timeline, as_of=bound),
            history=name_history(state, as_of),
        )

    def project(self, schema: Struct) -> "FileSliceReader":
        """Read these columns, Hudi's own among them if named, with these types."""
        return replace(self, target=schema)

    def push_down_filters(self, filters: Filters) -> "FileSliceReader":
        """Leave out rows that do not satisfy all of the filters, and what cannot hold others."""
        return replace(self, filters=(*self.filters, *bind_filters(filters, self.whole_schema)))

    def reading_mode(
        self, mode: ReadingMode | str, changed_by: Iterable[str] | None = None
    ) -> "FileSliceReader":
        """Choose how slices are read; the instants of an incremental reading come with it."""
        mode = ReadingMode.parse(mode)
        if mode is ReadingMode.CDC:
            raise Invalid(
                "a change stream is not read from single slices.",
                next_step="Use Table.changes(start, end), or plan a scan with ReadingMode.CDC.",
            )
        if (mode is ReadingMode.INCREMENTAL) != (changed_by is not None):
            raise Invalid(
                "an incremental reading, and no other, needs the instants of its window.",
                next_step="Call reading_mode(ReadingMode.INCREMENTAL, changed_by=instants).",
            )
        return replace(
            self, mode=mode, changed_by=None if changed_by is None else frozenset(changed_by)
        )

    def only(self, keys: pa.Array | None) -> "FileSliceReader":
        """Read only the records with these keys (an Arrow array); None for all."""
        return replace(self, keys=keys)

    def in_codes(self, codes: bool = True) -> "FileSliceReader":
        """Let texts come as dictionaries from files that keep them as codes of a few texts.

        Columns that nothing else looks at than the caller are read so; a batch may have it one way,
        and the next the other.
        """
        return replace(self, codes=codes)

    def logged_keys(self, file_slice: FileSlice, *instants: str) -> pa.Array:
        """Return the keys of the log records, and deletes, that instants added to a slice."""
        source = self._source(file_slice)
        alone = replace(source, seen=self.seen.only(frozenset(instants)))
        with SliceLogs(alone, LogColumns(key_columns(self.config), (), ())) as logs:
            parts = [entry.keys for entry in logs.entries_by_key()]
        return pa.chunked_array(parts, pa.string()).unique()

    def live_keys(self, file_slice: FileSlice) -> pa.Array:
        """Return the record keys of the rows of a slice."""
        names = key_columns(self.config)
        wanted = Struct(tuple(f for f in self.whole_schema.fields if f.name in names))
        place = str(file_slice.group)
        rows = self.project(wanted).open(file_slice)
        parts = [record_keys(batch, self.config, place) for batch in rows]
        return pa.chunked_array(parts, pa.string()).combine_chunks()

    def deleted(self, file_slice: FileSlice, keys: pa.Array, positions: Places) -> Flags:
        """Mark the keys, each at its row of the base file, of which the logs left no row.

        No more is decoded than the verdict needs, nothing where the logs cannot delete.
        """
        source = self._source(file_slice)
        columns = replace(_log_columns(source), rows=())
        with SliceLogs(source, columns) as logs:
            found = deleted_by_logs(source, logs, keys, positions)
        if found.doubtful.any():
            asked = keys.filter(pa.array(found.doubtful))
            live = pc.is_in(asked, value_set=self.only(asked).live_keys(file_slice))
            found.dead[found.doubtful] = ~np.asarray(live, dtype=bool)
        return found.dead

    def open(
        self, file_slice: FileSlice, counts: MergeCounts | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a slice as batches of the target's columns, in bounded memory.

        ``counts`` is filled in with what came of merging, once the stream has ended.
        """
        source = replace(self._source(file_slice), counts=counts)
        if self.mode is ReadingMode.SNAPSHOT_READ_OPTIMIZED or not file_slice.logs:
            return plain_rows(source)
        return _with_logs(source)

    @contextmanager
    def overlay(
        self, file_slice: FileSlice, *, with_rows: bool = True
    ) -> Iterator[SliceOverlay | None]:
        """Open the logs of a slice for an engine that reads the base file by itself.

        None where records are merged column by column: such slices are read with ``open``.
        Without ``with_rows`` no more is read than the verdict needs.
        """
        source = self._source(file_slice)
        columns = _log_columns(source)
        if not with_rows:
            columns = replace(columns, rows=())
        with SliceLogs(source, columns) as logs:
            yield None if logs.by_column else SliceOverlay(source, logs)

    @contextmanager
    def merged_logs(
        self, file_slice: FileSlice, counts: MergeCounts | None = None
    ) -> Iterator[MergedLogs | None]:
        """Open the logs of a slice merged among themselves.

        None where they are empty, or records are merged column by column.
        """
        source = replace(self._source(file_slice), counts=counts)
        with SliceLogs(source, _log_columns(source)) as logs:
            yield None if logs.by_column or not logs.blocks else MergedLogs.of(source, logs)

    def _source(self, file_slice: FileSlice) -> SliceSource:
        whole = self.whole_schema
        condition = conjunction(self._conditions())
        named = [] if condition is None else [path[0] for path in references(condition)]
        asked = conjunction(self.filters)
        keep = None if asked is None else residual_filter(asked)
        if self.keys is not None:
            named += key_columns(self.config)
            keep = _among(self.keys, self.config, keep)
        values: Mapping[str, object] = {}
        if not self.as_stored:
            values = partition_values(file_slice.group.partition, self.config, self.schema)
        target = self.schema if self.target is None else self.target
        projection = Projection.of(target, whole, named, values)
        if file_slice.logs and not projection.from_files:
            # Rows that are asked for nothing still have to be told apart to be counted.
            projection = Projection.of(target, whole, (*named, *key_columns(self.config)), values)
        policy = MergePolicy.of(self.config) if file_slice.logs else NOTHING_TO_MERGE
        looked_at = {*named, *key_columns(self.config), *policy.columns(whole), COMMIT_TIME}
        return SliceSource(
            storage=self.storage,
            config=self.config,
            schema=whole,
            seen=self.seen,
            policy=policy,
            file_slice=file_slice,
            projection=projection,
            condition=condition,
            row_filter=keep,
            window=self.changed_by,
            history=self.history,
            memory=LOG_MEMORY.read(self.options),
            merger=self.merger,
            coded=projection.texts_beside(looked_at) if self.codes else (),
        )

    @property
    def whole_schema(self) -> Struct:
        """All columns that can be read: Hudi's own, then the table's."""
        return Struct((*META_FIELDS, *self.schema.without(frozenset(META_COLUMNS)).fields))

    def _conditions(self) -> tuple[BoundExpression, ...]:
        if self.changed_by is None:
            return self.filters
        column = BoundReference((COMMIT_TIME,), STRING)
        return (*self.filters, BoundIn(column, tuple(sorted(self.changed_by))))


def _with_logs(source: SliceSource) -> Iterator[pa.RecordBatch]:
    with SliceLogs(source, _log_columns(source)) as logs:
        if not logs.blocks:
            yield from plain_rows(source)
        elif logs.by_column:
            yield from folded_rows(source, logs)
        else:
            yield from merged_rows(source, logs)


def _log_columns(source: SliceSource) -> LogColumns:
    return LogColumns(
        keys=key_columns(source.config),
        deciding=source.policy.columns(source.schema),
        rows=source.projection.from_files,
    )


def _among(keys: pa.Array, config: TableConfig, keep: RowFilter | None) -> RowFilter:
    def among(rows: pa.RecordBatch) -> pa.RecordBatch:
        kept = rows.filter(pc.is_in(record_keys(rows, config, "a batch"), value_set=keys))
        return kept if keep is None else keep(kept)

    return among
