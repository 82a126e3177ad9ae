"""What Spark's optimizer expects of a DataFrame; nothing is run to find out."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.engine.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Sizes from here on are products of joins, or the default for sources that say nothing.
UNKNOWN = 1 << 50
_SIZE = re.compile(r"sizeInBytes=([0-9.E+]+) ([KMGTPE]i)?B")
_UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NODE = re.compile(r"[\s:+\-]*(\*?)[^A-Za-z]*([A-Za-z]+)")
#: Operators that make no more bytes than their input has; all others may.
_SOBER = frozenset(
    {
        "Aggregate",
        "CollectMetrics",
        "Deduplicate",
        "Distinct",
        "Except",
        "Filter",
        "GlobalLimit",
        "InMemoryRelation",
        "Intersect",
        "Join",
        "LocalLimit",
        "LocalRelation",
        "LogicalRDD",
        "OneRowRelation",
        "Project",
        "Range",
        "Relation",
        "Repartition",
        "RepartitionByExpression",
        "Sample",
        "Sort",
        "Union",
        "Window",
        "WithCTE",
    }
)
#: Operators that hand rows on one by one: a run that is broken off has cost little.
_NARROW = _SOBER - {
    "Aggregate",
    "Deduplicate",
    "Distinct",
    "Except",
    "Intersect",
    "Join",
    "Repartition",
    "RepartitionByExpression",
    "Sort",
    "Window",
    "WithCTE",
}

#: Operators that may leave much less than the optimizer expects.
_SHRINKING = frozenset({"Filter", "GlobalLimit", "LocalLimit", "Sample"})


@dataclass(frozen=True, slots=True)
class Estimate:
    """The size that the optimizer expects, and what kind of plan it is.

    ``sober`` says that no operator multiplies bytes, so that the size is about an upper bound;
    ``narrow`` that nothing has to be computed as a whole before the first row comes out;
    ``shrinks`` that rows may be far fewer than the size says.
    """

    size: int
    sober: bool
    narrow: bool
    shrinks: bool

    @property
    def known(self) -> bool:
        """Whether the size says anything."""
        return self.size < UNKNOWN


def estimate(frame: "DataFrame") -> Estimate:
    """Ask the optimizer for the size of a DataFrame and the operators of its plan."""
    if is_connect(frame.sparkSession):
        text = frame._explain_string(mode="cost")  # type: ignore[operator]
        return _parsed(text.partition("== Physical Plan ==")[0])
    plan = frame._jdf.queryExecution().optimizedPlan()
    size = int(str(plan.stats().sizeInBytes()))
    return _of(size, plan.toString())


def _parsed(text: str) -> Estimate:
    body = text.partition("== Optimized Logical Plan ==")[2].strip()
    found = _SIZE.search(body)
    if found is None:
        return _of(UNKNOWN, body)
    return _of(int(float(found.group(1)) * (1 << _UNITS[found.group(2) or ""])), body)


def _of(size: int, plan: str) -> Estimate:
    names = _operators(plan)
    return Estimate(size, names <= _SOBER, names <= _NARROW, not names.isdisjoint(_SHRINKING))


def _operators(plan: str) -> frozenset[str]:
    """Return the names of a plan's operators; what lies behind a cached one does not count."""
    names = set()
    cached: int | None = None
    for line in plan.splitlines():
        found = _NODE.match(line)
        if found is None:
            continue
        depth = found.start(2)
        if cached is not None and (depth > cached or found.group(1)):
            continue
        cached = depth if found.group(2) == "InMemoryRelation" else None
        names.add(found.group(2))
    return frozenset(names)
