"""Tables written from DataFrames, by the driver, by tasks, by a shuffle: the same rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.actions.executor import Spread
from lakewright.engine.spark import executor
from lakewright.engine.spark.routing import divided
from lakewright.model.errors import Invalid

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    {"key": pa.string(), "day": pa.string(), "n": pa.int64(), "ts": pa.int64(), "said": pa.string()}
)
DDL = "key string, day string, n bigint, ts bigint, said string"
#: The driver's threads, packed tasks with the rows in them, a shuffle.
WAYS: dict[str, dict[str, str]] = {
    "driver": {},
    "tasks": {"lakewright.write.driver-work": "0"},
    "shuffle": {"lakewright.write.driver-bytes": "0"},
}
LAYOUTS: dict[str, dict[str, Any]] = {
    "bucket-cow": {"type": "COPY_ON_WRITE", "buckets": 3, "partition_by": ["day"]},
    "bucket-mor": {"type": "MERGE_ON_READ", "buckets": 3, "partition_by": ["day"]},
    "lookup-cow": {"type": "COPY_ON_WRITE", "partition_by": ["day"]},
    "lookup-mor-flat": {"type": "MERGE_ON_READ"},
    # Unique over all partitions, of which there is one: found by a join, in many tasks.
    "global-cow-flat": {
        "type": "COPY_ON_WRITE",
        "properties": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    },
}


def rows(start: int, end: int, said: str, ts: int) -> dict[str, tuple[Any, ...]]:
    return {f"k{n}": (f"k{n}", f"d{n % 3}", n, ts, said) for n in range(start, end)}


def stored(table: lw.Table) -> dict[str, tuple[Any, ...]]:
    found = table.scan().to_arrow().to_pylist()
    held = {row["key"]: tuple(row[name] for name in SCHEMA.names) for row in found}
    assert len(held) == len(found), "a key is stored twice"
    return held


@pytest.mark.parametrize(
    ("layout", "way"),
    [
        (layout, way)
        for layout in LAYOUTS
        for way in WAYS
        if (way != "tasks" or layout.startswith("bucket"))
        and (way == "shuffle" or not layout.startswith("global"))
    ],
)
def test_a_history(
    spark: Any, tmp_path: Path, layout: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = WAYS[way]
    spreads: list[Spread] = []

    def recorded(frame: Any, spread: Spread, *rest: Any) -> Any:
        spreads.append(spread)
        return divided(frame, spread, *rest)

    monkeypatch.setattr(executor, "divided", recorded)
    table = lw.create_table(
        tmp_path / "t", schema=SCHEMA, key="key", order_by="ts", **LAYOUTS[layout]
    )
    model = rows(0, 300, "first", 5)

    def frame(of: dict[str, tuple[Any, ...]]) -> Any:
        return spark.createDataFrame(list(of.values()), DDL)

    done = table.bulk_insert(frame(model), options=options)
    assert done.inserted == 300
    assert stored(table) == model
    changed = rows(200, 400, "second", 6)
    late = rows(0, 20, "late", 1)
    twice = {f"twice-{key}": value for key, value in rows(390, 400, "loser", 5).items()}
    done = table.upsert(frame({**twice, **changed, **late}), options=options)
    model.update(changed)
    assert stored(table) == model
    assert done.inserted + done.updated in (200, 220)
    if done.exact:
        assert done.inserted == 100
    gone = [f"k{n}" for n in range(100, 150)]
    keys = spark.createDataFrame([model[key][:2] for key in gone], "key string, day string")
    done = table.delete(keys, options=options)
    assert done.deleted == 50
    for key in gone:
        del model[key]
    assert stored(table) == model
    again = rows(100, 110, "again", 9)
    table.upsert(frame(again), options=options)
    model.update(again)
    assert stored(table) == model
    with pytest.raises(Invalid, match="null or empty") as caught:
        bad = {"x": (None, "d0", 1, 1, "x"), "y": ("", "d0", 1, 1, "x")}
        table.upsert(frame(bad), options=options)
    assert caught.value.facts["count"] in (1, 2)
    assert stored(table) == model
    assert table.fsck(deep=True).ok
    assert not any(spread.together for spread in spreads)


def test_new_keys_fill_small_files(spark: Any, tmp_path: Path) -> None:
    """Routed by a join: new keys go to the one small file, and never twice into new ones."""
    table = lw.create_table(tmp_path / "t", schema=SCHEMA, key="key", partition_by=["day"])
    shuffle = WAYS["shuffle"]
    persisted = set(spark.sparkContext._jsc.getPersistentRDDs())
    for start in (0, 90, 180):
        frame = spark.createDataFrame(list(rows(start, start + 120, "x", 1).values()), DDL)
        table.upsert(frame, options=shuffle)
    files = [piece for part in table.get_latest_snapshot() for piece in part.file_slices]
    assert len(files) == 3
    assert len(stored(table)) == 300
    limits = {"hoodie.parquet.max.file.size": "20000", "hoodie.parquet.small.file.limit": "0"}
    wide = spark.range(1000, 4000).selectExpr(
        "concat('k', id) key", "'d0' day", "id n", "1L ts", "repeat(uuid(), 2) said"
    )
    table.upsert(wide, options={**shuffle, **limits})
    parts = {part.descriptor.path: part for part in table.get_latest_snapshot()}
    assert len(parts["day=d0"].file_slices) > 5
    assert len(stored(table)) == 3300
    before = spark.conf.get("spark.sql.session.timeZone")
    table.insert(spark.createDataFrame(list(rows(0, 310, "y", 2).values()), DDL), dedupe=True)
    assert len(stored(table)) == 3310
    assert spark.conf.get("spark.sql.session.timeZone") == before
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= persisted


@pytest.mark.parametrize("sort", ["PARTITION_SORT", "GLOBAL_SORT"])
def test_sorted_bulk_inserts(spark: Any, tmp_path: Path, sort: str) -> None:
    table = lw.create_table(tmp_path / "t", schema=SCHEMA, key="key", partition_by=["day"])
    frame = spark.range(0, 3000, 1, 3).selectExpr(
        "concat('k', (id * 7919) % 3000) key",
        "concat('d', id % 2) day",
        "id n",
        "1L ts",
        "'x' said",
    )
    table.bulk_insert(frame, sort_mode=sort, options=WAYS["shuffle"])
    assert len(stored(table)) == 3000
    for part in table.get_latest_snapshot():
        for piece in part.file_slices:
            assert piece.base is not None
            keys = pa.parquet.read_table(tmp_path / "t" / piece.base.path)["key"].to_pylist()
            assert keys == sorted(keys)


def test_overwriting_and_composite_keys(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema=SCHEMA, key=["key", "n"], partition_by=["day"], buckets=2
    )
    frame = spark.createDataFrame(list(rows(0, 60, "x", 1).values()), DDL)
    table.bulk_insert(frame, options=WAYS["shuffle"])
    assert len(stored(table)) == 60
    other = spark.createDataFrame([("a", "d1", 1, 1, "o"), ("b", None, 2, 2, "o")], DDL)
    table.insert_overwrite(other, options=WAYS["shuffle"])
    assert len(stored(table)) == 42
    table.insert_overwrite_table(other, options=WAYS["shuffle"])
    assert set(stored(table)) == {"a", "b"}


def test_one_path_from_two_pairs_of_values(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket of a partition is one file group, in whichever way its path was made."""
    monkeypatch.setattr("lakewright.engine.spark.executor._SMALLEST_TASK", 1)
    table = lw.create_table(
        tmp_path / "t",
        schema=pa.schema({"key": pa.string(), "a": pa.string(), "b": pa.string()}),
        key="key",
        partition_by=["a", "b"],
        buckets=1,
        hive_style=False,
    )
    pairs = [("x/y", "z"), ("x", "y/z"), ("p", None), ("p", ""), ("p", "q")]
    rows = [(f"k{n}", *pair) for pair in pairs for n in range(3)]
    table.upsert(
        spark.createDataFrame(rows, "key string, a string, b string"), options=WAYS["shuffle"]
    )
    parts = {part.descriptor.path: part.file_slices for part in table.get_latest_snapshot()}
    assert {path: len(slices) for path, slices in parts.items()} == {
        "x/y/z": 1,
        "p/__HIVE_DEFAULT_PARTITION__": 1,
        "p/q": 1,
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_refused_keys_leave_no_trace(spark: Any, tmp_path: Path, layout: str) -> None:
    """They are found by tasks, when others have written files."""
    table = lw.create_table(
        tmp_path / "t", schema=SCHEMA, key="key", order_by="ts", **LAYOUTS[layout]
    )
    table.upsert(spark.createDataFrame(list(rows(0, 50, "first", 1).values()), DDL))
    before = files(tmp_path)
    bad = [*rows(0, 300, "second", 2).values(), (None, "d0", 1, 1, "x")]
    with pytest.raises(Invalid, match="null or empty"):
        table.upsert(spark.createDataFrame(bad, DDL).repartition(4), options=WAYS["shuffle"])
    assert files(tmp_path) == before


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("way", WAYS)
def test_changes_are_kept_by_tasks(spark: Any, tmp_path: Path, way: str) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema=SCHEMA,
        key="key",
        order_by="ts",
        properties={"hoodie.table.cdc.enabled": "true"},
        **LAYOUTS["bucket-cow"],
    )
    old, new = rows(0, 60, "first", 5), rows(40, 80, "second", 6)
    for part in (old, new):
        frame = spark.createDataFrame(list(part.values()), DDL)
        done = table.upsert(frame, options=WAYS[way]).instant
        assert done is not None
    first = table.timeline.data()[0]
    changes = table.changes(first.completed).to_arrow().to_pylist()
    assert {change["ts_ms"] for change in changes} == {done.requested}
    told = {
        (change["after"] or change["before"])["key"]: (
            change["op"],
            *(side and tuple(side.values()) for side in (change["before"], change["after"])),
        )
        for change in changes
    }
    assert len(told) == len(changes)
    assert told == {
        key: ("u" if key in old else "i", old.get(key), row) for key, row in new.items()
    }
    assert [*(tmp_path / "t").rglob(".*.cdc")]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("way", ["driver", "shuffle"])
def test_a_merge_into_a_table_that_makes_its_keys(
    spark: Any, tmp_path: Path, kind: str, way: str
) -> None:
    """Matched rows keep the keys that were made for them; rows that are added get new ones."""
    table = lw.create_table(
        tmp_path / "t", schema=SCHEMA, key=None, partition_by="day", order_by="ts", type=kind
    )
    table.insert(spark.createDataFrame(list(rows(0, 60, "first", 5).values()), DDL))
    before = {row["key"]: row["_hoodie_record_key"] for row in _with_meta(table)}
    source = {**rows(40, 50, "second", 6), **rows(50, 55, "gone", 6), **rows(60, 90, "new", 6)}
    done = table.merge(
        spark.createDataFrame(list(source.values()), DDL).repartition(3),
        on="t.key = s.key",
        when_matched=[
            {"delete": True, "where": "s.said = 'gone'"},
            {"set": {"said": "s.said", "ts": "s.ts"}},
        ],
        when_not_matched="insert",
        options=WAYS[way],
    )
    model = {**rows(0, 60, "first", 5), **source}
    model = {key: row for key, row in model.items() if row[-1] != "gone"}
    assert stored(table) == model
    assert done.inserted == 30
    after = {row["key"]: row["_hoodie_record_key"] for row in _with_meta(table)}
    assert len(set(after.values())) == len(model)
    assert {key: made for key, made in after.items() if key in before} == {
        key: made for key, made in before.items() if key in model
    }
    assert table.fsck(deep=True).ok


def _with_meta(table: lw.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(meta=True).to_arrow().to_pylist()
    return found
