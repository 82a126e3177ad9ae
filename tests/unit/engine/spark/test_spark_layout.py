"""Which files Spark may read by itself, decided without Spark."""

from itertools import pairwise
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.actions.tasks.read import ReadTask
from lakewright.engine.spark.layout import NativeFiles, _native_type
from lakewright.engine.spark.overlay import without_twins
from lakewright.engine.spark.paths import can_be_given, escape_glob, spark_root
from lakewright.engine.spark.shapes import spread_shapes
from lakewright.engine.spark.tasks import bundle_count, dealt, pack_tasks
from lakewright.engine.spark.worker import flags, pack, unpack, words
from lakewright.model.errors import Unsupported
from lakewright.model.files import BaseFile, FileGroupId, FileSlice, PartitionDescriptor
from lakewright.model.schema import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    Fixed,
    List,
    Struct,
    Time,
    Timestamp,
    Unit,
)


def task(name: str, size: int = 1) -> ReadTask:
    base = BaseFile("p", name, name, "0-0-0", "1", size)
    return ReadTask(FileSlice(FileGroupId("p", name), "1", base), PartitionDescriptor("p", {}))


@pytest.mark.parametrize(
    ("held", "wanted", "read"),
    [
        (INT, INT, INT),
        (INT, LONG, INT),
        (INT, DOUBLE, INT),
        (LONG, STRING, LONG),
        (FLOAT, DOUBLE, None),  # goes by way of its text, which Spark's cast does not
        (DOUBLE, STRING, None),
        (LONG, INT, None),
        (Decimal(9, 2), Decimal(12, 2), Decimal(9, 2)),
        (Decimal(9, 2), Decimal(12, 4), None),
        (Timestamp(Unit.MICROS, utc=False), TIMESTAMP, None),
        (Time(Unit.MILLIS), Time(Unit.MILLIS), None),
        (List(Fixed(3)), List(Fixed(3)), None),
        (List(INT, element_nullable=False), List(INT), List(INT)),
        (List(INT), List(LONG), None),
        (Struct((Field("a", INT),)), Struct((Field("a", INT), Field("b", INT))), None),
    ],
)
def test_types_that_spark_reads(held, wanted, read) -> None:
    assert _native_type(held, wanted) == read


@given(some.lists(some.integers(0, 1 << 30), max_size=200), some.integers(1, 20))
def test_bundles_hold_every_task_once_and_are_even(sizes: list[int], count: int) -> None:
    tasks = [task(f"f{i}", size) for i, size in enumerate(sizes)]
    bundles = pack_tasks(tasks, count, lambda t: t.size)
    assert sorted(t.slice.base.name for b in bundles for t in b) == sorted(
        t.slice.base.name for t in tasks
    )
    assert all(bundles) and len(bundles) <= count
    if len(bundles) > 1:
        loads = [sum(max(t.size, 1) for t in b) for b in bundles]
        assert max(loads) - min(loads) <= max(max(s, 1) for s in sizes)


@given(some.lists(some.integers(0, 1 << 30), min_size=1, max_size=200), some.integers(1, 20))
def test_tasks_are_dealt_as_ranges_are_cut(sizes: list[int], count: int) -> None:
    count = min(count, len(sizes))
    bundles = dealt(list(enumerate(sizes)), count, lambda task: task[1])
    assert sorted(task for bundle in bundles for task in bundle) == list(enumerate(sizes))
    starts = [number * len(sizes) // count for number in range(count + 1)]
    assert [len(bundle) for bundle in bundles] == [b - a for a, b in pairwise(starts)]


@given(some.lists(some.integers(1, 400), max_size=5))
def test_schemas_are_found_by_looking_at_few_files(runs: list[int]) -> None:
    """Each run is so many instants under one schema, which is another than the run before's."""
    shapes = [Struct((Field(f"c{n}", INT),)) for n, run in enumerate(runs) for _ in range(run)]
    instants = [f"{at:06d}" for at in range(len(shapes))]
    looked: list[str] = []

    def look(wanted):
        looked.extend(wanted)
        return [shapes[int(instant)] for instant in wanted]

    assert spread_shapes(instants, look) == dict(zip(instants, shapes, strict=True))
    assert len(looked) == len(set(looked)) <= 33 + 12 * max(0, len(runs) - 1)


@pytest.mark.parametrize(
    ("sizes", "width", "count"),
    [
        ([1 << 20] * 3, 8, 1),  # too little for a second worker
        ([64 << 20] * 80, 8, 10),
        ([8 << 20] * 80, 8, 8),
        ([8 << 20] * 3, 8, 3),
        ([0] * 3, 2, 2),
    ],
)
def test_how_many_bundles(sizes: list[int], width: int, count: int) -> None:
    assert bundle_count(sizes, width, {}) == count


@given(some.lists(some.booleans(), max_size=300))
def test_words_hold_each_flag_in_its_bit(marks: list[bool]) -> None:
    held = words(np.array(marks, dtype=bool))
    assert len(held) == -(-len(marks) // 64)
    assert [bool(int(held[i >> 6]) >> (i & 63) & 1) for i in range(len(marks))] == marks
    assert flags(held)[: len(marks)].tolist() == marks
    assert not flags(held)[len(marks) :].any()


def test_base_files_with_one_checksum_are_told_apart_elsewhere() -> None:
    # Two names with the same CRC32.
    assert crc32(b"plumless") == crc32(b"buckeroo")
    tasks = (task("plumless"), task("other"), task("buckeroo"))
    alone, twins = without_twins(NativeFiles(Struct(()), False, tasks))
    assert [t.slice.base.name for t in alone.tasks] == ["other"]
    assert [t.slice.base.name for t in twins] == ["plumless", "buckeroo"]


def test_paths_of_patterns_are_taken_literally() -> None:
    assert escape_glob("/a b/[x]{y}*?\\z%20") == r"/a b/\[x\]\{y\}\*\?\\z%20"


def test_names_of_tables_for_spark() -> None:
    def root(uri: str, **settings: str) -> str:
        storage = SimpleNamespace(locate=lambda path: uri)
        conf = SimpleNamespace(get=lambda key, default: settings.get(key, default))
        return spark_root(storage, SimpleNamespace(conf=conf))

    assert root("/data/a b") == "file:///data/a b"
    assert root("s3://bucket/t") == "s3a://bucket/t"
    assert root("s3://bucket/t", **{"spark.hadoop.fs.s3.impl": "X"}) == "s3://bucket/t"
    assert root("hdfs://host:1/t") == "hdfs://host:1/t"
    with pytest.raises(Unsupported, match="memory://x"):
        root("memory://x")


def test_packing() -> None:
    assert unpack(pack({"a": [1, 2]})) == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("location", "given"),
    [
        ("/a:b/t/x.parquet", True),
        ("/a/t/p=${x}/x.parquet", True),
        ("/a:b/t/p=${x}/x.parquet", False),
        ("/a/t/p=10:00 [x]/x.parquet", False),
        ("hdfs://host:8020/t/p={x}/x.parquet", True),
        ("hdfs://host:8020/a:b/p={x}/x.parquet", False),
    ],
)
def test_a_colon_and_an_escape_do_not_go_into_one_path(location: str, given: bool) -> None:
    assert can_be_given(location) is given
