"""Packing file slices into tasks of about the same size."""

import heapq
from collections.abc import Iterable, Sequence

from lakewright.model.errors import Invalid
from lakewright.model.files import FileSlice

#: What opening one more file costs, in bytes that could be read in that time.
OPEN_COST = 4 << 20


def splits(slices: Iterable[FileSlice], target_size: int) -> list[tuple[FileSlice, ...]]:
    """Pack slices into as many tasks as ``target_size`` bytes each ask for, evenly filled.

    A slice is never cut: its rows are decided by all of its files together. Each file counts
    with the cost of opening it, so that many small files do not end in one task. The largest
    slices are placed first, each into the emptiest task, which keeps the fullest task within
    a third above the best that any packing could do. The result does not depend on the order
    of ``slices``.
    """
    if target_size < 1:
        raise Invalid(
            f"a split of {target_size} bytes cannot be.",
            next_step="Give a size of at least 1 byte, 134217728 (128 MB) for example.",
            target_size=target_size,
        )
    weighed = sorted(((_weight(s), s.group, s) for s in slices), key=lambda w: (-w[0], w[1]))
    if not weighed:
        return []
    tasks = _packed([(weight, piece) for weight, _, piece in weighed], target_size)
    return [tuple(task) for task in tasks if task]


def _weight(piece: FileSlice) -> int:
    return piece.size + OPEN_COST * len(piece.paths)


def _packed(weighed: Sequence[tuple[int, FileSlice]], target_size: int) -> list[list[FileSlice]]:
    total = sum(weight for weight, _ in weighed)
    count = min(len(weighed), -(-total // target_size))
    tasks: list[list[FileSlice]] = [[] for _ in range(count)]
    emptiest = [(0, number) for number in range(count)]
    for weight, piece in weighed:
        load, number = heapq.heappop(emptiest)
        tasks[number].append(piece)
        heapq.heappush(emptiest, (load + weight, number))
    return tasks
