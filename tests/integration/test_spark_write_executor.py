"""The Spark executor: small work on the driver, large work in tasks, rows divided by group."""

import datetime as dt
import decimal
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from pyspark import cloudpickle

from lakewright.actions.executor import Spread
from lakewright.engine.spark.carrying import pack_items
from lakewright.engine.spark.executor import SparkExecutor
from lakewright.engine.spark.murmur import hash_int, slots
from lakewright.engine.spark.routing import bucket_column
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.errors import Invalid
from support import spark_tasks

pytestmark = pytest.mark.spark
FOUR = BucketCounts.plain(4)
TASKS = {"lakewright.write.driver-work": "0"}


@pytest.fixture(scope="module", autouse=True)
def _by_value() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(spark_tasks)
    yield
    cloudpickle.unregister_pickle_by_value(spark_tasks)


def sized(_: Any) -> int:
    return 1 << 20


def test_little_work_stays_in_this_process(spark: Any) -> None:
    found = list(SparkExecutor(spark).map(spark_tasks.describe, "s", ["a", "b"], size=sized))
    assert {made[3] for made in found} == {os.getpid()}
    assert sorted(made[1] for made in found) == ["a", "b"]
    assert len({made[2].token for made in found}) == 2


@pytest.mark.parametrize("carried", [True, False])
def test_large_work_goes_to_workers(spark: Any, carried: bool) -> None:
    rows = 10 if carried else 700_000
    values = np.random.default_rng(1).integers(0, 1 << 60, rows)
    whole = pa.table({"n": values, "t": pa.array([f"t{v}" for v in values[:10]] * (rows // 10))})
    items = [whole.slice(number * rows // 8, rows // 8) for number in range(8)]
    assert (len(pack_items(items)) < 4 << 20) is carried
    found = list(SparkExecutor(spark, TASKS).map(spark_tasks.describe, "s", items, size=sized))
    assert os.getpid() not in {made[3] for made in found}
    assert len({made[3] for made in found}) == 2
    assert sorted(made[2].task for made in found) == list(range(8))
    for made in found:
        assert made[1].equals(items[made[2].task])


def test_tasks_are_told_of_while_they_run(spark: Any) -> None:
    told: list[tuple[int, int]] = []
    items = list(range(8))
    # Eight tasks of a second, two at a time.
    options = {**TASKS, "lakewright.spark.task-bytes": str(1 << 20)}
    executor = SparkExecutor(spark, options, lambda done, known: told.append((done, known)))
    made = executor.map(spark_tasks.take_time, 1.0, items, size=sized)
    assert sorted(made) == items
    assert (0, 8) in told
    assert {done for done, _ in told} & set(range(1, 8))
    assert {known for _, known in told} == {8}
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_arrays_travel_cut(spark: Any) -> None:
    whole = pa.array([f"key {n}" for n in range(100_000)])
    items = [(whole.slice(5, 2), pa.chunked_array([whole.slice(1, 1)]), None)]
    assert len(pack_items(items)) < 4_000
    (made,) = SparkExecutor(spark, TASKS).map(spark_tasks.describe, "s", items, size=sized)
    assert made[1][0].equals(items[0][0])
    assert made[1][1].equals(items[0][1])


@pytest.mark.parametrize("options", [{}, TASKS])
def test_errors_are_what_they_were(spark: Any, options: dict[str, str]) -> None:
    with pytest.raises(Invalid, match=r"item 3 is odd\. Give another\.") as caught:
        list(SparkExecutor(spark, options).map(spark_tasks.refuse, "s", range(8), size=sized))
    assert caught.value.facts == {"item": 3}
    with pytest.raises(Invalid, match="rows are too many") as caught:
        frame = spark.range(0, 10, 1, 1)
        list(SparkExecutor(spark).stream(spark_tasks.refuse_rows, "too many", frame, Spread()))
    assert caught.value.facts == {"rows": 10}


def test_buckets_by_spark_equal_ours(spark: Any) -> None:
    random = np.random.default_rng(7)
    odd = ["", "a", "ä", "€", "😀", "a😀b", "\x00", "x,y", "x:y", "k:x,y:z", "Aa", "BB", "\ud7ff"]
    drawn = [
        "".join(chr(c) for c in random.integers(0x20, 0x2FFFF, 12) if not 0xD800 <= c < 0xE000)
        for _ in range(500)
    ]
    keys = odd + drawn + [str(n) for n in random.integers(-(1 << 62), 1 << 62, 200)]
    frame = spark.createDataFrame([(k,) for k in keys], "key string")
    for count in (1, 3, 4, 256):
        found = [row[0] for row in frame.select(bucket_column("key", count)).collect()]
        assert found == bucket_of(pa.array(keys), ("key",), count).tolist()
    numbers = random.integers(-(1 << 62), 1 << 62, 200).tolist()
    frame = spark.createDataFrame([(n,) for n in numbers], "key bigint")
    found = [row[0] for row in frame.select(bucket_column("key", 7)).collect()]
    assert found == bucket_of(pa.array([str(n) for n in numbers]), ("key",), 7).tolist()


def test_the_hash_of_spark(spark: Any) -> None:
    values = [0, 1, -1, 42, 2**31 - 1, -(2**31)]
    frame = spark.createDataFrame([(v,) for v in values], "v int")
    assert [row[0] for row in frame.selectExpr("hash(v)").collect()] == [
        hash_int(v) for v in values
    ]
    frame = spark.createDataFrame([(v,) for v in slots(7)], "v int").repartition(7, "v")
    placed = frame.selectExpr("spark_partition_id()", "v").collect()
    assert sorted((row[0], row[1]) for row in placed) == list(enumerate(slots(7)))


SPREADS = {
    "native": Spread(("day",), FOUR, ("key",), key_fields=("key",), route=spark_tasks.by_bucket),
    "python": Spread(("day",), FOUR, ("key",), route=spark_tasks.by_bucket),
    "bucket alone": Spread((), FOUR, ("key",), key_fields=("key",), route=spark_tasks.by_bucket),
    "partitions": Spread(("day",), route=spark_tasks.by_bucket),
}


@pytest.mark.parametrize("name", SPREADS)
def test_rows_of_a_group_meet(spark: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's adaptive execution is on and would like to join these small partitions."""
    monkeypatch.setattr("lakewright.engine.spark.executor._SMALLEST_TASK", 1)
    spread = SPREADS[name]
    skewed = (
        "case when id % 10 < 7 then 'd0' when id % 10 = 7 then '' "
        "when id % 10 < 9 then concat('d', id % 7) end"
    )
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    frame = spark.range(0, 20_000, 1, 3).selectExpr(
        "concat('k', id) as key", f"{skewed} as day", "id"
    )
    found = list(SparkExecutor(spark).stream(spark_tasks.census, ("day", "key"), frame, spread))
    assert sum(count for _, _, count in found) == 20_000
    homes: dict[Any, set[int]] = {}
    for task, (day, key), _ in found:
        bucket = 0 if spread.buckets is None else int(bucket_of(pa.array([key]), ("key",), 4)[0])
        group = (bucket,) if not spread.columns else (day or "", bucket)
        homes.setdefault(group, set()).add(task)
    assert {len(tasks) for tasks in homes.values()} == {1}
    assert len({task for task, _, _ in found}) > 1


def test_a_key_with_its_own_field_in_it(spark: Any) -> None:
    """Hudi hashes a part of such a key; the workers compute that instead of Spark."""
    keys = [f"k{n}" for n in range(50)] + ["key:1,b:2", "a,key:7"]
    frame = spark.createDataFrame([(k, "d") for k in keys], "key string, day string")
    executor = SparkExecutor(spark)
    found = list(executor.stream(spark_tasks.census, ("key",), frame, SPREADS["native"]))
    homes: dict[int, set[int]] = {}
    for task, (key,), _ in found:
        homes.setdefault(int(bucket_of(pa.array([key]), ("key",), 4)[0]), set()).add(task)
    assert len(found) == 52
    assert {len(tasks) for tasks in homes.values()} == {1}


def test_sorted_rows(spark: Any) -> None:
    frame = spark.range(0, 5_000, 1, 4).selectExpr("(id * 7919) % 5000 as n")
    for spread in (Spread(sort_by=("n",), sort_all=True), Spread(sort_by=("n",), together=True)):
        found = list(SparkExecutor(spark).stream(spark_tasks.rows_seen, None, frame, spread))
        parts: dict[int, list[int]] = {}
        for task, rows, _ in found:
            parts.setdefault(task, []).extend(row["n"] for row in rows)
        assert [n for task in sorted(parts) for n in parts[task]] == list(range(5_000))


KINDS = {
    "t": "timestamp'2020-01-02 03:04:05.678901'",
    "n": "timestamp_ntz'1960-01-02 03:04:05.000001'",
    "d": "date'1582-10-15'",
    "m": "cast(12345678901234567890.123456789 as decimal(38,9))",
    "b": "cast('ab' as binary)",
    "y": "cast(7 as tinyint)",
    "l": "array(struct(timestamp'2020-01-02 03:04:05' as at, cast(1.50 as decimal(5,2)) as v))",
    "p": "map('k', array(cast(null as int), 3))",
}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_few_rows_come_exactly(spark: Any, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.range(0, 3, 1, 2).selectExpr(
            *(f"{sql} as {name}" for name, sql in KINDS.items())
        )
        direct = SparkExecutor(spark).few(frame, 1 << 20)
        unsure = frame.mapInArrow(lambda batches: batches, frame.schema)
        counted = SparkExecutor(spark).few(unsure, 1 << 20)
        seen = list(SparkExecutor(spark).stream(spark_tasks.rows_seen, None, frame, Spread()))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert direct is not None
    assert direct.num_rows == 3
    assert counted is not None
    assert counted.to_pylist() == direct.to_pylist()
    assert counted.schema == direct.schema
    assert [row for _, rows, _ in seen for row in rows] == direct.to_pylist()
    assert {schema for _, _, schema in seen} == {str(direct.schema)}
    row = direct.to_pylist()[0]
    offset = dt.timedelta(0) if zone == "UTC" else dt.timedelta(hours=5)
    start = dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC) + offset
    assert row["t"] == start.replace(microsecond=678901)
    assert row["n"] == dt.datetime(1960, 1, 2, 3, 4, 5, 1)
    assert row["d"] == dt.date(1582, 10, 15)
    assert row["m"] == decimal.Decimal("12345678901234567890.123456789")
    assert (row["b"], row["y"]) == (b"ab", 7)
    assert row["l"] == [{"at": start, "v": decimal.Decimal("1.50")}]
    assert row["p"] == [("k", [None, 3])]


def test_many_rows_stay_where_they_are(spark: Any) -> None:
    wide = spark.range(0, 1000, 1, 2)
    executor = SparkExecutor(spark)
    assert executor.few(wide, 1000) is None  # the estimate says so
    exploded = wide.selectExpr("explode(sequence(1, 100)) as n", "repeat('x', 1000) as t")
    assert executor.few(exploded, 1 << 20) is None  # 100 MB, expected as 8 kB
    strings = wide.selectExpr("repeat('x', 100000) as t")
    assert executor.few(strings, 1 << 20) is None  # 100 MB, expected as 28 kB
    rows = spark.createDataFrame([(n, "x" * 1000) for n in range(5000)], "n int, t string")
    assert executor.few(rows, 1 << 20) is None  # an RDD says nothing of its size
    assert executor.few(rows, 0) is None
    found = executor.few(rows, 64 << 20)
    assert found is not None
    assert found.num_rows == 5000
    assert executor.few(rows.where("n < 0"), 64 << 20).num_rows == 0
    assert executor.few(rows.groupBy("t").count(), 64 << 20) is None


def test_a_query_that_fails(spark: Any) -> None:
    frame = spark.range(0, 10).selectExpr("cast(raise_error(concat('not ', id)) as int) as n")
    with pytest.raises(Exception, match=r"not [0-9]"):
        SparkExecutor(spark).few(frame, 1 << 20)
    assert SparkExecutor(spark).few(spark.range(3), 1 << 20) is not None


def test_rows_come_in_order(spark: Any) -> None:
    frame = spark.range(0, 1000, 1, 7)
    found = SparkExecutor(spark).few(frame, 1 << 20)
    assert found is not None
    assert found["id"].to_pylist() == list(range(1000))


def test_a_source_that_varies_is_asked_once(spark: Any) -> None:
    counter = spark.sparkContext.accumulator(0)

    def counted(number: int) -> int:
        counter.add(1)
        return number

    frame = spark.range(0, 50, 1, 2).rdd.map(lambda row: (counted(row[0]),)).toDF("n long")
    found = SparkExecutor(spark).few(frame, 1 << 20)
    assert found is not None
    assert found.num_rows == 50
    assert counter.value == 50


def test_the_driver_collects_no_rows(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    kind = type(spark.range(1))
    collect = vars(kind)["collect"]

    def watched(frame: Any) -> Any:
        rows = collect(frame)
        sizes.append(sum(len(bytes(row[0])) for row in rows))
        return rows

    monkeypatch.setattr(kind, "collect", watched)
    frame = spark.range(0, 100_000, 1, 4).selectExpr("id % 5 as day", "repeat('x', 100) as t")
    found = list(SparkExecutor(spark).stream(spark_tasks.census, ("day",), frame, Spread(("day",))))
    assert sum(made[2] for made in found) == 100_000
    assert len(sizes) == 1
    assert sizes[0] < 2_000
