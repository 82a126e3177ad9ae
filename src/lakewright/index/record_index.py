"""RecordIndex: in which file groups the records with some keys lie."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.bucket_routing import route_to_buckets
from lakewright.index.key_lookup import KeysFound, find_keys
from lakewright.index.layout import IndexLayout
from lakewright.model.errors import Invalid
from lakewright.model.files import FileSlice
from lakewright.storage.streams import map_bounded
from lakewright.table.file_index import FileIndex
from lakewright.table.merge.winners import Flags
from lakewright.table.pinned import PartitionFiles, PinnedTable

Places = npt.NDArray[np.int64]

#: Files that are looked into at the same time.
_THREADS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """Where keys lie: the ``row`` of the question, the number of the slice, the row in its base.

    A key that is nowhere has no entry; one that lies in several groups has several. The position
    is -1 where the key's place in the base file is not known, ``SEVERAL`` where it has many
    there. ``alive`` is False where the logs
    of a slice deleted the key that its base file holds.
    """

    slices: Sequence[FileSlice]
    row: Places
    slice: Places
    position: Places
    alive: Flags

    def filtered(self, kept: Flags) -> "Tagged":
        """Return it with these entries only."""
        if kept.all():
            return self
        row, place = self.row[kept], self.position[kept]
        return Tagged(self.slices, row, self.slice[kept], place, self.alive[kept])

    def settled(self) -> "Tagged":
        """Return it with the entries at which a write of the keys belongs.

        These are the places where a key is alive. One that is alive nowhere belongs where it
        was deleted last, so that ordering values are compared with those of the delete: of the
        base files that hold it the youngest, since keys that were deleted come back in younger
        files only.
        """
        if self.alive.all():
            return self
        wanted = self.alive.copy()
        dead = np.flatnonzero(~np.isin(self.row, self.row[self.alive]))
        ages = np.array([p.base.instant if p.base is not None else "" for p in self.slices])
        dead = dead[np.argsort(ages[self.slice[dead]], kind="stable")]
        # Of several entries of one key the last is the first of the reversed ones.
        last = np.unique(self.row[dead[::-1]], return_index=True)[1]
        wanted[dead[::-1][last]] = True
        return self.filtered(wanted)


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
        it or not. ``listed`` saves the listing of partitions whose files are known. Keys that
        logs deleted are told too, not alive; ``Tagged.settled`` says which entries count.
        """
        codes = partitions.dictionary_encode() if not _coded(partitions) else partitions
        names = codes.dictionary.to_pylist()
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        if self.layout.kind.is_global:
            return self._tag_everywhere(keys)
        met = [name for i, name in enumerate(names) if bool((numbers == i).any())]
        files = {n: (listed or {}).get(n) or self.pinned.files(n) for n in met}
        if self.layout.buckets is not None:
            return self._tag_buckets(keys, codes, self.layout.buckets, files)
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
        codes: pa.DictionaryArray,
        counts: BucketCounts,
        files: Mapping[str, PartitionFiles],
    ) -> Tagged:
        fields = self.layout.hash_fields or self.pinned.state.config.record_key
        buckets = route_to_buckets(keys, codes, fields, counts)
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        slices: list[FileSlice] = []
        rows: list[Places] = []
        which: list[Places] = []
        for number, name in enumerate(codes.dictionary.to_pylist()):
            if name not in files:
                continue
            held = bucket_slices(files[name], counts)
            mine = np.flatnonzero(numbers == number)
            present, place = np.unique(buckets[mine], return_inverse=True)
            # For each bucket that rows belong to: the number of its slice, -1 where it has none.
            known = np.full(len(present), -1, np.int64)
            for at, bucket in enumerate(present.tolist()):
                if bucket in held:
                    known[at] = len(slices)
                    slices.append(held[bucket])
            found = known[place]
            rows.append(mine[found >= 0])
            which.append(found[found >= 0])
        row = _stacked(rows)
        places, alive = np.full(len(row), -1, np.int64), np.ones(len(row), bool)
        return Tagged(slices, row, _stacked(which), places, alive)

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
        def look(question: tuple[FileSlice, Places]) -> tuple[FileSlice, KeysFound]:
            piece, rows = question
            some = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
            coded = some.dictionary_encode()
            if len(coded.dictionary) == len(some):
                found = find_keys(self.pinned, piece, some)
                return piece, replace(found, row=rows[found.row])
            found = find_keys(self.pinned, piece, coded.dictionary)
            place = np.full(len(coded.dictionary), -1, np.int64)
            place[found.row] = np.arange(len(found.row))
            each = place[coded.indices.to_numpy(zero_copy_only=False)]
            met = each[each >= 0]
            return piece, KeysFound(rows[each >= 0], found.position[met], found.alive[met])

        slices: list[FileSlice] = []
        every: list[KeysFound] = []
        for piece, found in map_bounded(look, asked, threads=_THREADS):
            if len(found.row):
                every.append(found)
                slices.append(piece)
        which = [np.full(len(found.row), number, np.int64) for number, found in enumerate(every)]
        alive = [found.alive for found in every]
        return Tagged(
            slices,
            _stacked([found.row for found in every]),
            _stacked(which),
            _stacked([found.position for found in every]),
            np.concatenate(alive) if alive else np.empty(0, bool),
        )


def bucket_slices(files: PartitionFiles, counts: BucketCounts) -> Mapping[int, FileSlice]:
    """Return the slice of each bucket of a partition.

    Two of one bucket are refused, and so is one beyond the partition's number of buckets: rows
    would be looked for in one place and written to another.
    """
    found: dict[int, FileSlice] = {}
    number = counts.number_of(files.partition)
    for piece in files.slices:
        bucket = bucket_number(piece.group.file_id)
        if bucket is None:
            raise Invalid(
                f"the file group {piece.group} lies in a bucket table and belongs to no bucket.",
                next_step="The table was written with another index: give its own index type.",
                group=str(piece.group),
            )
        if bucket >= number:
            raise Invalid(
                f"partition {files.partition!r} has {number} buckets, but the file group "
                f"{piece.group.file_id} is that of bucket {bucket}.",
                next_step="The partition was written with another number: table.buckets.check(), "
                "or `lakewright buckets check PATH`, tells what is wrong.",
                partition=files.partition,
                bucket=bucket,
                buckets=number,
            )
        if bucket in found:
            raise Invalid(
                f"bucket {bucket} of partition {files.partition!r} has two file groups, "
                f"{found[bucket].group.file_id} and {piece.group.file_id}.",
                next_step="Two writers began the bucket at once: table.buckets.repair(), or "
                "`lakewright buckets repair PATH`, puts the rows together again.",
                partition=files.partition,
                bucket=bucket,
            )
        found[bucket] = piece
    return found


def _coded(array: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(array.type))


def _stacked(parts: list[Places]) -> Places:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
