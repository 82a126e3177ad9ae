"""All that is settled before the files of one slice are opened."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.nested import Column, Rows, field_values
from lakewright.format.arrow.schema import to_arrow_type
from lakewright.format.hudi.base_file import BaseFileReader, open_base
from lakewright.format.hudi.config import TableConfig
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.files import BaseFile, FileSlice
from lakewright.model.schema import COMMIT_TIME, STRING, DataType, Struct
from lakewright.storage.port import Storage
from lakewright.table.merge import ordering as order
from lakewright.table.merge.merger import RecordMerger
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.reader.counts import MergeCounts
from lakewright.table.reader.instants import SeenInstants
from lakewright.table.reader.names import SAME, FileNames, NameHistory
from lakewright.table.reader.projection import Projection
from lakewright.table.reader.row_groups import matching_row_groups

#: Rows per batch of a result.
BATCH_ROWS = 128 << 10

RowFilter = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True, eq=False)
class SliceSource:
    """One slice, and what is wanted of it.

    ``schema`` is the table's, Hudi's own columns included. ``window`` holds the instants of an
    incremental reading, whose rows alone are of interest. ``condition`` is what every row of a
    base file satisfies that is in the result as it is, the window included; ``row_filter`` sees
    to what is asked beside the window. All three may be None.
    ``history`` knows what files call their columns. ``memory`` bounds the decoded log records
    that are kept. ``merger`` is that of a custom merge mode, if it was brought along; else the one
    of this process is taken. ``counts`` is told what came of merging, if anybody asks. ``coded``
    names columns that may come as dictionaries.
    """

    storage: Storage
    config: TableConfig
    schema: Struct
    seen: SeenInstants
    policy: MergePolicy
    file_slice: FileSlice
    projection: Projection
    condition: BoundExpression | None
    row_filter: RowFilter | None
    window: frozenset[str] | None
    history: NameHistory
    memory: int
    merger: RecordMerger | None = None
    counts: MergeCounts | None = None
    coded: tuple[str, ...] = ()

    def open_base(self, base: BaseFile, *, in_codes: bool = False) -> "NamedBase":
        """Open the base file; ``in_codes`` lets columns come as dictionaries that may."""
        names = self.history.at(base.instant)
        coded = names.in_file(self.coded) if in_codes else ()
        return NamedBase(open_base(self.storage, base.path, base.size, coded=coded), names)

    def matching_row_groups(self, base: "NamedBase") -> list[int]:
        """Return the row groups of the base file that may hold rows of the result."""
        return matching_row_groups(
            base.reader, self.condition, self.projection.constants, self.projection.wide, base.names
        )

    def finish(self, rows: pa.RecordBatch, names: FileNames = SAME) -> Iterator[pa.RecordBatch]:
        """Turn rows of files (a batch) into the batch of the result, if any row is left."""
        made = self.projection.widen(rows, names.inner)
        if self.window is not None:
            made = made.filter(self.in_window(made))
        if self.row_filter is not None:
            made = self.row_filter(made)
        if made.num_rows:
            yield self.projection.narrow(made)

    def finish_table(self, rows: pa.Table, names: FileNames = SAME) -> Iterator[pa.RecordBatch]:
        """Turn a table of rows of files into batches of the result."""
        for batch in rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
            yield from self.finish(batch, names)

    def in_window(self, rows: Rows) -> Column:
        """Mark the rows (a table or batch) that an instant of the window wrote."""
        return pc.is_in(rows.column(COMMIT_TIME), value_set=pa.array(sorted(self.window or ())))

    @property
    def ordering_types(self) -> tuple[pa.DataType, ...]:
        """The Arrow types of the ordering fields, as the table has them now."""
        if not self.policy.event_time:
            return ()
        return tuple(to_arrow_type(_type_at(self.schema, f)) for f in self.policy.ordering)

    def ordering(self, rows: Rows) -> order.Columns:
        """Return the ordering values of rows (a table or batch) as comparable columns."""
        columns = []
        for name, kind in zip(self.policy.ordering, self.ordering_types, strict=False):
            column = field_values(rows, name)
            if column is None:
                column = pa.nulls(rows.num_rows, kind)
            columns.append(order.comparable(column.cast(kind)))
        return tuple(columns)


@dataclass(frozen=True, slots=True, eq=False)
class NamedBase:
    """An open base file whose columns go by the names of the table; a context manager."""

    reader: BaseFileReader
    names: FileNames

    def __enter__(self) -> "NamedBase":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.reader.close()

    def batches(
        self, columns: Sequence[str], row_groups: Sequence[int], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Stream the named columns of some row groups, in file order."""
        found = self.names.in_file(columns)
        for batch in self.reader.iter_batches(found, row_groups, batch_rows=batch_rows):
            yield self.names.in_table(batch, columns)


def _type_at(schema: Struct, path: str) -> DataType:
    if path in schema:
        return schema.field(path).type
    found: DataType = schema
    for name in path.split("."):
        if not isinstance(found, Struct) or name not in found:
            return STRING
        found = found.field(name).type
    return found
