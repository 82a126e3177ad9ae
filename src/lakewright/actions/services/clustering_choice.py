"""Which slices a clustering takes, and which of them together; pure, one partition at a time."""

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakewright.actions.services.clustering_options import (
    ClusteringSettings,
    FilterMode,
    Strategy,
)
from lakewright.actions.services.compaction_choice import Candidate
from lakewright.format.hudi.metadata.replace_plan import ClusteringGroup, ClusteringSlice
from lakewright.model.files import FileSlice

_HOURS = 24


@dataclass(frozen=True, slots=True)
class SliceGroup:
    """Slices of a partition that are rewritten together, into so many files."""

    partition: str
    slices: tuple[FileSlice, ...]
    outputs: int
    new_base: int

    @property
    def bytes_in(self) -> int:
        """Bytes to read."""
        return sum(piece.size for piece in self.slices)

    def planned(self, locate: Callable[[str], str]) -> ClusteringGroup:
        """Return what a plan says of the group, with full paths and Hudi's figures."""
        metrics: Counter[str] = Counter()
        for piece in self.slices:
            metrics.update(Candidate(piece, self.new_base).operation().metrics)
        return ClusteringGroup(
            slices=tuple(
                ClusteringSlice(
                    base_file="" if piece.base is None else locate(piece.base.path),
                    log_files=tuple(locate(log.path) for log in piece.logs),
                    file_id=piece.group.file_id,
                    partition=piece.group.partition,
                )
                for piece in self.slices
            ),
            metrics={name: float(value) for name, value in metrics.items()},
            output_groups=self.outputs,
        )


def grouped(
    partition: str,
    pieces: Iterable[FileSlice],
    settings: ClusteringSettings,
    new_base: int,
    passed_over: Counter[str],
    *,
    buckets: bool,
) -> Iterator[SliceGroup]:
    """Put the slices of a partition together as Hudi does: the large ones first, up to a size.

    A slice of logs alone counts as ``new_base`` bytes. In a bucket table every slice stays by
    itself, and becomes one file: more would break the bucket.
    """

    def size(piece: FileSlice) -> int:
        return new_base if piece.base is None else max(piece.base.size, 0)

    small = []
    for piece in pieces:
        if piece.base is not None and piece.base.size >= settings.small_file:
            passed_over[f"files of {settings.small_file} bytes or more"] += 1
        else:
            small.append(piece)
    alone = buckets or settings.strategy is Strategy.SINGLE_FILE
    together: list[FileSlice] = []
    total = 0

    def made() -> Iterator[SliceGroup]:
        outputs = 1 if alone else max(1, -(-total // settings.target_file))
        group = SliceGroup(partition, tuple(together), outputs, new_base)
        why = _pointless(group, settings)
        if why is None:
            yield group
        else:
            passed_over[why] += len(together)

    for piece in sorted(small, key=lambda piece: (-size(piece), piece.group.file_id)):
        if together and (alone or total + size(piece) > settings.group_bytes):
            yield from made()
            together, total = [], 0
        together.append(piece)
        total += size(piece)
    if together:
        yield from made()


def _pointless(group: SliceGroup, settings: ClusteringSettings) -> str | None:
    """Say why a group is not worth rewriting."""
    if len(group.slices) > 1:
        return None
    if not settings.single_group:
        return "alone in its group"
    (piece,) = group.slices
    if not settings.order.columns and not piece.logs and group.outputs == 1:
        return "a single file, and nothing to sort it by"
    return None


def partition_filter(settings: ClusteringSettings) -> Callable[[str], str | None]:
    """Return what says why a partition is not looked at, judging by its own path alone."""
    pattern = re.compile(settings.pattern) if settings.pattern else None
    chosen = frozenset(settings.selected)
    ranged = settings.mode is FilterMode.SELECTED_PARTITIONS

    def refusal(partition: str) -> str | None:
        if chosen and partition not in chosen:
            return "not among the selected partitions"
        if pattern is not None and pattern.fullmatch(partition) is None:
            return f"the partition does not match {settings.pattern}"
        if ranged and (partition < settings.begin or (settings.end and partition > settings.end)):
            return f"not between the partitions {settings.begin!r} and {settings.end!r}"
        return None

    return refusal


def chosen_partitions(
    partitions: Iterable[str], settings: ClusteringSettings, hour: int
) -> Sequence[str]:
    """Return the partitions of a mode that compares partitions with each other."""
    if settings.mode is FilterMode.RECENT_DAYS:
        if not settings.lookback:
            return sorted(partitions, reverse=True)[settings.skipped :]
        newest = heapq.nlargest(settings.skipped + settings.lookback, partitions)
        return newest[settings.skipped :]
    if settings.mode is FilterMode.DAY_ROLLING:
        return sorted(partitions)[hour % _HOURS :: _HOURS]
    return sorted(partitions)
