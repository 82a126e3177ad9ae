"""Slices with log records of whole rows: find the winners by key or position, then fetch them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewright.format.arrow.failures import placed
from lakewright.model.files import BaseFile
from lakewright.model.schema import COMMIT_TIME
from lakewright.table.merge.winners import BaseContest, Flags, LogWinners, resolve
from lakewright.table.reader.keys import key_columns, record_keys
from lakewright.table.reader.logs import SliceLogs
from lakewright.table.reader.source import BATCH_ROWS, NamedBase, SliceSource

#: Base rows whose keys are compared with the logs' at a time. Each comparison hashes all keys
#: of the logs anew, so that small steps would cost more than the memory they save.
KEY_ROWS = 1 << 20


def merged_rows(source: SliceSource, logs: SliceLogs) -> Iterator[pa.RecordBatch]:
    """Stream the rows of the base file that no log record overrides, then the log records."""
    contest, by_position = begin_contest(source, logs)
    if source.file_slice.base is not None:
        yield from _base_rows(source, source.file_slice.base, contest, by_position)
    if source.counts is not None:
        source.counts.records = logs.record_count
        source.counts.settle(contest)
    yield from log_rows(source, logs, contest)


def begin_contest(source: SliceSource, logs: SliceLogs) -> tuple[BaseContest, bool]:
    """Return the winners of the logs before they meet the base file, and whether by position."""
    entries = logs.entries_by_position()
    by_position = entries is not None
    if entries is None:
        entries = logs.entries_by_key()
    winners = resolve(entries, event_time=source.policy.event_time)
    return BaseContest.begin(winners), by_position


def _base_rows(
    source: SliceSource, base: BaseFile, contest: BaseContest, by_position: bool
) -> Iterator[pa.RecordBatch]:
    with source.open_base(base, in_codes=True) as opened:
        reader = opened.reader
        chosen = frozenset(source.matching_row_groups(opened))
        start = 0
        meeting = Meeting(source, opened, contest, by_position)
        for group in range(reader.num_row_groups):
            count = reader.row_group_rows(group)
            if group in chosen and by_position:
                yield from _met_on_the_way(meeting, group, start)
            # A base row that beats its log record must be met even where it is not wanted.
            elif group in chosen or source.policy.event_time:
                kept = meeting.kept(group, start)
                if group in chosen and kept.any():
                    yield from _kept_rows(source, opened, group, kept)
            start += count


@dataclass(frozen=True, slots=True)
class Meeting:
    """The rows of a base file on their way to the contest with the logs.

    An incremental reading leaves out what was written outside its window altogether, as Hudi
    does: a record that came late, and that an older row beats, is still news of the window.
    """

    source: SliceSource
    base: NamedBase
    contest: BaseContest
    by_position: bool

    def kept(self, group: int, start: int) -> Flags:
        """Say which rows of a row group, whose first is row ``start`` of the file, stay."""
        columns = self.columns()
        if not columns:
            count = self.base.reader.row_group_rows(group)
            return self.contest.kept_by_position(start, count, ())
        parts = []
        for batch in self.base.batches(columns, [group], KEY_ROWS):
            parts.append(self.of(batch, start))
            start += batch.num_rows
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)

    def columns(self) -> tuple[str, ...]:
        """Return the columns without which rows cannot meet the logs."""
        policy = self.source.policy
        names = [] if self.by_position else list(key_columns(self.source.config))
        names += [field.split(".")[0] for field in policy.ordering if policy.event_time]
        if self.source.window is not None:
            names.append(COMMIT_TIME)
        return tuple(dict.fromkeys(names))

    def of(self, batch: pa.RecordBatch, start: int) -> Flags:
        """Say which rows of a batch, whose first is row ``start`` of the file, stay."""
        if self.source.window is None:
            return self._met(batch, start)
        news = self.source.in_window(batch)
        flags = np.asarray(news, dtype=bool)
        if self.by_position:
            return flags & self._met(batch, start, flags)
        kept = np.zeros(batch.num_rows, dtype=bool)
        kept[flags] = self._met(batch.filter(news), start)
        return kept

    def _met(self, batch: pa.RecordBatch, start: int, among: Flags | None = None) -> Flags:
        values = self.source.ordering(batch)
        if self.by_position:
            return self.contest.kept_by_position(start, batch.num_rows, values, among)
        reader = self.base.reader
        with placed(reader.path, reader.footer.offset):
            keys = record_keys(batch, self.source.config, reader.path)
        return self.contest.kept_by_key(keys, values)


def _met_on_the_way(meeting: Meeting, group: int, start: int) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a row group that stay, met as they are read: positions need no keys."""
    source, base = meeting.source, meeting.base
    wanted = source.projection.from_files
    columns = tuple(dict.fromkeys((*wanted, *meeting.columns())))
    for batch in base.batches(columns, [group], BATCH_ROWS):
        flags = meeting.of(batch, start)
        start += batch.num_rows
        if flags.any():
            rows = batch.select([name for name in wanted if name in batch.schema.names])
            yield from source.finish(rows if flags.all() else _filtered(rows, flags), base.names)


def _kept_rows(
    source: SliceSource, base: NamedBase, group: int, kept: Flags
) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in base.batches(source.projection.from_files, [group], BATCH_ROWS):
        flags = kept[start : start + batch.num_rows]
        start += batch.num_rows
        if flags.all():
            yield from source.finish(batch, base.names)
        elif flags.any():
            yield from source.finish(_filtered(batch, flags), base.names)


def _filtered(batch: pa.RecordBatch, flags: Flags) -> pa.RecordBatch:
    if batch.num_columns:
        return batch.filter(pa.array(flags))
    return batch.slice(0, int(flags.sum()))  # rows without columns: only their number counts


def log_rows(
    source: SliceSource, logs: SliceLogs, contest: BaseContest
) -> Iterator[pa.RecordBatch]:
    """Stream the winning log records, once they have met the base file."""
    return winning_rows(source, logs, contest.winners, contest.survivors())


def winning_rows(
    source: SliceSource, logs: SliceLogs, winners: LogWinners, chosen: Flags
) -> Iterator[pa.RecordBatch]:
    """Stream the records of the chosen winners, block after block."""
    if not chosen.any():
        return
    blocks = winners.block[chosen]
    rows = winners.row[chosen]
    by_place = np.lexsort((rows, blocks))
    blocks, rows = blocks[by_place], rows[by_place]
    numbers, starts = np.unique(blocks, return_index=True)
    for number, places in zip(numbers, np.split(rows, starts[1:]), strict=True):
        records = logs.rows(int(number))
        if len(places) < records.num_rows:
            records = records.take(pa.array(places))
        yield from source.finish_table(records, logs.names(int(number)))
