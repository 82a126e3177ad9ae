"""Reading the changes of one task as Arrow batches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.expression import residual_filter
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import Invalid
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.files import FileSlice
from lakewright.model.schema import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    META_COLUMNS,
    META_FIELDS,
    RECORD_KEY,
    Struct,
)
from lakewright.table.changes.images import ChangeRows, Images, gather
from lakewright.table.changes.recorded import recorded_changes
from lakewright.table.changes.task import ChangeKind, ChangeTask
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.reader.keys import record_keys
from lakewright.table.reader.slice_reader import FileSliceReader

#: Together they name one version of one record.
_VERSION = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)


def change_batches(
    reader: FileSliceReader, task: ChangeTask, target: Struct, condition: BoundExpression | None
) -> Iterator[pa.RecordBatch]:
    """Stream the changes of a task: the columns of ``target``, rows that satisfy ``condition``."""
    keep = None if condition is None else residual_filter(condition)
    schema = to_arrow_schema(target)
    for batch in _changes(SliceImages.of(reader, task), task):
        made = batch if keep is None else keep(batch)
        if made.num_rows:
            yield conform(made.select(list(schema.names)), schema)


def _changes(images: "SliceImages", task: ChangeTask) -> Iterator[pa.RecordBatch]:
    make = ChangeRows(images.table, task.instant.requested)
    match task.kind:
        case ChangeKind.REMOVED:
            for part in images.before(task.before):
                yield make.deletes(part.rows)
        case ChangeKind.INSERTED:
            for part in images.after(task.after):
                yield make.inserts(part.rows)
        case ChangeKind.REWRITTEN:
            yield from _rewritten(images, task, make)
        case ChangeKind.LOGGED:
            yield from _logged(images, task, make)
        case ChangeKind.RECORDED:
            yield from recorded_changes(images, task, make)


def _rewritten(
    images: "SliceImages", task: ChangeTask, make: ChangeRows
) -> Iterator[pa.RecordBatch]:
    """Compare two base files, holding changed rows and the versions of all.

    Where versions do not tell whether a row changed, all rows are held.
    """
    doubtful = MergePolicy.of(images.reader_after.config).keeps_versions
    old = None if doubtful else _versions(images.reader_before, task.before)
    new = None if doubtful else _versions(images.reader_after, task.after)
    table = images.table
    yield from make.compared(
        gather((_unknown(part, new) for part in images.before(task.before)), table),
        gather((_unknown(part, old) for part in images.after(task.after)), table),
    )


def _versions(reader: FileSliceReader, file_slice: FileSlice | None) -> pa.Array | None:
    """Return the versions of all rows of a slice; None where rows do not carry them."""
    if not reader.config.populate_meta_fields:
        return None
    named = reader.project(reader.whole_schema.select(_VERSION))
    batches = () if file_slice is None else named.open(file_slice)
    return pa.chunked_array([_joined(batch) for batch in batches], pa.string()).combine_chunks()


def _joined(rows: pa.RecordBatch) -> pa.Array:
    return pc.binary_join_element_wise(
        *(rows.column(name) for name in _VERSION),
        "\x00",
        null_handling="replace",
        null_replacement="",
    )


def _unknown(part: Images, versions: pa.Array | None) -> Images:
    if versions is None or part.versions is None:
        return part
    return part.where(~np.asarray(pc.is_in(part.versions, value_set=versions), dtype=bool))


def _logged(images: "SliceImages", task: ChangeTask, make: ChangeRows) -> Iterator[pa.RecordBatch]:
    if task.after is None:
        raise Invalid(
            f"a task of {task.group} names no slice whose logs are to be compared.",
            next_step="Please report it: this is a fault of Lakewright.",
        )
    keys = images.reader_after.logged_keys(task.after, task.instant.requested)
    yield from make.compared(
        gather(images.before(task.before, keys), images.table),
        gather(images.after(task.after, keys), images.table),
    )


@dataclass(frozen=True, slots=True)
class SliceImages:
    """Reads the images that slices hold of records, just before an instant and just after."""

    reader_before: FileSliceReader
    reader_after: FileSliceReader
    table: Struct

    @staticmethod
    def of(reader: FileSliceReader, task: ChangeTask) -> "SliceImages":
        """Bound what is seen by the instant of a task."""
        instant = task.instant
        seen = (
            replace(reader.seen, as_of=instant.requested, upto=None)
            if reader.config.layout == 1
            else replace(reader.seen, as_of=None, upto=instant.completed)
        )
        own = reader.schema.without(frozenset(META_COLUMNS))
        meta = META_FIELDS if reader.config.populate_meta_fields else ()
        after = replace(reader, seen=seen).project(Struct((*meta, *own.fields)))
        hidden = replace(seen, hidden=frozenset({instant.requested}))
        return SliceImages(replace(after, seen=hidden), after, own)

    def before(
        self, file_slice: FileSlice | None, keys: pa.Array | None = None
    ) -> Iterator[Images]:
        """Stream the images of a slice before the instant; of the named records only, if any."""
        return self._images(self.reader_before.only(keys), file_slice)

    def after(self, file_slice: FileSlice | None, keys: pa.Array | None = None) -> Iterator[Images]:
        """Stream the images of a slice after the instant."""
        return self._images(self.reader_after.only(keys), file_slice)

    def _images(self, reader: FileSliceReader, file_slice: FileSlice | None) -> Iterator[Images]:
        if file_slice is None:
            return
        for batch in reader.open(file_slice):
            versions = _joined(batch) if reader.config.populate_meta_fields else None
            keys = record_keys(batch, reader.config, file_slice.group.file_id)
            rows = pa.Table.from_batches([batch.select(list(self.table.names))])
            yield Images(keys, rows, versions)
