"""How large the buckets of partitions are, as their files tell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lakewright.actions.services.slices import list_slices
from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.files import FileSlice
from lakewright.table.state import TableState

#: Characters of a strip; more buckets share one.
STRIP = 32
_BLOCKS = " ▁▂▃▄▅▆▇█"


def strip(sizes: Sequence[int], width: int = STRIP) -> str:
    """Draw sizes as blocks of heights relative to the largest; neighbours share one by their
    largest where there are more than ``width``.

    An empty bucket is a blank, and any other at least the lowest block.
    """
    if not sizes:
        return ""
    width = min(width, len(sizes))
    edges = [len(sizes) * place // width for place in range(width + 1)]
    heights = [max(sizes[low:high]) for low, high in pairwise(edges)]
    top = max(heights)
    return "".join(_BLOCKS[-(-8 * height // top)] if height else _BLOCKS[0] for height in heights)


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """What lies in a partition: live file groups, and the bytes of their latest slices.

    ``buckets`` is the number that its partition has; ``used`` how many of them hold files,
    ``groups`` how many live groups there are. ``strip`` draws the bytes of its buckets.
    """

    partition: str
    buckets: int
    used: int
    groups: int
    bytes: int
    largest: int
    strip: str

    @property
    def skew(self) -> float:
        """How many times the mean the largest bucket is; 1.0 is even, and so is nothing."""
        return self.largest * self.buckets / self.bytes if self.bytes else 1.0


def measure(
    state: TableState, counts: BucketCounts, partitions: Sequence[str] | None = None
) -> Iterator[PartitionSize]:
    """Stream the sizes of partitions, all or the named ones; no file is opened."""
    for partition, slices in list_slices(state, partitions):
        if slices:
            yield measured(partition, slices, counts.number_of(partition))


def measured(partition: str, slices: Sequence[FileSlice], buckets: int) -> PartitionSize:
    """Return the sizes of one partition's buckets."""
    sizes: dict[int, int] = {}
    for piece in slices:
        bucket = bucket_number(piece.group.file_id)
        place = -1 if bucket is None else bucket
        sizes[place] = sizes.get(place, 0) + piece.size
    highest = max(buckets, max(sizes) + 1)
    return PartitionSize(
        partition=partition,
        buckets=buckets,
        used=len(sizes),
        groups=len(slices),
        bytes=sum(sizes.values()),
        largest=max(sizes.values()),
        strip=_drawn(sizes, highest),
    )


def _drawn(sizes: dict[int, int], buckets: int) -> str:
    """Draw without a list of all buckets: there may be a hundred thousand of them."""
    if buckets <= STRIP:
        return strip([sizes.get(bucket, 0) for bucket in range(buckets)])
    heights = [0] * STRIP
    for bucket, size in sizes.items():
        place = bucket * STRIP // buckets if bucket >= 0 else 0
        heights[place] = max(heights[place], size)
    return strip(heights)


def shown_bytes(count: float) -> str:
    """Write a number of bytes for people: ``3.4 MB``."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"
