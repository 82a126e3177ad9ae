"""How fast tables are written, beside plain parquet, Hudi, Delta, Iceberg, delta-rs and DuckDB.

    ./dev bench write [--rows 2000000 8000000] [--rounds 3] [--write]
                      [--only local peers newest memory]

All variants of a step start from the same rows and must leave the same; each runs once per round,
by turns, in one process, and a figure is the median over the rounds, wall / processor seconds of
the whole process tree. Hudi runs two rounds at most; at further sizes, which show how time grows
with the rows, ours and plain parquet run two, the other peers one, without the upsert of 1%.
Memory is that of a process that runs one variant alone (see ``write_spark.memory``).
The parts: without Spark, beside the peers on Spark 3.5, on the newest Spark, memory. ``--write``
puts the tables of each part that ran into ``docs/benchmarks.md``.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import lakewright as lw
from interleaved import Sum
from lakewright.format.arrow.schema import to_arrow_schema
from pages import machine, put
from peers import figures_of, peers
from read_tables import BUCKETS, SCHEMA
from steps import Step, by_turns
from write_rows import Rows, tiny_batch, write_rows
from write_targets import judge_local, judge_memory, judge_small, judge_spark

ROOT = Path(__file__).parents[1]
JARS = (
    "hudi-spark3.5-bundle_2.12-1.2.0.jar",
    "iceberg-spark-runtime-3.5_2.12-1.11.0.jar",
    "delta-spark_2.12-3.3.2.jar",
    "delta-storage-3.3.2.jar",
)
PARTS = ("local", "peers", "newest", "memory")
#: Variants whose memory is compared: ours are held against their Hudi counterparts.
WATCHED = ("ours COW", "ours MOR", "Hudi COW", "Hudi MOR")


class Local:
    """The variants that need no JVM, over the rows of one size."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        self.work = folder / "work"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.rows = rows

    def bulk(self) -> dict[str, Step]:
        loads: dict[str, Callable[[Path], object]] = {
            "DuckDB, plain parquet": self._duckdb,
            "delta-rs": self._delta,
            "ours COW": lambda path: self._ours(path, "COPY_ON_WRITE"),
            "ours MOR": lambda path: self._ours(path, "MERGE_ON_READ"),
        }
        return {
            name: Step(
                lambda path=self.work / name: shutil.rmtree(path, ignore_errors=True),
                lambda load=load, path=self.work / name: load(path),
                lambda name=name, path=self.work / name: count_of(name, path),
            )
            for name, load in loads.items()
        }

    def upsert(self, percent: int) -> dict[str, Step]:
        updates = self.rows.updates(percent)

        def delta(path: Path) -> None:
            from deltalake import DeltaTable

            merge = DeltaTable(path).merge(
                pq.read_table(updates), "t.id = s.id AND t.dt = s.dt", "s", "t"
            )
            merge.when_matched_update_all().when_not_matched_insert_all().execute()

        def ours(path: Path) -> None:
            lw.open_table(path).upsert(pq.read_table(updates))

        changes = {"delta-rs": delta, "ours COW": ours, "ours MOR": ours}
        loads = self.bulk()
        return {
            name: Step(
                lambda name=name: self._loaded(name, loads[name]),
                lambda change=change, path=self.work / name: change(path),
                lambda name=name, path=self.work / name: count_of(name, path),
            )
            for name, change in changes.items()
        }

    def tiny(self, commits: int) -> dict[str, Step]:
        """Small commits of ours, one step for all of them."""
        batches = [tiny_batch(self.rows, number) for number in range(commits)]
        path = self.work / "tiny"

        def prepare() -> None:
            shutil.rmtree(path, ignore_errors=True)
            self._ours(path, "MERGE_ON_READ")

        def run() -> None:
            table = lw.open_table(path)
            for batch in batches:
                table.upsert(batch)

        return {f"ours MOR, {commits} commits": Step(prepare, run, lambda: None)}

    def _loaded(self, name: str, load: Step) -> None:
        kept = self.work / f"{name}.loaded"
        if not kept.exists():
            load.prepare()
            load.run()
            shutil.copytree(self.work / name, kept)
        shutil.rmtree(self.work / name, ignore_errors=True)
        shutil.copytree(kept, self.work / name)

    def _duckdb(self, path: Path) -> None:
        import duckdb

        with duckdb.connect() as connection:
            connection.execute(f"SET threads = {os.cpu_count()}")
            connection.execute(
                f"COPY (SELECT * FROM '{self.rows.base}/*.parquet') TO '{path}' "
                "(FORMAT parquet, PARTITION_BY (dt), COMPRESSION snappy)"
            )

    def _delta(self, path: Path) -> None:
        from deltalake import write_deltalake

        rows = ds.dataset(self.rows.base).scanner().to_reader()
        write_deltalake(path, rows, partition_by=["dt"])

    def _ours(self, path: Path, kind: str) -> None:
        table = lw.create_table(
            path,
            schema=to_arrow_schema(SCHEMA),
            key="id",
            partition_by="dt",
            order_by="ts",
            type=kind,
            buckets=BUCKETS,
        )
        table.bulk_insert(ds.dataset(self.rows.base))


def count_of(name: str, path: Path) -> object:
    """Return what all variants must agree on: rows and sums."""
    columns = ["qty", "ts", "amount"]
    if name.startswith("ours"):
        rows = lw.open_table(path).scan(columns=columns).to_arrow()
    elif name == "delta-rs":
        from deltalake import DeltaTable

        rows = pa.table(DeltaTable(path).to_pyarrow_table(columns=columns))
    else:
        rows = ds.dataset(path).to_table(columns=columns)
    qty, ts, amount = (rows.column(c).combine_chunks().sum().as_py() for c in columns)
    return (rows.num_rows, qty, ts, Sum(amount))


def local(options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything that needs no JVM."""
    found: dict[str, Any] = {"sizes": {}}
    for rows in options.rows:
        bench = Local(options.folder, write_rows(options.folder, rows))
        size = found["sizes"].setdefault(str(rows), {})
        size["bulk"] = by_turns(bench.bulk(), options.rounds)
        for percent in (1, 10):
            size[f"upsert {percent}%"] = by_turns(bench.upsert(percent), options.rounds)
    bench = Local(options.folder, write_rows(options.folder, 200_000))
    for commits in (options.commits // 10, options.commits):
        found.setdefault("tiny", {}).update(by_turns(bench.tiny(commits), 1))
    shutil.rmtree(bench.work, ignore_errors=True)
    return found


def in_spark(
    python: str, options: argparse.Namespace, jars: list[Path], memory: str | None = None
) -> dict[str, Any]:
    """Run the Spark part in another interpreter, and return its figures."""
    given = ["--folder", options.folder, "--rounds", options.rounds]
    given += ["--commits", options.commits, "--rows", *options.rows]
    if jars:
        given += ["--jars", *jars]
    if memory is not None:
        given += ["--memory", memory]
    return figures_of(python, "write_spark.py", given)


def lines(found: dict[str, Any], reference: str) -> Iterator[str]:
    """Turn figures into a table: wall / processor seconds, and times the reference."""
    yield "| step | variant | wall s | CPU s | times reference, wall | CPU | wall, range | rounds |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for rows, size in found["sizes"].items():
        for step, figures in size.items():
            if step == "bytes":
                continue
            base = figures.get(reference)
            for name, figure in figures.items():
                ratios = ("", "")
                if base is not None:
                    ratios = tuple(f"{figure[k] / base[k]:.2f}" for k in ("wall", "cpu"))
                yield (
                    f"| {step}, {int(rows) / 1e6:g}M rows | {name} | {figure['wall']:.2f} | "
                    f"{figure['cpu']:.2f} | {ratios[0]} | {ratios[1]} | "
                    f"{figure['least']:.2f} to {figure['most']:.2f} | {figure['rounds']} |"
                )


def tiny_lines(found: dict[str, Any]) -> Iterator[str]:
    for name, figure in found.get("tiny", {}).items():
        if "first" in figure:
            yield (
                f"- Commits of 1,000 rows, {name}: median {figure['wall']:.3f} s over "
                f"{figure['commits']} commits, the first tenth {figure['first']:.3f} s each, the "
                f"last {figure['last']:.3f} s."
            )
        else:
            count = int(re.sub(r"\D", "", name.partition(",")[2]))
            yield f"- {name} of 1,000 rows: {figure['wall'] / count:.3f} s each."


def memory_lines(found: dict[str, Any]) -> Iterator[str]:
    """Turn peaks of memory into a table, one row per variant and way to look."""
    steps = list(found[WATCHED[0]]["live"])
    yield f"| variant | memory | {' | '.join(f'{step}, MiB' for step in steps)} |"
    yield f"| --- | --- |{' --- |' * len(steps)}"
    for name, peaks in found.items():
        for kind, figures in peaks.items():
            figure = " | ".join(f"{figures[step] / 2**20:,.0f}" for step in steps)
            yield f"| {name} | {kind} | {figure} |"


def size_lines(found: dict[str, Any]) -> Iterator[str]:
    for rows, size in found["sizes"].items():
        sizes = size.get("bytes", {})
        plain = sizes.get("plain parquet")
        for name, count in sizes.items():
            if plain and name != "plain parquet":
                yield f"- {int(rows) / 1e6:g}M rows, {name}: {count / plain:.2f} times the bytes."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 8_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=ROOT / ".dev" / "bench")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    for part, text in measured(options):
        page = "\n".join(text)
        print(page, flush=True)
        if options.write:
            put("write", page, part)


def measured(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Run the parts that are wanted, and stream the text of each."""
    python, jars = peers(JARS)
    alone: dict[str, Any] = {}
    if "local" in options.only:
        alone = local(options)
        table = lines(alone, "DuckDB, plain parquet")
        small = [*tiny_lines(alone), "", *judge_local(alone)]
        yield "local", [machine(), "", "### Without Spark", "", *table, "", *small]
    if "peers" in options.only and python is not None:
        found = in_spark(python, options, jars)
        yield "peers", [*spark_lines(found), *judge_small(alone, found)]
    if "newest" in options.only:
        yield "newest", spark_lines(in_spark(sys.executable, options, []))
    if "memory" in options.only and python is not None:
        found = {name: in_spark(python, options, jars, name)["memory"] for name in WATCHED}
        table = memory_lines(found)
        yield "memory", ["### Memory, Spark 3.5", "", *table, "", *judge_memory(found)]


def spark_lines(found: dict[str, Any]) -> list[str]:
    """Turn the figures of one Spark into its part of the page."""
    beside = f", beside {', '.join(found['peers'])}" if found["peers"] else ""
    table = lines(found, "plain parquet")
    sizes = [*size_lines(found), *tiny_lines(found), "", *judge_spark(found)]
    return [f"### Spark {found['spark']}{beside}", "", *table, "", *sizes]


if __name__ == "__main__":
    main()
