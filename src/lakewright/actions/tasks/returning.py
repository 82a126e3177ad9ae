"""The rows of a slice come back in a new file group, without those whose keys are live again."""

from collections.abc import Iterator, Sequence
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
from lakewright.format.hudi.base_write import write_base
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.index.key_lookup import find_keys
from lakewright.model.files import FileSlice
from lakewright.model.schema import RECORD_KEY, STRING, Field, Struct
from lakewright.table.reader.keys import key_columns, record_keys


@dataclass(frozen=True, slots=True)
class ReturnWork:
    """A slice of before, and the live slices that may hold some of its keys."""

    slice: FileSlice
    live: tuple[FileSlice, ...]

    @property
    def size(self) -> int:
        """About how many bytes are read and written."""
        return 2 * max(self.slice.size, 0)


@dataclass(frozen=True, slots=True)
class Returned:
    """The new group of a slice, none where no row came back; ``kept_out`` rows did not."""

    partition: str
    stats: tuple[WriteStat, ...]
    kept_out: int


def return_slice(spec: ServiceSpec, work: ReturnWork, attempt: Attempt) -> Returned:
    """Write the rows of a slice into a new group; what Hudi's columns say of them stays."""
    piece = sized(work.slice, spec.open_storage())
    partition = piece.group.partition
    place = NewGroups(spec, partition, attempt)
    live = _live_keys(spec, piece, work.live) if work.live else None
    if live is None:
        stats = copied(place, [piece], 1)
        if stats is not None:
            return Returned(partition, stats, 0)
    reading = _Rows(spec, piece, live)
    batches = reading.batches()
    # The first rows decide which columns get a dictionary.
    first = list(islice(batches, 1))
    if not first:
        return Returned(partition, (), reading.kept_out)

    def fill(sink: IO[bytes], name: str) -> int:
        file = base_spec(spec, partition, name, attempt.task, pa.Table.from_batches(first))
        return write_base(sink, chain(first, batches), file).rows

    stat = place.write(fill)
    return Returned(partition, (stat,), reading.kept_out)


class _Rows:
    """The rows of a slice, without those whose keys are live."""

    def __init__(self, spec: ServiceSpec, piece: FileSlice, live: pa.Array | None) -> None:
        self._spec = spec
        self._piece = piece
        self._live = live
        self.kept_out = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Stream them; batches without rows are left out."""
        reader = slice_reader(self._spec).project(rewritten_columns(self._spec))
        for batch in reader.open(self._piece):
            if self._live is not None:
                keys = record_keys(batch, self._spec.config, str(self._piece.group))
                free = pc.invert(pc.is_in(keys, value_set=self._live))
                kept = batch.filter(free)
                self.kept_out += batch.num_rows - kept.num_rows
                batch = kept
            if batch.num_rows:
                yield batch


def _live_keys(spec: ServiceSpec, piece: FileSlice, live: Sequence[FileSlice]) -> pa.Array | None:
    """Return the keys of a slice that other slices hold; None where they hold none."""
    keys = _keys(spec, piece, None)
    found = np.zeros(len(keys), bool)
    for other in live:
        if other.base is not None and not other.logs:
            found[find_keys(spec.pinned, other, keys).row] = True
        else:
            # What logs deleted is not there any more, whatever the base file holds.
            there = pc.is_in(keys, value_set=_keys(spec, other, keys))
            found |= there.to_numpy(zero_copy_only=False)
    return keys.filter(pa.array(found)) if found.any() else None


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
