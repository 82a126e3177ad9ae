"""Rows and deletes appended to a slice as one log file: data first, then deletes."""

from dataclasses import dataclass

import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_blocks import data_blocks, delete_blocks
from lakewright.actions.tasks.write_entries import Entries, EntryPlaces, find_places
from lakewright.actions.tasks.write_files import (
    in_partition,
    new_file,
)
from lakewright.actions.tasks.write_spec import FileWritten, GroupWork, WriteSpec
from lakewright.format.hudi.base_write import key_bounds
from lakewright.format.hudi.file_names import log_file_name
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.files import FileSlice
from lakewright.table.merge.policy import MergePolicy
from lakewright.timeline.markers import MarkerKind


def write_log(
    spec: WriteSpec, work: GroupWork, piece: FileSlice, attempt: Attempt
) -> FileWritten | None:
    """Append the group's rows and deletes; None where there are none."""
    policy = MergePolicy.of(spec.config)
    entries = Entries.of(work, policy)
    if not len(entries):
        return None
    found = find_places(spec, work, piece, entries, policy)
    data = data_blocks(spec, work, entries, found, piece, attempt.task)
    blocks = b"".join([*data, *delete_blocks(spec, work, entries, found, piece, policy)])
    return _store(spec, work, piece, attempt, blocks, _counts(entries, found, piece))


@dataclass(frozen=True, slots=True)
class _Counts:
    records: int
    deletes: int
    inserted: int
    updated: int
    deleted: int
    exact: bool
    key_range: tuple[str, str] | None


def _counts(entries: Entries, found: EntryPlaces | None, piece: FileSlice) -> _Counts:
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
    gone = int((found.deletes >= 0).sum()) - int(found.losing_deletes.sum())
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
        prev_commit=place.previous,
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
    previous: str
    base: str
    others: tuple[str, ...]

    @staticmethod
    def of(spec: WriteSpec, piece: FileSlice) -> "_Name":
        if spec.config.layout == 2:
            if not spec.config.cdc_enabled:
                return _Name(spec.instant, 1, spec.instant, "", ())
            # Hudi's readers of changes take the slice below a log from its write stat.
            below = piece.base.name if piece.base is not None else ""
            others = tuple(log.name for log in piece.logs)
            return _Name(spec.instant, 1, piece.base_instant, below, others)
        # Layout 1 names the slice that the log belongs to: that of an unfinished compaction
        # where there is one, and counts the logs of it.
        group = piece.group
        compaction = spec.pinned.visible.compactions.get(group.partition, {}).get(group.file_id)
        instant = compaction or piece.base_instant
        logs = [log for log in piece.logs if log.instant == instant]
        version = max((log.version for log in logs), default=0) + 1
        base = piece.base.name if piece.base is not None and compaction is None else ""
        return _Name(instant, version, instant, base, tuple(log.name for log in logs))
