"""Rows put aside until a commit: for engines that hand rows to tasks without sorting them first.

Staged rows lie in ``.hoodie/.temp``, where no reader looks, as Arrow files that no commit names:
a folder of them may be deleted as soon as nobody is going to read it.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakewright.actions.write.rows import ArrowRows
from lakewright.model.errors import Invalid
from lakewright.model.logs import facts
from lakewright.model.options import declare, parse_positive
from lakewright.storage.port import Storage

log = logging.getLogger(__name__)

_TEMP = ".hoodie/.temp"
_PREFIX = "lakewright-staged-"
#: Seconds after which staged rows belong to nobody: the longest that a write is given.
ABANDONED = 7 * 24 * 3600


STAGED_BYTES = declare(
    "lakewright.write.staged-bytes",
    parse_positive,
    1 << 30,
    doc='Rows, in Arrow\'s memory, that one write through `format("lakewright")` may stage for '
    "its commit, where Spark gives the source no shuffle: upserts, deletes and bucket tables.",
    since="0.1",
    allowed="a whole number of bytes, 1 or more",
)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One file of staged rows; ``bytes`` is their size in memory."""

    path: str
    rows: int
    bytes: int


def staging_folder(name: str) -> str:
    """Return the folder of a write's staged rows; ``name`` holds letters, digits and dashes."""
    return f"{_TEMP}/{_PREFIX}{name}"


def stage(
    storage: Storage, folder: str, name: str, batches: Iterable[pa.RecordBatch], limit: int
) -> StagedFile | None:
    """Write rows to a file of their own; None where there are none.

    ``Invalid`` once they take more than ``limit`` bytes of memory; no file is left then.
    """
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        return None
    path, rows, size = f"{folder}/{name}.arrow", 0, 0
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        storage.writer(path) as sink,
        pa.ipc.new_file(sink, first.schema, options=options) as writer,
    ):
        for batch in _again(first, stream):
            rows, size = rows + batch.num_rows, size + batch.nbytes
            check_size(size, limit)
            writer.write_batch(batch)
    return StagedFile(path, rows, size)


def _again(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def check_size(size: int, limit: int) -> None:
    """Refuse rows that are more than may be staged."""
    if size > limit:
        raise Invalid(
            f"the rows take more than the {limit} bytes that are staged for one commit.",
            next_step="Call table.upsert(df) (or the other verbs of the table), which spread rows "
            "of any size over the executors; table.stream_writer() does so for a stream. Or raise "
            f"{STAGED_BYTES.key}: the rows are merged on the driver.",
            bytes=size,
            limit=limit,
        )


def staged_rows(storage: Storage, staged: Sequence[StagedFile]) -> ArrowRows:
    """Return staged rows, of which one batch is in memory at a time; there is at least a file."""

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in staged:
            with storage.open(piece.path) as source, pa.ipc.open_file(source) as reader:
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)

    with storage.open(staged[0].path) as source, pa.ipc.open_file(source) as reader:
        schema = reader.schema
    return ArrowRows(schema, batches, nbytes=sum(piece.bytes for piece in staged), sound=True)


def clear_staged(storage: Storage, folder: str) -> None:
    """Delete the staged rows of a write that is over, of failed attempts too."""
    storage.delete([file.path for file in storage.list(folder)])


def sweep_staged(storage: Storage, now: float) -> None:
    """Delete what writes left behind that died before their commit, once it is old enough."""
    for folder in storage.folders(_TEMP):
        if not folder.rpartition("/")[2].startswith(_PREFIX):
            continue
        files = list(storage.list(folder))
        if all(f.modified is not None and f.modified < now - ABANDONED for f in files):
            log.info("staged rows of a dead write deleted", extra=facts(folder=folder))
            storage.delete([file.path for file in files])
