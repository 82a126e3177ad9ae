"""New file groups: rows into base files, in the order in which they come."""

from collections.abc import Iterator
from dataclasses import replace
from typing import IO

import numpy as np
import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.service_spec import MakesFiles
from lakewright.actions.tasks.write_files import (
    first_number,
    in_partition,
    layout_of,
    new_file,
    record_name,
)
from lakewright.actions.tasks.write_spec import FileWritten, GroupWork, WriteSpec
from lakewright.format.arrow.shared_columns import joined_batches
from lakewright.format.hudi.base_write import (
    ROW_GROUP_BYTES,
    BaseFileSpec,
    WrittenBase,
    write_base,
)
from lakewright.format.hudi.bloom import Shaping, cheap_shape, lean_shape
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.file_names import base_file_name
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.index.layout import INDEX_TYPE, IndexKind
from lakewright.model.schema import COMMIT_SEQNO, RECORD_KEY
from lakewright.table.merge.combine import incoming_deletes
from lakewright.table.merge.policy import MergePolicy
from lakewright.timeline.markers import MarkerKind

#: What a write stat says of a group that had no commit before.
NO_COMMIT = "null"


def write_new(spec: WriteSpec, work: GroupWork, attempt: Attempt) -> Iterator[FileWritten]:
    """Write the rows of a new group; rows that delete find nothing to delete and are left out.

    A table without buckets gets several groups where one file would become too large: their ids
    differ in the last number.
    """
    if work.rows is None:
        return
    rows = live_rows(work.rows, MergePolicy.of(spec.config))
    if not rows.num_rows:
        return
    limit = None if spec.layout.buckets is not None else spec.settings.max_file
    row_group = ROW_GROUP_BYTES if limit is None else min(ROW_GROUP_BYTES, limit)
    waiting = _Waiting(_pieces(rows, row_group))
    number = 0
    while waiting.any():
        file_id = work.group.file_id if not number else _sibling(work.group.file_id, number)
        yield _write_one(spec, work, attempt, file_id, rows, waiting, limit)
        number += 1


def live_rows(rows: pa.Table, policy: MergePolicy) -> pa.Table:
    """Return the rows that do not delete."""
    deleted, _ = incoming_deletes(rows, policy)
    return rows.filter(pa.array(~deleted)) if deleted.any() else rows


def base_spec(
    spec: MakesFiles,
    partition: str,
    name: str,
    task: int,
    rows: pa.Table | None,
    bloom: tuple[str, str] | None = None,
) -> BaseFileSpec:
    """Return how a base file of this write looks; ``rows`` are those that may be new in it."""
    record, space = record_name(spec.config.name)
    return BaseFileSpec(
        schema=spec.schema,
        name=record,
        namespace=space,
        file_name=name,
        partition=partition,
        instant=spec.instant,
        task=task,
        keys=spec.config.record_key,
        meta=spec.config.populate_meta_fields,
        bloom_shape=bloom_shape(spec.config),
        bloom=bloom,
        first=first_number(0 if rows is None else rows.num_rows),
        repeating=None if rows is None or not rows.num_rows else repeating_in(spec, rows),
    )


def bloom_shape(config: TableConfig) -> Shaping:
    """Return how filters over keys are laid out: buckets tell already where a key may be."""
    bucket = INDEX_TYPE.read(config.properties) is IndexKind.BUCKET
    return lean_shape if bucket else cheap_shape


def repeating_in(spec: MakesFiles, rows: pa.Table) -> frozenset[str]:
    """Return the columns that get a dictionary in all files of a write."""
    keys = (COMMIT_SEQNO, RECORD_KEY, *spec.config.record_key)
    return layout_of(spec.uri, spec.instant).repeating(rows, keys)


def _write_one(
    spec: WriteSpec,
    work: GroupWork,
    attempt: Attempt,
    file_id: str,
    rows: pa.Table,
    waiting: "_Waiting",
    limit: int | None,
) -> FileWritten:
    partition = work.group.partition
    name = base_file_name(file_id, attempt.token, spec.instant)
    path = in_partition(partition, name)
    # Each batch is a row group: how large the file has become is known after every one.
    file = replace(base_spec(spec, partition, name, attempt.task, rows), row_group_bytes=1)
    with new_file(
        spec, path, partition, MarkerKind.CREATE, partition_known=work.partition_known
    ) as sink:
        written = write_base(sink, _until_full(sink, waiting, limit), file)
        size = sink.tell()
    stat = WriteStat(
        file_id=file_id,
        path=path,
        prev_commit=NO_COMMIT,
        num_writes=written.rows,
        num_inserts=written.rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
        partition_path=partition,
    )
    return FileWritten(partition, stat, inserted=written.rows, key_range=_bounds(written))


def _bounds(written: WrittenBase) -> tuple[str, str] | None:
    if written.min_key is None or written.max_key is None:
        return None
    return written.min_key, written.max_key


def _pieces(rows: pa.Table, row_group: int) -> Iterator[pa.RecordBatch]:
    """Cut rows into batches of about one row group each; many small ones cost more to write."""
    per_row = max(1, rows.nbytes // max(rows.num_rows, 1))
    step = max(1, int(np.ceil(row_group / per_row)))
    for start in range(0, rows.num_rows, step):
        yield from joined_batches(rows.slice(start, step))


def _until_full(
    sink: IO[bytes], waiting: "_Waiting", limit: int | None
) -> Iterator[pa.RecordBatch]:
    # Written bytes are known once a row group is closed, which happens between two batches.
    yield waiting.take()
    while (limit is None or sink.tell() < limit) and waiting.any():
        yield waiting.take()


class _Waiting:
    """Batches that no file has taken yet; one of them is made ahead."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._next: pa.RecordBatch | None = None

    def any(self) -> bool:
        if self._next is None:
            self._next = next(self._batches, None)
        return self._next is not None

    def take(self) -> pa.RecordBatch:
        batch, self._next = self._next, None
        return next(self._batches) if batch is None else batch


def _sibling(file_id: str, number: int) -> str:
    stem, dash, tail = file_id.rpartition("-")
    if dash and tail.isdigit() and len(tail) < 4:
        return f"{stem}-{int(tail) + number}"
    return f"{file_id}-{number}"
