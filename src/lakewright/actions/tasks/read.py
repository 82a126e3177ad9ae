"""Reading one task of a scan, on whatever machine it lands."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from lakewright.format.hudi.config import TableConfig
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.files import FileSlice, PartitionDescriptor, ReadingMode
from lakewright.model.schema import Struct
from lakewright.storage.open import cached_storage
from lakewright.storage.port import Storage
from lakewright.table.changes.read import change_batches
from lakewright.table.changes.task import ChangeTask
from lakewright.table.merge.merger import RecordMerger
from lakewright.table.reader.instants import SeenInstants
from lakewright.table.reader.names import NameHistory
from lakewright.table.reader.slice_reader import FileSliceReader
from lakewright.table.standing import files_standing


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """What all tasks of a scan share: enough to read them without opening the table again.

    ``uri`` and ``options`` open the storage; ``table_schema`` holds the table's own columns,
    ``schema`` those of the result. ``seen`` pins the scan to the timeline that was planned with.
    ``merger`` is that of a custom merge mode.
    """

    uri: str
    options: Mapping[str, str]
    config: TableConfig
    table_schema: Struct
    schema: Struct
    filter: BoundExpression | None
    mode: ReadingMode
    seen: SeenInstants
    changed_by: frozenset[str] | None = None
    history: NameHistory = field(default_factory=NameHistory)
    merger: RecordMerger | None = field(default=None, compare=False)
    storage: Storage | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        # An open storage stays where it is; the other side opens its own.
        values = (
            self.uri,
            dict(self.options),
            self.config,
            self.table_schema,
            self.schema,
            self.filter,
            self.mode,
            self.seen,
            self.changed_by,
            self.history,
            self.merger,
        )
        return (ReadSpec, values)

    def open_storage(self) -> Storage:
        """Return the storage of the table, opened once per process."""
        return self.storage or cached_storage(self.uri, self.options)

    def reader(self) -> FileSliceReader:
        """Return the reader of the scan's slices."""
        reader = FileSliceReader(
            self.open_storage(),
            self.config,
            self.table_schema,
            self.seen,
            history=self.history,
            options=self.options,
            merger=self.merger,
        )
        if self.mode is ReadingMode.CDC:
            return reader
        filters = () if self.filter is None else (self.filter,)
        reader = reader.project(self.schema).push_down_filters(filters)
        return reader.reading_mode(self.mode, self.changed_by)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One slice to read, and the partition it lies in.

    ``whole`` asks for all rows that the slice has at the end of a window: those that came back
    by an undo keep commit times of long before it.
    """

    slice: FileSlice
    partition: PartitionDescriptor
    whole: bool = False

    @property
    def size(self) -> int:
        """Bytes on storage, as far as known."""
        return self.slice.size

    @property
    def merges(self) -> bool:
        """Whether log records have to be merged, unless they are passed over."""
        return bool(self.slice.logs)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files to read, relative to the table."""
        return self.slice.paths


Task: TypeAlias = ReadTask | ChangeTask


def run_task(spec: ReadSpec, task: Task, *, in_codes: bool = False) -> Iterator[pa.RecordBatch]:
    """Stream the rows of one task as Arrow batches of the scan's schema.

    With ``in_codes`` texts may come as dictionaries. ``SnapshotGone`` where a file of the task was
    taken away since it was planned.
    """
    return task_runner(spec, in_codes=in_codes)(task)


def task_runner(
    spec: ReadSpec, *, in_codes: bool = False
) -> Callable[[Task], Iterator[pa.RecordBatch]]:
    """Return ``run_task`` for many tasks of one scan; what they share is prepared once."""
    reader = spec.reader().in_codes(in_codes and spec.mode is not ReadingMode.CDC)
    windowed = spec.mode is ReadingMode.INCREMENTAL
    whole = reader.reading_mode(ReadingMode.SNAPSHOT) if windowed else reader

    def batches(task: Task) -> Iterator[pa.RecordBatch]:
        if isinstance(task, ChangeTask):
            return change_batches(reader, task, spec.schema, spec.filter)
        return (whole if task.whole else reader).open(task.slice)

    def run(task: Task) -> Iterator[pa.RecordBatch]:
        with files_standing():
            yield from batches(task)

    return run
