"""One slice becomes one base file: rows stream by, and keep what Hudi's own columns say of them."""

import time
from dataclasses import dataclass, replace
from itertools import chain, islice

import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_files import in_partition, new_file
from lakewright.actions.tasks.write_new import NO_COMMIT, base_spec
from lakewright.format.hudi.base_write import write_base
from lakewright.format.hudi.file_names import base_file_name
from lakewright.format.hudi.metadata.commit import RuntimeStats, WriteStat
from lakewright.model.errors import NotFound
from lakewright.model.files import FileSlice
from lakewright.model.schema import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY, STRING, Field, Struct
from lakewright.storage.port import Storage
from lakewright.table.reader.counts import MergeCounts
from lakewright.table.reader.instants import SeenInstants
from lakewright.table.reader.slice_reader import FileSliceReader
from lakewright.timeline.markers import MarkerKind

_KEPT = tuple(Field(name, STRING) for name in (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY))


@dataclass(frozen=True, slots=True)
class CompactWork:
    """A slice to merge, and about how many bytes that reads and writes.

    With ``may_go`` its group was replaced, so that a cleaning may take its files meanwhile.
    """

    slice: FileSlice
    size: int
    may_go: bool = False


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of a slice."""

    stat: WriteStat
    files_read: int
    bytes_read: int


def compact_group(spec: ServiceSpec, work: CompactWork, attempt: Attempt) -> Compacted | None:
    """Write the next base file of a group; one without rows too, or the old ones would be back.

    None where the group may go, and did.
    """
    try:
        return _compacted(spec, work, attempt)
    except NotFound:
        if work.may_go:
            return None
        raise


def _compacted(spec: ServiceSpec, work: CompactWork, attempt: Attempt) -> Compacted:
    began = time.monotonic()
    piece = sized(work.slice, spec.open_storage())
    counts = MergeCounts()
    partition = piece.group.partition
    name = base_file_name(piece.group.file_id, attempt.token, spec.instant)
    path = in_partition(partition, name)
    reader = slice_reader(spec).project(rewritten_columns(spec))
    kind = MarkerKind.CREATE if piece.base is None else MarkerKind.MERGE
    with new_file(spec, path, partition, kind, partition_known=True) as sink:
        batches = reader.open(piece, counts)
        # The first rows of the first file decide which columns get a dictionary, in all of them.
        first = list(islice(batches, 1))
        seen = pa.Table.from_batches(first) if first else None
        file = base_spec(spec, partition, name, attempt.task, seen)
        written = write_base(sink, chain(first, batches), file)
        size = sink.tell()
    stat = WriteStat(
        file_id=piece.group.file_id,
        path=path,
        prev_commit=NO_COMMIT if piece.base is None else piece.base.instant,
        num_writes=written.rows,
        num_inserts=counts.inserted,
        num_update_writes=counts.updated,
        num_deletes=counts.deleted,
        total_write_bytes=size,
        file_size_in_bytes=size,
        partition_path=partition,
        prev_base_file=None if piece.base is None else piece.base.name,
    )
    return Compacted(with_log_totals(stat, piece, counts, began), len(piece.paths), piece.size)


def rewritten_columns(spec: ServiceSpec) -> Struct:
    """Return the columns that a row takes along into a new file."""
    kept = _KEPT if spec.config.populate_meta_fields else ()
    return Struct((*kept, *spec.schema.fields))


def slice_reader(spec: ServiceSpec) -> FileSliceReader:
    """Return the reader of slices as files hold them."""
    state = spec.pinned.state
    return FileSliceReader(
        spec.open_storage(),
        spec.config,
        spec.schema,
        SeenInstants.of(state.timeline),
        history=spec.pinned.names,
        options=spec.settings,
        as_stored=True,
    )


def with_log_totals(
    stat: WriteStat, piece: FileSlice, counts: MergeCounts, began: float
) -> WriteStat:
    """Return the stat with what Hudi's compactions tell of the logs that they merged."""
    spent = int((time.monotonic() - began) * 1000)
    return replace(
        stat,
        total_log_records=counts.records,
        total_log_blocks=counts.blocks,
        total_corrupt_log_block=counts.corrupt_blocks,
        total_rollback_blocks=counts.rollback_blocks,
        total_updated_records_compacted=counts.keys,
        total_log_files_compacted=len(piece.logs),
        total_log_size_compacted=sum(log.size for log in piece.logs),
        runtime_stats=RuntimeStats(total_upsert_time=spent),
    )


def sized(piece: FileSlice, storage: Storage) -> FileSlice:
    """Return the slice with the sizes of its files: a plan tells names alone."""

    def size(path: str, known: int) -> int:
        if known >= 0:
            return known
        found = storage.stat(path)
        if found is None:
            raise NotFound(
                f"{path} is gone, and the plan that names it is not.",
                next_step="Roll the plan back: it was made for a table that is no more.",
                path=path,
            )
        return found.size

    base = piece.base
    if base is not None:
        base = replace(base, size=size(base.path, base.size))
    logs = tuple(replace(log, size=size(log.path, log.size)) for log in piece.logs)
    return replace(piece, base=base, logs=logs)
