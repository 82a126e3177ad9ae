"""Which group takes which rows: from rows by place to what happens to each file group."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_lookup import plan_lookup
from lakewright.actions.tasks.write_prepare import marked
from lakewright.actions.tasks.write_spec import ROUTE_POSITION, GroupWork, WriteSpec
from lakewright.format.hudi.bucket_hash import bucket_file_id
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.key_lookup import SEVERAL
from lakewright.index.record_index import bucket_slices
from lakewright.model.files import FileGroupId, FileSlice
from lakewright.model.lazy import lazy
from lakewright.model.schema import RECORD_KEY, STRING, Field, Struct
from lakewright.model.writing import Operation
from lakewright.table.merge.combine import combined
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.pinned import PartitionFiles
from lakewright.table.reader.slice_reader import FileSliceReader


class Planner:
    """Turns the rows of places into works, partition after partition."""

    def __init__(self, spec: WriteSpec) -> None:
        self._spec = spec
        self._last: tuple[PartitionFiles, Mapping[int, FileSlice]] | None = None

    @lazy
    def _policy(self) -> MergePolicy:
        return MergePolicy.of(self._spec.config)

    def works(
        self, files: PartitionFiles, inner: str, rows: pa.Table | None, deletes: pa.Array | None
    ) -> Iterator[GroupWork]:
        """Return what happens to the groups of a place, given all its rows and deleted keys.

        ``inner`` is what divides the partition: a bucket, a file id, or nothing.
        """
        spec = self._spec
        repeated = rows is not None and _repeated(rows)
        rows, deletes = apart(spec, rows, deletes)
        rows = self._combined(rows)
        if rows is not None and deletes is not None:
            # A key that is both written and deleted is written.
            known = pc.is_in(deletes, value_set=rows.column(RECORD_KEY).combine_chunks())
            deletes = deletes.filter(pc.invert(known))
        if deletes is not None and not len(deletes):
            deletes = None
        if rows is None and deletes is None:
            return
        if spec.layout.buckets is not None:
            held = self._held(files, spec.layout.buckets)
            yield from self._bucket(files, held.get(int(inner)), int(inner), rows, deletes)
        elif inner:
            for work in self._routed(files, inner, rows, deletes):
                yield replace(work, repeated=repeated)
        else:
            yield from plan_lookup(spec, files, rows, deletes)

    def _combined(self, rows: pa.Table | None) -> pa.Table | None:
        if rows is None or not rows.num_rows:
            return None
        spec = self._spec
        combine = (
            spec.operation is Operation.UPSERT
            or spec.drop_existing
            or spec.settings.combine_on_insert
        )
        if combine:
            rows = combined(rows, self._policy, spec.config.ordering)
        if spec.operation is Operation.BULK_INSERT and spec.settings.sort_mode.by_key:
            rows = rows.sort_by(RECORD_KEY)
        return rows

    def _held(self, files: PartitionFiles, counts: BucketCounts) -> Mapping[int, FileSlice]:
        """Return the slices that rows of a partition's buckets are added to, by bucket."""
        if self._spec.operation.replaces:
            return {}
        if self._last is None or self._last[0] is not files:
            # The buckets of a partition come one after the other.
            self._last = (files, bucket_slices(files, counts))
        return self._last[1]

    def _bucket(
        self,
        files: PartitionFiles,
        piece: FileSlice | None,
        bucket: int,
        rows: pa.Table | None,
        deletes: pa.Array | None,
    ) -> Iterator[GroupWork]:
        spec = self._spec
        if piece is None:
            group = FileGroupId(files.partition, bucket_file_id(bucket, uuid.uuid4()))
        else:
            group = piece.group
            if spec.drop_existing and rows is not None:
                rows = _unknown(spec, piece, rows)
        if (rows is None or not rows.num_rows) and (deletes is None or piece is None):
            return
        yield GroupWork(
            group,
            piece,
            rows,
            deletes if piece is not None else None,
            insert_only=spec.operation in _ADDING,
            partition_known=files.has_metadata,
        )

    def _routed(
        self, files: PartitionFiles, file_id: str, rows: pa.Table | None, deletes: pa.Array | None
    ) -> Iterator[GroupWork]:
        """Trust an engine that looked every key up before it sent the rows here."""
        piece = next((s for s in files.slices if s.group.file_id == file_id), None)
        positions = None
        if rows is not None and ROUTE_POSITION in rows.schema.names:
            positions = rows.column(ROUTE_POSITION).combine_chunks()
            rows = rows.drop_columns([ROUTE_POSITION])
            positions = None if positions.null_count else positions
        if rows is None and piece is None:
            return
        new = positions is not None and pc.all(pc.equal(positions, -1)).as_py()
        yield GroupWork(
            FileGroupId(files.partition, file_id),
            piece,
            rows,
            deletes,
            insert_only=bool(new) and deletes is None,
            positions=positions,
            partition_known=files.has_metadata,
        )


def _repeated(rows: pa.Table) -> bool:
    """Whether an engine found several rows of some key in the base file of a group."""
    if ROUTE_POSITION not in rows.schema.names:
        return False
    return bool(pc.any(pc.equal(rows.column(ROUTE_POSITION), SEVERAL)).as_py())


def apart(
    spec: WriteSpec, rows: pa.Table | None, deletes: pa.Array | None
) -> tuple[pa.Table | None, pa.Array | None]:
    """Take the rows that delete whatever is stored out of the others, to the other deletes."""
    if rows is None:
        return None, _union(deletes, None)
    rows, gone = marked(rows)
    if spec.operation is Operation.DELETE:
        return None, _union(deletes, rows.column(RECORD_KEY).combine_chunks())
    return rows, _union(deletes, gone)


#: Operations that add rows without a look at what is stored.
_ADDING = frozenset({Operation.INSERT, Operation.BULK_INSERT})


def _union(one: pa.Array | None, other: pa.Array | None) -> pa.Array | None:
    parts = [part for part in (one, other) if part is not None and len(part)]
    if not parts:
        return None
    return pa.chunked_array(parts, pa.string()).unique()


def _unknown(spec: WriteSpec, piece: FileSlice, rows: pa.Table) -> pa.Table:
    """Return the rows whose keys a slice does not hold."""
    keys = rows.column(RECORD_KEY).combine_chunks()
    reader = FileSliceReader.of(spec.pinned.state).only(keys)
    reader = reader.project(Struct((Field(RECORD_KEY, STRING),)))
    held = pa.chunked_array([batch.column(0) for batch in reader.open(piece)], pa.string())
    return rows.filter(pc.invert(pc.is_in(keys, value_set=held.combine_chunks())))
