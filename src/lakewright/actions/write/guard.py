"""Conflicts that file ids do not show: two writers that both add a key, and files that are gone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.actions.tasks.write_spec import FileWritten, WriteSpec, looks_up
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.base_pruning import java_order
from lakewright.format.hudi.file_names import base_file
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.model.errors import Conflict, NotFound, SnapshotGone
from lakewright.model.instant import Instant
from lakewright.storage.port import Storage
from lakewright.table.standing import check_cleaned, reading_of
from lakewright.timeline.committing import Rivals
from lakewright.timeline.view import TimelineView

KeyRange = tuple[str, str]
#: Of a file that does not tell.
_EVERYTHING: KeyRange = ("", "\uffff" * 64)
#: Operations that move rows between files and add none.
_MAINTENANCE = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT"})


@dataclass(frozen=True, slots=True)
class KeyGuard:
    """Looks at the writes that took effect since ours began; raises ``Conflict``.

    ``inserted`` are the ranges of keys that we found nowhere and added, by partition (under the
    empty path where keys are unique in the whole table): a rival that added a key of that range
    may have added the same. That both touch a file group, or a bucket, is found by the committer.
    """

    storage: Storage
    inserted: Mapping[str, KeyRange] = field(default_factory=dict)
    whole_table: bool = False

    def __call__(self, rivals: Rivals) -> None:
        """Compare with each rival."""
        if self.inserted:
            for instant, body in rivals:
                self._compare_keys(instant, body)

    def _compare_keys(self, instant: Instant, body: CommitMetadata) -> None:
        for partition, stat in _inserts(body):
            ours = self.inserted.get("" if self.whole_table else partition)
            theirs = self._range_of(stat) if ours is not None else None
            if ours is not None and theirs is not None and _overlap(ours, theirs):
                raise Conflict(
                    f"{instant.requested} added keys from {theirs[0]!r} to {theirs[1]!r} to "
                    f"{_named(partition)}, and this write adds some of that range too.",
                    next_step="Write again, or pass retry=.",
                    instant=instant.requested,
                    partition=partition,
                )

    def _range_of(self, stat: WriteStat) -> KeyRange | None:
        """Return the least and greatest key of a rival's file; everything where it is unknown."""
        try:
            footer = read_footer(self.storage, stat.path or "")
        except NotFound:
            return None  # cleaned away already: its rows are in a newer file, which is compared
        return (footer.key_range or _EVERYTHING) if footer.num_rows else None


def guard_of(spec: WriteSpec, files: Iterable[FileWritten]) -> KeyGuard:
    """Return the guard of a write that wrote these files; a bucket tells where its keys are."""
    layout = spec.layout
    ranges: dict[str, KeyRange] = {}
    if looks_up(spec) and layout.buckets is None:
        for file in files:
            if file.key_range is not None:
                place = "" if layout.kind.is_global else file.partition
                ranges[place] = _union(ranges.get(place), file.key_range)
    return KeyGuard(spec.open_storage(), ranges, layout.kind.is_global)


def check_overtaken(spec: WriteSpec, view: TimelineView) -> None:
    """Raise ``Conflict`` where a cleaning took files that the write had to look at.

    A key that lay in such a file was not found, and would be added a second time; a group that
    has no other visible file was not seen, and would outlive an overwriting. Which writes made the
    files expendable does not show that: they touch groups that this write knows nothing of.
    """
    if not (looks_up(spec) or spec.operation.replaces):
        return
    pinned = spec.pinned
    try:
        check_cleaned(reading_of(pinned.state, pinned.visible), view)
    except SnapshotGone as gone:
        raise overtaken(gone) from gone


def overtaken(gone: SnapshotGone) -> Conflict:
    """Return the conflict of a write whose reading was overtaken."""
    return Conflict(
        f"the write was overtaken: {gone.message}",
        next_step="Nothing of this write took effect; try it again on the table as it is now, or "
        "pass retry=.",
        **gone.facts,
    )


def _inserts(body: CommitMetadata) -> Iterator[tuple[str, WriteStat]]:
    if body.operation in _MAINTENANCE:
        return
    for partition, stats in body.write_stats.items():
        for stat in stats:
            folder, _, name = (stat.path or "").rpartition("/")
            if stat.num_inserts and base_file(folder, name) is not None:
                yield partition, stat


def _overlap(one: KeyRange, other: KeyRange) -> bool:
    return java_order(one[0]) <= java_order(other[1]) and java_order(other[0]) <= java_order(one[1])


def _union(one: KeyRange | None, other: KeyRange) -> KeyRange:
    if one is None:
        return other
    return min(one[0], other[0], key=java_order), max(one[1], other[1], key=java_order)


def _named(partition: str) -> str:
    return f"partition {partition!r}" if partition else "the table"
