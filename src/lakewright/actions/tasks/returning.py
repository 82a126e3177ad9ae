"""The rows of a slice come back in a new file group, without those whose keys were written since.

Such a key is live again, or it was deleted since: both count for more than the row of before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.cluster_copy import copied
from lakewright.actions.tasks.cluster_files import NewGroups
from lakewright.actions.tasks.compact import rewritten_columns, sized, slice_reader
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_new import base_spec
from lakewright.actions.tasks.written_keys import Flags, mentioned
from lakewright.format.hudi.base_write import write_base
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.index.key_lookup import find_keys
from lakewright.model.files import FileSlice
from lakewright.model.schema import RECORD_KEY, STRING, Field, Struct
from lakewright.table.reader.keys import key_columns, record_keys


@dataclass(frozen=True, slots=True)
class ReturnWork:
    """A slice of before, and the live slices that may hold some of its keys.

    ``since`` are slices with the files that were written since, superseded ones too; of their
    logs the blocks of ``instants`` count.
    """

    slice: FileSlice
    live: tuple[FileSlice, ...]
    since: tuple[FileSlice, ...] = ()
    instants: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """About how many bytes are read and written."""
        return 2 * max(self.slice.size, 0)


@dataclass(frozen=True, slots=True)
class Returned:
    """The new group of a slice, none where no row came back.

    ``kept_out`` rows did not because their keys are live, ``deleted`` ones because theirs were
    deleted since.
    """

    partition: str
    stats: tuple[WriteStat, ...]
    kept_out: int = 0
    deleted: int = 0


def return_slice(spec: ServiceSpec, work: ReturnWork, attempt: Attempt) -> Returned:
    """Write the rows of a slice into a new group; what Hudi's columns say of them stays."""
    piece = sized(work.slice, spec.open_storage())
    partition = piece.group.partition
    place = NewGroups(spec, partition, attempt)
    out = _Out.of(spec, piece, work) if work.live or work.since else _Out()
    if out.none:
        stats = copied(place, [piece], 1)
        if stats is not None:
            return Returned(partition, stats)
    reading = _Rows(spec, piece, out)
    batches = reading.batches()
    # The first rows decide which columns get a dictionary.
    first = list(islice(batches, 1))
    if not first:
        return Returned(partition, (), reading.kept_out, reading.deleted)

    def fill(sink: IO[bytes], name: str) -> int:
        file = base_spec(spec, partition, name, attempt.task, pa.Table.from_batches(first))
        return write_base(sink, chain(first, batches), file).rows

    stat = place.write(fill)
    return Returned(partition, (stat,), reading.kept_out, reading.deleted)


@dataclass(frozen=True, slots=True)
class _Out:
    """The keys of a slice that stay out: those that are live, and those that were deleted since."""

    live: pa.Array | None = None
    deleted: pa.Array | None = None

    @property
    def none(self) -> bool:
        """Whether every row comes back."""
        return self.live is None and self.deleted is None

    @staticmethod
    def of(spec: ServiceSpec, piece: FileSlice, work: ReturnWork) -> "_Out":
        """Find them."""
        keys = _keys(spec, piece, None)
        live, written = np.zeros(len(keys), bool), np.zeros(len(keys), bool)
        for other in work.live:
            if other.base is not None and not other.logs:
                live[find_keys(spec.pinned, other, keys).row] = True
            else:
                # What logs deleted is not there any more, whatever the base file holds.
                there = pc.is_in(keys, value_set=_keys(spec, other, keys))
                live |= there.to_numpy(zero_copy_only=False)
        for other in work.since:
            written |= mentioned(spec, other, work.instants, keys)
        return _Out(_chosen(keys, live), _chosen(keys, written & ~live))


def _chosen(keys: pa.Array, flags: Flags) -> pa.Array | None:
    return keys.filter(pa.array(flags)) if flags.any() else None


class _Rows:
    """The rows of a slice, without those whose keys stay out."""

    def __init__(self, spec: ServiceSpec, piece: FileSlice, out: _Out) -> None:
        self._spec = spec
        self._piece = piece
        self._out = out
        self.kept_out = 0
        self.deleted = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Stream them; batches without rows are left out."""
        reader = slice_reader(self._spec).project(rewritten_columns(self._spec))
        for batch in reader.open(self._piece):
            if self._out.live is not None:
                kept = self._without(batch, self._out.live)
                self.kept_out += batch.num_rows - kept.num_rows
                batch = kept
            if self._out.deleted is not None:
                kept = self._without(batch, self._out.deleted)
                self.deleted += batch.num_rows - kept.num_rows
                batch = kept
            if batch.num_rows:
                yield batch

    def _without(self, batch: pa.RecordBatch, keys: pa.Array) -> pa.RecordBatch:
        mine = record_keys(batch, self._spec.config, str(self._piece.group))
        return batch.filter(pc.invert(pc.is_in(mine, value_set=keys)))


def _keys(spec: ServiceSpec, piece: FileSlice, only: pa.Array | None) -> pa.Array:
    config = spec.config
    names = key_columns(config)
    fields = (
        (Field(RECORD_KEY, STRING),)
        if config.populate_meta_fields
        else tuple(field for field in spec.schema.fields if field.name in names)
    )
    reader = slice_reader(spec).only(only).project(Struct(fields))
    sizes = sized(piece, spec.open_storage())
    parts = [record_keys(batch, config, str(piece.group)) for batch in reader.open(sizes)]
    return pa.chunked_array(parts, pa.string()).combine_chunks()
