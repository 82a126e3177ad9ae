"""How many buckets the partition of a row has, as a column that Spark computes by itself.

Rules are Java patterns there, and Spark's ``rlike`` is Java's ``find``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakewright.engine.spark.quoting import quoted
from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.bucket_rules.compiled import rule_of
from lakewright.model.bucket_rules.regex_rule import ExactRule
from lakewright.model.bucket_rules.runaway import runs_away
from lakewright.model.schema import DATE, INT, LONG, STRING, DataType, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Plans that hold more conditions, or more paths, cost more than workers that number the rows.
_MOST_CASES = 64
_MOST_PATHS = 1_000
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
    """Return the number of buckets by the path of a partition; None where Spark had better not.

    That is so where the column would be too long, and where a pattern that the table has could
    keep Java busy without end.
    """
    if len(counts.rules.rules) > _MOST_CASES or len(counts.pins) > _MOST_PATHS:
        return None
    pinned: dict[int, list[str]] = {}
    for partition, number in counts.pins.items():
        pinned.setdefault(number, []).append(partition)
    named, cases = len(counts.pins), [(path.isin(paths), n) for n, paths in pinned.items()]
    for rule in counts.rules.rules:
        made = rule_of(rule)
        if isinstance(made, ExactRule):
            named += len(made.paths)
            cases.append((path.isin(sorted(made.paths)), rule.buckets))
        elif runs_away(made.pattern()) is not None:
            return None
        else:
            cases.append((path.rlike(made.pattern()), rule.buckets))
    if len(cases) > _MOST_CASES or named > _MOST_PATHS:
        return None
    return _first_of(cases, counts.rules.default)


def _first_of(cases: "Sequence[tuple[Column, int]]", default: int) -> "Column":
    made = F.lit(default)
    for condition, number in reversed(cases):
        made = F.when(condition, F.lit(number)).otherwise(made)
    return made
