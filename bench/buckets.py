"""What the partition-level bucket index costs and gives.

    ./dev bench buckets [--rows 2000000] [--rounds 5] [--only lookup routing rescale] [--write]

*Lookup*: one key of a table of 1,000 partitions x 64 buckets. *Routing*: what it costs to find the
bucket of each of 10 million rows, against writing them. *Rescale*: partitions get twice as many
buckets, beside plain Spark, which writes the same rows anew, and Hudi's own procedure, on Spark
3.5 in one run. All variants start from the same rows and must leave the same rows. ``--write``
puts the tables into ``docs/benchmarks.md``.
"""

import argparse
import hashlib
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

import lakewright as lw
from interleaved import measure
from lakewright.api.table import Table
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.index.bucket_routing import route_to_buckets
from lakewright.index.layout import layout_of
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from pages import put
from peers import figures_of, peers
from read_tables import SCHEMA
from write_rows import write_rows

ROOT = Path(__file__).parents[1]
JARS = ("hudi-spark3.5-bundle_2.12-1.2.0.jar",)
PARTS = ("lookup", "routing", "rescale")
BUCKETS, ROWS_EACH = 64, 8
KEYS = [hashlib.sha256(b"%d" % n).hexdigest()[:16] for n in range(BUCKETS * ROWS_EACH)]
#: Partitions that one commit of the lookup table brings.
AT_ONCE = 50
MOST_MILLIS, MOST_SHARE, MOST_TIMES = 100.0, 0.10, 1.3
RULES = {
    "expressions": [
        {"expression": "2026-10-(01|11)", "bucketNumber": 8, "rule": "regex"},
        {"expression": "[2026-10-02, 2026-10-06)", "bucketNumber": 6, "rule": "range"},
    ],
    "defaultBucketNumber": 4,
}
SMALL = pa.schema([("id", pa.string()), ("dt", pa.string()), ("n", pa.int64())])


# ------------------------------------------------------------------------------------ lookup


class Opened:
    """The data files that this process opens, whoever of its threads does."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(".parquet"):
            self.paths.add(str(arguments[0]))


def lookup_table(folder: Path, partitions: int) -> Path:
    """Return a table of many small buckets, making it if need be; rules say how many."""
    path = folder / f"lookup-{partitions}x{BUCKETS}"
    done = path.with_name(f"{path.name}.done")
    if done.exists():
        return path
    shutil.rmtree(path, ignore_errors=True)
    rules = {
        "expressions": [{"expression": "dt=0", "bucketNumber": BUCKETS, "rule": "regex"}],
        "defaultBucketNumber": 8,
    }
    table = lw.create_table(path, schema=SMALL, key="id", partition_by="dt", buckets=rules)
    keys = pa.array(KEYS)
    for first in range(0, partitions, AT_ONCE):
        days = [f"{number:05d}" for number in range(first, min(first + AT_ONCE, partitions))]
        rows = pa.table(
            {
                "id": pa.concat_arrays([keys] * len(days)),
                "dt": pa.array(np.repeat(days, len(keys))),
                "n": pa.array(np.arange(len(keys) * len(days))),
            },
            schema=SMALL,
        )
        table.bulk_insert(rows)
    done.touch()
    return path


def lookup(options: argparse.Namespace) -> Iterator[str]:
    path = lookup_table(options.folder, options.partitions)
    files = sum(1 for _ in path.glob("dt=*/*.parquet"))
    table = lw.open_table(path)
    day = f"{options.partitions // 3:05d}"
    alone = f"id = '{KEYS[77]}'"
    one = f"{alone} AND dt = '{day}'"
    watch = Opened()
    rows = table.scan(where=one).to_arrow().num_rows
    opened = len(watch.paths)
    if rows != 1:
        raise SystemExit(f"{rows} rows were found for one key")
    plans: list[float] = []
    for _ in range(options.rounds * 4):
        began = time.perf_counter()
        table.scan(where=one).plan()
        plans.append((time.perf_counter() - began) * 1000)
    file = _file(table, one)
    every = _once(lambda: len(table.scan(where=alone).plan()))
    whole = measure(
        {
            "lookup": lambda: table.scan(where=one).to_arrow().num_rows,
            "bare file": lambda: (
                ds.dataset(file).to_table(filter=ds.field("id") == KEYS[77]).num_rows
            ),
        },
        "lookup",
        options.rounds,
    )
    millis = statistics.median(plans)
    yield (
        f"Lookup by key and partition in {options.partitions:,} partitions x {BUCKETS} buckets, "
        f"{files:,} files:"
    )
    yield ""
    yield "| what | figure |"
    yield "| --- | --- |"
    yield f"| data files opened | {opened} |"
    yield f"| planning, ms (least to most) | {millis:.1f} ({min(plans):.1f} to {max(plans):.1f}) |"
    yield f"| planning and reading, ms | {whole.median('lookup') * 1000:.1f} |"
    yield f"| pyarrow alone on that one file, ms | {whole.median('bare file') * 1000:.1f} |"
    yield (
        f"| by the key alone: one file in each partition | {every[0]:,} files, "
        f"{every[1]:.2f} s of planning |"
    )
    yield ""
    yield f"- {_met(opened == 1)}: {opened} file opened (1)"
    yield f"- {_met(millis < MOST_MILLIS)}: planned in {millis:.1f} ms (under {MOST_MILLIS:g})"


def _file(table: Table, condition: str) -> str:
    (piece,) = list(table.scan(where=condition).plan())
    return str(Path(table.path) / next(iter(piece.slice.paths)))


def _once(run: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    found = run()
    return found, time.perf_counter() - began


# ----------------------------------------------------------------------------------- routing


def routing(options: argparse.Namespace) -> Iterator[str]:
    """Processor seconds of writing rows, and of nothing but finding their buckets."""
    made = write_rows(options.folder, options.routed)
    rows = ds.dataset(made.base).to_table()
    path = options.folder / "routed"
    shutil.rmtree(path, ignore_errors=True)
    lw.create_table(
        path,
        schema=to_arrow_schema(SCHEMA),
        key="id",
        partition_by="dt",
        order_by="ts",
        buckets=RULES,
    )
    layout = layout_of(open_state(open_storage(str(path))), {})
    keys = rows["id"].combine_chunks()
    days = rows["dt"].combine_chunks().dictionary_encode()
    named = pa.array([f"dt={day}" for day in days.dictionary.to_pylist()])
    partitions = pa.DictionaryArray.from_arrays(days.indices, named)
    routed: list[float] = []
    for _ in range(options.rounds):
        used = _cpu()
        numbers = route_to_buckets(keys, partitions, ("id",), layout.buckets)
        routed.append(_cpu() - used)
    used, began = _cpu(), time.perf_counter()
    lw.open_table(path).bulk_insert(rows)
    written, wall = _cpu() - used, time.perf_counter() - began
    groups = len({file.name[:8] + file.parent.name for file in path.glob("dt=*/*.parquet")})
    shutil.rmtree(path, ignore_errors=True)
    share = statistics.median(routed) / written
    yield f"Routing {len(keys) / 1e6:g}M rows into {groups} buckets of {len(named)} partitions:"
    yield ""
    yield "| what | CPU s | share |"
    yield "| --- | --- | --- |"
    yield f"| writing them (bulk insert, {wall:.1f} s by the clock) | {written:.2f} | 100% |"
    yield f"| finding their buckets | {statistics.median(routed):.2f} | {share:.1%} |"
    yield ""
    yield f"- {_met(share < MOST_SHARE)}: routing is {share:.1%} of the write (under 10%)"
    assert len(numbers) == len(keys)


def _cpu() -> float:
    """Processor seconds of this process, all its threads, and children that ended."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


# ----------------------------------------------------------------------------------- rescale


def rescale(options: argparse.Namespace) -> Iterator[str]:
    python, jars = peers(JARS)
    if python is None:
        yield "There was no environment with PySpark 3.5: rescaling was not measured."
        return
    given = ["--folder", options.folder, "--rounds", options.rounds, "--rows", options.rows]
    found = figures_of(python, "buckets_spark.py", [*given, "--jars", *jars])
    plain = found["figures"]["plain Spark"]
    yield (
        f"Rescale of {options.rows / 1e6:g}M rows in 20 partitions from 4 to 8 buckets, "
        f"Spark {found['spark']}:"
    )
    yield ""
    yield "| variant | wall s | CPU s | times plain Spark, wall | CPU | wall, range | rounds |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, figure in found["figures"].items():
        wall, cpu = (f"{figure[unit] / plain[unit]:.2f}" for unit in ("wall", "cpu"))
        yield (
            f"| {name} | {figure['wall']:.2f} | {figure['cpu']:.2f} | {wall} | {cpu} | "
            f"{figure['least']:.2f} to {figure['most']:.2f} | {figure['rounds']} |"
        )
    yield ""
    for name in ("ours", "ours on Spark"):
        times = found["figures"][name]["wall"] / plain["wall"]
        yield (
            f"- {_met(times <= MOST_TIMES)}: {name} takes {times:.2f} times plain Spark "
            f"(at most {MOST_TIMES:g})"
        )
        if "Hudi" in found["figures"]:
            faster = found["figures"]["Hudi"]["wall"] / found["figures"][name]["wall"]
            yield f"- {_met(faster > 1)}: {name} is {faster:.1f} times as fast as Hudi (over 1)"


def _met(good: bool) -> str:
    return "met" if good else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--routed", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / ".dev" / "bench")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    options.folder.mkdir(parents=True, exist_ok=True)
    runs = {"lookup": lookup, "routing": routing, "rescale": rescale}
    sections = ["\n".join(runs[part](options)) for part in PARTS if part in options.only]
    page = "\n\n".join(sections)
    print(page)
    if options.write:
        put("buckets", page)


if __name__ == "__main__":
    main()
