"""``spark.read.format("lakewright").load(path)`` on Spark 4.

Spark's own pushdown into Python data sources returns wrong rows in some releases and prunes no
columns in any, so that neither is used: the options ``columns`` and ``where`` do that work.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakewright.actions.scan import ScanPlan
from lakewright.engine.spark.schema import worker_form
from lakewright.engine.spark.tasks import bundle_count, pack_tasks
from lakewright.engine.spark.worker import Shared, pack, read_packed
from lakewright.model.schema import Struct


@dataclass
class Bundle(InputPartition):
    """The slices that one Spark task reads, and what all tasks share, packed."""

    shared: bytes
    packed: bytes


def bundles(plan: ScanPlan, shape: Struct) -> list[Bundle]:
    """Divide the tasks of a plan among Spark's; their rows have the columns of ``shape``."""
    shared = pack(Shared(plan.spec, worker_form(shape)))
    sizes = [task.size for task in plan.tasks]
    count = bundle_count(sizes, os.cpu_count() or 1, plan.spec.options)
    packed = pack_tasks(plan.tasks, count, lambda task: task.size)
    return [Bundle(shared, pack(some)) for some in packed]


class LakewrightReader(DataSourceReader):
    """Reads the slices of one plan; what travels to the workers is small and packed."""

    def __init__(self, plan: ScanPlan) -> None:
        self._bundles = bundles(plan, plan.schema)
        self._nothing = Bundle(pack(Shared(plan.spec, worker_form(plan.schema))), pack(()))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the bundles, one per Spark task; Spark needs at least one."""
        return self._bundles or [self._nothing]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401  (Spark's own port)
        """Stream the rows of one bundle."""
        return read_packed(partition.shared, partition.packed)
