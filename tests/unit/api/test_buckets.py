"""``Table.buckets`` as users hold it: plans that are looked at, applied and undone."""

import json
from pathlib import Path

import pytest

import lakewright as lw

DAYS = ("2026-11-10", "2026-11-11", "2026-11-12")


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    made = lw.create_table(
        tmp_path / "t", schema="id int, n int, dt string", key="id", partition_by="dt", buckets=4
    )
    made.upsert([{"id": i, "n": i, "dt": DAYS[i % 3]} for i in range(60)])
    return made


def numbers(table: lw.Table) -> set[int]:
    return {one.buckets for one in table.buckets.show().partitions}


def test_rules_are_given_in_every_form(table: lw.Table) -> None:
    rules = lw.BucketRules((lw.BucketRule("11-11", 8),), 2)
    told = {"expressions": [{"expression": "11-11", "bucketNumber": 8}], "defaultBucketNumber": 2}
    for given, default in ((rules, None), (told, None), (json.dumps(told), None), ("11-11,8", 2)):
        table.buckets.set(3)
        assert table.buckets.rules == lw.BucketRules(default=3)
        table.buckets.set(given, default=default)
        assert table.buckets.rules == rules
    counts = table.buckets.counts()
    assert counts.version == table.buckets.version == table.buckets.versions()[0].instant
    assert dict(counts.pins) == {"dt=2026-11-10": 4, "dt=2026-11-11": 4, "dt=2026-11-12": 4}


def test_a_rescale_is_planned_applied_and_undone(table: lw.Table) -> None:
    before = table.scan().to_arrow().sort_by("id")
    plan = table.buckets.plan_rescale(rules="11-11,8", default=4)
    assert [item.partition for item in plan.items] == ["dt=2026-11-11"]
    assert plan.explain("dt=2026-11-11").startswith("dt=2026-11-11: 4 -> 8 buckets, the new rules")
    assert plan.explain("dt=2026-11-10") == "dt=2026-11-10: stays at 4 buckets"
    assert "dt=2026-11-11" in plan._repr_html_() and repr(plan) == str(plan) == str(plan.plan)
    assert plan.id == table.buckets.plan_rescale(rules="11-11,8", default=4).id
    assert plan.id != table.buckets.plan_rescale(rules="11-11,9", default=4).id
    with pytest.raises(lw.Invalid, match="not applied"):
        plan.undo()
    plan.apply()
    assert numbers(table) == {4, 8}
    with pytest.raises(lw.Conflict):
        plan.apply()
    plan.undo()
    assert numbers(table) == {4}
    assert table.buckets.version == "00000000000000"
    assert table.scan().to_arrow().sort_by("id") == before


def test_an_undo_is_planned_and_applied_once(table: lw.Table) -> None:
    table.buckets.plan_rescale(rules=8).apply()
    undo = table.buckets.plan_undo()
    assert "00000000000000" in str(undo) and undo._repr_html_().startswith("<pre>undo of t")
    assert json.loads(undo.to_json())["to"] == "00000000000000"
    undo.apply()
    assert numbers(table) == {4}
    with pytest.raises(lw.Conflict, match="was planned on"):
        undo.apply()


def test_a_repair_explains_itself(table: lw.Table) -> None:
    plan = table.buckets.repair()
    assert plan.explain(f"dt={DAYS[0]}") == "dt=2026-11-10: nothing is wrong with its buckets"
    assert plan.to_json() == plan.plan.to_json() and "<table>" in plan._repr_html_()


def test_one_partition_as_a_text_is_refused(table: lw.Table) -> None:
    with pytest.raises(lw.Invalid, match="is one text"):
        table.buckets.plan_rescale("dt=2026-11-10")


def test_tables_without_buckets_say_so(tmp_path: Path) -> None:
    plain = lw.create_table(tmp_path / "p", schema="id int", key="id")
    for look in (plain.buckets.show, plain.buckets.check, plain.buckets.advise):
        with pytest.raises(lw.Invalid, match="has no buckets: its index is SIMPLE"):
            look()
    for key in ("hoodie.bucket.index.partition.expressions", "hoodie.bucket.index.num.buckets"):
        with pytest.raises(lw.Unsupported, match=r"buckets\.set"):
            plain.set_properties({key: "4"})


def test_groups_whose_rows_are_all_deleted_become_one(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id bigint", key="id", buckets=4)
    table.upsert([{"id": number} for number in range(20)])
    table.delete([{"id": number} for number in range(20)])
    assert table.buckets.plan_rescale(rules=1).apply().rows == 0
    table.upsert([{"id": 7}])
    assert table.scan().to_arrow().to_pylist() == [{"id": 7}]
    assert table.buckets.check().ok
