"""The log files of one slice: which blocks count, and their records, read as little as needed."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

import numpy as np
import pyarrow as pa

from lakewright.format.arrow.failures import placed
from lakewright.format.arrow.nested import field_values
from lakewright.format.hudi.log.blocks import BlockKind, LogBlock
from lakewright.format.hudi.log.deletes import DeleteRecords
from lakewright.format.hudi.log.read import read_data, read_deletes, read_positions, scan_blocks
from lakewright.model.errors import NotFound
from lakewright.model.files import LogFile
from lakewright.model.options import declare, parse_count
from lakewright.model.schema import COMMIT_TIME, RECORD_KEY
from lakewright.table.merge import ordering as order
from lakewright.table.merge.blocks import live_blocks
from lakewright.table.merge.winners import BlockEntries, Flags
from lakewright.table.reader.keys import delete_keys, record_keys
from lakewright.table.reader.names import FileNames
from lakewright.table.reader.source import SliceSource
from lakewright.table.reader.taken_back import was_taken_back

LOG_MEMORY = declare(
    "lakewright.read.log-memory",
    parse_count,
    256 << 20,
    doc="Bytes of decoded log records of one file slice that are kept between finding the "
    "winners and reading their rows; blocks beyond it are decoded a second time.",
    since="0.1",
    allowed="a whole number of bytes, 0 or more",
)

#: How much larger a parquet block may be in memory than on storage, as a cautious guess.
_EXPANSION = 6


@dataclass(frozen=True, slots=True)
class LogColumns:
    """What is read of log records: ``keys`` name them, ``deciding`` columns say who wins.

    ``rows`` is what is wanted of the winners.
    """

    keys: tuple[str, ...]
    deciding: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def counted(self) -> str:
        """A column that every block has, for those of which no other is wanted."""
        return COMMIT_TIME if self.keys == (RECORD_KEY,) else self.keys[0]

    def merging(self, *, by_position: bool) -> tuple[str, ...]:
        """The columns that are needed to find the winners."""
        if by_position:
            return self.deciding or (self.counted,)
        return tuple(dict.fromkeys((*self.keys, *self.deciding)))

    def both(self, *, by_position: bool) -> tuple[str, ...]:
        """All of it, each column once."""
        return tuple(dict.fromkeys((*self.merging(by_position=by_position), *self.rows)))


class SliceLogs:
    """The live blocks of a slice's logs, in merge order; a context manager that holds the files.

    ``by_column`` says that records are merged column by column. Of a window only its own blocks
    count, unless records are merged so: then what came before it has a part in its rows.
    """

    def __init__(self, source: SliceSource, columns: LogColumns) -> None:
        self._source = source
        self._storage = source.storage
        self._config = source.config
        self._policy = source.policy
        self._columns = columns
        self._memory = source.memory
        self._kept: dict[int, pa.Table] = {}
        self._counts: dict[int, int] = {}
        self._files: dict[str, IO[bytes]] = {}
        self._stack = ExitStack()
        found = [block for log in source.file_slice.logs for block in self._scanned(log)]
        blocks = live_blocks(found, visible=source.seen.shows)
        self.by_column = source.policy.by_column or any(block.is_partial for block in blocks)
        if source.window is not None and not self.by_column:
            # Whole rows owe nothing to what was there before them.
            blocks = live_blocks(found, visible=source.seen.only(source.window).shows)
        self.blocks: tuple[LogBlock, ...] = blocks

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kept.clear()
        self._stack.close()

    def _open(self, path: str) -> IO[bytes]:
        if path not in self._files:
            self._files[path] = self._stack.enter_context(self._storage.open(path))
        return self._files[path]

    def _scanned(self, log: LogFile) -> Sequence[LogBlock]:
        blocks = self._scan(log)
        counts = self._source.counts
        if counts is not None:
            counts.blocks += len(blocks)
            counts.corrupt_blocks += sum(b.kind is BlockKind.CORRUPT for b in blocks)
            counts.rollback_blocks += sum(b.kind is BlockKind.COMMAND for b in blocks)
        return blocks

    def _scan(self, log: LogFile) -> Sequence[LogBlock]:
        try:
            return self._scan_file(log)
        except NotFound:
            if not was_taken_back(self._storage, self._config, log, self._source.seen):
                raise
            return ()

    def _scan_file(self, log: LogFile) -> Sequence[LogBlock]:
        size = log.size
        if size < 0:
            stat = self._storage.stat(log.path)
            if stat is None:
                raise NotFound(
                    f"the log file {log.path} is gone.",
                    next_step="Open the table anew: a cleaning may have taken the file away.",
                    path=log.path,
                )
            size = stat.size
        # An empty log is what a writer leaves that died before its first block.
        return list(scan_blocks(self._open(log.path), size, log.path)) if size else ()

    @property
    def record_count(self) -> int:
        """How many records and deletes the blocks that were decoded so far hold."""
        return sum(self._counts.values())

    def counted(self, number: int) -> int:
        """Return how many records a block holds that was decoded."""
        return self._counts[number]

    def count(self, number: int, records: int) -> None:
        """Remember how many records a block holds."""
        self._counts[number] = records

    def _positions(self) -> tuple[pa.Array, ...] | None:
        """Return the base rows that each block's records replace, or None where not all tell.

        They count only when every block has them for the very base file of this slice.
        """
        base = self._source.file_slice.base
        if base is None or any(b.positions_base_instant != base.instant for b in self.blocks):
            return None
        found = [read_positions(block) for block in self.blocks]
        arrays = [pa.array(p.astype(np.int64)) for p in found if p is not None]
        return tuple(arrays) if len(arrays) == len(found) else None

    def entries_by_key(self) -> list[BlockEntries]:
        """Return what the blocks say about which records, named by their keys."""
        self._kept.clear()
        self._memory = self._source.memory
        return [self._entry(number, None) for number in range(len(self.blocks))]

    def entries_by_position(self) -> list[BlockEntries] | None:
        """Return what the blocks say about which records, named by their place in the base file.

        None where not every block tells the positions of all its records.
        """
        positions = self._positions()
        if positions is None:
            return None
        found = []
        for number, places in enumerate(positions):
            entry = self._entry(number, places)
            if len(places) != self._counts[number]:
                return None
            found.append(entry)
        return found

    def _entry(self, number: int, positions: pa.Array | None) -> BlockEntries:
        block = self.blocks[number]
        if block.kind is BlockKind.DELETE:
            deletes = self.deletes(number)
            self._counts[number] = len(deletes)
            return self._delete_entries(deletes, positions)
        records = self._decode_for_merging(number, block, by_position=positions is not None)
        self._counts[number] = records.num_rows
        return self.record_entries(block, records, positions)

    def deletes(self, number: int) -> DeleteRecords:
        """Return what a delete block holds."""
        block = self.blocks[number]
        return read_deletes(self._open(block.path), block)

    def delete_entries(self, number: int) -> BlockEntries:
        """Return what a delete block says, by key."""
        return self._entry(number, None)

    def _delete_entries(self, deletes: DeleteRecords, positions: pa.Array | None) -> BlockEntries:
        hard = np.array([values is None for values in deletes.ordering], dtype=bool)
        return BlockEntries(
            keys=delete_keys(deletes.keys, self._config) if positions is None else positions,
            ordering=order.from_values(deletes.ordering, self._source.ordering_types),
            deletes=np.ones(len(deletes), dtype=bool),
            hard=hard,
            tombstones=True,
        )

    def record_entries(
        self, block: LogBlock, records: pa.Table, positions: pa.Array | None = None
    ) -> BlockEntries:
        """Return what decoded records say, by key unless positions are given."""
        deletes = self._policy.delete_flags(records)
        keys = positions
        if keys is None:
            with placed(block.path, block.offset):
                keys = record_keys(records, self._config, block.path)
        return BlockEntries(
            keys=keys,
            ordering=self._source.ordering(records),
            deletes=deletes,
            hard=self._hard(records, deletes),
        )

    def _decode_for_merging(self, number: int, block: LogBlock, *, by_position: bool) -> pa.Table:
        if block.content_length * _EXPANSION <= self._memory:
            records = self.read(number, self._columns.both(by_position=by_position))
            if records.nbytes <= self._memory:
                self._memory -= records.nbytes
                self._kept[number] = records
            return records
        return self.read(number, self._columns.merging(by_position=by_position))

    def _hard(self, records: pa.Table, deletes: Flags | None) -> Flags | None:
        """Mark deletes whose ordering values are all missing: they count as having none."""
        if deletes is None or not self._policy.event_time:
            return None
        missing = np.ones(records.num_rows, dtype=bool)
        for name in self._policy.ordering:
            column = field_values(records, name)
            if column is not None:
                missing &= np.asarray(column.is_null(), dtype=bool)
        return deletes & missing

    def read(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all records of a data block.

        A block that has none of them gives another: rows without columns get lost on the way.
        """
        found = self._read(number, columns)
        return found if found.column_names else self._read(number, (self._columns.counted,))

    def _read(self, number: int, columns: Sequence[str]) -> pa.Table:
        block, names = self.blocks[number], self.names(number)
        found = read_data(self._open(block.path), block, names.in_file(columns))
        return names.in_table(found, columns)

    def names(self, number: int) -> FileNames:
        """Return what a block calls the columns of the table."""
        return self._source.history.at(self.blocks[number].instant or "")

    def rows(self, number: int) -> pa.Table:
        """Return the wanted columns of a data block; some other where it has none of them."""
        kept = self._kept.get(number)
        if kept is None:
            return self.read(number, self._columns.rows)
        wanted = [c for c in self._columns.rows if c in kept.schema.names]
        return kept.select(wanted or kept.schema.names[:1])
