"""RecordIndex: in which file groups the records with some keys lie."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.index.key_lookup import find_keys
from lakewright.index.layout import IndexLayout
from lakewright.model.errors import Invalid
from lakewright.model.files import FileSlice
from lakewright.storage.streams import map_bounded
from lakewright.table.file_index import FileIndex
from lakewright.table.pinned import PartitionFiles, PinnedTable

Places = npt.NDArray[np.int64]

#: Files that are looked into at the same time.
_THREADS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """Where keys lie: the ``row`` of the question, the number of the slice, the row in its base.

    A key that is nowhere has no entry; one that lies in several groups has several. The position
    is -1 where the key's place in the base file is not known.
    """

    slices: Sequence[FileSlice]
    row: Places
    slice: Places
    position: Places


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Finds the groups of records, by bucket or by looking keys up, at the pinned moment."""

    pinned: PinnedTable
    layout: IndexLayout

    def tag(
        self,
        keys: pa.Array,
        partitions: pa.Array,
        listed: Mapping[str, PartitionFiles] | None = None,
    ) -> Tagged:
        """Say where records lie, given their keys and the partitions they claim.

        With a global index the partition of a record plays no part: all of the table is looked
        through. In a bucket table a record's group is that of its bucket, whether the key is in
        it or not. ``listed`` saves the listing of partitions whose files are known.
        """
        codes = partitions.dictionary_encode() if not _coded(partitions) else partitions
        names = codes.dictionary.to_pylist()
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        if self.layout.kind.is_global:
            return self._tag_everywhere(keys)
        met = [name for i, name in enumerate(names) if bool((numbers == i).any())]
        files = {n: (listed or {}).get(n) or self.pinned.files(n) for n in met}
        if self.layout.buckets is not None:
            return self._tag_buckets(keys, names, numbers, files)
        asked = (
            (piece, np.flatnonzero(numbers == i))
            for i, name in enumerate(names)
            if name in files
            for piece in files[name].slices
        )
        return self._looked_up(keys, asked)

    def _tag_buckets(
        self,
        keys: pa.Array,
        names: list[str],
        numbers: Places,
        files: Mapping[str, PartitionFiles],
    ) -> Tagged:
        config = self.pinned.state.config
        fields = self.layout.hash_fields or config.record_key
        buckets = bucket_of(keys, fields, self.layout.buckets or 1)
        slices: list[FileSlice] = []
        rows: list[Places] = []
        which: list[Places] = []
        for number, name in enumerate(names):
            if name not in files:
                continue
            mine = numbers == number
            for bucket, piece in bucket_slices(files[name]).items():
                found = np.flatnonzero(mine & (buckets == bucket))
                if len(found):
                    rows.append(found)
                    which.append(np.full(len(found), len(slices), np.int64))
                    slices.append(piece)
        row = _stacked(rows)
        return Tagged(slices, row, _stacked(which), np.full(len(row), -1, np.int64))

    def _tag_everywhere(self, keys: pa.Array) -> Tagged:
        every = np.arange(len(keys))
        parts = FileIndex(self.pinned.state).list_files_at()
        return self._looked_up(
            keys, ((piece, every) for part in parts for piece in part.file_slices)
        )

    def _looked_up(
        self,
        keys: pa.Array,
        asked: Iterator[tuple[FileSlice, Places]],
    ) -> Tagged:
        def look(question: tuple[FileSlice, Places]) -> tuple[FileSlice, Places, Places]:
            piece, rows = question
            some = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
            coded = some.dictionary_encode()
            if len(coded.dictionary) == len(some):
                found, positions = find_keys(self.pinned, piece, some)
                return piece, rows[found], positions
            found, positions = find_keys(self.pinned, piece, coded.dictionary)
            place = np.full(len(coded.dictionary), -2, np.int64)
            place[found] = positions
            each = place[coded.indices.to_numpy(zero_copy_only=False)]
            return piece, rows[each > -2], each[each > -2]

        slices: list[FileSlice] = []
        rows: list[Places] = []
        which: list[Places] = []
        positions: list[Places] = []
        for piece, found, places in map_bounded(look, asked, threads=_THREADS):
            if len(found):
                rows.append(found)
                which.append(np.full(len(found), len(slices), np.int64))
                positions.append(places)
                slices.append(piece)
        return Tagged(slices, _stacked(rows), _stacked(which), _stacked(positions))


def bucket_slices(files: PartitionFiles) -> Mapping[int, FileSlice]:
    """Return the slice of each bucket of a partition; two of one bucket are refused."""
    found: dict[int, FileSlice] = {}
    for piece in files.slices:
        bucket = bucket_number(piece.group.file_id)
        if bucket is None:
            raise Invalid(
                f"the file group {piece.group} lies in a bucket table and belongs to no bucket.",
                next_step="The table was written with another index: give its own index type.",
                group=str(piece.group),
            )
        if bucket in found:
            raise Invalid(
                f"bucket {bucket} of partition {files.partition!r} has two file groups, "
                f"{found[bucket].group.file_id} and {piece.group.file_id}.",
                next_step="Two writers began the bucket at once; rewrite the partition with "
                "insert_overwrite.",
                partition=files.partition,
                bucket=bucket,
            )
        found[bucket] = piece
    return found


def _coded(array: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(array.type))


def _stacked(parts: list[Places]) -> Places:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
