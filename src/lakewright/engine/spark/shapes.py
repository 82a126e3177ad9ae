"""The schemas of base files, found by opening few of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias

from lakewright.actions.tasks.read import ReadSpec, ReadTask
from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.format.hudi.base_footer import read_footer
from lakewright.model.files import BaseFile
from lakewright.model.schema import Struct

#: The schema of a file; None where it calls a column otherwise than the table does now.
Shape: TypeAlias = Struct | None

#: Footers that are read at once.
_THREADS = 16
#: Up to so many writing instants are looked at one by one.
_FEW = 32


def file_shapes(spec: ReadSpec, tasks: Iterable[ReadTask]) -> Mapping[str, Shape]:
    """Return the schema of base files by their writing instant: a commit writes under one."""
    samples: dict[str, BaseFile] = {}
    for task in tasks:
        if task.slice.base is not None:
            samples.setdefault(task.slice.base.instant, task.slice.base)
    storage = spec.open_storage()

    def shape(instant: str) -> Shape:
        if spec.history.at(instant).renamed:
            return None
        base = samples[instant]
        return from_arrow_schema(read_footer(storage, base.path, base.size).schema)

    def look(instants: Sequence[str]) -> list[Shape]:
        if len(instants) < 2:
            return [shape(instant) for instant in instants]
        with ThreadPoolExecutor(min(_THREADS, len(instants))) as pool:
            return list(pool.map(shape, instants))

    return spread_shapes(sorted(samples), look)


def spread_shapes(
    instants: Sequence[str], look: Callable[[Sequence[str]], Sequence[Shape]]
) -> dict[str, Shape]:
    """Find the schemas of instants, given in the order of time, by looking at few of them.

    Columns come and types widen, but nothing narrows again: where two instants agree, so do
    those between them. Should other software have written otherwise, Spark refuses the file.
    """
    step = max(1, -(-(len(instants) - 1) // (_FEW - 1)))
    marks = sorted({*range(0, len(instants), step), *([len(instants) - 1] if instants else [])})
    known = dict(zip(marks, look([instants[at] for at in marks]), strict=True))
    gaps = list(pairwise(marks))
    while gaps:
        split = []
        for low, high in gaps:
            if known[low] == known[high]:
                known.update(dict.fromkeys(range(low + 1, high), known[low]))
            elif high - low > 1:
                split.append((low, (low + high) // 2, high))
        middles = [middle for _, middle, _ in split]
        known.update(zip(middles, look([instants[at] for at in middles]), strict=True))
        gaps = [gap for low, middle, high in split for gap in ((low, middle), (middle, high))]
    return {instants[at]: shape for at, shape in known.items()}
