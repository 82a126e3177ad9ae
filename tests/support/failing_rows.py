"""Spark frames whose tasks fail on demand; workers import this module by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa


def failing(frame: Any, partition: int, *, times: int, folder: Path) -> Any:
    """Return the same rows; the task of ``partition`` fails after its rows, ``times`` times."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() == partition:
            tries = folder / str(context.taskAttemptId())
            if len(list(folder.iterdir())) < times:
                tries.touch()
                raise RuntimeError("this task was told to fail")

    folder.mkdir(exist_ok=True)
    return frame.mapInArrow(run, frame.schema)
