"""The part of the bucket benchmark that runs inside one Spark; prints its figures as JSON.

Run by ``buckets.py``, with PySpark 3.5, where real Hudi can be loaded beside ours. A rescale
doubles the buckets of every partition. Plain Spark reads the same files and writes their rows
anew, which no rescale can do without; *by bucket* it also sends each row to the file of its new
bucket.
"""

import argparse
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import lakewright as lw
from lakewright.actions.buckets.rescale import rescale
from lakewright.actions.buckets.rescale_plan import plan_rescale
from lakewright.model.bucket_rules.rules import BucketRules
from peers import session
from services_spark import Services
from steps import Step, by_turns, one
from write_rows import TINY_BASE
from write_spark import Variant, forget, linked, local_totals, ready, totals

WARMING = 2
BEFORE, AFTER = 4, 8
OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.compression.codec": "snappy",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


class Rescales:
    """Loaded bucket tables, and the ways to give them other buckets."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int, peers: set[str]) -> None:
        self.spark = spark
        self.services = Services(spark, folder, rows, peers)
        self.bench = self.services.bench
        self.rewritten = self.bench.work / "rewritten"

    def steps(self) -> dict[str, Step]:
        ours = self.bench.variants["ours COW"]
        found = {
            "plain Spark": self._plain(ours, by_bucket=False),
            "plain Spark by bucket": self._plain(ours, by_bucket=True),
            "ours": self._step(ours, lambda path: self._ours(path, on_spark=False)),
            "ours on Spark": self._step(ours, lambda path: self._ours(path, on_spark=True)),
        }
        if "Hudi COW" in self.bench.variants:
            found["Hudi"] = self._step(self.bench.variants["Hudi COW"], self._hudi)
        return found

    def _ours(self, path: Path, *, on_spark: bool) -> None:
        work = self.services.work(path, on_spark=on_spark)
        done = rescale(work, plan_rescale(work, rules=BucketRules(default=AFTER)))
        if {one.after for one in done.partitions.values()} != {AFTER}:
            raise SystemExit(f"{path} was not rescaled")

    def _hudi(self, path: Path) -> None:
        options = ",".join(f"{key}={value}" for key, value in OPTIONS.items())
        self.spark.sql("DROP TABLE IF EXISTS bench_rescaled")
        self.spark.sql(f"CREATE TABLE bench_rescaled USING hudi LOCATION '{path}'")
        (told,) = self.spark.sql(
            "CALL partition_bucket_index_manager(table => 'bench_rescaled', "
            f"overwrite => 'dt,{AFTER}', bucket_number => {BEFORE}, dry_run => false, "
            f"options => '{options}')"
        ).collect()
        if told["result"] != "SUCCESS":
            raise SystemExit(str(told))

    def _plain(self, variant: Variant, *, by_bucket: bool) -> Step:
        def run() -> None:
            rows = self.spark.read.option("basePath", str(variant.path)).parquet(
                f"{variant.path}/dt=*/*.parquet"
            )
            if by_bucket:
                rows = rows.repartition(AFTER * 20, "dt", F.hash("id") % AFTER)
            rows.write.mode("overwrite").partitionBy("dt").parquet(str(self.rewritten))

        return Step(
            lambda: self._loaded(variant),
            run,
            lambda: totals(self.spark.read.parquet(str(self.rewritten))),
        )

    def _step(self, variant: Variant, run: Callable[[Path], object]) -> Step:
        return Step(
            lambda: self._loaded(variant),
            lambda: run(variant.path),
            lambda: local_totals(variant.path),
        )

    def _loaded(self, variant: Variant) -> None:
        """Put the freshly loaded table back; files are linked, since nobody changes one."""
        shutil.rmtree(self.rewritten, ignore_errors=True)
        if not variant.kept.exists():
            forget(variant.path)
            variant.load(self.bench.read(self.bench.rows.base))
            variant.path.rename(variant.kept)
        forget(variant.path)
        shutil.copytree(variant.kept, variant.path, copy_function=linked)


def check(path: Path) -> None:
    """Every row lies in its bucket, and no bucket has two groups."""
    report = lw.open_table(path).buckets.check()
    if not report.ok:
        raise SystemExit(str(report))


def timed(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> dict[str, Any]:
    rescales = Rescales(spark, options.folder, options.rows, peers)
    rescales.bench.clear()
    steps = rescales.steps()
    rounds = {name: min(2, options.rounds) if name == "Hudi" else options.rounds for name in steps}
    found = by_turns(steps, rounds, lambda: ready(spark))
    one(steps["ours on Spark"])
    check(rescales.bench.variants["ours COW"].path)
    rescales.bench.clear()
    return found


def warm(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> None:
    """Run everything on few rows: nobody pays for class loading in the figures."""
    rescales = Rescales(spark, options.folder, TINY_BASE, peers)
    rescales.bench.clear()
    for _ in range(WARMING):
        for step in rescales.steps().values():
            one(step)
    rescales.bench.clear()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--jars", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {
        "spark.driver.memory": "8g",
        "spark.sql.parquet.compression.codec": "snappy",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
    spark = session(options.jars, options.folder, options.folder / "work" / "iceberg", settings)
    peers = {"hudi"} if options.jars else set()
    warm(spark, options, peers)
    figures = timed(spark, options, peers)
    print(json.dumps({"spark": spark.version, "figures": figures}))
    spark.stop()


if __name__ == "__main__":
    main()
