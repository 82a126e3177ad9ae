"""Rows by place, in memory up to a size and then on the task's own disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from lakewright.actions.tasks.write_prepare import Piece, Place
from lakewright.format.arrow.shared_columns import joined_batches, shared_column
from lakewright.model.schema import RECORD_KEY

#: Bytes that are gathered before they are written to disk.
_BUFFER = 1 << 20


class Shelf:
    """Holds the pieces of a task until their group is written; a context manager.

    What is put aside beyond ``limit`` bytes lies in Arrow files of a temporary folder, which
    goes with the shelf: nobody else knows of it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[Place, list[pa.RecordBatch]] = {}
        self._stored: dict[Place, list[tuple[int, int]]] = {}
        self._bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Path] = []
        #: For each file the column that the record key is a copy of, where it is one.
        self._copied: list[str | None] = []
        self._readers: dict[int, pa.ipc.RecordBatchFileReader] = {}
        self._schema: pa.Schema | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.clear()
        self._readers.clear()
        if self._folder is not None:
            self._folder.cleanup()

    def put(self, piece: Piece) -> None:
        """Add rows to a place."""
        self._held.setdefault(piece.place, []).append(piece.rows)
        self._schema = self._schema or piece.rows.schema
        self._bytes += piece.nbytes
        if self._bytes > self._limit:
            self._store()

    def places(self) -> Iterator[Place]:
        """Return the places in order, so that those of one partition follow each other."""
        return iter(sorted({*self._held, *self._stored}))

    def take(self, place: Place) -> pa.Table | None:
        """Return the rows of a place in the order they came, and forget them; None if none."""
        batches = [self._load(file, number) for file, number in self._stored.pop(place, ())]
        batches += self._held.pop(place, [])
        return pa.Table.from_batches(batches) if batches else None

    @property
    def spilled(self) -> int:
        """Files on disk."""
        return len(self._files)

    def _store(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="lakewright-write-")
        path = Path(self._folder.name) / f"{len(self._files)}.arrow"
        assert self._schema is not None
        copied = self._copy_of_key()
        kept = [name for name in self._schema.names if copied is None or name != RECORD_KEY]
        schema = pa.schema([self._schema.field(name) for name in kept])
        sink = pa.output_stream(str(path), buffer_size=_BUFFER)
        with sink, pa.ipc.new_file(sink, schema) as writer:
            number = 0
            for place, batches in self._held.items():
                # One large batch is written, and found again, sooner than many small ones.
                for batch in joined_batches(pa.Table.from_batches(batches)):
                    writer.write_batch(batch if copied is None else batch.select(kept))
                    self._stored.setdefault(place, []).append((len(self._files), number))
                    number += 1
        self._copied.append(copied)
        self._files.append(path)
        self._held.clear()
        self._bytes = 0

    def _load(self, file: int, number: int) -> pa.RecordBatch:
        reader = self._readers.get(file)
        if reader is None:
            # The file is mapped, not read: rows take memory as they are used.
            reader = self._readers[file] = pa.ipc.open_file(pa.memory_map(str(self._files[file])))
        batch, copied = reader.get_batch(number), self._copied[file]
        if copied is None:
            return batch
        assert self._schema is not None
        names = (copied if name == RECORD_KEY else name for name in self._schema.names)
        return pa.RecordBatch.from_arrays([batch.column(n) for n in names], schema=self._schema)

    def _copy_of_key(self) -> str | None:
        """Return the column whose memory the record keys share in all rows that are held.

        Keys are most often one of the columns, and the longest of them: they are stored once.
        """
        assert self._schema is not None
        if RECORD_KEY not in self._schema.names:
            return None
        every = (batch for batches in self._held.values() for batch in batches)
        return shared_column(every, RECORD_KEY)
