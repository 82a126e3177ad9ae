"""Rows by place, in memory up to a size and then on the task's own disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from lakewright.actions.tasks.write_prepare import Piece, Place


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
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, self._schema) as writer:
            number = 0
            for place, batches in self._held.items():
                for batch in batches:
                    writer.write_batch(batch)
                    self._stored.setdefault(place, []).append((len(self._files), number))
                    number += 1
        self._files.append(path)
        self._held.clear()
        self._bytes = 0

    def _load(self, file: int, number: int) -> pa.RecordBatch:
        reader = self._readers.get(file)
        if reader is None:
            # The file is mapped, not read: rows take memory as they are used.
            reader = self._readers[file] = pa.ipc.open_file(pa.memory_map(str(self._files[file])))
        return reader.get_batch(number)
