"""The part of the services benchmark that runs inside one Spark; prints its figures as JSON.

Run by ``services.py``, with PySpark 3.5, where real Hudi and Iceberg can be loaded beside ours.
"""

import argparse
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

from lakewright.actions.services.compaction import compact
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.write.progress import Silence
from lakewright.engine.local.executor import LocalExecutor
from lakewright.engine.spark.executor import SparkExecutor
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.storage_upkeep import StorageUpkeep
from peers import session
from services_clean import Cleanings
from steps import Step, by_turns, one
from write_rows import TINY_BASE, write_rows
from write_spark import Bench, Variant, forget, linked, ready

PERCENT = 10
WARMING = 2
HUDI = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.compression.codec": "snappy",
}


class Services:
    """Tables that have been written to, as services find them."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int, peers: set[str]) -> None:
        self.spark, self.peers = spark, peers
        self.bench = Bench(spark, folder, write_rows(folder, rows), peers)

    # ------------------------------------------------------------------ compaction

    def compactions(self) -> dict[str, Step]:
        """Merge-on-read tables with a tenth of their rows in logs or delete files."""
        runs: dict[str, tuple[str, Callable[[Path], object]]] = {
            "ours": ("ours MOR", lambda path: compact(self.work(path))),
            "ours on Spark": ("ours MOR", lambda path: compact(self.work(path, on_spark=True))),
            "Hudi": ("Hudi MOR", self._hudi),
            "Iceberg": ("Iceberg MOR", self._iceberg),
        }
        return {
            name: self._step(self.bench.variants[table], run)
            for name, (table, run) in runs.items()
            if table in self.bench.variants
        }

    def cleanings(self) -> dict[str, Step]:
        """A table of many file groups, some of which have old versions."""
        return Cleanings(self.spark, self.bench.work).steps(self.peers)

    def work(self, path: Path, *, on_spark: bool = False) -> Servicing:
        """Return what a service of ours works with."""
        storage = open_storage(str(path))
        state = open_state(storage)
        options: Mapping[str, str] = {**storage.options, **state.config.properties}
        executor: Any = LocalExecutor(options)
        if on_spark:
            executor = SparkExecutor(self.spark, {**options, "lakewright.write.driver-work": "0"})
        return Servicing(
            "bench",
            state,
            executor,
            StorageCommitter(storage, state.config, options),
            StorageUpkeep(storage, state.config, options),
            options,
            Silence(),
        )

    def _hudi(self, path: Path) -> None:
        options = ",".join(f"{key}={value}" for key, value in HUDI.items())
        for operation in ("schedule", "run"):
            given = f"op => '{operation}', path => '{path}', options => '{options}'"
            self.spark.sql(f"CALL run_compaction({given})").collect()

    def _iceberg(self, path: Path) -> None:
        self.spark.sql(
            "CALL ice.system.rewrite_data_files(table => 'bench.mor', options => "
            "map('delete-file-threshold', '1', 'max-concurrent-file-group-rewrites', '2'))"
        ).collect()

    def _step(self, variant: Variant, run: Callable[[Path], object]) -> Step:
        return Step(lambda: self._changed(variant), lambda: run(variant.path), variant.count)

    def _changed(self, variant: Variant) -> None:
        """Put the table back as its updates left it; it was kept when they were written."""
        kept = variant.path.with_name(f"{variant.path.name}.changed")
        if not kept.exists():
            forget(variant.path)
            variant.load(self.bench.read(self.bench.rows.base))
            variant.change(self.bench.read(self.bench.rows.updates(PERCENT)))
            variant.path.rename(kept)
        forget(variant.path)
        shutil.copytree(kept, variant.path, copy_function=linked)


#: Each part of the benchmark: the steps that are compared with each other.
PARTS: dict[str, Callable[[Services], dict[str, Step]]] = {
    "compaction": Services.compactions,
    "cleaning": Services.cleanings,
}


def timed(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for rows in options.rows:
        services = Services(spark, options.folder, rows, peers)
        services.bench.clear()
        for part in options.only:
            steps = PARTS[part](services)
            rounds = {
                name: min(2, options.rounds) if name == "Hudi" else options.rounds for name in steps
            }
            found.setdefault(str(rows), {})[part] = by_turns(steps, rounds, lambda: ready(spark))
        services.bench.clear()
    return found


def warm(spark: SparkSession, options: argparse.Namespace, peers: set[str]) -> None:
    """Run everything on few rows: nobody pays for class loading in the figures."""
    services = Services(spark, options.folder, TINY_BASE, peers)
    services.bench.clear()
    for _ in range(WARMING):
        for part in options.only:
            for step in PARTS[part](services).values():
                one(step)
    services.bench.clear()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--jars", type=Path, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=list(PARTS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {
        "spark.driver.memory": "8g",
        "spark.sql.catalog.ice.cache-enabled": "false",
        "spark.sql.parquet.compression.codec": "snappy",
    }
    spark = session(options.jars, options.folder, options.folder / "work" / "iceberg", settings)
    names = " ".join(jar.name for jar in options.jars)
    peers = {peer for peer in ("hudi", "iceberg") if peer in names}
    warm(spark, options, peers)
    sizes = timed(spark, options, peers)
    print(json.dumps({"spark": spark.version, "peers": sorted(peers), "sizes": sizes}))
    spark.stop()


if __name__ == "__main__":
    main()
