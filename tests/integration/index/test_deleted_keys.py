"""Keys that logs deleted: no longer there, and looked up without a look at what logs hold."""

import datetime as dt
import time
from collections.abc import Mapping
from itertools import count, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.index import late_logs
from lakewright.index.key_lookup import LOGGED, find_keys, stored_keys
from lakewright.index.layout import IndexLayout
from lakewright.index.record_index import RecordIndex, Tagged
from lakewright.storage.open import open_storage
from lakewright.table.pinned import PinnedTable
from lakewright.table.reader import logs as reader_logs
from lakewright.table.state import open_state
from support.pairwise import thinned

NUMBERS = count()
SCHEMA = "k string, p string, ts bigint, op string, _hoodie_is_deleted boolean"
MARKER = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
#: How a key goes: by name, by Hudi's column, by the table's own mark.
FORMS = ("named", "column", "marker")


def new_table(index: str, **given: Any) -> lw.Table:
    given = {"schema": SCHEMA, "properties": MARKER, "version": 9, **given}
    return lw.create_table(
        f"memory://deleted-keys-{next(NUMBERS)}/t",
        key="k",
        partition_by="p",
        type="MERGE_ON_READ",
        index=index,
        **given,
    )


def row(key: str, ts: int, partition: str = "1", **more: object) -> dict[str, object]:
    return {"k": key, "p": partition, "ts": ts, "op": "I", "_hoodie_is_deleted": False, **more}


def delete(table: lw.Table, form: str, ts: int, partition: str = "1") -> None:
    if form == "named":
        table.delete(["a"])
    elif form == "column":
        table.upsert([row("a", ts, partition, _hoodie_is_deleted=True)])
    else:
        table.upsert([row("a", ts, partition, op="D")])


def rows_in(table: lw.Table) -> list[tuple[object, ...]]:
    rows = table.scan().to_arrow().to_pylist()
    return sorted((one["k"], one["p"], one["ts"]) for one in rows)


@pytest.mark.parametrize(
    ("index", "form", "order", "version"),
    thinned(
        {
            "-".join(map(str, case)): case
            for case in product(("SIMPLE", "GLOBAL_SIMPLE"), FORMS, (None, "ts"), (9, 6))
        }
    ),
)
def test_a_deleted_key_is_inserted_and_is_there_once(
    index: str, form: str, order: str | None, version: int
) -> None:
    table = new_table(index, order_by=order, version=version)
    table.insert([row("a", 1), row("b", 1)])
    for step, target in enumerate(("1", "1", "2")):
        delete(table, form, 10 * step + 10, "1")
        # Older than the delete: what is inserted is not compared with it.
        told = table.insert([row("a", 5, target), row("b", 9)], dedupe=True)
        assert told.inserted == 1
        assert rows_in(table) == [("a", target, 5), ("b", "1", 1)]
        table.upsert([row("a", 10 * step + 6, target)])
        assert rows_in(table) == [("a", target, 10 * step + 6), ("b", "1", 1)]
        table.update({"op": "'U'"}, where="k = 'a'")
        assert rows_in(table) == [("a", target, 10 * step + 6), ("b", "1", 1)]
    table.compact()
    assert rows_in(table) == [("a", "2", 26), ("b", "1", 1)]
    table.delete(["a"])
    assert rows_in(table) == [("b", "1", 1)]


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_an_upsert_meets_the_last_delete_of_its_key(index: str) -> None:
    table = new_table(index, order_by="ts")
    table.insert([row("a", 1), row("b", 1)])
    delete(table, "column", 10)
    table.insert([row("a", 20)])
    delete(table, "column", 30)
    table.upsert([row("a", 25)])
    assert rows_in(table) == [("b", "1", 1)]
    table.upsert([row("a", 31)])
    assert rows_in(table) == [("a", "1", 31), ("b", "1", 1)]


def test_a_global_key_that_is_deleted_elsewhere_is_new_in_its_partition() -> None:
    table = new_table("GLOBAL_SIMPLE")
    table.insert([row("a", 1), row("b", 1)])
    table.delete(["a"])
    told = table.upsert([row("a", 2, "2")])
    assert (told.inserted, told.deleted, told.exact) == (1, 0, True)
    assert rows_in(table) == [("a", "2", 2), ("b", "1", 1)]


def test_columns_that_are_filled_in_do_not_keep_a_deleted_key_alive() -> None:
    partial = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    table = new_table("SIMPLE", schema="k string, p string, ts bigint", properties=partial)
    table.insert([{"k": "a", "p": "1", "ts": 1}])
    table.delete(["a"])
    assert table.insert([{"k": "a", "p": "1", "ts": 2}], dedupe=True).inserted == 1
    table.upsert([{"k": "a", "p": "1", "ts": 3}])
    assert rows_in(table) == [("a", "1", 3)]


def logged_key(index: str, version: int) -> lw.Table:
    """Return a table in which only a log holds ``a``: deleted, compacted, and written meanwhile."""
    table = new_table(index, version=version)
    table.insert([row("a", 1), row("b", 1)])
    table.delete(["a"])
    table.schedule_compaction()
    table.upsert([row("a", 2)])
    table.compact()
    assert rows_in(table) == [("a", "1", 2), ("b", "1", 1)]
    return table


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_a_key_that_a_compaction_left_to_the_logs_is_found(
    index: str, version: int, archived: bool
) -> None:
    table = logged_key(index, version)
    if archived:
        for _ in range(4):
            table.upsert([row("b", 1)])
        table.archive(min_commits=1, max_commits=2, options={"hoodie.clean.commits.retained": "1"})
    assert table.insert([row("a", 3)], dedupe=True).inserted == 0
    table.upsert([row("a", 4), row("c", 4)])
    assert rows_in(table) == [("a", "1", 4), ("b", "1", 1), ("c", "1", 4)]
    table.update({"ts": "ts + 1"}, where="k = 'a'")
    assert rows_in(table) == [("a", "1", 5), ("b", "1", 1), ("c", "1", 4)]
    table.delete(["a"])
    table.compact()
    assert rows_in(table) == [("b", "1", 1), ("c", "1", 4)]


@pytest.mark.parametrize("joined", [False, True])
def test_keys_of_logs_alone_are_told_beside_those_of_the_base_file(joined: bool) -> None:
    table = logged_key("SIMPLE", 9)
    if joined:
        table.upsert([row("a", 3)])
        table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"})
    pinned = PinnedTable(open_state(open_storage(table.path)))
    [piece] = pinned.files("p=1").slices
    found = find_keys(pinned, piece, pa.array(["x", "a", "b"]))
    assert dict(zip(found.row.tolist(), found.position.tolist(), strict=True)) == {1: LOGGED, 2: 0}
    assert found.alive.all()
    keys, every = stored_keys(pinned, piece)
    told = dict(zip(keys.to_pylist(), every.position.tolist(), strict=True))
    assert told == {"a": LOGGED, "b": 0}


@pytest.mark.parametrize("version", [9, 6])
def test_logs_of_writers_that_knew_the_base_file_are_not_read_for_keys(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    table = new_table("SIMPLE", version=version)
    table.insert([row("a", 1)])
    table.upsert([row("a", 2)])
    # Longer ago than clocks differ, which layout 1 is judged by.
    monkeypatch.setattr(late_logs, "_CLOCKS", dt.timedelta(0))
    table.compact()
    time.sleep(0.01)
    table.upsert([row("a", 3)])
    pinned = PinnedTable(open_state(open_storage(table.path)))
    [piece] = pinned.files("p=1").slices
    assert piece.logs
    assert not late_logs.has_late_logs(pinned, piece)


def test_what_a_slice_holds_is_told_with_what_its_logs_deleted() -> None:
    table = new_table("SIMPLE")
    table.insert([row(key, 1) for key in "abc"])
    table.delete(["a"])
    table.upsert([row("b", 2)])
    pinned = PinnedTable(open_state(open_storage(table.path)))
    [piece] = pinned.files("p=1").slices
    found = find_keys(pinned, piece, pa.array(["x", "a", "b"]))
    assert found.row.tolist() == [1, 2]
    assert found.position.tolist() == [0, 1]
    assert found.alive.tolist() == [False, True]
    keys, every = stored_keys(pinned, piece)
    told = dict(zip(keys.to_pylist(), every.alive.tolist(), strict=True))
    assert told == {"a": False, "b": True, "c": True}


@pytest.mark.parametrize("extra", [{}, {"hoodie.write.record.positions": "false"}])
def test_logs_that_delete_nothing_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch, extra: Mapping[str, str]
) -> None:
    table = new_table("SIMPLE", schema="k string, p string, ts bigint", properties={})
    plain = [{"k": key, "p": "1", "ts": 1} for key in "ab"]
    table.insert(plain)
    table.upsert(plain, options=extra)
    decoded: list[object] = []
    read = reader_logs.read_data

    def counted(*given: Any) -> pa.Table:
        decoded.append(given)
        return read(*given)

    monkeypatch.setattr(reader_logs, "read_data", counted)
    pinned = PinnedTable(open_state(open_storage(table.path)))
    [piece] = pinned.files("p=1").slices
    assert piece.logs
    assert find_keys(pinned, piece, pa.array(["a"])).alive.tolist() == [True]
    assert not decoded


def test_entries_of_deleted_keys_count_where_a_key_is_alive_nowhere() -> None:
    table = new_table("SIMPLE")
    options = {"hoodie.parquet.small.file.limit": "0"}
    for _ in range(3):
        table.insert([row("a", 1)], options=options)
        table.delete(["a"])
    state = open_state(open_storage(table.path))
    index = RecordIndex(PinnedTable(state), IndexLayout.of(state.config.properties, {}))
    tagged = index.tag(pa.array(["a"]), pa.array(["p=1"]))
    assert (len(tagged.row), tagged.alive.any()) == (3, np.False_)
    [place] = settled(tagged)
    assert place == max(piece.base_instant for piece in tagged.slices)


def settled(tagged: Tagged) -> list[str]:
    return [tagged.slices[number].base_instant for number in tagged.settled().slice]
