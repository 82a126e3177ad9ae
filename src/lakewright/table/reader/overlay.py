"""A slice as an overlay: which base rows its logs take away, and which rows they put there.

An engine that reads base files by itself needs no more than this to show the merged rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewright.table.merge.winners import BaseContest, Flags
from lakewright.table.reader.logs import SliceLogs
from lakewright.table.reader.merged import Meeting, begin_contest, log_rows
from lakewright.table.reader.source import SliceSource


@dataclass(frozen=True, slots=True)
class SliceOverlay:
    """The logs of one slice against its base file; merged as whole rows, not column by column."""

    source: SliceSource
    logs: SliceLogs

    def replaced(self) -> Flags:
        """Mark the rows of the base file that the logs delete or replace, in the file's order."""
        if not self.logs.blocks:
            return self._none_replaced()
        contest, by_position = begin_contest(self.source, self.logs)
        return ~self._kept(contest, by_position)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Stream the log records that are rows of the result."""
        if not self.logs.blocks:
            return
        contest, by_position = begin_contest(self.source, self.logs)
        if self.source.policy.event_time:
            self._kept(contest, by_position)  # base rows that win take log records away
        yield from log_rows(self.source, self.logs, contest)

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
