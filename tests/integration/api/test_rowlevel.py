"""Update, merge and delete by condition on real tables, on the local engine."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.model.errors import (
    Conflict,
    Invalid,
    LakewrightError,
    UnknownColumn,
    Unsupported,
)
from lakewright.model.writing import Operation

SCHEMA = "id string, n int, p string, ts bigint"
SHAPES: list[dict[str, Any]] = [
    {"type": "COPY_ON_WRITE"},
    {"type": "MERGE_ON_READ"},
    {"type": "COPY_ON_WRITE", "buckets": 2},
    {"type": "MERGE_ON_READ", "buckets": 2},
    {"type": "MERGE_ON_READ", "version": 6},
    {"type": "COPY_ON_WRITE", "index": "GLOBAL_SIMPLE"},
]


def _table(path: Path, shape: dict[str, Any]) -> lw.Table:
    table = lw.create_table(
        path / "t", schema=SCHEMA, key="id", partition_by="p", order_by="ts", **shape
    )
    table.insert(_rows(("a", 1, "x", 1), ("b", 2, "x", 1), ("c", 3, "y", 1), ("d", 4, "z", 1)))
    return table


def _rows(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(("id", "n", "p", "ts"), row, strict=True)) for row in rows]


def _found(table: lw.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_history_of_changes(tmp_path: Path, shape: dict[str, Any]) -> None:
    table = _table(tmp_path, shape)
    table.update({"n": "n + 10"}, where="t.p = 'x'")
    table.update({"p": lw.lit("w"), "ts": lw.col("ts") + 1}, where=lw.col("id") == "b")
    merged = table.merge(
        _rows(("a", 100, "x", 5), ("c", 0, "y", 5), ("n", 7, "x", 5), ("m", 8, "q", 5)),
        on="t.id = s.id",
        when_matched=[{"delete": True, "where": "s.n = 0"}, "update"],
        when_not_matched={"insert": "*", "where": "s.id <> 'm'"},
        when_not_matched_by_source=[{"ignore": True, "where": "p = 'z'"}, {"set": {"n": "-1"}}],
    )
    assert merged.operation is Operation.UPSERT
    assert _found(table) == [
        ("a", 100, "x", 5),
        ("b", -1, "w", 2),
        ("d", 4, "z", 1),
        ("n", 7, "x", 5),
    ]
    instants = len(table.timeline.completed())
    assert table.delete(where="p IN ('z', 'nowhere')").operation is Operation.DELETE_PARTITION
    assert table.delete(where="n < 0 OR id = 'n'").deleted == 2
    assert _found(table) == [("a", 100, "x", 5)]
    assert len(table.timeline.completed()) == instants + 2
    assert table.update({"n": "1"}, where="id = 'nobody'").instant is None
    assert len(table.timeline.completed()) == instants + 2
    assert table.fsck(deep=True).ok


def test_a_late_row_of_a_merge_loses_and_a_late_update_is_refused(tmp_path: Path) -> None:
    table = _table(tmp_path, SHAPES[0])
    table.merge(_rows(("a", 100, "x", 0)), "t.id = s.id", when_matched="update")
    assert _found(table)[0] == ("a", 1, "x", 1)
    with pytest.raises(Invalid, match="2 rows would get a lower ts"):
        table.update({"ts": "0"}, where="p = 'x'")


def test_mistakes_begin_nothing(tmp_path: Path) -> None:
    table = _table(tmp_path, SHAPES[0])
    before = sorted(path.name for path in (tmp_path / "t" / ".hoodie").rglob("*"))
    for call in (
        lambda: table.update({"m": "1"}),
        lambda: table.update({"n": "1"}, where="q = 1"),
        lambda: table.update({"id": "'z'"}),
        lambda: table.merge(_rows(("a", 1, "x", 1)), "id = s.id", when_matched="update"),
        lambda: table.merge(_rows(("a", 1, "x", 1)), "t.id = s.id"),
        lambda: table.delete(where="q = 1"),
    ):
        with pytest.raises(LakewrightError):
            call()
    assert sorted(path.name for path in (tmp_path / "t" / ".hoodie").rglob("*")) == before


def test_refused_rows_leave_no_trace(tmp_path: Path) -> None:
    table = _table(tmp_path, SHAPES[3])
    rows = _found(table)
    with pytest.raises(Invalid, match="'a'"):
        table.merge(_rows(("a", 1, "x", 9), ("a", 2, "x", 9)), "t.id = s.id", when_matched="update")
    with pytest.raises(Invalid, match="cannot be stored in column n"):
        table.update({"n": "id"})
    assert _found(table) == rows
    assert not table.timeline.pending()
    assert table.fsck(deep=True).ok


def test_a_change_is_worked_out_on_the_table_that_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else commits after the update looked at the table and before it begins."""
    table = _table(tmp_path, SHAPES[0])
    other = lw.open_table(tmp_path / "t")
    from lakewright.api import rowlevel

    read, times = rowlevel.scan_for_change, []

    def scan(*given: Any) -> Any:
        plan = read(*given)
        if not times:
            times.append(1)
            other.upsert(_rows(("a", 50, "x", 1)))
        return plan

    monkeypatch.setattr(rowlevel, "scan_for_change", scan)
    with pytest.raises(Conflict):
        table.update({"n": "n + 1"}, where="p = 'x'")
    assert _found(table)[0] == ("a", 50, "x", 1)
    times.clear()
    assert table.update({"n": "n + 1"}, where="p = 'x'", retry=1).attempts == 2
    assert _found(table)[:2] == [("a", 51, "x", 1), ("b", 3, "x", 1)]


def test_keys_that_writers_made(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n int", key=None)
    table.insert([{"id": "a", "n": 1}, {"id": "a", "n": 2}])
    table.update({"n": "n * 10"}, where="n = 2")
    assert _found(table) == [("a", 1), ("a", 20)]
    table.delete(where="n = 1")
    assert _found(table) == [("a", 20)]


def test_columns_and_settings_of_a_table_that_exists(tmp_path: Path) -> None:
    table = _table(tmp_path, SHAPES[1])
    added = table.add_columns("note string, at timestamp")
    assert table.timeline.commit_metadata(added).operation == "ALTER_SCHEMA"
    table.widen_column("n", "bigint")
    assert table.schema.field("n").type == pa.int64()
    assert table.schema.names == ["id", "n", "p", "ts", "note", "at"]
    table.upsert([{"id": "e", "n": 2**40, "p": "x", "ts": 1, "note": "new", "at": None}])
    assert _found(table)[0] == ("a", 1, "x", 1, None, None)
    assert _found(table)[-1] == ("e", 2**40, "x", 1, "new", None)
    with pytest.raises(Invalid):
        table.widen_column("n", "int")
    with pytest.raises(UnknownColumn):
        table.widen_column("m", "bigint")
    with pytest.raises(lw.AlreadyExists):
        table.add_columns("NOTE string")
    table.set_properties({"hoodie.parquet.max.file.size": "1000"})
    assert table.definition.properties["hoodie.parquet.max.file.size"] == "1000"
    table.set_properties({"hoodie.parquet.max.file.size": None})
    assert "hoodie.parquet.max.file.size" not in table.definition.properties
    with pytest.raises(lw.InvalidOption):
        table.set_properties({"hoodie.parquet.max.file.size": "many"})
    with pytest.raises(lw.Unsupported):
        table.set_properties({"hoodie.table.recordkey.fields": "n"})
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("limit", ["0", "1000000"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_merge_adds_to_a_table_that_makes_its_keys(tmp_path: Path, kind: str, limit: str) -> None:
    """As in Hudi: any columns may be compared, and what matches nothing gets a new key."""
    table = lw.create_table(
        tmp_path / "t", schema=SCHEMA, key=None, partition_by="p", type=kind, order_by="ts"
    )
    table.insert(_rows(("a", 1, "x", 1), ("a", 2, "x", 1), ("b", 3, "y", 1), ("c", 4, "y", 1)))
    stored = {r["n"]: r["_hoodie_record_key"] for r in table.scan(meta=True).to_arrow().to_pylist()}
    done = table.merge(
        _rows(("a", 10, "x", 5), ("c", 0, "y", 5), ("d", 7, "y", 5), ("d", 7, "z", 5)),
        on="t.id = s.id",
        when_matched=[{"delete": True, "where": "s.n = 0"}, {"set": {"n": "t.n + s.n"}}],
        when_not_matched="insert",
        options={"lakewright.write.driver-bytes": limit},
    )
    assert done.inserted == 2
    assert _found(table) == [
        ("a", 11, "x", 1),
        ("a", 12, "x", 1),
        ("b", 3, "y", 1),
        ("d", 7, "y", 5),
        ("d", 7, "z", 5),
    ]
    rows = table.scan(meta=True).to_arrow().to_pylist()
    keys = {(r["n"], r["p"]): r["_hoodie_record_key"] for r in rows}
    assert len(set(keys.values())) == 5
    assert keys[11, "x"] == stored[1] and keys[12, "x"] == stored[2]
    assert all(r["_hoodie_partition_path"] == f"p={r['p']}" for r in rows)
    new = [key for (n, _), key in keys.items() if n == 7]
    assert done.instant is not None
    assert all(key.startswith(f"{done.instant.requested}_") for key in new)
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_rows_whose_partition_shows_another_value_are_not_put_beside_themselves(
    tmp_path: Path, shape: dict[str, Any]
) -> None:
    table = lw.create_table(
        tmp_path / "t", schema=SCHEMA, key="id", partition_by="p", hive_style=False, **shape
    )
    odd = _rows(("a", 1, "x=y", 1), ("b", 2, "x%2Fy", 1))
    table.insert([*odd, *_rows(("c", 3, "z", 1))])
    shown = [("a", 1, "y", 1), ("b", 2, "x/y", 1)]  # as real Hudi shows them
    assert _found(table)[:2] == shown
    assert table.scan(where="p = 'y'").count() == 1
    for where in ("id = 'a'", "p = 'x/y'", None):
        with pytest.raises(Unsupported, match="another partition"):
            table.update({"n": "n + 10"}, where=where)
    with pytest.raises(Unsupported, match="another partition"):
        table.merge(odd[:1], on="t.id = s.id", when_matched="update")
    # Others of the same table can be changed, and these by their keys, and deleted.
    table.update({"n": "n + 10"}, where="id = 'c'")
    assert _found(table) == [*shown, ("c", 13, "z", 1)]
    table.upsert([{**odd[0], "n": 7}])
    table.delete(where="id = 'b'")
    assert _found(table) == [("a", 7, "y", 1), ("c", 13, "z", 1)]


def test_rows_are_updated_in_a_partition_that_shows_another_value_where_keys_are_found_everywhere(
    tmp_path: Path,
) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema=SCHEMA,
        key="id",
        partition_by="p",
        hive_style=False,
        index="GLOBAL_SIMPLE",
    )
    table.insert(_rows(("a", 1, "x=y", 1)))
    table.update({"n": "n + 10"})
    assert _found(table) == [("a", 11, "y", 1)]


@pytest.mark.parametrize("word", ["OR", "AND"])
def test_a_condition_may_be_a_long_chain(word: str) -> None:
    table = lw.create_table(f"memory://long-chains-{word}/t", schema="k string, n int", key="k")
    table.insert([{"k": "k1", "n": 1}, {"k": "other", "n": 1}])
    test, last = ("=", "k1") if word == "OR" else ("<>", "other")
    where = f" {word} ".join(f"k {test} '{k}'" for k in (*(f"x{n}" for n in range(900)), last))
    assert table.update({"n": "2"}, where=where).updated == 1
    assert table.delete(where=where).deleted == 1
    assert table.scan(columns=["k"]).to_arrow().to_pylist() == [{"k": "other"}]
