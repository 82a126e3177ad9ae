"""How many buckets the partition of a row has, as a column that Spark computes by itself.

Rules are Java patterns there, and Spark's ``rlike`` is Java's ``find``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakewright.engine.spark.native import quoted
from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.bucket_rules.compiled import rule_of
from lakewright.model.schema import DATE, INT, LONG, STRING, DataType, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Plans that hold more conditions, or more paths, cost more than workers that number the rows.
_MOST_RULES = 64
_MOST_PINS = 1_000
_WHOLE = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)


def path_column(
    frame: "DataFrame", columns: Sequence[str], schema: Struct | None, *, hive: bool
) -> "Column | None":
    """Return the partition path of each row; None where Spark's texts may differ from Hudi's.

    ``schema`` holds the columns as they are stored.
    """
    parts: list[Column] = []
    for name in columns:
        stored = schema.find(name) if schema is not None else None
        if name not in frame.columns or not _same_text(frame.schema[name].dataType, stored):
            return None
        text = F.col(quoted(name)).cast("string")
        known = F.when(text.isNull() | (text == ""), F.lit(DEFAULT_PARTITION)).otherwise(text)
        parts.append(F.concat(F.lit(f"{name}="), known) if hive else known)
    return F.concat_ws("/", *parts) if parts else F.lit("")


def _same_text(kind: st.DataType, stored: DataType | None) -> bool:
    if kind == st.StringType():
        return stored in (None, STRING)
    if isinstance(kind, _WHOLE):
        return stored in (None, STRING, INT, LONG)
    return isinstance(kind, st.DateType) and stored in (None, DATE)


def count_column(path: "Column", counts: BucketCounts) -> "Column | None":
    """Return the number of buckets by the path of a partition; None where it would be too long."""
    rules = counts.rules.rules
    if len(rules) > _MOST_RULES or len(counts.pins) > _MOST_PINS:
        return None
    pinned: dict[int, list[str]] = {}
    for partition, number in counts.pins.items():
        pinned.setdefault(number, []).append(partition)
    cases = [(path.isin(paths), number) for number, paths in pinned.items()]
    cases += [(path.rlike(rule_of(rule).pattern()), rule.buckets) for rule in rules]
    made = F.lit(counts.rules.default)
    for condition, number in reversed(cases):
        made = F.when(condition, F.lit(number)).otherwise(made)
    return made
