"""Plans are values: told in lines, in JSON and back, and explained item by item."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.lifecycle.plans.plan import (
    Plan,
    PlanBase,
    PlanItem,
    Skipped,
    check_plan_id,
    checksum,
    new_plan_id,
)
from lakewright.model.errors import Corrupt, Invalid, NotFound

NOW = datetime(2026, 11, 16, 7, 41, 0, 123_456, UTC)


def made(**changes: object) -> Plan:
    plan = Plan(
        id=new_plan_id("delete-partitions", NOW),
        table="lake.orders",
        kind="delete-partitions",
        base=PlanBase("20261116070000000", "20261116070001000", "ab"),
        items=(
            PlanItem("dt=1", "older than 7 days", 3, 100, {"mark": "x"}),
            PlanItem("dt=2", "asked for", 1, 20),
        ),
        created_by="ann",
        created_at=NOW,
        options={"lakewright.undo.window": "7d"},
        skipped=(Skipped("dt=3", "a clustering is planned on it"),),
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


def test_ids_tell_kind_and_time_and_differ() -> None:
    ids = {new_plan_id("ttl", NOW.astimezone(timezone(timedelta(hours=9)))) for _ in range(50)}
    assert len(ids) > 40
    assert all(id.startswith("ttl-20261116T074100123-") for id in ids)
    assert check_plan_id(new_plan_id("delete-partitions", NOW)) == "20261116T074100123"


@pytest.mark.parametrize("kind", ["", "TTL", "a/b", "-a", "a-", "a b", ".."])
def test_strange_kinds_are_refused(kind: str) -> None:
    with pytest.raises(Invalid, match="no kind of plan"):
        new_plan_id(kind, NOW)


@pytest.mark.parametrize("id", ["", "../x", "ttl", "ttl-20261116T074100123-4f2a/..", "ttl-1-4f2a"])
def test_strange_ids_are_refused(id: str) -> None:
    with pytest.raises(Invalid, match="no id of a plan"):
        check_plan_id(id)


def test_a_plan_is_told_in_lines() -> None:
    plan = made()
    assert (plan.files, plan.bytes, plan.empty) == (4, 120, False)
    assert list(plan.lines()) == [
        f"plan {plan.id} of lake.orders: 2 items, 4 files of 120 bytes, made "
        "2026-11-16 07:41:00 UTC by ann",
        "  dt=1: 3 files of 100 bytes, older than 7 days",
        "  dt=2: 1 files of 20 bytes, asked for",
        "  left out: 1",
        "    dt=3: a clustering is planned on it",
    ]
    assert list(plan.lines(1))[2] == "  … and 1 more"


def test_items_are_explained() -> None:
    plan = made()
    assert "older than 7 days" in plan.explain("dt=1/")
    assert "mark: x" in plan.explain("dt=1")
    assert "left out" in plan.explain("dt=3")
    with pytest.raises(NotFound, match="says nothing of 'dt=4'"):
        plan.explain("dt=4")


def test_what_notebooks_show_is_escaped() -> None:
    plan = made(items=(PlanItem("dt=<b>", "a & b"),))
    shown = plan._repr_html_()
    assert "dt=&lt;b&gt;" in shown and "a &amp; b" in shown


texts = st.text(max_size=12)
items = st.builds(
    PlanItem,
    texts,
    texts,
    st.integers(0, 2**60),
    st.integers(0, 2**60),
    st.dictionaries(texts, texts, max_size=3),
)


@given(
    st.lists(items, max_size=4),
    st.lists(st.builds(Skipped, texts, texts), max_size=3),
    st.dictionaries(texts, texts, max_size=3),
    st.builds(PlanBase, st.none() | texts, st.none() | texts, texts),
)
def test_json_and_back(
    found: list[PlanItem], left: list[Skipped], options: dict[str, str], base: PlanBase
) -> None:
    plan = made(items=tuple(found), skipped=tuple(left), options=options, base=base)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value.pop("items"),
        lambda value: value.update(items=[{"target": 1}]),
        lambda value: value.update(created_at="2026-11-16T07:00:00"),
        lambda value: value.update(options=[1]),
        lambda value: value.update(id="../../etc"),
        lambda value: value.update(base=None),
    ],
)
def test_damaged_plans_are_named(spoil: object) -> None:
    value = json.loads(made().to_json())
    spoil(value)  # type: ignore[operator]
    with pytest.raises(Corrupt, match=r"here\.json cannot be read"):
        Plan.from_json(json.dumps(value), "here.json")


def test_no_json_at_all() -> None:
    with pytest.raises(Corrupt):
        Plan.from_json(b"{", "here.json")


def test_checksums_tell_texts_apart() -> None:
    assert checksum([]) == ""
    assert len({checksum(["a", "b"]), checksum(["ab"]), checksum(["b", "a"]), checksum([""])}) == 4
