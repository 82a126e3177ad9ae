"""When the rows of a partition were changed last, as the timeline and its archived past tell.

Compaction, clustering and the moving of rows to other buckets rewrite files and change no row:
they are no modification. A delete is one, and so is the replacing of file groups.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.history import read_history
from lakewright.format.hudi.metadata.commit import RESCALED, CommitMetadata, decode_commit
from lakewright.table.state import TableState

#: Operations that move rows, or describe them, without changing what the table holds.
MAINTENANCE = frozenset(
    {"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX", "ALTER_SCHEMA", "BUCKET_RESCALE"}
)


def changes_rows(body: CommitMetadata) -> bool:
    """Say whether a commit is a modification of the partitions that it names."""
    return not (body.compacted or body.operation in MAINTENANCE or RESCALED in body.extra)


def written_partitions(body: CommitMetadata) -> Iterator[str]:
    """Stream the partitions in which a commit wrote a file or replaced a group."""
    yield from (partition for partition, ids in body.replaced.items() if ids)
    for partition, stats in body.write_stats.items():
        if any(stat.path for stat in stats):
            yield partition


@dataclass(slots=True)
class LastChanges:
    """The search for the newest change of some partitions.

    ``known`` holds what is found, by partition, with an empty text where nothing is; ``moved``
    the times of commits that were looked at and changed no row.
    """

    known: dict[str, str]
    moved: set[str] = field(default_factory=set)
    missing: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.missing = {partition for partition, time in self.known.items() if not time}

    def note(self, requested: str, body: CommitMetadata) -> None:
        """Take account of one commit."""
        if not changes_rows(body):
            self.moved.add(requested)
            return
        for partition in written_partitions(body):
            if self.known.get(partition, "9") < requested:
                self.known[partition] = requested
                self.missing.discard(partition)

    def floor(self) -> str:
        """Return the oldest time that is known; empty as long as one is missing."""
        return "" if self.missing else min(self.known.values(), default="9")


def last_changes(
    state: TableState, floors: Mapping[str, str], looked_at: Collection[str] = ()
) -> LastChanges:
    """Find the newest completed write that changed rows of each partition.

    ``floors`` has the partitions, each with the time of a change that is known already, or with
    an empty text; commits whose requested times are ``looked_at`` are not opened again. Of the
    timeline no more is opened than can still tell something new, the newest first. The archived
    history is read where a partition is not found on it; one that is not there either stays
    with the empty text.
    """
    search = LastChanges(dict(floors))
    done = frozenset(looked_at)
    for instant in reversed(state.timeline.data()):
        if search.floor() >= instant.requested:
            return search
        if instant.requested not in done:
            search.note(instant.requested, state.timeline.commit_metadata(instant))
    if search.missing:
        _search_history(state, search)
    return search


def _search_history(state: TableState, search: LastChanges) -> None:
    for past in read_history(state.storage, state.config):
        instant = past.instant
        writes = instant.is_completed and instant.action.completes_as.writes_data
        if past.metadata is not None and writes:
            search.note(instant.requested, decode_commit(past.metadata, str(instant)))
