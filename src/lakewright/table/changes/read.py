"""Reading the changes of one task as Arrow batches."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.expression import residual_filter
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.read import read_data, scan_blocks
from lakewright.format.hudi.partition_paths import partition_values
from lakewright.model.errors import Corrupt, HistoryGone
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.files import FileSlice
from lakewright.model.schema import COMMIT_TIME, META_COLUMNS, META_FIELDS, RECORD_KEY, Struct
from lakewright.table.changes.images import DELETE, INSERT, UPDATE, ChangeRows, Images
from lakewright.table.changes.task import ChangeKind, ChangeTask
from lakewright.table.reader.keys import record_keys
from lakewright.table.reader.slice_reader import FileSliceReader


def change_batches(
    reader: FileSliceReader, task: ChangeTask, target: Struct, condition: BoundExpression | None
) -> Iterator[pa.RecordBatch]:
    """Stream the changes of a task: the columns of ``target``, rows that satisfy ``condition``."""
    keep = None if condition is None else residual_filter(condition)
    schema = to_arrow_schema(target)
    for batch in _TaskReader(reader, task).batches():
        made = batch if keep is None else keep(batch)
        if made.num_rows:
            yield conform(made.select(list(schema.names)), schema)


class _TaskReader:
    """Reads the images of one task."""

    def __init__(self, reader: FileSliceReader, task: ChangeTask) -> None:
        self._task = task
        self._config = reader.config
        self._table = reader.schema
        self._make = ChangeRows(reader.schema, task.instant.requested)
        instant = task.instant
        seen = (
            replace(reader.seen, as_of=instant.requested, upto=None)
            if reader.config.layout == 1
            else replace(reader.seen, as_of=None, upto=instant.completed)
        )
        meta = META_FIELDS if reader.config.populate_meta_fields else ()
        own = reader.schema.without(frozenset(META_COLUMNS))
        self._after = replace(reader, seen=seen).project(Struct((*meta, *own.fields)))
        hidden = frozenset({instant.requested})
        self._before = replace(self._after, seen=replace(seen, hidden=hidden))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the changes with all columns."""
        task = self._task
        match task.kind:
            case ChangeKind.REMOVED:
                for images in self._images(self._before, task.before):
                    yield self._make.deletes(images.rows)
            case ChangeKind.INSERTED:
                for images in self._images(self._after, task.after):
                    yield self._make.inserts(images.rows)
            case ChangeKind.REWRITTEN:
                yield from self._rewritten()
            case ChangeKind.LOGGED:
                yield from self._logged()
            case ChangeKind.RECORDED:
                yield from self._recorded()

    def _images(self, reader: FileSliceReader, file_slice: FileSlice | None) -> Iterator[Images]:
        if file_slice is None:
            return
        own = [name for name in self._table.names if name not in META_COLUMNS]
        for batch in reader.open(file_slice):
            rows = pa.Table.from_batches([batch])
            fresh = None
            if self._config.populate_meta_fields:
                times = pc.equal(rows.column(COMMIT_TIME), self._task.instant.requested)
                fresh = np.asarray(pc.fill_null(times, False), dtype=bool)
            keys = record_keys(rows, self._config, file_slice.group.file_id)
            yield Images(keys, rows.select(own), fresh)

    def _gathered(
        self, reader: FileSliceReader, file_slice: FileSlice | None, keys: pa.Array | None
    ) -> Images:
        """Return the images of some records, in memory."""
        parts = list(self._images(reader.only(keys), file_slice))
        if not parts:
            empty = to_arrow_schema(self._table.without(frozenset(META_COLUMNS)).nullable())
            return Images(pa.array([], pa.string()), empty.empty_table(), np.zeros(0, dtype=bool))
        fresh = None
        if all(part.fresh is not None for part in parts):
            fresh = np.concatenate([part.fresh for part in parts if part.fresh is not None])
        return Images(
            pa.chunked_array([part.keys for part in parts]).combine_chunks(),
            pa.concat_tables([part.rows for part in parts]),
            fresh,
        )

    def _rewritten(self) -> Iterator[pa.RecordBatch]:
        """Compare two base files: only changed rows are held, and the keys of the new file."""
        if not self._config.populate_meta_fields:
            yield from self._make.compared(
                self._gathered(self._before, self._task.before, None),
                self._gathered(self._after, self._task.after, None),
            )
            return
        keys, written = [], []
        for images in self._images(self._after, self._task.after):
            keys.append(images.keys)
            if images.fresh is not None and images.fresh.any():
                written.append(images.take(np.flatnonzero(images.fresh)))
        present = pa.chunked_array(keys, pa.string()).combine_chunks()
        changed = pa.chunked_array([w.keys for w in written], pa.string()).combine_chunks()
        known = np.zeros(len(changed), dtype=bool)
        rows = pa.concat_tables([w.rows for w in written]) if written else None
        for images in self._images(self._before, self._task.before):
            gone = ~np.asarray(pc.is_in(images.keys, value_set=present), dtype=bool)
            yield self._make.deletes(images.take(np.flatnonzero(gone)).rows)
            found = pc.index_in(images.keys, value_set=changed)
            which = found.drop_null().to_numpy().astype(np.int64)
            if rows is not None and len(which):
                old = np.flatnonzero(np.asarray(found.is_valid(), dtype=bool))
                known[which] = True
                yield self._make.updates(images.take(old).rows, rows.take(pa.array(which)))
        if rows is not None:
            yield self._make.inserts(rows.filter(pa.array(~known)))

    def _logged(self) -> Iterator[pa.RecordBatch]:
        keys = self._after.logged_keys(_required(self._task), self._task.instant.requested)
        yield from self._make.compared(
            self._gathered(self._before, self._task.before, keys),
            self._gathered(self._after, self._task.after, keys),
        )

    # ------------------------------------------------------------------ change files

    def _recorded(self) -> Iterator[pa.RecordBatch]:
        for file in self._task.files:
            with self._after.storage.open(file.path) as opened:
                size = file.size
                if size < 0:
                    stat = self._after.storage.stat(file.path)
                    size = 0 if stat is None else stat.size
                for block in scan_blocks(opened, size, file.path):
                    mine = block.instant == self._task.instant.requested
                    if block.kind is BlockKind.CDC_DATA and mine:
                        yield from self._block(read_data(opened, block), file.path)

    def _block(self, records: pa.Table, path: str) -> Iterator[pa.RecordBatch]:
        if "op" not in records.schema.names:
            raise Corrupt(f"{path} holds change records without an operation.", path=path)
        ops = records.column("op").combine_chunks()
        before = self._stored(records, "before")
        after = self._stored(records, "after")
        for op in (DELETE, UPDATE, INSERT):
            places = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(ops, op), False), dtype=bool))
            if len(places) == 0:
                continue
            picked = pa.array(places)
            keys = None
            if RECORD_KEY.removeprefix("_hoodie_") in records.schema.names:
                keys = records.column("record_key").combine_chunks().take(picked)
            old = new = None
            if op != INSERT:
                old = self._completed(before, picked, keys, self._before, self._task.before)
            if op != DELETE:
                new = self._completed(after, picked, keys, self._after, self._task.after)
            if old is None:
                yield self._make.inserts(new)
            elif new is None:
                yield self._make.deletes(old)
            else:
                yield self._make.updates(old, new)

    def _stored(self, records: pa.Table, name: str) -> pa.Table | None:
        """Return the images that a change file holds itself, in the table's columns."""
        if name not in records.schema.names:
            return None
        column = records.column(name).combine_chunks()
        own = self._table.without(frozenset(META_COLUMNS)).nullable()
        schema = to_arrow_schema(own)
        rows = pa.Table.from_arrays(column.flatten(), names=[f.name for f in column.type])
        rows = conform(rows, schema)
        values = partition_values(self._task.partition, self._config, self._table)
        for place, field in enumerate(schema):
            if field.name in values:
                value = pa.scalar(values[field.name], field.type)
                rows = rows.set_column(place, field, pa.repeat(value, rows.num_rows))
        return rows

    def _completed(
        self,
        stored: pa.Table | None,
        places: pa.Array,
        keys: pa.Array | None,
        reader: FileSliceReader,
        file_slice: FileSlice | None,
    ) -> pa.Table:
        """Return the images at some places of a change file, from the slice where it has none."""
        if stored is not None:
            return stored.take(places)
        if keys is None or file_slice is None:
            raise self._gone()
        images = self._gathered(reader, file_slice, keys)
        found = pc.index_in(keys, value_set=images.keys)
        if found.null_count:
            raise self._gone()
        return images.rows.take(found)

    def _gone(self) -> HistoryGone:
        return HistoryGone(
            f"the images of the changes of {self._task.instant.requested} in "
            f"{self._task.group} cannot be told any more.",
            next_step="Start after that instant, or retain more commits when cleaning.",
            instant=self._task.instant.requested,
        )


def _required(task: ChangeTask) -> FileSlice:
    assert task.after is not None
    return task.after


__all__: Sequence[str] = ("change_batches",)
