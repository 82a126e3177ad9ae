"""The part of the writing benchmark that runs inside one Spark; prints its figures as JSON.

Run by ``write.py``: with PySpark 3.5, where real Hudi, Delta and Iceberg can be loaded beside
ours, and with the newest PySpark. ``--memory VARIANT`` runs one variant alone, and watches it.
"""

import argparse
import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakewright as lw
from interleaved import Sum
from lakewright.format.arrow.schema import to_arrow_schema
from peers import session
from process_tree import python_bytes, resident_bytes
from read_tables import BUCKETS, SCHEMA
from steps import Cost, Step, by_turns, one, peak_of
from write_rows import TINY_BASE, Rows, tiny_batch, write_rows

PERCENTS = (1, 10)
#: Times that every variant runs on few rows before anything counts.
WARMING = 2
BY_SHUFFLE = {"lakewright.write.driver-bytes": "0"}
KINDS = {"COW": "COPY_ON_WRITE", "MOR": "MERGE_ON_READ"}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to keep a table: where it lies, how it is loaded, changed and counted.

    ``kept`` is where the loaded table is put aside; variants that load alike share it.
    """

    name: str
    path: Path
    kept: Path
    load: Callable[[DataFrame], object]
    change: Callable[[DataFrame], object]
    count: Callable[[], object]


class Bench:
    """All variants over the rows of one size."""

    def __init__(self, spark: SparkSession, folder: Path, rows: Rows, peers: set[str]) -> None:
        self.spark, self.rows = spark, rows
        self.work = folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.variants = {v.name: v for v in self._variants(peers)}

    # ------------------------------------------------------------------ the variants

    def _variants(self, peers: set[str]) -> list[Variant]:
        found = [self._plain()]
        for kind in KINDS:
            found += [self._ours(kind, {}), self._ours(kind, BY_SHUFFLE)]
        if "hudi" in peers:
            found += [self._hudi(kind) for kind in KINDS]
        if "delta" in peers:
            found.append(self._delta())
        if "iceberg" in peers:
            found += [self._iceberg(kind) for kind in KINDS]
        return found

    def _plain(self) -> Variant:
        path, rewritten = self.work / "plain", self.work / "plain-rewritten"

        def load(rows: DataFrame) -> None:
            rows.write.mode("overwrite").partitionBy("dt").parquet(str(path))

        def change(rows: DataFrame) -> None:
            stored = self.spark.read.schema(rows.schema).parquet(str(path))
            kept = stored.join(rows.select("id", "dt"), ["id", "dt"], "left_anti")
            merged = kept.select(rows.columns).unionByName(rows)
            merged.write.mode("overwrite").partitionBy("dt").parquet(str(rewritten))

        def count() -> object:
            place = rewritten if rewritten.exists() else path
            return totals(self.spark.read.parquet(str(place)))

        return Variant("plain parquet", path, kept_of(path), load, change, count)

    def _ours(self, kind: str, options: dict[str, str]) -> Variant:
        how = " by shuffle" if options else ""
        name = f"ours {kind}{how}"
        path = self.work / f"ours-{kind}{'-shuffled' if options else ''}"

        def load(rows: DataFrame) -> None:
            table = lw.create_table(
                path,
                schema=to_arrow_schema(SCHEMA),
                key="id",
                partition_by="dt",
                order_by="ts",
                type=KINDS[kind],
                buckets=BUCKETS,
            )
            table.bulk_insert(rows, options=options)

        def change(rows: DataFrame) -> None:
            lw.open_table(path).upsert(rows, options=options)

        kept = kept_of(self.work / f"ours-{kind}")
        return Variant(name, path, kept, load, change, lambda: local_totals(path))

    def _hudi(self, kind: str) -> Variant:
        path = self.work / f"hudi-{kind}"
        options = {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.table.type": KINDS[kind],
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": str(BUCKETS),
            "hoodie.parquet.compression.codec": "snappy",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.compact.inline": "false",
            "hoodie.compact.inline.max.delta.commits": "100000",
            "hoodie.bulkinsert.shuffle.parallelism": "8",
            "hoodie.upsert.shuffle.parallelism": "8",
        }

        def save(rows: DataFrame, operation: str, mode: str) -> None:
            writer = rows.write.format("hudi").options(**options)
            writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(str(path))

        return Variant(
            f"Hudi {kind}",
            path,
            kept_of(path),
            lambda rows: save(rows, "bulk_insert", "overwrite"),
            lambda rows: save(rows, "upsert", "append"),
            lambda: local_totals(path),
        )

    def _delta(self) -> Variant:
        path = self.work / "delta"

        def load(rows: DataFrame) -> None:
            rows.write.format("delta").mode("overwrite").partitionBy("dt").save(str(path))

        def change(rows: DataFrame) -> None:
            self._merge(f"delta.`{path}`", rows)

        def count() -> object:
            return totals(self.spark.read.format("delta").load(str(path)))

        return Variant("Delta", path, kept_of(path), load, change, count)

    def _iceberg(self, kind: str) -> Variant:
        name = f"ice.bench.{kind.lower()}"
        mode = "merge-on-read" if kind == "MOR" else "copy-on-write"

        def load(rows: DataFrame) -> None:
            writer = rows.writeTo(name).using("iceberg").partitionedBy(F.col("dt"))
            writer = writer.tableProperty("format-version", "2")
            writer = writer.tableProperty("write.merge.mode", mode)
            writer.tableProperty("write.parquet.compression-codec", "snappy").create()

        path = self.work / "iceberg" / "bench" / kind.lower()
        return Variant(
            f"Iceberg {kind}",
            path,
            kept_of(path),
            load,
            lambda rows: self._merge(name, rows),
            lambda: totals(self.spark.table(name)),
        )

    def _merge(self, target: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView("update_rows")
        self.spark.sql(
            f"MERGE INTO {target} t USING update_rows s ON t.id = s.id AND t.dt = s.dt "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    # --------------------------------------------------------------------- the steps

    def read(self, path: Path) -> DataFrame:
        return self.spark.read.parquet(str(path))

    def bulk(self, variant: Variant) -> Step:
        return Step(
            lambda: forget(variant.path),
            lambda: variant.load(self.read(self.rows.base)),
            variant.count,
        )

    def upsert(self, variant: Variant, percent: int) -> Step:
        return Step(
            lambda: self._loaded(variant),
            lambda: variant.change(self.read(self.rows.updates(percent))),
            variant.count,
        )

    def keep(self) -> None:
        """Put aside the tables that are loaded now."""
        for variant in self.variants.values():
            if variant.path.exists() and not variant.kept.exists():
                variant.path.rename(variant.kept)

    def _loaded(self, variant: Variant) -> None:
        """Put the freshly loaded table back; it was kept when it was loaded first."""
        if not variant.kept.exists():
            forget(variant.path)
            variant.load(self.read(self.rows.base))
            variant.path.rename(variant.kept)
        forget(variant.path)
        shutil.copytree(variant.kept, variant.path, copy_function=linked)

    def clear(self) -> None:
        """Remove every table of this size."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the data files of each loaded table."""
        return {
            v.name: sum(f.stat().st_size for f in v.path.rglob("*.parquet"))
            for v in self.variants.values()
            if v.path.exists()
        }


def kept_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.loaded")


def linked(source: str, target: str) -> str:
    """Copy a file; data files are linked, since nobody changes one in place."""
    if not source.endswith(".parquet"):
        return shutil.copy2(source, target)
    os.link(source, target)
    return target


def forget(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(path.with_name(f"{path.name}-rewritten"), ignore_errors=True)


def totals(frame: DataFrame) -> object:
    row = frame.agg(F.count("*"), F.sum("qty"), F.sum("ts"), F.sum("amount")).collect()[0]
    return (row[0], row[1], row[2], Sum(row[3]))


def local_totals(path: Path) -> object:
    """The same of a Hudi table, by our own reader."""
    rows = lw.open_table(path).scan(columns=["qty", "ts", "amount"]).to_arrow()
    sums = [rows.column(name).combine_chunks() for name in ("qty", "ts", "amount")]
    qty, ts, amount = (column.sum().as_py() for column in sums)
    return (rows.num_rows, qty, ts, Sum(amount))


# ------------------------------------------------------------------------------- the runs


def ready(spark: SparkSession) -> None:
    """Make the session alike for whoever is next: heap collected, Python workers alive.

    Spark ends Python workers that nobody used for a minute; variants that need none take longer.
    """
    jvm(spark).System.gc()
    spark.range(0, 2, 1, 2).mapInArrow(awake, "id bigint").collect()


def awake(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import lakewright.engine.spark.write_worker  # noqa: F401 - what a worker imports when it starts

    time.sleep(0.2)  # so that one worker cannot serve both tasks
    yield from batches


def jvm(spark: SparkSession) -> Any:
    return spark._jvm.java.lang  # type: ignore[union-attr]


def rounds_of(variant: Variant, options: argparse.Namespace, *, first: bool) -> int:
    """Return how often a variant runs: the slow ones, and larger sizes, less often."""
    if not first:
        return min(2, options.rounds) if variant.name.startswith(("plain", "ours")) else 1
    return min(2, options.rounds) if variant.name.startswith("Hudi") else options.rounds


def timed(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for rows in options.rows:
        bench = Bench(spark, options.folder, write_rows(options.folder, rows), peers)
        chosen = list(bench.variants.values())
        first = rows == options.rows[0]
        rounds = {v.name: rounds_of(v, options, first=first) for v in chosen}
        size = found.setdefault(str(rows), {})
        bench.clear()
        loading = {v.name: bench.bulk(v) for v in chosen if "shuffle" not in v.name}
        size["bulk"] = by_turns(loading, rounds, lambda: ready(spark))
        size["bytes"] = bench.sizes()
        bench.keep()
        for percent in PERCENTS:
            changing = {
                v.name: bench.upsert(v, percent)
                for v in chosen
                if first or percent == PERCENTS[-1] or v.name.startswith(("plain", "ours"))
            }
            size[f"upsert {percent}%"] = by_turns(changing, rounds, lambda: ready(spark))
        bench.clear()
    return found


def warm(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> None:
    """Run everything on few rows, twice: nobody pays for class loading in the figures."""
    bench = Bench(spark, options.folder, write_rows(options.folder, TINY_BASE), peers)
    for _ in range(WARMING):
        bench.clear()
        for variant in bench.variants.values():
            one(bench.bulk(variant))
        bench.keep()
        for variant in bench.variants.values():
            one(bench.upsert(variant, PERCENTS[-1]))
    bench.clear()


def tiny(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> dict[str, Any]:
    """Commits of 1,000 rows into one partition of a merge-on-read table, one after the other."""
    made = write_rows(options.folder, TINY_BASE)
    bench = Bench(spark, options.folder, made, peers)
    bench.clear()
    batches = bench.work / "batches"
    batches.mkdir()
    found: dict[str, Any] = {}
    for number in range(options.commits):
        pq.write_table(tiny_batch(made, number), batches / f"{number}.parquet")
    for name, commits in {"ours MOR": options.commits, "Hudi MOR": options.commits // 10}.items():
        variant = bench.variants.get(name)
        if variant is None:
            continue
        forget(variant.path)
        variant.load(bench.read(made.base))
        cost = Cost()
        for number in range(commits):
            rows = bench.read(batches / f"{number}.parquet")
            began = time.perf_counter()
            variant.change(rows)
            cost.wall.append(time.perf_counter() - began)
            cost.cpu.append(0.0)
        tenth = max(commits // 10, 1)
        found[name] = {
            **cost.figures(),
            "commits": commits,
            "first": sum(cost.wall[:tenth]) / tenth,
            "last": sum(cost.wall[-tenth:]) / tenth,
        }
    bench.clear()
    return found


def memory(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> dict[str, Any]:
    """Run one variant alone, every step twice: as it is, and with its garbage taken out.

    Resident is what the whole process tree holds, with what the JVM has not collected yet. Live
    is what a collection leaves in the JVM's heap, one being asked for four times a second, and
    the resident memory of the Python processes.
    """
    bench = Bench(spark, options.folder, write_rows(options.folder, options.rows[0]), peers)
    bench.clear()
    runtime = jvm(spark).Runtime.getRuntime()

    def live() -> int:
        jvm(spark).System.gc()
        return int(runtime.totalMemory() - runtime.freeMemory()) + python_bytes()

    variant = bench.variants[options.memory]
    found: dict[str, Any] = {"resident": {}, "live": {}}
    for kind, look, every in (("resident", resident_bytes, 0.1), ("live", live, 0.25)):
        found[kind]["bulk"] = peak_of(bench.bulk(variant), look, every)
        bench.keep()
        for percent in PERCENTS:
            step = bench.upsert(variant, percent)
            found[kind][f"upsert {percent}%"] = peak_of(step, look, every)
    bench.clear()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--jars", type=Path, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=["timed", "tiny"])
    parser.add_argument("--memory", default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {
        "spark.driver.memory": "8g",
        "spark.sql.catalog.ice.cache-enabled": "false",
        "spark.sql.parquet.compression.codec": "snappy",
    }
    spark = session(options.jars, options.folder, options.folder / "work" / "iceberg", settings)
    names = " ".join(jar.name for jar in options.jars)
    peers = {peer for peer in ("hudi", "iceberg", "delta") if peer in names}
    found: dict[str, Any] = {"spark": spark.version, "peers": sorted(peers)}
    if options.memory is not None:
        found["memory"] = memory(spark, options, peers)
    else:
        warm(spark, options, peers)
        if "timed" in options.only:
            found["sizes"] = timed(spark, options, peers)
        if "tiny" in options.only:
            found["tiny"] = tiny(spark, options, peers)
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
