"""Rows and deletes appended to a slice as one log file: data first, then deletes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_files import (
    first_number,
    in_partition,
    new_file,
    record_schema,
)
from lakewright.actions.tasks.write_new import repeating_in
from lakewright.actions.tasks.write_old import OldBase
from lakewright.actions.tasks.write_settings import BlockFormat
from lakewright.actions.tasks.write_spec import FileWritten, GroupWork, WriteSpec
from lakewright.format.arrow.nested import field_values
from lakewright.format.hudi.base_write import constant, key_bounds, sequence_numbers
from lakewright.format.hudi.file_names import log_file_name
from lakewright.format.hudi.log.blocks import HeaderKey
from lakewright.format.hudi.log.deletes import OrderingValue, wrap_ordering
from lakewright.format.hudi.log.write import avro_block, data_header, delete_block, parquet_block
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.files import BaseFile, FileSlice
from lakewright.model.schema import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
)
from lakewright.table.merge import ordering as order
from lakewright.table.merge.combine import incoming_deletes, ordering_columns
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Flags, Places
from lakewright.timeline.markers import MarkerKind

#: The default ordering value: the delete wins over whatever came before it.
_ALWAYS = (OrderingValue("IntWrapper", 0),)


def write_log(
    spec: WriteSpec, work: GroupWork, piece: FileSlice, attempt: Attempt
) -> FileWritten | None:
    """Append the group's rows and deletes; None where there are none."""
    policy = MergePolicy.of(spec.config)
    entries = _Entries.of(work, policy)
    if not len(entries):
        return None
    found = _places(spec, work, piece, entries, policy)
    data = _data_blocks(spec, work, entries, found, piece, attempt.task)
    blocks = b"".join([*data, *_delete_blocks(spec, work, entries, found, piece, policy)])
    return _store(spec, work, piece, attempt, blocks, _counts(entries, found, piece))


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """What is said of which keys: records that stay, then deletes of either kind."""

    rows: pa.Table | None
    row_places: Places
    soft: pa.Table | None
    hard: pa.Array

    @staticmethod
    def of(work: GroupWork, policy: MergePolicy) -> "_Entries":
        hard = pa.array([], pa.string()) if work.deletes is None else work.deletes
        if work.rows is None or not work.rows.num_rows:
            return _Entries(None, np.empty(0, np.int64), None, hard)
        deleted, _ = incoming_deletes(work.rows, policy)
        if not deleted.any():
            return _Entries(work.rows, np.arange(work.rows.num_rows), None, hard)
        kept = np.flatnonzero(~deleted)
        rows = work.rows.take(pa.array(kept)) if len(kept) else None
        return _Entries(rows, kept, work.rows.filter(pa.array(deleted)), hard)

    def __len__(self) -> int:
        return self.row_count + self.delete_count

    @property
    def row_count(self) -> int:
        return 0 if self.rows is None else int(self.rows.num_rows)

    @property
    def delete_count(self) -> int:
        return (0 if self.soft is None else int(self.soft.num_rows)) + len(self.hard)

    @property
    def delete_keys(self) -> pa.Array:
        parts = [] if self.soft is None else list(self.soft.column(RECORD_KEY).chunks)
        return pa.chunked_array([*parts, self.hard], pa.string()).combine_chunks()

    @property
    def row_keys(self) -> pa.Array:
        if self.rows is None:
            return pa.array([], pa.string())
        return self.rows.column(RECORD_KEY).combine_chunks()


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where entries lie in the base file (-1: nowhere), and which of them a stored row beats."""

    rows: Places
    deletes: Places
    losing_rows: Flags


def _places(
    spec: WriteSpec, work: GroupWork, piece: FileSlice, entries: _Entries, policy: MergePolicy
) -> _Places | None:
    """Look entries up in the base file; None where nobody has to know."""
    if work.insert_only or piece.base is None:
        return None
    ordering = policy.ordering if policy.event_time and not piece.logs else ()
    if work.positions is not None and not entries.delete_count:
        rows = np.asarray(pc.fill_null(work.positions, -1))[entries.row_places].astype(np.int64)
        late = _late(spec, piece.base, entries, rows, ordering)
        return _Places(rows, np.empty(0, np.int64), late)
    if not _writes_positions(spec):
        return None
    keys = pa.chunked_array([entries.row_keys, entries.delete_keys], pa.string()).combine_chunks()
    more = tuple(dict.fromkeys(name.split(".")[0] for name in ordering))
    places = np.full(len(keys), -1, np.int64)
    losing = np.zeros(entries.row_count, bool)
    values = ordering_columns(entries.rows, ordering) if entries.rows is not None else ()
    start = 0
    with OldBase.open(spec, piece.base) as old:
        for batch in old.key_batches(more):
            found = pc.index_in(old.keys(batch), value_set=keys)
            rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
            which = found.drop_null().to_numpy().astype(np.int64)
            # A key that the file holds twice keeps its first place, as readers have it.
            rows, which = rows[::-1], which[::-1]
            fresh = places[which] < 0
            places[which[fresh]] = rows[fresh] + start
            start += batch.num_rows
            if values:
                losing |= _losing(batch, rows, which, ordering, values, entries.row_count)
    count = entries.row_count
    return _Places(places[:count], places[count:], losing)


def _writes_positions(spec: WriteSpec) -> bool:
    return spec.settings.positions and spec.config.version >= 8


def _late(
    spec: WriteSpec, base: BaseFile, entries: _Entries, places: Places, ordering: tuple[str, ...]
) -> Flags:
    """Mark the rows that the stored row at their place beats by its ordering value."""
    late = np.zeros(len(places), bool)
    if entries.rows is None or not ordering:
        return late
    values = ordering_columns(entries.rows, ordering)
    start = 0
    with OldBase.open(spec, base) as old:
        for batch in old.column_batches(tuple(name.split(".")[0] for name in ordering)):
            here = np.flatnonzero((places >= start) & (places < start + batch.num_rows))
            late |= _losing(batch, places[here] - start, here, ordering, values, len(places))
            start += batch.num_rows
    return late


def _losing(
    batch: pa.RecordBatch,
    rows: Places,
    which: Places,
    ordering: tuple[str, ...],
    values: order.Columns,
    count: int,
) -> Flags:
    stored = ordering_columns(batch, ordering)
    flags = np.zeros(count, bool)
    if len(stored) != len(values) or any(
        a.type != b.type for a, b in zip(stored, values, strict=True)
    ):
        return flags
    data = which < count
    rows, which = rows[data], which[data]
    beats = order.exceeds(
        tuple(c.take(pa.array(rows)) for c in stored),
        tuple(c.take(pa.array(which)) for c in values),
    )
    flags[which[beats]] = True
    return flags


# ----------------------------------------------------------------------------- blocks


def _data_blocks(
    spec: WriteSpec,
    work: GroupWork,
    entries: _Entries,
    found: _Places | None,
    piece: FileSlice,
    task: int,
) -> list[bytes]:
    if entries.rows is None:
        return []
    rows = _with_meta(spec, work, entries.rows, task)
    if found is None or not _writes_positions(spec):
        return [_data_block(spec, rows, None, piece)]
    # Readers can use positions only where every record of a block has one.
    known = np.flatnonzero(found.rows >= 0)
    known = known[np.argsort(found.rows[known], kind="stable")]
    unknown = np.flatnonzero(found.rows < 0)
    blocks = []
    if len(known):
        blocks.append(_data_block(spec, rows.take(pa.array(known)), found.rows[known], piece))
    if len(unknown):
        some = rows if len(unknown) == rows.num_rows else rows.take(pa.array(unknown))
        blocks.append(_data_block(spec, some, None, piece))
    return blocks


def _data_block(
    spec: WriteSpec, rows: pa.Table, positions: Places | None, piece: FileSlice
) -> bytes:
    header = _header(spec, positions, piece)
    if spec.settings.block_format is BlockFormat.AVRO:
        return avro_block(rows, header)
    return parquet_block(rows, header, repeating_in(spec, rows))


def _header(spec: WriteSpec, positions: Places | None, piece: FileSlice) -> dict[HeaderKey, str]:
    schema = record_schema(spec.schema, spec.config.name, meta=spec.config.populate_meta_fields)
    if positions is None or piece.base is None:
        return data_header(spec.instant, schema)
    marks: npt.NDArray[np.uint64] = positions.astype(np.uint64)
    return data_header(spec.instant, schema, positions=marks, base_instant=piece.base.instant)


def _with_meta(spec: WriteSpec, work: GroupWork, rows: pa.Table, task: int) -> pa.Table:
    if not spec.config.populate_meta_fields:
        return rows
    count = rows.num_rows
    meta = {
        COMMIT_TIME: constant(spec.instant, count),
        COMMIT_SEQNO: sequence_numbers(spec.instant, task, first_number(count), count),
        RECORD_KEY: rows.column(RECORD_KEY),
        PARTITION_PATH: constant(work.group.partition, count),
        # In a log this column holds the file id, not a name.
        FILE_NAME: constant(work.group.file_id, count),
    }
    own = {name: rows.column(name) for name in rows.schema.names if name != RECORD_KEY}
    return pa.table({**meta, **own})


def _delete_blocks(
    spec: WriteSpec,
    work: GroupWork,
    entries: _Entries,
    found: _Places | None,
    piece: FileSlice,
    policy: MergePolicy,
) -> list[bytes]:
    if not entries.delete_count:
        return []
    ordering = [*_soft_ordering(entries.soft, policy), *([_ALWAYS] * len(entries.hard))]
    # Some readers refuse a block in which ordering values have more than one type.
    always = np.array([values is _ALWAYS for values in ordering])
    blocks = []
    for chosen in (np.flatnonzero(~always), np.flatnonzero(always)):
        if not len(chosen):
            continue
        positions = None
        if found is not None and _writes_positions(spec):
            positions, chosen = _in_file_order(found.deletes, chosen)
        header = _header(spec, positions, piece)
        texts = entries.delete_keys.take(pa.array(chosen)).to_pylist()
        partitions = [work.group.partition] * len(chosen)
        blocks.append(delete_block(texts, partitions, header, [ordering[i] for i in chosen]))
    return blocks


def _in_file_order(places: Places, chosen: Places) -> tuple[Places | None, Places]:
    """Return the places of the chosen entries, rising, and the entries in that order."""
    mine = places[chosen]
    if bool((mine < 0).any()):
        return None, chosen
    chosen = chosen[np.argsort(mine, kind="stable")]
    return places[chosen], chosen


def _soft_ordering(
    soft: pa.Table | None, policy: MergePolicy
) -> list[tuple[OrderingValue | None, ...]]:
    if soft is None:
        return []
    if not policy.event_time:
        return [_ALWAYS] * soft.num_rows
    columns: list[list[OrderingValue | None]] = []
    for name in policy.ordering:
        column = field_values(soft, name)
        if column is None:
            columns.append([None] * soft.num_rows)
            continue
        plain = _plain(column.combine_chunks())
        columns.append([wrap_ordering(v, column.type) for v in plain.to_pylist()])
    rows = list(zip(*columns, strict=True))
    return [_ALWAYS if all(v is None for v in row) else row for row in rows]


def _plain(column: pa.Array) -> pa.Array:
    """Return days and microseconds since the epoch as the numbers that they are."""
    if pa.types.is_date32(column.type):
        return column.view(pa.int32())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", tz=column.type.tz)).view(pa.int64())
    if pa.types.is_time64(column.type):
        return column.view(pa.int64())
    return column


# ------------------------------------------------------------------------------- file


@dataclass(frozen=True, slots=True)
class _Counts:
    records: int
    deletes: int
    inserted: int
    updated: int
    deleted: int
    exact: bool
    key_range: tuple[str, str] | None


def _counts(entries: _Entries, found: _Places | None, piece: FileSlice) -> _Counts:
    records, deletes = entries.row_count, entries.delete_count
    if found is None:
        whole = key_bounds(entries.row_keys)
        return _Counts(records, deletes, 0, records, deletes, exact=False, key_range=whole)
    new = found.rows < 0
    inserted = int(new.sum())
    late = int(found.losing_rows.sum())
    bounds = key_bounds(entries.row_keys.filter(pa.array(new)))
    if piece.logs:
        # A key may be new to the base file and known to a log, or deleted by one.
        return _Counts(records, deletes, 0, records, deletes, exact=False, key_range=bounds)
    gone = int((found.deletes >= 0).sum())
    return _Counts(records, deletes, inserted, records - inserted - late, gone, True, bounds)


def _store(
    spec: WriteSpec,
    work: GroupWork,
    piece: FileSlice,
    attempt: Attempt,
    blocks: bytes,
    counts: _Counts,
) -> FileWritten:
    partition, file_id = work.group.partition, work.group.file_id
    place = _Name.of(spec, piece)
    name = log_file_name(file_id, place.instant, place.version, attempt.token)
    path = in_partition(partition, name)
    kind = MarkerKind.CREATE if spec.config.layout == 2 else MarkerKind.APPEND
    with new_file(spec, path, partition, kind, partition_known=True) as sink:
        sink.write(blocks)
    stat = WriteStat(
        file_id=file_id,
        path=path,
        prev_commit=place.instant,
        num_writes=counts.records,
        num_inserts=counts.inserted,
        num_update_writes=counts.records - counts.inserted,
        num_deletes=counts.deletes,
        total_write_bytes=len(blocks),
        file_size_in_bytes=len(blocks),
        partition_path=partition,
        log_version=place.version,
        log_offset=0,
        base_file=place.base,
        log_files=(*place.others, name),
    )
    return FileWritten(
        partition,
        stat,
        inserted=counts.inserted,
        updated=counts.updated,
        deleted=counts.deleted,
        exact=counts.exact,
        key_range=counts.key_range,
    )


@dataclass(frozen=True, slots=True)
class _Name:
    """What the name of a log is made of, and what its write stat says beside it."""

    instant: str
    version: int
    base: str
    others: tuple[str, ...]

    @staticmethod
    def of(spec: WriteSpec, piece: FileSlice) -> "_Name":
        if spec.config.layout == 2:
            return _Name(spec.instant, 1, "", ())
        # Layout 1 names the slice that the log belongs to: that of an unfinished compaction
        # where there is one, and counts the logs of it.
        group = piece.group
        compaction = spec.pinned.visible.compactions.get(group.partition, {}).get(group.file_id)
        instant = compaction or piece.base_instant
        logs = [log for log in piece.logs if log.instant == instant]
        version = max((log.version for log in logs), default=0) + 1
        base = piece.base.name if piece.base is not None and compaction is None else ""
        return _Name(instant, version, base, tuple(log.name for log in logs))
