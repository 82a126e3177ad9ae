"""Change files: their bytes are those of real Hudi, and they come in pieces that memory holds."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.tasks import write_changes
from lakewright.format.hudi.change_records import ChangeMode, change_schema_text
from lakewright.format.hudi.log.blocks import BlockKind, LogBlock
from lakewright.format.hudi.log.read import read_data, scan_blocks
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.storage.open import open_storage

ENABLED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
NUMBERS = count()
RECORD = (
    '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":'
    '[{"name":"id","type":["null","string"],"default":null}]}'
)


def make(mode: str = "DATA_BEFORE_AFTER", **details: Any) -> lw.Table:
    return lw.create_table(
        f"memory://write-changes/t{next(NUMBERS)}",
        schema=details.pop("schema", "id string, p string, n long, ts long"),
        key="id",
        partition_by=details.pop("partition_by", ["p"]),
        properties={ENABLED: "true", MODE: mode, **details.pop("properties", {})},
        **details,
    )


def row(name: str, n: int | None, ts: int = 1, p: str = "x") -> dict[str, Any]:
    return {"id": name, "p": p, "n": n, "ts": ts}


def stats(table: lw.Table) -> list[WriteStat]:
    """What the newest write did to each file."""
    timeline = table.timeline
    body = timeline.commit_metadata(timeline.data()[-1])
    return [stat for some in body.write_stats.values() for stat in some]


def blocks(table: lw.Table, stat: WriteStat) -> Iterator[tuple[LogBlock, list[dict[str, Any]]]]:
    storage = open_storage(table.path)
    (path,) = stat.cdc_stats
    size = stat.cdc_stats[path]
    found = storage.stat(path)
    assert found is not None
    assert found.size == size
    with storage.open(path) as file:
        for block in scan_blocks(file, size, path):
            yield block, read_data(file, block).to_pylist()


def ops(table: lw.Table) -> list[tuple[Any, ...]]:
    """The changes of the newest write, in the order in which they are told."""
    last = table.timeline.data()[-2:]
    start = last[0].completed or last[0].requested
    found = table.changes(start).to_arrow().to_pylist()
    return [
        (c["op"], *(c[s] and (c[s]["id"], c[s]["n"]) for s in ("before", "after"))) for c in found
    ]


def test_the_schemas_are_hudis() -> None:
    text = {mode: change_schema_text(mode, RECORD) for mode in ChangeMode}
    record = RECORD.replace(',"namespace":"hoodie.t"', "")
    head = '{"type":"record","name":"CDC","namespace":"hoodie.t","doc":"","fields":['
    end = '"doc":"","default":null}'
    before = f'{{"name":"before","type":["null",{record}],{end}'

    def text_field(name: str) -> str:
        return f'{{"name":"{name}","type":["null","string"],{end}'

    assert text[ChangeMode.OP_KEY_ONLY] == (
        '{"type":"record","name":"Record","fields":[{"name":"op","type":["string","null"]},'
        '{"name":"record_key","type":["string","null"]}]}'
    )
    assert text[ChangeMode.DATA_BEFORE] == (
        f"{head}{text_field('op')},{text_field('record_key')},{before}]}}"
    )
    after = f'{{"name":"after","type":["null","t_record"],{end}'
    assert text[ChangeMode.DATA_BEFORE_AFTER] == (
        f"{head}{text_field('op')},{text_field('ts_ms')},{before},{after}]}}"
    )


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("mode", ChangeMode)
def test_a_rewritten_group_has_one_file_of_its_changes(mode: ChangeMode, version: int) -> None:
    table = make(mode.lower(), version=version, order_by="ts")
    assert table.definition.properties[MODE] == mode.value
    table.insert([row("a", 1), row("b", 2), row("c", 3, ts=9)])
    assert [stat.cdc_stats for stat in stats(table)] == [{}]
    base = stats(table)[0]
    table.upsert([row("a", 10), row("c", 30), row("d", 4), row("e", 5, p="y")])
    old, new = sorted(stats(table), key=lambda stat: stat.partition_path or "")
    assert new.cdc_stats == {}
    assert (old.prev_commit, old.prev_base_file) == (
        table.timeline.data()[0].requested,
        (base.path or "").rpartition("/")[2],
    )
    ((block, records),) = blocks(table, old)
    assert block.kind is BlockKind.CDC_DATA
    (path,) = old.cdc_stats
    instant = table.timeline.data()[-1].requested
    assert path == (f"p=x/.{old.file_id}_{instant}.log.1_{(old.path or '').split('_')[1]}.cdc")
    was, became, more = row("a", 1), row("a", 10), row("d", 4)
    told: dict[ChangeMode, list[dict[str, Any]]] = {
        ChangeMode.OP_KEY_ONLY: [{"op": "u", "record_key": "a"}, {"op": "i", "record_key": "d"}],
        ChangeMode.DATA_BEFORE: [
            {"op": "u", "record_key": "a", "before": was},
            {"op": "i", "record_key": "d", "before": None},
        ],
        ChangeMode.DATA_BEFORE_AFTER: [
            {"op": "u", "ts_ms": instant, "before": was, "after": became},
            {"op": "i", "ts_ms": instant, "before": None, "after": more},
        ],
    }
    assert records == told[mode]
    assert sorted(ops(table), key=str) == [
        ("i", None, ("d", 4)),
        ("i", None, ("e", 5)),
        ("u", ("a", 1), ("a", 10)),
    ]
    table.delete(["b"] if not table.definition.partition_by else [{"id": "b", "p": "x"}])
    assert ops(table) == [("d", ("b", 2), None)]
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("mode", ChangeMode)
def test_inserts_into_a_small_file_are_told(mode: ChangeMode) -> None:
    table = make(mode)
    table.insert([row("a", 1)])
    table.insert([row("b", 2), row("a", 3)])
    (stat,) = stats(table)
    assert stat.prev_commit == table.timeline.data()[0].requested
    ((_, records),) = blocks(table, stat)
    assert [record["op"] for record in records] == ["i", "i"]
    assert sorted(ops(table), key=str) == [("i", None, ("a", 3)), ("i", None, ("b", 2))]


def test_a_record_that_moves_is_deleted_and_inserted() -> None:
    table = make(properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.insert([row("a", 1), row("b", 2)])
    table.upsert([row("a", 3, p="y")])
    assert ops(table) == [("d", ("a", 1), None), ("i", None, ("a", 3))]


def test_of_a_key_that_is_stored_twice_one_row_is_replaced() -> None:
    table = make(order_by="ts")
    table.insert([row("a", 1, ts=1), row("a", 2, ts=1), row("a", 3, ts=5)])
    table.upsert([row("a", 4, ts=3)])
    left = table.scan().to_arrow().to_pylist()
    assert left == [row("a", 3, ts=5)]
    assert sorted(ops(table)) == [("d", ("a", 1), None), ("d", ("a", 2), None)]
    table.upsert([row("a", 6, ts=6)])
    assert ops(table) == [("u", ("a", 3), ("a", 6))]


def test_partial_updates_tell_the_whole_row() -> None:
    table = make(order_by="ts", properties={"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"})
    table.insert([row("a", 1), row("b", 2), row("c", 3, ts=9)])
    table.upsert([row("a", None, ts=2), row("c", 5, ts=3), row("d", 6)])
    after = {r["id"]: r["n"] for r in table.scan().to_arrow().to_pylist()}
    assert after == {"a": 1, "b": 2, "c": 3, "d": 6}
    assert ops(table) == [("u", ("a", 1), ("a", 1)), ("i", None, ("d", 6))]
    table.delete([{"id": "b", "p": "x"}])
    assert ops(table) == [("d", ("b", 2), None)]


def test_many_changes_make_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_changes, "_BLOCK_BYTES", 2000)
    table = make(partition_by=[])
    names = [f"k{i:03}" for i in range(200)]
    table.insert([row(name, 0) for name in names])
    table.upsert([row(name, 1) for name in names])
    (stat,) = stats(table)
    found = [records for _, records in blocks(table, stat)]
    assert len(found) > 3
    assert sorted(r["after"]["id"] for records in found for r in records) == names
    table.delete([{"id": name} for name in names[:150]])
    assert [c[0] for c in ops(table)] == ["d"] * 150
    assert table.scan().count() == 50


def test_images_of_any_type_come_back() -> None:
    point = pa.struct([("a", pa.int32()), ("of", pa.list_(pa.decimal128(20, 3)))])
    schema = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("at", pa.timestamp("us", "UTC")),
            pa.field("day", pa.date32()),
            pa.field("raw", pa.binary()),
            pa.field("m", pa.map_(pa.string(), point)),
            pa.field("where", point),
            pa.field("must", pa.int32(), nullable=False),
        ]
    )
    first = pa.Table.from_pylist(
        [
            {"id": "a", "at": 5, "raw": b"\xff", "m": [("k", None)], "must": 1},
            {"id": "b", "day": 3, "where": {"a": None, "of": [None, 7]}, "must": 2},
        ],
        schema=schema,
    )
    table = make(schema=schema, partition_by=[])
    table.insert(first)
    second = first.set_column(6, schema.field(6), pa.array([8, 9], pa.int32()))
    table.upsert(second)
    (_, upsert) = table.timeline.data()
    changes = table.changes(table.timeline.data()[0].completed).to_arrow()
    assert set(changes.column("ts_ms").to_pylist()) == {upsert.requested}
    assert changes.column("before").to_pylist() == first.to_pylist()
    assert changes.column("after").to_pylist() == second.to_pylist()


@pytest.mark.parametrize("mode", ChangeMode)
def test_logs_of_a_merge_on_read_table_name_the_slice_below(mode: ChangeMode) -> None:
    table = make(mode, type="MERGE_ON_READ", buckets=1, order_by="ts")
    table.insert([row("a", 1), row("b", 2)])
    (base,) = stats(table)
    table.upsert([row("a", 3)])
    (first,) = stats(table)
    table.delete([{"id": "b", "p": "x"}])
    (second,) = stats(table)
    name = (base.path or "").rpartition("/")[2]
    own = [(stat.path or "").rpartition("/")[2] for stat in (first, second)]
    for stat in (first, second):
        assert (stat.base_file, stat.prev_commit) == (name, table.timeline.data()[0].requested)
        assert stat.cdc_stats == {}
    assert (first.log_files, second.log_files) == ((own[0],), tuple(own))
    assert ops(table) == [("d", ("b", 2), None)]


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({ENABLED: "true", MODE: "everything"}, "OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER"),
        ({ENABLED: "yes"}, "true or false"),
        ({MODE: "OP_KEY_ONLY"}, "keeps no changes"),
    ],
)
def test_settings_that_make_no_sense_are_refused(properties: dict[str, str], words: str) -> None:
    with pytest.raises(lw.LakewrightError, match=words):
        lw.create_table(
            f"memory://write-changes/t{next(NUMBERS)}",
            schema="id string",
            key="id",
            properties=properties,
        )


def test_a_write_cannot_ask_for_other_change_files() -> None:
    table = make("OP_KEY_ONLY")
    for options in ({MODE: "DATA_BEFORE"}, {ENABLED: "false"}):
        with pytest.raises(lw.Invalid, match="fixed when a table is created"):
            table.upsert([row("a", 1)], options=options)
    table.upsert([row("a", 1)], options={MODE: "op_key_only", ENABLED: "true"})


def test_change_files_go_with_their_slices(tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id string, n long", key="id", properties={ENABLED: "true"}
    )
    for n in range(5):
        table.upsert([{"id": "a", "n": n}, {"id": f"b{n}", "n": n}])
    instants = table.timeline.data()
    assert len([*(tmp_path / "t").rglob(".*.cdc")]) == 4
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    left = [path.name for path in (tmp_path / "t").rglob(".*.cdc")]
    assert len(left) < 4
    assert any(instants[-1].requested in name for name in left)
    newest = table.changes(instants[-2].completed).to_arrow().to_pylist()
    assert [change["op"] for change in newest] == ["u", "i"]
    with pytest.raises(lw.HistoryGone):
        table.changes(instants[0].completed).to_arrow()
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("version", [9, 6])
def test_what_is_taken_back_takes_its_change_files_along(tmp_path: Path, version: int) -> None:
    path = tmp_path / "t"
    table = lw.create_table(
        path, schema="id string, n long", key="id", version=version, properties={ENABLED: "true"}
    )
    table.insert([{"id": name, "n": 1} for name in "abc"])
    table.upsert([{"id": "a", "n": 2}])
    kept = {file.name for file in path.rglob(".*.cdc")}
    assert len(kept) == 1
    before = table.changes().to_arrow().to_pylist()
    goal = table.timeline.data()[-1]
    last = table.upsert([{"id": "b", "n": 3}]).instant
    assert last is not None
    table.rollback(last.requested)
    assert {file.name for file in path.rglob(".*.cdc")} == kept
    table.upsert([{"id": "b", "n": 4, "more": "new"}])
    table.delete("id = 'c'")
    assert [change[0] for change in ops(table)] == ["d"]
    table.restore(goal.requested)
    assert {file.name for file in path.rglob(".*.cdc")} == kept
    assert table.changes().to_arrow().to_pylist() == before
    assert table.fsck(deep=True).ok
