"""The part of the TTL benchmark that runs inside one Spark; prints its figures as JSON.

Run by ``ttl.py``, with PySpark 3.5, where real Hudi can be loaded beside ours. Each turn has a
fresh copy of one table, written long ago, and drops all of its partitions.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

import lakewright as lw
from peers import session
from steps import Step, by_turns

LONG_AGO = "20200101000000000"
# Hudi multiplies days to milliseconds in 32 bits: of 25 to 49 days nothing expires there.
RETAIN = 20
OPTIONS = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}
MOST = "hoodie.partition.ttl.strategy.max.delete.partitions"


def make(path: Path, partitions: int) -> None:
    """Write a table with a row in each partition."""
    table = lw.create_table(path, schema="id int, dt string", key="id", partition_by="dt")
    rows = [{"id": number, "dt": f"{number:06d}"} for number in range(partitions)]
    table.bulk_insert(rows, instant=LONG_AGO)


class Retention:
    """One table, and who drops its partitions."""

    def __init__(self, spark: SparkSession, folder: Path, partitions: int) -> None:
        self.spark = spark
        self.source = folder / f"ttl-{partitions}"
        self.work = folder / "ttl-work"
        self.partitions = partitions
        if not self.source.exists():
            make(self.source, partitions)

    def steps(self) -> dict[str, Step]:
        """Return the variants."""
        return {
            "ours": Step(self.prepare, self.ours, self.left),
            "Hudi": Step(self.prepare, self.hudi, self.left),
        }

    def prepare(self) -> None:
        """Copy the table."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.source, self.work)
        self.spark.sql("DROP TABLE IF EXISTS bench_ttl")
        self.spark.sql(f"CREATE TABLE bench_ttl USING hudi LOCATION '{self.work}'")

    def ours(self) -> None:
        """Plan, keep the plan, pin the files, drop."""
        options = {"hoodie.partition.ttl.strategy.days.retain": str(RETAIN)}
        lw.open_table(self.work).ttl.run(options={**options, MOST: str(self.partitions)})

    def hudi(self) -> None:
        """Drop by Hudi's procedure."""
        options = ",".join(f"{k}={v}" for k, v in {**OPTIONS, MOST: str(self.partitions)}.items())
        self.spark.sql(
            f"CALL run_ttl(table => 'bench_ttl', retain_days => {RETAIN}, options => '{options}')"
        ).collect()

    def left(self) -> int:
        """Return how many rows are left: none."""
        rows: int = lw.open_table(self.work).scan().count()
        if rows:
            raise SystemExit(f"{rows} of {self.partitions} partitions were left")
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--jars", type=Path, nargs="+", required=True)
    given = parser.parse_args()
    spark = session(given.jars, given.folder, given.folder / "iceberg", {})
    try:
        # Both run once on a small table before anything counts.
        by_turns(Retention(spark, given.folder, 20).steps(), 1)
        figures = by_turns(Retention(spark, given.folder, given.partitions).steps(), given.rounds)
        print(json.dumps({"spark": spark.version, "figures": figures}))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
