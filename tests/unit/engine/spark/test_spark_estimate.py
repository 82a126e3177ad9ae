"""Reading the optimizer's estimate off a plan."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.engine.spark.estimate import UNKNOWN, _of, _parsed

SCAN = """Project [key#0, day#1]
+- Filter (isnotnull(day#1) AND (day#1 = d1))
   +- Relation [key#0,day#1] parquet
"""
CACHED = """Filter (n#1L > 3)
+- InMemoryRelation [n#1L], StorageLevel(disk, memory, deserialized, 1 replicas)
      +- *(1) Project [id#0L AS n#1L]
         +- MapInArrow id(id#0L)#2, [n#1L], false
"""


@pytest.mark.parametrize(
    ("plan", "sober", "narrow"),
    [
        (SCAN, True, True),
        (CACHED, True, True),
        (
            "Sort [id#0L ASC NULLS FIRST], true\n+- Range (0, 10, step=1, splits=Some(2))",
            True,
            False,
        ),
        ("Generate explode(x#1), false, [n#2]\n+- LocalRelation [x#1]", False, False),
        ("MapInArrow f(id#0L)#2, [n#1L], false\n+- Range (0, 10, step=1)", False, False),
        ("LogicalRDD [n#1], false", True, True),
        ("Union false, false\n:- Range (0, 1, step=1)\n+- Range (0, 2, step=1)", True, True),
        ("Join Inner, (a#0 = b#1)\n:- Relation [a#0] csv\n+- Relation [b#1] csv", True, False),
        ("SomethingNew [x#1]\n+- Range (0, 1)", False, False),
    ],
)
def test_what_a_plan_is_made_of(plan: str, sober: bool, narrow: bool) -> None:
    found = _of(10, plan)
    assert (found.sober, found.narrow) == (sober, narrow)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("sizeInBytes=80.0 B", 80),
        ("sizeInBytes=12.5 KiB, rowCount=3", 12800),
        ("sizeInBytes=8.0 EiB", 8 << 60),
        ("sizeInBytes=7.2E+20 B", 720_000_000_000_000_000_000),
        ("nothing", UNKNOWN),
    ],
)
def test_sizes_in_an_explanation(text: str, size: int) -> None:
    plan = f"== Optimized Logical Plan ==\nRange (0, 10), Statistics({text})\n\n"
    assert _parsed(plan).size == size
    assert _parsed(plan).known == (size < UNKNOWN)
