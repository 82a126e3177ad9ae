"""Partition values that do not travel with every row.

All rows of a slice have the same partition values. Workers hand over the number of the partition
instead, and Spark looks the values up in a list that is part of the plan: text columns are the
dearest part of the way from a worker into Spark.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from lakewright.actions.tasks.read import ReadSpec, ReadTask, Task
from lakewright.engine.spark.expression import literal
from lakewright.engine.spark.layout import names_taken
from lakewright.engine.spark.schema import as_nullable, to_spark_type
from lakewright.engine.spark.worker import NUMBER
from lakewright.model.expression.types import Value
from lakewright.model.files import ReadingMode
from lakewright.model.schema import BOOLEAN, DATE, LONG, STRING, DataType, Field, Struct

#: Longer lists of values would weigh the plan down.
_MOST_PARTITIONS = 1_000
#: Values that are written into the plan, and the types they are written with.
_PLAIN: Mapping[type, DataType] = {str: STRING, bool: BOOLEAN, int: LONG, dt.date: DATE}


@dataclass(frozen=True, slots=True)
class Constants:
    """The partition columns of a scan that are looked up: their values, by partition number."""

    names: tuple[str, ...]
    numbers: Mapping[str, int]
    values: tuple[tuple[Value, ...], ...]

    @staticmethod
    def of(spec: ReadSpec, tasks: Sequence[Task]) -> "Constants | None":
        """Find the columns that are worth it; None where there are none."""
        if spec.mode is ReadingMode.CDC or names_taken(spec):
            return None
        found = {t.partition.path: t.partition.values for t in tasks if isinstance(t, ReadTask)}
        if not 0 < len(found) <= _MOST_PARTITIONS or not all(
            isinstance(task, ReadTask) for task in tasks
        ):
            return None
        names = tuple(
            name
            for name in spec.schema.names
            if all(name in v and _is_plain(v[name]) for v in found.values())
        )
        if not names:
            return None
        values = tuple(
            tuple(cast("Value", held[name]) for name in names) for held in found.values()
        )
        return Constants(names, {path: at for at, path in enumerate(found)}, values)

    def travelling(self, spec: ReadSpec) -> ReadSpec:
        """Return the scan of the columns that workers hand over row by row."""
        return replace(spec, schema=spec.schema.without(frozenset(self.names)))

    def columns(self, schema: Struct) -> dict[str, str]:
        """Return what Spark SQL calls the looked-up columns, with the types that they have.

        Text goes to the JVM in one call; a list of columns takes several for each value.
        """
        return {name: self._column(schema.field(name)) for name in self.names}

    def _column(self, field: Field) -> str:
        at = self.names.index(field.name)
        listed = ",".join(
            literal(held[at], _PLAIN.get(type(held[at]), field.type)) for held in self.values
        )
        kind = to_spark_type(as_nullable(field.type)).simpleString()
        return f"cast(array({listed}) as array<{kind}>)[{NUMBER.name}]"


def _is_plain(value: object) -> bool:
    return value is None or type(value) in _PLAIN
