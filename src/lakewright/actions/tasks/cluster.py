"""The slices of one task of a clustering become new file groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.cluster_copy import copied
from lakewright.actions.tasks.cluster_files import NewGroups
from lakewright.actions.tasks.cluster_order import SAMPLE, Order, Sorting
from lakewright.actions.tasks.compact import rewritten_columns, sized, slice_reader
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_new import base_spec
from lakewright.actions.tasks.write_settings import SPILL_BYTES
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.base_write import write_base
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.files import FileSlice


@dataclass(frozen=True, slots=True)
class ClusterWork:
    """Slices of one partition to rewrite together, into so many files.

    ``bucket`` is the number of the bucket that they belong to, None in tables without buckets.
    ``size`` is about how many bytes are read and written.
    """

    slices: tuple[FileSlice, ...]
    outputs: int
    order: Order
    size: int
    bucket: int | None = None


@dataclass(frozen=True, slots=True)
class Clustered:
    """What became of some slices; ``copied`` says that their row groups were not decoded."""

    partition: str
    stats: tuple[WriteStat, ...]
    replaced: tuple[str, ...]
    files_read: int
    bytes_read: int
    copied: bool = False


def cluster_group(spec: ServiceSpec, work: ClusterWork, attempt: Attempt) -> Clustered:
    """Write the rows of some slices into new file groups; what Hudi's columns say of them stays.

    Slices without rows leave nothing behind.
    """
    storage = spec.open_storage()
    pieces = [sized(piece, storage) for piece in work.slices]
    partition = pieces[0].group.partition
    place = NewGroups(spec, partition, attempt, work.bucket)
    stats = None if work.order.columns else copied(place, pieces, work.outputs)
    return Clustered(
        partition=partition,
        stats=tuple(_rewritten(place, pieces, work)) if stats is None else stats,
        replaced=tuple(piece.group.file_id for piece in pieces),
        files_read=sum(len(piece.paths) for piece in pieces),
        bytes_read=sum(piece.size for piece in pieces),
        copied=stats is not None,
    )


def _rewritten(
    place: NewGroups, pieces: Sequence[FileSlice], work: ClusterWork
) -> Iterator[WriteStat]:
    spec = place.spec
    rows = _rows_of(spec, pieces)
    sorting = Sorting(work.order, SPILL_BYTES.read(spec.settings), SAMPLE.read(spec.settings), rows)
    stream = _Stream(sorting.rows_of(slice_reader(spec), pieces, rewritten_columns(spec)))
    share = -(-rows // work.outputs) if rows else None
    number = 0
    while stream.any():
        number += 1
        last = number >= work.outputs

        def fill(sink: IO[bytes], name: str, most: int | None = None if last else share) -> int:
            file = base_spec(spec, place.partition, name, place.attempt.task, None)
            return write_base(sink, stream.take(most), file).rows

        yield place.write(fill)


def _rows_of(spec: ServiceSpec, pieces: Sequence[FileSlice]) -> int:
    """Return the rows of the base files; logs change their number a little."""
    storage = spec.open_storage()
    bases = [piece.base for piece in pieces if piece.base is not None]
    return sum(read_footer(storage, base.path, base.size).num_rows for base in bases)


class _Stream:
    """Rows that no file has taken yet."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._next: pa.RecordBatch | None = None

    def any(self) -> bool:
        """Say whether rows are left."""
        while self._next is None or not self._next.num_rows:
            self._next = next(self._batches, None)
            if self._next is None:
                return False
        return True

    def take(self, most: int | None) -> Iterator[pa.RecordBatch]:
        """Stream so many rows, None for all."""
        left = most
        while (left is None or left > 0) and self.any():
            assert self._next is not None
            count = self._next.num_rows if left is None else min(left, self._next.num_rows)
            batch, self._next = self._next.slice(0, count), self._next.slice(count)
            if left is not None:
                left -= count
            yield batch
