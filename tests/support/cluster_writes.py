"""Write a table on a Spark cluster while tasks fail, dawdle and die; run as a script.

Arguments: the master's address, a folder, and the pid of the worker that may be killed. Prints
what the writes said, as JSON.
"""

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import lakewright as lw
from lakewright.actions.executor import Attempt
from lakewright.engine.spark import executor as engine

#: Seconds that a slow task sleeps: long enough that Spark starts a copy of it.
NAP = 6
ROWS = 4_000
EVERYTHING = {"lakewright.write.driver-bytes": "0", "lakewright.write.driver-work": "0"}


@dataclass(frozen=True)
class Troubled:
    """A stream function whose first run of a task goes wrong after it wrote its first file."""

    function: Callable[..., Iterable[Any]]
    folder: str
    trouble: str

    def __call__(
        self, shared: Any, batches: Iterable[pa.RecordBatch], attempt: Attempt
    ) -> Iterator[Any]:
        for number, made in enumerate(self.function(shared, batches, attempt)):
            yield made
            if number == 0 and self._is_first(attempt):
                self._suffer(attempt)

    def _is_first(self, attempt: Attempt) -> bool:
        mark = Path(self.folder) / f"{self.trouble}-{attempt.task}"
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _suffer(self, attempt: Attempt) -> None:
        if self.trouble == "fail":
            raise OSError("the first run of every task fails")
        if attempt.task == 0:
            time.sleep(NAP)


def troubled(folder: str, trouble: str) -> None:
    """Let every stream of the executor meet trouble."""
    usual = engine.SparkExecutor.stream

    def stream(self: Any, function: Any, shared: Any, rows: Any, spread: Any) -> Iterator[Any]:
        return usual(self, Troubled(function, folder, trouble), shared, rows, spread)

    engine.SparkExecutor.stream = stream  # type: ignore[method-assign]
    setattr(engine, "_usual", usual)  # noqa: B010


def untroubled() -> None:
    engine.SparkExecutor.stream = engine._usual  # type: ignore[attr-defined,method-assign]


def main(master: str, folder: str, victim: int) -> None:
    warnings.simplefilter("ignore")
    builder = SparkSession.builder.master(master).appName("cluster-writes")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.default.parallelism": "2",
        "spark.log.level": "ERROR",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.speculation.efficiency.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    engine._SMALLEST_TASK = 1  # as many tasks as large data would have
    results = {}
    for trouble, verb in (("fail", "bulk_insert"), ("sleep", "upsert"), ("kill", "upsert")):
        started = time.monotonic()
        if trouble == "kill":
            threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
        results[trouble] = write(spark, folder, trouble, verb)
        print(trouble, time.monotonic() - started, file=sys.stderr)  # noqa: T201
    time.sleep(NAP)  # a task that lost its race wakes up and goes on
    spark.stop()
    print(json.dumps(results))  # noqa: T201


def write(spark: SparkSession, folder: str, trouble: str, verb: str) -> dict[str, Any]:
    """Write the same keys with new values; the tasks meet trouble."""
    table = lw.open_table(f"{folder}/table")
    rows = spark.range(0, ROWS, 1, 4).selectExpr(
        "concat('k', id) as key", "concat('d', id % 3) as day", f"'{trouble}' as said"
    )
    Path(folder, "marks").mkdir(exist_ok=True)
    troubled(f"{folder}/marks", trouble)
    try:
        done = getattr(table, verb)(rows, options=EVERYTHING)
    finally:
        untroubled()
    return {"inserted": done.inserted, "updated": done.updated, "files": done.files}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
