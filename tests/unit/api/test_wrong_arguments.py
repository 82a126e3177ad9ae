"""Arguments of wrong types: every verb of plans and TTL refuses them by an error that teaches."""

import datetime as dt
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.api.plans import TablePlan
from lakewright.api.table import Table
from lakewright.model.errors import Invalid, LakewrightError

ANY: Any = object()
EAST, WEST = (dt.timezone(dt.timedelta(hours=hours)) for hours in (12, -12))
#: Nothing that any of the arguments can be.
WRONG: dict[str, Any] = {
    "none": None,
    "number": 5,
    "zero": 0,
    "fraction": 1.5,
    "flag": True,
    "text": "x",
    "empty": "",
    "bytes": b"x",
    "date": dt.date(2026, 1, 1),
    "naive": dt.datetime(2026, 1, 1),
    "first": dt.datetime.min.replace(tzinfo=EAST),
    "last": dt.datetime.max.replace(tzinfo=WEST),
    "span": dt.timedelta(days=3),
    "texts": ["x"],
    "numbers": [1],
    "nones": [None],
    "nothing": [],
    "mapping": {"a": 1},
    "odd mapping": {1: "a"},
    "object": ANY,
}
Call = Callable[[Table, TablePlan, Any], object]
RETAIN = "hoodie.partition.ttl.strategy.days.retain"
#: What says that there are none.
NO_OPTIONS = "none zero empty nothing"
#: Each argument, and those of the values above that it may be.
CALLS: dict[str, tuple[Call, str]] = {
    "ttl.add spec": (lambda t, p, w: t.ttl.add(w, "KEEP_BY_TIME", 5), ""),
    "ttl.add policy": (lambda t, p, w: t.ttl.add("/", w, 5), ""),
    "ttl.add value": (lambda t, p, w: t.ttl.add("/", "KEEP_BY_TIME", w), "number"),
    "ttl.add settings": (lambda t, p, w: t.ttl.add("/", "KEEP_BY_TIME", 5, settings=w), "none"),
    "ttl.add format": (
        lambda t, p, w: t.ttl.add("/", "KEEP_BY_EVENT_TIME", 5, settings={"format": w}),
        "",
    ),
    "ttl.add options": (lambda t, p, w: t.ttl.add("/", "KEEP_BY_TIME", 5, options=w), NO_OPTIONS),
    "ttl.drop spec": (lambda t, p, w: t.ttl.drop(w), ""),
    "ttl.drop options": (lambda t, p, w: t.ttl.drop("/", dry_run=True, options=w), NO_OPTIONS),
    "ttl.plan now": (lambda t, p, w: t.ttl.plan(w), "none"),
    "ttl.plan options": (lambda t, p, w: t.ttl.plan(options=w), NO_OPTIONS),
    "ttl.preview now": (lambda t, p, w: t.ttl.preview(w), "none"),
    "ttl.preview options": (lambda t, p, w: t.ttl.preview(options=w), NO_OPTIONS),
    "ttl.preview days": (lambda t, p, w: t.ttl.preview(options={RETAIN: w}), ""),
    "ttl.run now": (lambda t, p, w: t.ttl.run(w), "none"),
    "ttl.run options": (lambda t, p, w: t.ttl.run(options=w), NO_OPTIONS),
    "ttl.explain partition": (lambda t, p, w: t.ttl.explain(w), ""),
    "ttl.explain now": (lambda t, p, w: t.ttl.explain("d=a", w), "none"),
    "ttl.explain options": (lambda t, p, w: t.ttl.explain("d=a", options=w), NO_OPTIONS),
    "ttl.expired now": (lambda t, p, w: t.ttl.expired(w), "none"),
    "ttl.expired options": (lambda t, p, w: t.ttl.expired(options=w), NO_OPTIONS),
    "plan id": (lambda t, p, w: t.plan(w), ""),
    "plan options": (lambda t, p, w: t.plan(p.id, options=w), NO_OPTIONS),
    "plan explain": (lambda t, p, w: p.explain(w), ""),
    "plan lines": (lambda t, p, w: list(p.lines(w)), "none number zero flag"),
    "drop partitions": (lambda t, p, w: t.plan_delete_partitions(w), "texts nothing"),
    "drop partition": (lambda t, p, w: t.plan_delete_partitions([w]), "text"),
    "drop reason": (lambda t, p, w: t.plan_delete_partitions(["d=a"], reason=w), "text empty"),
    "drop options": (lambda t, p, w: t.plan_delete_partitions(["d=a"], options=w), NO_OPTIONS),
    "delete partitions": (lambda t, p, w: t.delete_partitions(w), "texts nothing"),
    "orphans age": (lambda t, p, w: t.plan_orphans(w), "none span"),
    "orphans options": (lambda t, p, w: t.plan_orphans(options=w), NO_OPTIONS),
    "preview age": (lambda t, p, w: t.preview_orphans(w), "none span"),
    "preview options": (lambda t, p, w: t.preview_orphans(options=w), NO_OPTIONS),
    "upgrade": (lambda t, p, w: t.upgrade(w, dry_run=True), ""),
    "downgrade": (lambda t, p, w: t.downgrade(w, dry_run=True), ""),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    path: Path = tmp_path_factory.mktemp("wrong") / "t"
    made = lw.create_table(path, schema="id string, d string", key="id", partition_by=["d"])
    made.upsert([{"id": "1", "d": "a"}, {"id": "2", "d": "b"}])
    made.ttl.add("/", "KEEP_BY_TIME", 10)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_refused_by_errors_that_teach(name: str, table: Table) -> None:
    call, right = CALLS[name]
    plan = table.plan_delete_partitions(["d=a"])
    for kind, value in WRONG.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind in right.split():
                call(table, plan, value)
                continue
            with pytest.raises(LakewrightError) as told:
                call(table, plan, value)
        assert told.value.next_step, (name, kind)
    assert table.scan().count() == 2


def test_a_key_that_is_half_a_character_is_refused(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n int", key="id")
    table.upsert([{"id": "a", "n": 1}])
    with pytest.raises(Invalid, match="a key value does not fit the column id"):
        table.delete(["a", "\ud800"])
    assert table.scan().count() == 1
