"""Leaving out what cannot hold a matching row, and keeping count of why.

One law: a partition or slice is left out only when none of its rows can match; whatever is
not known is kept.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.prune import ColumnRange, Ranges, compile_pruner
from lakewright.model.files import FileSlice, PartitionDescriptor

Path = tuple[str, ...]


class Reason(StrEnum):
    """Why something was left out."""

    PARTITION = "partition values"
    STATISTICS = "column statistics"
    KEYS = "record keys"
    INDEX = "index"


class Pruner(Protocol):
    """Chooses slices by what an index knows: a bucket index by the hash of a key, for example."""

    def keep(
        self,
        partition: PartitionDescriptor,
        slices: Sequence[FileSlice],
        filters: Sequence[BoundExpression],
    ) -> Sequence[FileSlice]:
        """Return the slices that may hold rows matching all filters, in the order given."""
        ...


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What a listing looked at and what it kept.

    A partition folder that was left out before anything below it was listed counts as one
    partition, whatever it holds; its files and bytes were never known. ``left_out`` counts
    folders for partition values and slices for every other reason. ``files_asked`` are the files
    of which an index was asked, and ``files_named`` those that it named; both are 0 without one.
    """

    partitions: int = 0
    partitions_kept: int = 0
    slices: int = 0
    slices_kept: int = 0
    files_kept: int = 0
    bytes_kept: int = 0
    left_out: Mapping[Reason, int] = field(default_factory=dict)
    files_asked: int = 0
    files_named: int = 0

    def __str__(self) -> str:
        text = (
            f"partitions {self.partitions_kept} of {self.partitions}, "
            f"slices {self.slices_kept} of {self.slices}, "
            f"{self.files_kept} files, {self.bytes_kept} bytes"
        )
        why = ", ".join(f"{count} by {reason}" for reason, count in self.left_out.items())
        return f"{text}; left out {why}" if why else text


class Tally:
    """Counts while a listing streams; ``report`` tells where it stands."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._left_out: Counter[Reason] = Counter()

    def partition(self, *, kept: bool) -> None:
        """Count one partition."""
        self._seen["partitions"] += 1
        if kept:
            self._seen["partitions_kept"] += 1
        else:
            self._left_out[Reason.PARTITION] += 1

    def found(self, slices: int) -> None:
        """Count the slices of a partition before they are looked at."""
        self._seen["slices"] += slices

    def dropped(self, reason: Reason, slices: int) -> None:
        """Count slices that were left out."""
        if slices:
            self._left_out[reason] += slices

    def indexed(self, before: Sequence[FileSlice], after: Sequence[FileSlice]) -> None:
        """Count the files of slices that an index was asked about, and of those that it named."""
        self._seen["files_asked"] += _files(before)
        self._seen["files_named"] += _files(after)
        self.dropped(Reason.INDEX, len(before) - len(after))

    def kept(self, slices: Sequence[FileSlice]) -> None:
        """Count the slices that are handed on."""
        files = size = 0
        for piece in slices:
            files += len(piece.logs)
            if piece.base is not None:
                files += 1
                size += max(piece.base.size, 0)
            for log in piece.logs:
                size += max(log.size, 0)
        self._seen["slices_kept"] += len(slices)
        self._seen["files_kept"] += files
        self._seen["bytes_kept"] += size

    def report(self) -> PruneReport:
        """Return the counts so far."""
        return PruneReport(**self._seen, left_out=dict(self._left_out))


def _files(slices: Sequence[FileSlice]) -> int:
    return sum(len(piece.logs) + (piece.base is not None) for piece in slices)


def partition_ranges(values: Mapping[str, object]) -> dict[Path, ColumnRange]:
    """Say what the rows of a partition hold in its partition columns: one value, or null."""
    return {tuple(name.split(".")): ColumnRange.constant(value) for name, value in values.items()}


def compile_filters(filters: Sequence[BoundExpression]) -> Callable[[Ranges], bool]:
    """Return the question whether rows within some ranges could satisfy every filter."""
    pruners = [compile_pruner(condition) for condition in filters]
    return lambda ranges: all(may_match(ranges) for may_match in pruners)
