"""Partition values that do not travel with every row.

All rows of a slice have the same partition values. Workers hand over the number of the partition
instead, and Spark looks the values up in a list that is part of the plan: text columns are the
dearest part of the way from a worker into Spark.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lakewright.actions.tasks.read import ReadSpec, ReadTask, Task
from lakewright.engine.spark.native import quoted
from lakewright.engine.spark.schema import as_nullable, to_spark_type
from lakewright.model.files import ReadingMode
from lakewright.model.schema import INT, Field, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The column in which workers hand over the number of the partition.
NUMBER = Field("_lakewright_partition", INT)
#: Longer lists of values would weigh the plan down.
_MOST_PARTITIONS = 1_000
_PLAIN = frozenset({str, bool, int, dt.date, type(None)})


@dataclass(frozen=True, slots=True)
class Constants:
    """The partition columns of a scan that are looked up: their values, by partition number."""

    names: tuple[str, ...]
    numbers: Mapping[str, int]
    values: tuple[tuple[object, ...], ...]

    @staticmethod
    def of(spec: ReadSpec, tasks: Sequence[Task]) -> "Constants | None":
        """Find the columns that are worth it; None where there are none."""
        if spec.mode is ReadingMode.CDC or NUMBER.name in spec.table_schema:
            return None
        found = {t.partition.path: t.partition.values for t in tasks if isinstance(t, ReadTask)}
        if not 0 < len(found) <= _MOST_PARTITIONS or not all(
            isinstance(task, ReadTask) for task in tasks
        ):
            return None
        names = tuple(
            name
            for name in spec.schema.names
            if all(name in v and type(v[name]) in _PLAIN for v in found.values())
        )
        if not names:
            return None
        values = tuple(tuple(held[name] for name in names) for held in found.values())
        return Constants(names, {path: at for at, path in enumerate(found)}, values)

    def travelling(self, spec: ReadSpec) -> ReadSpec:
        """Return the scan of the columns that workers hand over row by row."""
        return replace(spec, schema=spec.schema.without(frozenset(self.names)))

    def restore(self, frame: "DataFrame", schema: Struct) -> "DataFrame":
        """Put the looked-up columns back in their places."""
        return frame.select(*(self._column(field) for field in schema))

    def _column(self, field: Field) -> "Column":
        if field.name not in self.names:
            return F.col(quoted(field.name))
        at = self.names.index(field.name)
        kind = to_spark_type(as_nullable(field.type))
        listed = F.array(*(F.lit(held[at]).cast(kind) for held in self.values))
        return listed[F.col(NUMBER.name)].alias(field.name)
