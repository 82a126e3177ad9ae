"""The logs of one slice merged among themselves: what a log compaction writes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.deletes import DeleteRecords
from lakewright.table.merge.winners import Flags, LogWinners, resolve
from lakewright.table.reader.logs import SliceLogs
from lakewright.table.reader.merged import winning_rows
from lakewright.table.reader.source import SliceSource


@dataclass(frozen=True, slots=True, eq=False)
class MergedLogs:
    """The last word of a slice's logs for every key that they mention.

    Records that delete by one of their columns are records here: they are compared with later
    ones by it. Rows have the columns of the reading.
    """

    source: SliceSource
    logs: SliceLogs
    winners: LogWinners

    @staticmethod
    def of(source: SliceSource, logs: SliceLogs) -> "MergedLogs":
        """Find the winners."""
        entries = logs.entries_by_key()
        merged = MergedLogs(source, logs, resolve(entries, event_time=source.policy.event_time))
        if source.counts is not None:
            source.counts.records = logs.record_count
            source.counts.keys = len(merged.winners)
        return merged

    @property
    def instants(self) -> tuple[str, ...]:
        """The instants whose blocks were merged, newest first."""
        found = dict.fromkeys(b.instant for b in reversed(self.logs.blocks) if b.instant)
        return tuple(found)

    @property
    def ordering_types(self) -> tuple[pa.DataType, ...]:
        """The types of the ordering values of deletes."""
        return self.source.ordering_types

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Stream the winning records."""
        return winning_rows(self.source, self.logs, self.winners, ~self._by_tombstone())

    def deletes(self) -> Iterator[DeleteRecords]:
        """Stream the winning deletes of delete blocks."""
        chosen = self._by_tombstone()
        blocks, rows = self.winners.block[chosen], self.winners.row[chosen]
        for number in np.unique(blocks):
            found = self.logs.deletes(int(number))
            places = np.sort(rows[blocks == number])
            picked = pa.array(places)
            ordering = [found.ordering[place] for place in places]
            yield DeleteRecords(found.keys.take(picked), found.partitions.take(picked), ordering)

    def _by_tombstone(self) -> Flags:
        kinds = np.array([b.kind is BlockKind.DELETE for b in self.logs.blocks], dtype=bool)
        found: Flags = kinds[self.winners.block]
        return found
