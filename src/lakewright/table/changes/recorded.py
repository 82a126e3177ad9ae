"""Changes from the change files that copy-on-write tables may keep.

A change file holds operations, and, depending on the table's mode, images of the record before
and after. Images that it leaves out are taken from the slices before and after.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.read import read_data, scan_blocks
from lakewright.format.hudi.partition_paths import partition_values
from lakewright.model.errors import Corrupt, HistoryGone, NotFound
from lakewright.model.files import FileSlice, LogFile
from lakewright.model.schema import Struct
from lakewright.storage.port import Storage
from lakewright.table.changes.images import (
    DELETE,
    INSERT,
    UPDATE,
    ChangeRows,
    Images,
    gather,
    told_apart,
)
from lakewright.table.changes.task import ChangeTask
from lakewright.table.reader.projection import times_as_text
from lakewright.table.reader.slice_reader import FileSliceReader

_KEY = "record_key"


class ImageSource(Protocol):
    """Where images come from that a change file leaves out."""

    @property
    def reader_after(self) -> FileSliceReader:
        """The reader of the table's slices."""
        ...

    @property
    def table(self) -> Struct:
        """The columns of an image."""
        ...

    def before(
        self, file_slice: FileSlice | None, keys: pa.Array | None = None
    ) -> Iterator[Images]:
        """Stream the images of a slice before the instant."""
        ...

    def after(self, file_slice: FileSlice | None, keys: pa.Array | None = None) -> Iterator[Images]:
        """Stream the images of a slice after the instant."""
        ...


def recorded_changes(
    images: ImageSource, task: ChangeTask, make: ChangeRows
) -> Iterator[pa.RecordBatch]:
    """Stream the changes that an instant recorded for a file group."""
    storage = images.reader_after.storage
    for file in task.files:
        for records in _records(storage, file, task.instant.requested):
            yield from _Recorded(images, task, make, records).batches(file.path)


def _records(storage: Storage, file: LogFile, instant: str) -> Iterator[pa.Table]:
    size = file.size
    if size < 0:
        stat = storage.stat(file.path)
        if stat is None:
            raise NotFound(
                f"the change file {file.path} is gone.",
                next_step="Ask again from a later time: a cleaning took the file away.",
                path=file.path,
            )
        size = stat.size
    with storage.open(file.path) as opened:
        for block in scan_blocks(opened, size, file.path):
            if block.kind is BlockKind.CDC_DATA and block.instant == instant:
                yield read_data(opened, block)


class _Recorded:
    """The change records of one block."""

    def __init__(
        self, images: ImageSource, task: ChangeTask, make: ChangeRows, records: pa.Table
    ) -> None:
        self._images = images
        self._task = task
        self._make = make
        self._records = records

    def batches(self, path: str) -> Iterator[pa.RecordBatch]:
        """Stream the changes, deletes first."""
        if "op" not in self._records.schema.names:
            raise Corrupt(f"{path} holds change records without an operation.", path=path)
        ops = self._records.column("op")
        for op in (DELETE, UPDATE, INSERT):
            flags = np.asarray(pc.fill_null(pc.equal(ops, op), False), dtype=bool)
            if flags.any():
                yield self._of(op, pa.array(np.flatnonzero(flags)))

    def _of(self, op: str, places: pa.Array) -> pa.RecordBatch:
        task, images = self._task, self._images
        if op == INSERT:
            return self._make.inserts(self._side("after", places, images.after, task.after))
        before = self._side("before", places, images.before, task.before)
        if op == DELETE:
            return self._make.deletes(before)
        return self._make.updates(before, self._side("after", places, images.after, task.after))

    def _side(
        self,
        name: str,
        places: pa.Array,
        read: Callable[[FileSlice | None, pa.Array | None], Iterator[Images]],
        file_slice: FileSlice | None,
    ) -> pa.Table:
        """Return one side's images at some places: as stored, or else from the slice."""
        if name in self._records.schema.names:
            return self._stored(self._records.column(name).take(places).combine_chunks())
        if _KEY not in self._records.schema.names or file_slice is None:
            raise self._gone()
        keys = self._records.column(_KEY).take(places).combine_chunks()
        found = gather(read(file_slice, keys), self._images.table)
        if name == "after":
            found = self._written_first(found)
        # A key may be held more than once: its changes take its rows one by one.
        where = pc.index_in(told_apart(keys), value_set=told_apart(found.keys))
        if where.null_count:
            raise self._gone()
        return found.rows.take(where)

    def _written_first(self, found: Images) -> Images:
        """Put the rows that the instant wrote before others of their keys."""
        if found.versions is None:
            return found
        stamp = f"{self._task.instant.requested}\x00"
        written = np.asarray(pc.starts_with(found.versions, stamp), dtype=bool)
        return found.take(np.argsort(~written, kind="stable"))

    def _stored(self, column: pa.StructArray) -> pa.Table:
        """Return stored images in the table's columns, partition values as readers see them."""
        table = self._images.table
        schema = to_arrow_schema(table.nullable())
        names = [field.name for field in column.type]
        stored = pa.Table.from_arrays(column.flatten(), names=names)
        rows = conform(times_as_text(stored, schema), schema)
        config = self._images.reader_after.config
        values = partition_values(self._task.partition, config, table)
        for place, field in enumerate(schema):
            if field.name in values:
                value = pa.scalar(values[field.name], field.type)
                rows = rows.set_column(place, field, pa.repeat(value, rows.num_rows))
        return rows

    def _gone(self) -> HistoryGone:
        task = self._task
        return HistoryGone(
            f"the images of the changes of {task.instant.requested} in {task.group} cannot be "
            "told any more.",
            next_step="Start after that instant, or retain more commits when cleaning.",
            instant=task.instant.requested,
        )
