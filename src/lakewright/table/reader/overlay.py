"""A slice as an overlay: which base rows its logs take away, and which records they put there.

An engine that reads base files by itself needs no more than this to show the merged rows. What was
found out once is told as flags, so that whoever wants the rows need not find it out again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.model.errors import Corrupt
from lakewright.table.merge.winners import BaseContest, Flags
from lakewright.table.reader.logs import SliceLogs
from lakewright.table.reader.merged import Meeting, begin_contest
from lakewright.table.reader.source import SliceSource


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What came of the meeting of a base file with its logs.

    ``replaced`` marks the rows of the base file that the logs delete or replace, in the file's
    order; ``chosen`` the records of the data blocks that are rows of the result, block after block.
    """

    replaced: Flags
    chosen: Flags


@dataclass(frozen=True, slots=True)
class SliceOverlay:
    """The logs of one slice against its base file; merged as whole rows, not column by column."""

    source: SliceSource
    logs: SliceLogs

    def verdict(self) -> Verdict:
        """Let the logs meet the base file."""
        if not self.logs.blocks:
            return Verdict(self._none_replaced(), np.zeros(0, dtype=bool))
        contest, by_position = begin_contest(self.source, self.logs)
        kept = self._kept(contest, by_position)
        return Verdict(~kept, self._chosen(contest))

    def rows(self, chosen: Flags) -> Iterator[pa.RecordBatch]:
        """Stream the records that a verdict has chosen; more flags than records do no harm."""
        at = 0
        for number, block in enumerate(self.logs.blocks):
            if block.kind is BlockKind.DELETE:
                continue
            records = self.logs.rows(number)
            flags = chosen[at : at + records.num_rows]
            at += records.num_rows
            if len(flags) < records.num_rows:
                raise Corrupt(
                    f"{block.path} has other records than when it was merged.",
                    path=block.path,
                    offset=block.offset,
                )
            if flags.any():
                wanted = records if flags.all() else records.filter(pa.array(flags))
                yield from self.source.finish_table(wanted, self.logs.names(number))

    def _chosen(self, contest: BaseContest) -> Flags:
        counts = [
            0 if block.kind is BlockKind.DELETE else self.logs.counted(number)
            for number, block in enumerate(self.logs.blocks)
        ]
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        flags = np.zeros(starts[-1], dtype=bool)
        survivors = contest.survivors()
        flags[starts[contest.winners.block[survivors]] + contest.winners.row[survivors]] = True
        return flags

    def _none_replaced(self) -> Flags:
        base = self.source.file_slice.base
        if base is None:
            return np.zeros(0, dtype=bool)
        with self.source.open_base(base) as opened:
            return np.zeros(opened.reader.num_rows, dtype=bool)

    def _kept(self, contest: BaseContest, by_position: bool) -> Flags:
        base = self.source.file_slice.base
        if base is None:
            return np.zeros(0, dtype=bool)
        parts = []
        with self.source.open_base(base) as opened:
            meeting = Meeting(self.source, opened, contest, by_position)
            start = 0
            for group in range(opened.reader.num_row_groups):
                parts.append(meeting.kept(group, start))
                start += opened.reader.row_group_rows(group)
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)
