"""Where new rows go in a table without buckets: small files first, then new groups."""

import uuid
from collections.abc import Iterator

import pyarrow as pa

from lakewright.actions.tasks.write_spec import WriteSpec
from lakewright.format.hudi.base_footer import read_footer
from lakewright.model.errors import Corrupt, NotFound, Unsupported
from lakewright.model.files import BaseFile, FileSlice
from lakewright.model.table import TableType
from lakewright.model.writing import Operation
from lakewright.table.pinned import PartitionFiles

#: Base files whose footers are read to learn how large a record is.
_ASKED = 4
#: Footers are a good part of a file smaller than this.
_TELLING = 256 << 10
#: About how much of its size in memory a row has in a file.
_SHRINKS_TO = 0.5


def allot(
    spec: WriteSpec, files: PartitionFiles, rows: pa.Table, busy: frozenset[str]
) -> Iterator[tuple[FileSlice | None, pa.Table]]:
    """Divide new rows among small files and new groups (None), in order.

    ``busy`` are file ids that cannot take rows now. A bulk insert makes new groups only.
    """
    per_row = rows.nbytes / max(rows.num_rows, 1)
    start = 0
    for piece, count in room_for(spec, files, rows.num_rows, per_row, busy):
        yield piece, rows.slice(start, count)
        start += count


def room_for(
    spec: WriteSpec, files: PartitionFiles, count: int, in_memory: float, busy: frozenset[str]
) -> Iterator[tuple[FileSlice | None, int]]:
    """Say how many of so many new rows each small file and each new group (None) takes.

    ``in_memory`` are the bytes of a row there, for partitions whose files do not tell.
    """
    per_row = record_size(spec, files, in_memory)
    left = count
    for piece in _small(spec, files, busy):
        size = piece.base.size if piece.base is not None else 0
        room = min(left, int((spec.settings.max_file - size) / per_row))
        if room > 0:
            yield piece, room
            left -= room
    if left > 0:
        groups = -(-left // max(1, int(spec.settings.max_file / per_row)))
        step = -(-left // groups)
        for begin in range(0, left, step):
            yield None, min(step, left - begin)


def new_file_id() -> str:
    """Return the id of a new group of a table without buckets."""
    return f"{uuid.uuid4()}-0"


def record_size(spec: WriteSpec, files: PartitionFiles, in_memory: float) -> float:
    """Guess the bytes of a record in a file: from the partition's own, else from memory."""
    bases = [p.base for p in files.slices if p.base is not None and p.base.size >= _TELLING]
    bases = sorted(bases, key=lambda base: -base.size)[:_ASKED]
    counts = [_rows_of(spec, base) for base in bases]
    known = [(b.size, count) for b, count in zip(bases, counts, strict=True) if count]
    if known:
        return max(1.0, sum(size for size, _ in known) / sum(count for _, count in known))
    return max(1.0, _SHRINKS_TO * in_memory)


def _rows_of(spec: WriteSpec, base: BaseFile) -> int:
    try:
        return read_footer(spec.open_storage(), base.path, base.size).num_rows
    except (Corrupt, NotFound, Unsupported):
        return 0


def _small(spec: WriteSpec, files: PartitionFiles, busy: frozenset[str]) -> Iterator[FileSlice]:
    limit = spec.settings.small_file
    if not limit or spec.operation is Operation.BULK_INSERT or spec.operation.replaces:
        return
    compacting = spec.pinned.visible.compactions.get(files.partition, {})
    clustering = spec.pinned.clustering.get(files.partition, frozenset())
    logs_matter = spec.config.table_type is TableType.MERGE_ON_READ
    for piece in files.slices:
        file_id = piece.group.file_id
        if piece.base is None or not 0 <= piece.base.size < limit:
            continue
        if file_id in busy or file_id in compacting or file_id in clustering:
            continue
        if logs_matter and piece.logs:
            continue
        yield piece
