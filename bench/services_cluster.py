"""The part of the services benchmark on clustering: row groups copied unread, beside copying files.

    ./dev python bench/services_cluster.py [--rows 4000000] [--files 16] [--rounds 5]

The small files of a table are put together without a sort, from the plan to the commit. Beside
it the same files are copied, each made durable as ours are, and copied as ``cp`` does; and they
are clustered by decoding, and by sorting.
"""

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import lakewright as lw
from lakewright.actions.services.clustering import cluster
from services_clean import servicing
from steps import Step, by_turns

#: How many times the copying of files, made durable, clustering may take.
MOST = 1.5
_TEXT = 100
SORT = "hoodie__clustering__plan__strategy__sort__columns"
COPIED = "lakewright__clustering__copied-row-group-bytes"


def table_of(path: Path, rows: int, files: int) -> int:
    """Make a table of so many files; return their bytes."""
    table = lw.create_table(
        path, schema="id string, place bigint, amount double, kind string, text binary", key="id"
    )
    random = np.random.default_rng(7)
    each = rows // files
    words = np.array([f"word{n}" for n in range(20)])
    for number in range(files):
        values = {
            "id": pa.array([f"{n:012d}" for n in range(number * each, (number + 1) * each)]),
            "place": pa.array(random.integers(0, 1 << 40, each)),
            "amount": pa.array(random.random(each)),
            "kind": pa.array(words[random.integers(0, 20, each)]),
            "text": texts(random, each),
        }
        table.bulk_insert(pa.table(values))
    return sum(file.stat().st_size for file in path.glob("*.parquet"))


def texts(random: np.random.Generator, count: int) -> pa.Array:
    """Return values of a hundred bytes each that no codec makes smaller."""
    ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * _TEXT)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, ends, pa.py_buffer(random.bytes(count * _TEXT))]
    )


def steps(made: Path, work: Path) -> dict[str, Step]:
    """Return the variants; each begins with a table of its own, the files of which are linked."""

    def step(name: str, run: Callable[[Path], object]) -> Step:
        place = work / name.replace(" ", "-").replace(",", "")

        def prepare() -> None:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(made, place, copy_function=os.link)

        return Step(prepare, lambda: run(place), lambda: lw.open_table(place).scan().count())

    return {
        "ours, row groups copied": step("copied", lambda p: cluster(servicing(p))),
        "copying the files, durable": step("durable", lambda p: copy(p, durable=True)),
        "copying the files": step("plain", lambda p: copy(p, durable=False)),
        "ours, rows decoded": step(
            "decoded", lambda p: cluster(servicing(p, **{COPIED: str(1 << 60)}))
        ),
        "ours, sorted": step("sorted", lambda p: cluster(servicing(p, **{SORT: "place"}))),
    }


def copy(path: Path, *, durable: bool) -> None:
    """Copy the data files beside themselves."""
    target = path / ".copies"
    target.mkdir()
    for file in path.glob("*.parquet"):
        copied = target / file.name
        shutil.copyfile(file, copied)
        if durable:
            with copied.open("rb") as opened:
                os.fsync(opened.fileno())


def lines(rows: int = 4_000_000, files: int = 16, rounds: int = 5) -> Iterator[str]:
    """Measure, and stream the figures as a table."""
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-", dir=Path.cwd()) as folder:
        made = Path(folder) / "made"
        size = table_of(made, rows, files)
        few = dict.fromkeys(("ours, rows decoded", "ours, sorted"), 1)
        variants = steps(made, Path(folder))
        found = by_turns(variants, {name: few.get(name, rounds) for name in variants})
    yield f"Clustering of {files} files, {size / 1e6:.0f} MB, {rows / 1e6:g}M rows, into one:"
    yield ""
    yield "| variant | wall s | CPU s | times the durable copy | wall, range | rounds |"
    yield "| --- | --- | --- | --- | --- | --- |"
    base = found["copying the files, durable"]["wall"]
    for name, figure in found.items():
        yield (
            f"| {name} | {figure['wall']:.2f} | {figure['cpu']:.2f} | "
            f"{figure['wall'] / base:.2f} | {figure['least']:.2f} to {figure['most']:.2f} | "
            f"{figure['rounds']} |"
        )
    yield ""
    times = found["ours, row groups copied"]["wall"] / base
    yield (
        f"- {'met' if times <= MOST else 'MISSED'}: clustering by copying row groups takes "
        f"{times:.2f} times as long as copying the files (at most {MOST})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for line in lines(options.rows, options.files, options.rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
