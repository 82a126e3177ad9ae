"""Spark writes tables whose partitions differ in their number of buckets."""

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.actions.executor import Spread
from lakewright.actions.write.routing import GroupRoute
from lakewright.engine.spark.partition_counts import count_column, path_column
from lakewright.engine.spark.routing import Telling, divided
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.storage.open import open_storage
from lakewright.table.evolution import stored_schema
from lakewright.table.state import TableState, open_state
from support.rescaling import check_law

pytestmark = pytest.mark.spark
RULES = BucketRules(
    (
        BucketRule(r"\A(p=)?d[1-3]\z", 7),
        BucketRule(r"\A(?:p=x\x20y|d12|p\x3dd12)\z", 8),
        BucketRule("__HIVE", 2),
        BucketRule("\\x{e9}|/[a-z]", 9),
        BucketRule("level 1: [10, 20)", 5, "range"),
    ),
    4,
)
PINS = {"p=d0": 3, "d0": 3, "p=it's": 11, "p=a,b;c": 6}
COUNTS = BucketCounts(RULES, PINS, "20260101000000000")
DAYS = [
    None,
    "",
    "d0",
    "d1",
    "d12",
    "D1",
    "é😀",
    "a/b",
    "a,b;c",
    "it's",
    "%",
    "\\d",
    "d3\n",
    "12",
    "x y",
]
DATES = [dt.date(1, 2, 3), None, dt.date(2026, 11, 1)]
MANY = {"lakewright.write.driver-bytes": "0", "lakewright.write.driver-work": "0"}


def made(path: Path, schema: str, partition_by: list[str], **properties: str) -> TableState:
    given = {key.replace("__", "."): value for key, value in properties.items()}
    lw.create_table(
        path,
        schema=schema,
        key="id",
        partition_by=partition_by,
        buckets=rules_json(RULES),
        properties=given,
    )
    return open_state(open_storage(str(path)))


@pytest.mark.parametrize("hive", [True, False])
@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("p string", [(day,) for day in DAYS]),
        ("p bigint", [(9,), (10,), (19,), (20,), (None,), (-5,)]),
        ("p date", [(day,) for day in DATES]),
        ("p string, n int", [(day, number) for day in DAYS for number in (10, None)]),
    ],
)
def test_paths_and_numbers_are_those_of_the_writers(
    spark: Any, tmp_path: Path, columns: str, values: list[tuple[Any, ...]], hive: bool
) -> None:
    names = [column.split()[0] for column in columns.split(",")]
    flag = {"hoodie__datasource__write__hive_style_partitioning": str(hive).lower()}
    state = made(tmp_path / "t", f"id string, {columns}", names, **flag)
    stored = stored_schema(state)
    assert stored is not None
    frame = spark.createDataFrame([("k", *row) for row in values], f"id string, {columns}")
    maker = KeyMaker.of(state.config, stored)
    paths = maker.partitions(pa.Table.from_batches(frame._collect_as_arrow())).to_pylist()
    path = path_column(frame, names, stored, hive=hive)
    assert path is not None
    number = count_column(path, COUNTS)
    assert number is not None
    found = [tuple(row) for row in frame.select(path, number).collect()]
    assert found == list(zip(paths, COUNTS.numbers_of(paths), strict=True))


def test_what_spark_cannot_tell(spark: Any) -> None:
    frame = spark.createDataFrame([(True, 1.0, "a")], "b boolean, x double, p string")
    for names in (("b",), ("x",), ("p", "x"), ("absent",)):
        assert path_column(frame, names, None, hive=True) is None
    path = path_column(frame, ("p",), None, hive=True)
    assert path is not None
    many = BucketRules(tuple(BucketRule(f"p={n}$", 2) for n in range(65)), 4)
    assert count_column(path, BucketCounts(many, {}, "1")) is None
    paths = [f"p={n}" for n in range(1_001)]
    assert count_column(path, BucketCounts(RULES, dict.fromkeys(paths, 2), "1")) is None
    exact = BucketRules((BucketRule(rf"\A(?:{'|'.join(paths)})\z", 2),), 4)
    assert count_column(path, BucketCounts(exact, {}, "1")) is None
    away = BucketRules((BucketRule("(a|a)*b", 2),), 4)
    assert count_column(path, BucketCounts(away, {}, "1")) is None


@pytest.mark.parametrize("native", [True, False])
def test_rows_of_a_group_meet(spark: Any, tmp_path: Path, native: bool) -> None:
    state = made(tmp_path / "t", "id string, p string", ["p"])
    stored = stored_schema(state)
    assert stored is not None
    maker = KeyMaker.of(state.config, stored)
    route = GroupRoute(maker, COUNTS, ("id",))
    spread = Spread(("p",), COUNTS, ("id",), key_fields=("id",), route=route)
    rows = [(f"k{n}", DAYS[n % len(DAYS)]) for n in range(4_000)]
    frame = spark.createDataFrame(rows, "id string, p string")
    telling = Telling(schema=stored, plain_paths=native)
    shuffled = divided(frame, spread, 5, telling)
    assert ("MapInArrow" in shuffled._jdf.queryExecution().toString()) is not native
    found = [tuple(row) for row in shuffled.selectExpr("id", "p", "spark_partition_id()").collect()]
    assert Counter(row[:2] for row in found) == Counter(rows)
    homes: dict[tuple[str, int], set[int]] = {}
    batch = pa.table({"id": [row[0] for row in found], "p": [row[1] for row in found]})
    for (key, _, task), path in zip(found, maker.partitions(batch).to_pylist(), strict=True):
        bucket = int(bucket_of(pa.array([key]), ("id",), COUNTS.number_of(path))[0])
        homes.setdefault((path, bucket), set()).add(task)
    assert {len(tasks) for tasks in homes.values()} == {1}
    assert {task for *_, task in found} == set(range(5))


@pytest.mark.parametrize("url_encode", [False, True])
def test_every_verb_puts_rows_into_their_buckets(
    spark: Any, tmp_path: Path, url_encode: bool
) -> None:
    """With escaped paths workers find the numbers, else Spark itself does."""
    flag = {"hoodie__datasource__write__partitionpath__urlencode": str(url_encode).lower()}
    state = made(tmp_path / "t", "id string, p string, n bigint", ["p"], **flag)
    table = lw.open_table(tmp_path / "t")
    days = ["d0", "d1", "d12", "12", "é", "x", None]

    def frame(numbers: range, add: int) -> Any:
        rows = [(f"k{n}", days[n % 7], n + add) for n in numbers]
        return spark.createDataFrame(rows, "id string, p string, n bigint")

    table.upsert(frame(range(3_000), 0), options=MANY)
    table.buckets.set(rules_json(BucketRules((BucketRule("d1", 3),), 6)))
    table.upsert(frame(range(1_000, 4_000), 10_000), options=MANY)
    table.delete(frame(range(500), 0), options=MANY)
    table.update({"n": "-1"}, where="n < 700", options=MANY)
    table.merge(
        frame(range(3_900, 4_100), 0).where("p IS NOT NULL"),
        on="t.id = s.id AND t.p = s.p",
        when_matched="update",
        when_not_matched="insert",
        options=MANY,
    )
    found = table.scan().to_arrow().to_pylist()
    expected = {f"k{n}": n if n < 1_000 else n + 10_000 for n in range(500, 4_000)}
    expected |= {f"k{n}": -1 for n in range(500, 700)}
    expected |= {f"k{n}": n for n in range(3_900, 4_100) if days[n % 7] is not None}
    assert Counter((row["id"], row["n"]) for row in found) == Counter(expected.items())
    numbers = check_law(state.storage)
    kept = {"p=d0": 4, "p=d1": 7, "p=d12": 8, "p=12": 5, "p=é": 9, "p=x": 4}
    assert numbers == {**kept, "p=__HIVE_DEFAULT_PARTITION__": 2}


def test_the_data_source_puts_rows_into_their_buckets(spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")
    state = made(tmp_path / "t", "id string, p string, n bigint", ["p"])
    days = ["d0", "d1", "12", "é"]
    for first, last, operation in ((0, 60, "insert"), (30, 90, "upsert")):
        rows = [(f"k{n}", days[n % 4], first) for n in range(first, last)]
        frame = spark.createDataFrame(rows, "id string, p string, n bigint")
        writer = frame.write.format("lakewright").mode("append").option("operation", operation)
        writer.save(str(tmp_path / "t"))
    found = lw.open_table(tmp_path / "t").scan().to_arrow().to_pylist()
    assert {row["id"]: row["n"] for row in found} == {f"k{n}": 30 * (n >= 30) for n in range(90)}
    assert len(found) == 90
    assert check_law(state.storage) == {"p=d0": 4, "p=d1": 7, "p=12": 5, "p=é": 9}
