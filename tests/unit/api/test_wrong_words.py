"""Arguments of wrong types: creating, opening, reading and writing refuse them, and teach."""

import datetime as dt
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.model.errors import LakewrightError

EAST, WEST = (dt.timezone(dt.timedelta(hours=hours)) for hours in (12, -12))
WRONG: dict[str, Any] = {
    "none": None,
    "number": 5,
    "zero": 0,
    "fraction": 1.5,
    "nan": float("nan"),
    "flag": True,
    "text": "x",
    "empty": "",
    "nul": "\0",
    "bytes": b"x",
    "date": dt.date(2026, 1, 1),
    "naive": dt.datetime(2026, 1, 1),
    "first": dt.datetime.min.replace(tzinfo=EAST),
    "last": dt.datetime.max.replace(tzinfo=WEST),
    "texts": ["x"],
    "numbers": [1],
    "nones": [None],
    "nothing": [],
    "mapping": {"a": 1},
    "odd mapping": {1: "a"},
    "object": object(),
}
SCHEMA = "id string, d string, n int, ts bigint"
ROW = {"id": "1", "d": "a", "n": 1, "ts": 1}
WHEN = {"on": "t.id = s.id", "when_matched": "update"}


@dataclass(frozen=True)
class Place:
    """A table and a lake to be wrong with; ``new`` is a path that holds nothing."""

    table: Table
    lake: lw.Lake
    names: "itertools.count[int]"
    folder: Path

    def new(self) -> Path:
        return self.folder / f"t{next(self.names)}"

    def create(self, **said: Any) -> Table:
        return lw.create_table(self.new(), **{"schema": SCHEMA, "key": "id", **said})

    def found(self, **said: Any) -> Table:
        name = f"shop.t{next(self.names)}"
        return self.lake.create_table(name, **{"schema": SCHEMA, "key": "id", **said})


Call = Callable[[Place, Any], object]
#: Each argument, and those of the values above that it may be.
CALLS: dict[str, tuple[Call, str]] = {
    "create path": (lambda p, w: lw.create_table(w, schema=SCHEMA, key="id"), "text"),
    "create schema": (lambda p, w: p.create(schema=w), ""),
    "create key": (lambda p, w: p.create(key=w), "none"),
    "create partition_by": (lambda p, w: p.create(partition_by=w), "none nothing"),
    "create order_by": (lambda p, w: p.create(order_by=w), "none nothing"),
    "create type": (lambda p, w: p.create(type=w), ""),
    "create buckets": (lambda p, w: p.create(buckets=w), "none number"),
    "create hash_by": (lambda p, w: p.create(hash_by=w), "none nothing"),
    "create index": (lambda p, w: p.create(index=w), "none"),
    "create version": (lambda p, w: p.create(version=w), ""),
    "create merge_mode": (lambda p, w: p.create(merge_mode=w), "none"),
    "create key_generator": (lambda p, w: p.create(key_generator=w), "none"),
    "create properties": (lambda p, w: p.create(properties=w), "none"),
    "create options": (lambda p, w: p.create(options=w), "none zero empty nothing"),
    "open path": (lambda p, w: lw.open_table(w), "text"),
    "open options": (
        lambda p, w: lw.open_table(p.table.path, options=w),
        "none zero empty nothing",
    ),
    "connect place": (lambda p, w: lw.connect(w), "text"),
    "lake create name": (lambda p, w: p.lake.create_table(w, schema=SCHEMA, key="id"), "text"),
    "lake create location": (lambda p, w: p.found(location=w), "none text"),
    "lake register": (lambda p, w: p.lake.register_table(f"shop.r{next(p.names)}", w), "text"),
    "lake table": (lambda p, w: p.lake.table(w), "text"),
    "lake drop": (lambda p, w: p.lake.drop_table(w), "text"),
    "lake sql": (lambda p, w: p.lake.sql(w), ""),
    "lake create_database": (lambda p, w: p.lake.create_database(w), "text"),
    "lake drop_database": (lambda p, w: p.lake.drop_database(w), "text"),
    "scan where": (lambda p, w: p.table.scan(w).count(), "none"),
    "scan columns": (lambda p, w: p.table.scan(columns=w).count(), "none nothing"),
    "scan as_of": (lambda p, w: p.table.scan(as_of=w).count(), "none date naive"),
    "scan mode": (lambda p, w: p.table.scan(mode=w).count(), ""),
    "incremental start": (lambda p, w: p.table.incremental(w).count(), "none date naive"),
    "incremental end": (lambda p, w: p.table.incremental(None, w).count(), "none date naive"),
    "changes start": (lambda p, w: p.table.changes(w).count(), "none date naive"),
    "changes columns": (lambda p, w: p.table.changes(columns=w).count(), "none nothing"),
    "follow start": (lambda p, w: list(p.table.follow(w)), ""),
    "follow columns": (
        lambda p, w: [one.scan.count() for one in p.table.follow(columns=w)],
        "none nothing",
    ),
    "follow instants": (lambda p, w: list(p.table.follow(max_instants=w)), "none number flag"),
    "get_snapshot": (lambda p, w: list(p.table.get_snapshot(w)), "none date naive"),
    "insert": (lambda p, w: p.table.insert(w), "nothing"),
    "bulk_insert": (lambda p, w: p.table.bulk_insert(w), "nothing"),
    "upsert": (lambda p, w: p.table.upsert(w), "nothing"),
    "insert_overwrite": (lambda p, w: p.table.insert_overwrite(w), "nothing"),
    "sort_mode": (lambda p, w: p.table.bulk_insert([], sort_mode=w), "none"),
    "write options": (lambda p, w: p.table.upsert([ROW], options=w), "none"),
    "write instant": (lambda p, w: p.table.upsert([ROW], instant=w), "none"),
    "write metadata": (lambda p, w: p.table.upsert([ROW], metadata=w), "none"),
    "write retry": (lambda p, w: p.table.upsert([ROW], retry=w), "number zero"),
    "delete where": (lambda p, w: p.table.delete(where=w), ""),
    "update set": (lambda p, w: p.table.update(w), ""),
    "update value": (lambda p, w: p.table.update({"n": w}), "none number zero flag"),
    "merge source": (lambda p, w: p.table.merge(w, **WHEN), ""),
    "merge on": (lambda p, w: p.table.merge([ROW], **{**WHEN, "on": w}), ""),
    "merge matched": (lambda p, w: p.table.merge([ROW], **{**WHEN, "when_matched": w}), ""),
    "add_columns": (lambda p, w: p.table.add_columns(w), ""),
    "widen_column": (lambda p, w: p.table.widen_column(w, "bigint"), ""),
    "widen_column to": (lambda p, w: p.table.widen_column("n", w), ""),
    "set_properties": (lambda p, w: p.table.set_properties(w), ""),
    "stream operation": (lambda p, w: p.table.stream_writer(operation=w, stream="s"), ""),
    "stream name": (lambda p, w: p.table.stream_writer(stream=w), "text nul"),
    "register_merger": (lambda p, w: lw.register_merger(w), ""),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder: Path = tmp_path_factory.mktemp("wrong")
    said: Any = {"schema": SCHEMA, "key": "id", "partition_by": "d", "order_by": "ts"}
    table = lw.create_table(folder / "table", **said, type="MERGE_ON_READ")
    table.upsert([ROW])
    return Place(table, lw.connect(folder / "lake"), itertools.count(), folder)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_refused_by_errors_that_teach(
    name: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, right = CALLS[name]
    here = place.new()
    here.mkdir()
    monkeypatch.chdir(here)
    if name == "open path":
        lw.create_table("x", schema=SCHEMA, key="id")
    if name in ("lake table", "lake drop"):
        place.lake.create_table("x", schema=SCHEMA, key="id", if_not_exists=True)
    if name == "lake register":
        lw.create_table("x", schema=SCHEMA, key="id")
    if name == "lake drop_database":
        place.lake.create_database("x", if_not_exists=True)
    for kind, value in WRONG.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind in right.split():
                call(place, value)
                continue
            with pytest.raises(LakewrightError) as told:
                call(place, value)
        assert told.value.next_step, (name, kind, str(told.value))
    assert place.table.scan().count() == 1
