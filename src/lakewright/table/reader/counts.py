"""What came of merging one slice, for those who write the result down."""

from dataclasses import dataclass

from lakewright.table.merge.winners import BaseContest


@dataclass(slots=True)
class MergeCounts:
    """Counts that a reading fills in while it streams; complete once the stream has ended.

    ``blocks`` and ``records`` are those of the logs that count, ``keys`` the different records
    among them. ``updated``, ``inserted`` and ``deleted`` say what they did to the base file:
    a record that a base row beats did nothing.
    """

    blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0
    records: int = 0
    keys: int = 0
    updated: int = 0
    inserted: int = 0
    deleted: int = 0

    def settle(self, contest: BaseContest) -> None:
        """Take down what came of the logs' winners."""
        deletes, met = contest.winners.deleted, contest.met
        beats = met & ~contest.lost
        self.keys = len(contest.winners)
        self.updated = int((beats & ~deletes).sum())
        self.deleted = int((beats & deletes).sum())
        self.inserted = int((~met & ~deletes).sum())
