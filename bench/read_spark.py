"""The part of the reading benchmark that runs inside one Spark; prints its figures as JSON.

Run by ``read.py`` once per environment: with PySpark 3.5, where real Hudi and Iceberg can be
loaded beside ours, and with the newest PySpark.
"""

import argparse
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lakewright as lw
from interleaved import Sum, Timings, measure
from lakewright.engine.spark.scan import to_spark
from lakewright.engine.spark.schema import to_spark_schema
from peers import session
from read_tables import MODES, SCHEMA, Tables, many_files, tables

COLUMNS = ["dt", "amount", "city", "qty"]
LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"
PLAIN = "plain parquet"


def aggregate(frame: DataFrame) -> object:
    """The query of all rows: sums and counts by day; the result is the check."""
    rows = (
        frame.groupBy("dt")
        .agg(F.sum("amount"), F.countDistinct("city"), F.count("*"), F.sum("qty"))
        .collect()
    )
    return sorted((r[0], Sum(r[1]), r[2], r[3], r[4]) for r in rows)


def plain(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema(to_spark_schema(SCHEMA)).parquet(str(folder))


def figures(timings: Timings) -> dict[str, Any]:
    return {
        "reference": timings.reference,
        "spread": timings.spread(),
        "rows": {
            name: {"median": timings.median(name), "ratio": timings.ratio(name)}
            for name in timings.seconds
            if name != timings.again
        },
    }


def listed(spark: SparkSession, folder: Path, files: list[str]) -> DataFrame:
    """Plain parquet as a table format must ask for it: by the names of the live files."""
    before = spark.conf.get(LISTING)
    spark.conf.set(LISTING, str(len(files) + 1))
    try:
        reader = spark.read.schema(to_spark_schema(SCHEMA)).option("basePath", str(folder))
        return reader.parquet(*files)
    finally:
        spark.conf.set(LISTING, before)


def copy_on_write(spark: SparkSession, made: Tables, rounds: int) -> dict[str, Any]:
    files = [f"file://{path}" for path in sorted(made.base_rows.rglob("*.parquet"))]
    variants: dict[str, Callable[[], object]] = {
        PLAIN: lambda: aggregate(plain(spark, made.base_rows)),
        "plain parquet, by the list of its files": lambda: aggregate(
            listed(spark, made.base_rows, files)
        ),
        "ours": lambda: aggregate(lw.open_table(made.copy_on_write).scan().to_spark(spark)),
    }
    found = figures(measure(variants, PLAIN, rounds))
    query = "qty > 50 and dt >= '2026-10-10'"
    ours = lw.open_table(made.copy_on_write).scan().to_spark(spark).where(query)
    theirs = plain(spark, made.base_rows).where(query)
    found["same_plan"] = explained(ours.select("id")) == explained(theirs.select("id"))
    found["partitions"] = [ours.rdd.getNumPartitions(), theirs.rdd.getNumPartitions()]
    return found


def explained(frame: DataFrame) -> list[str]:
    """Return the scan nodes, filters and columns of a plan."""
    out = StringIO()
    with redirect_stdout(out):
        frame.explain("formatted")
    wanted = ("(", "Batched", "PartitionFilters", "PushedFilters", "ReadSchema")
    lines = [re.sub(r"#\d+L?", "", line) for line in out.getvalue().splitlines()]
    return [line for line in lines if line.startswith(wanted)]


def merge_on_read(
    spark: SparkSession, made: Tables, mode: str, rounds: int, peers: set[str]
) -> dict[str, Any]:
    path = made.merge_on_read(mode)
    variants: dict[str, Callable[[], object]] = {
        PLAIN: lambda: aggregate(plain(spark, made.compacted(mode))),
        "ours, columns known": lambda: aggregate(
            lw.open_table(path).scan(columns=COLUMNS).to_spark(spark)
        ),
        "ours, general": lambda: aggregate(lw.open_table(path).scan().to_spark(spark)),
    }
    if "hudi" in peers:
        variants["Hudi"] = lambda: aggregate(spark.read.format("hudi").load(str(path)))
    if "iceberg" in peers:
        name = iceberg_table(spark, made, mode)
        variants["Iceberg"] = lambda: aggregate(spark.table(name))
    return figures(measure(variants, PLAIN, rounds))


def iceberg_table(spark: SparkSession, made: Tables, mode: str) -> str:
    """Make Iceberg's merge-on-read table of the same rows: base rows, then one merge."""
    name = f"ice.bench.t{made.rows}_{mode}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.bench")
    if spark.catalog.tableExists(name):
        if spark.table(f"{name}.snapshots").count() == 2:
            return name
        spark.sql(f"DROP TABLE {name} PURGE")  # a run that was stopped left it half made
    plain(spark, made.base_rows).createOrReplaceTempView("base_rows")
    plain(spark, made.updates(mode)).createOrReplaceTempView("update_rows")
    spark.sql(
        f"CREATE TABLE {name} USING iceberg PARTITIONED BY (dt) TBLPROPERTIES "
        "('format-version'='2', 'write.merge.mode'='merge-on-read', "
        "'write.parquet.compression-codec'='snappy') AS SELECT * FROM base_rows ORDER BY dt"
    )
    spark.sql(
        f"MERGE INTO {name} t USING update_rows s ON t.id = s.id AND t.dt = s.dt "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    return name


def planning(spark: SparkSession, folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Time our own planning over many files, and ``to_spark`` against Spark's own planning."""
    path = many_files(folder, count)
    plan = lw.open_table(path).scan().plan()
    files = [f"file://{path}/{task.paths[0]}" for task in plan.tasks]

    def own() -> object:
        lw.open_table(path).scan().plan()
        return None

    def sparks() -> object:
        _ = listed(spark, path, files).schema
        return None

    def ours() -> object:
        _ = to_spark(plan, spark).schema
        return None

    reference = "Spark's own planning"
    timings = measure(
        {reference: sparks, "to_spark": ours, "our own planning": own}, reference, rounds, warm=1
    )
    return {**figures(timings), "files": len(files)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--files", type=int, required=True)
    parser.add_argument("--jars", type=Path, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=["cow", "mor", "planning"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    spark = session(
        options.jars, options.folder, options.folder / "iceberg", {"spark.driver.memory": "6g"}
    )
    settings = dict(spark.sparkContext.getConf().getAll())
    peers = {peer for peer in ("hudi", "iceberg") if peer in settings.get("spark.jars", "")}
    found: dict[str, Any] = {"spark": spark.version, "peers": sorted(peers), "sizes": {}}
    listing = spark.conf.get(LISTING)
    for rows in options.rows:
        made = tables(options.folder, rows)
        size = found["sizes"].setdefault(str(rows), {})
        if "cow" in options.only:
            size["cow"] = copy_on_write(spark, made, options.rounds)
            tell(rows, "cow", size["cow"])
        for mode in MODES if "mor" in options.only else ():
            size[mode] = merge_on_read(spark, made, mode, options.rounds, peers)
            tell(rows, mode, size[mode])
    if "planning" in options.only:
        found["planning"] = planning(spark, options.folder, options.files, options.rounds)
        tell(options.files, "planning", found["planning"])
    found["settings_restored"] = spark.conf.get(LISTING) == listing
    print(json.dumps(found))
    spark.stop()


def tell(size: int, what: str, figures: dict[str, Any]) -> None:
    parts = [f"{n} {f['median']:.2f}s {f['ratio']:.2f}x" for n, f in figures["rows"].items()]
    now = time.strftime("%H:%M:%S")
    print(f"{now} {size:,} {what}: {'; '.join(parts)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
