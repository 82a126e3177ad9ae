"""Keys that insert() stored more than once: a change of the key takes all their rows."""

from itertools import count
from typing import Any

import pytest

import lakewright as lw

NUMBERS = count()
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def new_table(kind: str, **given: Any) -> lw.Table:
    path = f"memory://repeated-keys-{next(NUMBERS)}/t"
    table = lw.create_table(path, schema="k string, n int", key="k", type=kind, **given)
    table.insert([{"k": key, "n": n} for n, key in enumerate("aabca")])
    return table


def rows_in(table: lw.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@KINDS
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_all_rows_of_a_key_give_way(kind: str, index: str, version: int) -> None:
    for act in (lambda t: t.delete(["a"]), lambda t: t.delete(where="n = 1")):
        table = new_table(kind, index=index, version=version)
        act(table)
        assert rows_in(table) == [("b", 2), ("c", 3)]
    table = new_table(kind, index=index, version=version)
    table.upsert([{"k": "a", "n": 9}])
    assert rows_in(table) == [("a", 9), ("b", 2), ("c", 3)]
    assert table.fsck().ok


@KINDS
def test_rows_of_a_key_that_were_added_one_by_one_give_way(kind: str) -> None:
    table = new_table(kind)
    table.insert([{"k": "b", "n": 7}])
    table.delete(["a", "b"])
    assert rows_in(table) == [("c", 3)]


def test_a_delete_that_would_leave_rows_is_refused_till_the_logs_are_merged() -> None:
    table = new_table("MERGE_ON_READ")
    table.delete(["c"])
    with pytest.raises(lw.Unsupported, match=r"several rows of a key.*compact"):
        table.delete(["a", "b"])
    assert len(rows_in(table)) == 4
    table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
    table.delete(["a", "b"])
    assert rows_in(table) == []


def test_a_key_is_not_gone_while_one_of_its_rows_is_there() -> None:
    """Another writer's delete takes the first row, by key or by its place."""
    table = new_table("MERGE_ON_READ")
    table.upsert([{"k": "c", "n": 4}])
    table.upsert([{"k": "a", "n": 9}], options={"hoodie.write.record.positions": "false"})
    before = rows_in(table)
    assert table.insert([{"k": "a", "n": 5}], dedupe=True).instant is None
    assert rows_in(table) == before
