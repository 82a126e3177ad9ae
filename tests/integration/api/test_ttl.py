"""``Table.ttl``: set, preview, explain, apply, undo; and what a plan is refused for."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.lifecycle.ttl import planning
from lakewright.lifecycle.ttl.statistics_store import STATISTICS_FOLDER
from lakewright.model.errors import Conflict, Invalid, InvalidOption, NotFound
from lakewright.model.instant import instant_time
from lakewright.model.services import Outcome, Service
from lakewright.storage.open import open_storage
from support.retention import day, held, instant, partition, row, users_table

#: Three users; the third wrote on one day.
DAYS = {1: range(12), 2: range(12), 3: [4]}


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    return users_table(tmp_path / "t", DAYS)


def everything(table: lw.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.scan(meta=True).to_arrow().sort_by("id").to_pylist()
    return rows


def test_a_day_of_an_operator(table: lw.Table) -> None:
    before = everything(table)
    set_ = table.ttl.add("user_id=*/", "KEEP_BY_TIME", 5)
    assert str(set_) == (
        "added user_id=*/ KEEP_BY_TIME 5: matches 25 partitions, would expire 25 now"
    )
    assert table.ttl.add("user_id=1/", "KEEP_BY_COUNT", "10").effect.expires == 2
    now = day(11)
    late = table.ttl.explain(partition(2, 11), now)
    assert not late.expired and late.expires_at == day(16)
    assert "goes after 2026-01-17 12:00:00 UTC" in late.reason
    plan = table.ttl.plan(now)
    gone = [partition(2, n) for n in range(6)] + [partition(3, 4), partition(1, 0), partition(1, 1)]
    assert sorted(item.target for item in plan.items) == sorted(gone)
    assert "12 partitions below user_id=1/, 10 are kept" in plan.explain(partition(1, 0))
    assert everything(table) == before and plan.state is PlanState.PLANNED
    done = plan.apply()
    assert sorted(done.done) == sorted(gone) and not done.skipped
    assert held(table) == sorted(
        {partition(user, n) for user, given in DAYS.items() for n in given} - set(gone)
    )
    assert table.ttl.plan(now).empty, "what is emptied is not picked again"
    assert plan.why_not_undoable() is None
    plan.undo()
    assert everything(table) == before
    (record,) = table.plans()
    assert (record.plan.id, record.state) == (plan.id, PlanState.UNDONE)
    assert [run.verb for run in plan.runs()] == ["applying", "undoing"]
    with pytest.raises(Invalid, match="undone already"):
        plan.undo()


def test_another_process_applies_and_undoes(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    made = table.ttl.plan(day(10))
    again = lw.open_table(table.path)
    again.plan(made.id).apply()
    with pytest.raises(Conflict, match="applied by"):
        made.apply()
    lw.open_table(table.path).upsert([row(2, 0, n=7)])
    again.plan(made.id).undo()
    found = {one["id"]: one["n"] for one in table.scan().to_arrow().to_pylist()}
    assert len(found) == 25 and found["2-0"] == 7


def test_the_policies_of_a_table(table: lw.Table) -> None:
    table.ttl.add("user_id=2/", "KEEP_BY_SIZE", 107374182400)
    table.ttl.add("user_id=*/", "KEEP_BY_TIME", 30)
    shown = table.ttl.show()
    assert str(shown) == "user_id=*/\tKEEP_BY_TIME\t30\nuser_id=2/\tKEEP_BY_SIZE\t107374182400"
    assert json.loads(shown.to_json())[0] == {
        "partitionSpec": "user_id=*/",
        "policy": "KEEP_BY_TIME",
        "policyValue": 30,
    }
    assert "<td>user_id=2/</td>" in shown._repr_html_()
    again = table.ttl.add("user_id=2/", "KEEP_BY_TIME", 7)
    assert "replaces user_id=2/ KEEP_BY_SIZE 107374182400" in str(again)
    assert table.ttl.drop("user_id=2/").value == 7
    assert len(table.ttl.show()) == 1
    with pytest.raises(NotFound, match="no TTL policy for user_id=9/"):
        table.ttl.drop("user_id=9/")
    with pytest.warns(UserWarning, match="user_id=9/ matches none"):
        table.ttl.add("user_id=9/", "KEEP_BY_TIME", 7)
    for value in (0, -1, "2.5"):
        with pytest.raises(Invalid):
            table.ttl.add("user_id=1/", "KEEP_BY_TIME", value)
    assert len(table.ttl.show()) == 2


def test_a_plan_is_stale_when_policies_changed(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    plan = table.ttl.plan(day(10))
    table.ttl.add("/", "KEEP_BY_TIME", 50)
    with pytest.raises(Conflict, match="its TTL policies are others now"):
        plan.apply()
    assert len(held(table)) == 25


def test_a_plan_is_stale_when_fewer_are_there_to_count(table: lw.Table) -> None:
    table.ttl.add("user_id=1/", "KEEP_BY_COUNT", 10)
    plan = table.ttl.plan()
    assert [item.target for item in plan.items] == [partition(1, 0), partition(1, 1)]
    table.delete_partitions([partition(1, 10), partition(1, 11)])
    with pytest.raises(Conflict, match="user_id=1/ts=2026-01-01 is kept now"):
        plan.apply()
    assert len(held(table)) == 23


def test_late_rows_keep_their_partition(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    plan = table.ttl.plan(day(10))
    assert partition(1, 0) in {item.target for item in plan.items}
    table.upsert([row(1, 0, n=1)], instant=instant(12))
    with pytest.raises(Conflict, match="would be skipped"):
        plan.apply(strict=True)
    done = plan.apply()
    (left,) = done.skipped
    assert left.target == partition(1, 0) and "was written by" in left.reason
    assert partition(1, 0) in held(table)


def test_a_planned_service_keeps_its_partition(tmp_path: Path) -> None:
    table = users_table(tmp_path / "t", {1: range(4)}, kind="MERGE_ON_READ")
    table.upsert([row(1, 0, n=1)], instant=instant(5))
    table.schedule_compaction(partitions=[partition(1, 0)])
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    plan = table.ttl.plan(day(30))
    assert len(plan.items) == 3
    (left,) = plan.plan.skipped
    assert left.target == partition(1, 0) and "a compaction is planned" in left.reason
    ran = table.ttl.run(day(30))
    assert ran.applied is not None and len(ran.applied.done) == 3
    table.compact()
    (again,) = table.ttl.plan(day(30)).items
    assert again.target == partition(1, 0), "a compaction is no modification"


def test_a_run_has_a_limit(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    few = {"hoodie.partition.ttl.strategy.max.delete.partitions": "4"}
    plan = table.ttl.plan(day(40), options=few)
    # The longest overdue first.
    assert [item.target for item in plan.items] == [
        partition(1, 0),
        partition(2, 0),
        partition(1, 1),
        partition(2, 1),
    ]
    (rest,) = plan.plan.skipped
    assert rest.target == "*" and rest.reason.startswith("21 more have expired")
    runs = 0
    while table.ttl.run(day(40), options=few).applied is not None:
        runs += 1
    assert runs == 7 and held(table) == []


def test_the_options_of_hudi_are_policies_of_one_run(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 10_000)
    asked = {"hoodie.partition.ttl.strategy.days.retain": "5"}
    assert table.ttl.plan(day(10)).empty
    plan = table.ttl.plan(day(10), options=asked)
    assert {item.target for item in plan.items} == {
        *(partition(user, n) for user in (1, 2) for n in range(5)),
        partition(3, 4),
    }
    plan.apply()
    selected = {**asked, "hoodie.partition.ttl.strategy.partition.selected": partition(1, 5)}
    assert [v.partition for v in table.ttl.expired(day(40), options=selected)] == [partition(1, 5)]


def test_days_among_the_properties_hold_where_no_policy_is_stored(tmp_path: Path) -> None:
    days = {"hoodie.partition.ttl.strategy.days.retain": "3"}
    table = users_table(tmp_path / "t", {1: [0, 5]}, properties=days)
    assert [v.partition for v in table.ttl.expired(day(6))] == [partition(1, 0)]
    table.ttl.add("/", "KEEP_BY_TIME", 30)
    assert table.ttl.expired(day(6)) == []


def test_statistics_alone_drop_nothing(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    table.upsert([row(1, 0, n=1)], instant=instant(20))
    table.ttl.statistics()
    (file,) = Path(table.path, STATISTICS_FOLDER).glob(f"{instant(20)}.json")
    # Somebody meddled with the file: by it, the newest row is as old as can be.
    file.write_text(file.read_text().replace(f'"{instant(20)}", "Part', f'"{instant(0)}", "Part'))
    assert table.ttl.explain(partition(1, 0), day(21)).expired
    assert table.ttl.verify_statistics()
    plan = table.ttl.plan(day(21))
    assert len(plan.items) == 24 and partition(1, 0) not in {item.target for item in plan.items}
    assert table.ttl.verify_statistics() == ()


def meddled(table: lw.Table, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the partitions of the statistics that are kept, as a hand or a fault might."""
    table.ttl.statistics()
    file = max(Path(table.path, STATISTICS_FOLDER).glob("*.json"))
    body = json.loads(file.read_text())
    change(body["Partitions"])
    file.write_text(json.dumps(body))


def more_of_them(partitions: list[dict[str, Any]]) -> None:
    partitions += [
        {**partitions[-1], "RelativePath": partition(1, 20 + number)} for number in range(5)
    ]


def heavier(partitions: list[dict[str, Any]]) -> None:
    (found,) = (held for held in partitions if held["RelativePath"] == partition(1, 11))
    found["PartitionTotalFileSize"] = 10**6 - 1


@pytest.mark.parametrize(
    ("kind", "value", "change"),
    [("KEEP_BY_COUNT", 12, more_of_them), ("KEEP_BY_SIZE", 10**6, heavier)],
)
def test_others_that_statistics_tell_of_alone_drop_nothing(
    table: lw.Table,
    kind: str,
    value: int,
    change: Callable[[list[dict[str, Any]]], None],
) -> None:
    table.ttl.add("user_id=1/", kind, value)
    assert table.ttl.plan().empty
    meddled(table, change)
    assert table.ttl.expired()
    assert table.ttl.plan().empty
    assert table.ttl.verify_statistics() == ()


def test_others_must_be_there_when_a_plan_is_applied(table: lw.Table) -> None:
    table.ttl.add("user_id=1/", "KEEP_BY_COUNT", 10)
    plan = table.ttl.plan()
    assert [item.target for item in plan.items] == [partition(1, 0), partition(1, 1)]
    table.delete_partitions([partition(1, 11)])
    meddled(table, more_of_them)
    with pytest.raises(Conflict, match="is kept now"):
        plan.apply()


@pytest.mark.parametrize(
    ("kind", "value", "change"),
    [("KEEP_BY_COUNT", 12, more_of_them), ("KEEP_BY_SIZE", 10**6, heavier)],
)
def test_others_too_many_to_be_listed_for_a_plan_are_when_it_is_applied(
    table: lw.Table,
    kind: str,
    value: int,
    change: Callable[[list[dict[str, Any]]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "OTHERS_LISTED", 0)
    table.ttl.add("user_id=1/", kind, value)
    meddled(table, change)
    plan = table.ttl.plan()
    assert not plan.empty
    before = table.scan().count()
    with pytest.raises(Conflict, match="is kept now"):
        plan.apply()
    assert table.scan().count() == before
    # The statistics were gathered anew on the way.
    assert table.ttl.plan().empty and table.ttl.run().applied is None


def test_a_clock_must_have_a_zone_and_may_go_backwards(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    with pytest.raises(Invalid, match="no time zone"):
        table.ttl.plan(dt.datetime(2026, 1, 20))
    assert table.ttl.plan(day(-100)).empty
    assert "in the future" in table.ttl.explain(partition(1, 11), day(3)).reason


def test_an_unknown_partition_is_answered_with_near_ones(table: lw.Table) -> None:
    with pytest.raises(NotFound, match="Nearest: user_id=1/ts=2026-01-"):
        table.ttl.explain("user_id=1/ts=2026-01-00")
    assert table.ttl.explain(partition(1, 0)).reason == "no policy names it"


def test_creation_counts_from_the_first_write(tmp_path: Path) -> None:
    table = users_table(tmp_path / "t", {1: [0, 1]})
    table.ttl.add("/", "KEEP_BY_CREATION_TIME", 10)
    table.upsert([row(1, 0, n=1)], instant=instant(9))
    assert [v.partition for v in table.ttl.expired(day(10.5))] == [partition(1, 0)]
    # A partition that was dropped and written again is as young as its rows.
    table.delete_partitions([partition(1, 0)], instant=instant(10))
    table.upsert([row(1, 0, n=2)], instant=instant(10.5))
    assert table.ttl.explain(partition(1, 0)).expires_at == day(20.5)
    assert table.ttl.explain(partition(1, 1)).expires_at == day(11)


KINDS = [
    ("/", "KEEP_BY_TIME", 3, 3),
    ("/", "KEEP_BY_CREATION_TIME", 3, 3),
    ("user_id=*/", "KEEP_BY_EVENT_TIME", 3, 3),
    ("user_id=1/", "KEEP_BY_COUNT", 1, 7),
    ("user_id=1/", "KEEP_BY_SIZE", 1, 7),
]


@pytest.mark.parametrize(("spec", "kind", "value", "term"), KINDS)
@pytest.mark.parametrize("written", [False, True])
def test_what_an_undo_brought_back_stays_for_a_term(
    tmp_path: Path, spec: str, kind: str, value: int, term: int, written: bool
) -> None:
    table = users_table(tmp_path / "t", {1: [0, 1]})
    table.ttl.add(spec, kind, value)
    first = table.ttl.run().applied
    assert first is not None and partition(1, 0) in first.done
    if written:
        table.upsert([row(1, 0, n=7)])
    began = dt.datetime.now(dt.UTC)
    undone = table.plan(first.plan).undo()
    assert undone.how.startswith("by a commit" if written else "by a rollback")
    before = everything(table)
    assert table.ttl.run().applied is None
    verdict = table.ttl.explain(partition(1, 0))
    until = began + dt.timedelta(days=term)
    assert verdict.expires_at is not None
    assert until - dt.timedelta(seconds=1) <= verdict.expires_at <= until + dt.timedelta(minutes=5)
    # Neither statistics that are gathered anew nor the forgetting of plans changes that.
    table.ttl.statistics(rebuild=True)
    PlanStore(open_storage(table.path)).delete(first.plan)
    assert table.ttl.run().applied is None and everything(table) == before
    assert table.ttl.verify_statistics() == ()
    later = table.ttl.run(verdict.expires_at + dt.timedelta(minutes=5)).applied
    assert later is not None and partition(1, 0) in later.done


def test_an_undo_by_a_rollback_is_a_modification(tmp_path: Path) -> None:
    table = users_table(tmp_path / "t", {1: [0, 1]})
    table.ttl.statistics()
    plan = table.plan_delete_partitions([partition(1, 0)])
    plan.apply()
    began = instant_time(dt.datetime.now(dt.UTC))
    assert plan.undo().how == "by a rollback"
    found = table.ttl.statistics().partitions
    assert found[partition(1, 0)].last_modified >= began
    assert found[partition(1, 1)].last_modified == instant(1)


def test_an_undo_of_which_all_rows_stayed_out_is_counted_alike(tmp_path: Path) -> None:
    table = users_table(tmp_path / "t", {1: [0, 1]})
    plan = table.plan_delete_partitions([partition(1, 0)])
    plan.apply()
    table.upsert([row(1, 0), row(1, 1)])
    table.ttl.statistics()
    undone = plan.undo()
    assert (undone.rows, undone.kept_out) == (0, 1)
    table.ttl.statistics()
    assert table.ttl.verify_statistics() == ()


def test_a_plan_is_stale_when_an_undo_brought_its_partitions_back(table: lw.Table) -> None:
    table.ttl.add("user_id=3/", "KEEP_BY_TIME", 5)
    first, second = table.ttl.plan(), table.ttl.plan()
    named = table.plan_delete_partitions([partition(3, 4)])
    first.apply()
    first.undo()
    for stale in (second, named):
        with pytest.raises(Conflict, match=r"an undo brought 'user_id=3/.*' back"):
            stale.apply()
        assert stale.state is PlanState.PLANNED
    table.plan_delete_partitions([partition(3, 4)]).apply()
    assert partition(3, 4) not in held(table)


def test_inline_after_a_commit(tmp_path: Path) -> None:
    properties = {"hoodie.partition.ttl.inline": "true"}
    table = users_table(tmp_path / "t", {1: range(3)}, properties=properties)
    table.ttl.add("user_id=1/", "KEEP_BY_COUNT", 3)
    assert table.upsert([row(1, 2, n=1)]).services == ()
    result = table.upsert([row(1, 3)])
    (told,) = result.services
    assert (told.service, told.outcome) == (Service.TTL, Outcome.DONE)
    assert told.counts.files_deleted == 1 and "1 done" in told.did
    assert held(table) == [partition(1, n) for n in (1, 2, 3)]
    off = table.upsert([row(1, 4)], options={"hoodie.table.services.enabled": "false"})
    assert off.services == () and len(held(table)) == 4


def test_the_services_runner_applies_policies(tmp_path: Path) -> None:
    table = users_table(tmp_path / "t", {1: range(3)})
    chosen = {"lakewright.services": "ttl,cleaning"}
    (ttl, cleaning) = table.look_after(options=chosen)
    assert (ttl.outcome, cleaning.service) == (Outcome.NOTHING, Service.CLEANING)
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    (due, _) = table.look_after(dry_run=True, options=chosen)
    assert due.outcome is Outcome.DUE and len(held(table)) == 3
    (done, _) = table.look_after(options=chosen)
    assert done.outcome is Outcome.DONE and held(table) == []
    assert done.instant is not None
    (record,) = table.plans()
    assert record.applied is not None and record.applied.instant == done.instant.requested


def test_the_services_runner_forgets_what_plans_held(table: lw.Table) -> None:
    plan = table.plan_delete_partitions([partition(1, 0)], options={"lakewright.undo.window": "0s"})
    plan.apply()
    chosen = {"lakewright.services": "ttl", "lakewright.plans.retention": "0s"}
    table.look_after(options=chosen)
    assert list(table.plans()) == []


def test_partitions_can_be_dropped_by_plan_alone(table: lw.Table) -> None:
    plan = table.plan_delete_partitions(
        [{"user_id": 1, "ts": "2026-01-01"}, partition(3, 4)], reason="they asked to be forgotten"
    )
    assert plan.explain(partition(3, 4)).startswith(
        f"{partition(3, 4)} is in the plan {plan.id}: they asked to be forgotten"
    )
    plan.apply()
    assert len(held(table)) == 23
    with pytest.raises(NotFound, match="There is no plan"):
        table.plan("ttl-20260101T000000000-0000")


def test_strict_refuses_what_waits_for_a_service(tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, v int, d string",
        key="id",
        partition_by=["d"],
        type="MERGE_ON_READ",
    )
    for number, letter in enumerate("abab"):
        table.upsert([{"id": letter, "v": number, "d": letter}], instant=instant(number))
    table.schedule_compaction(partitions=["d=a"])
    table.ttl.add("d=*/", "KEEP_BY_TIME", 3)
    with pytest.raises(Conflict, match=r"left out of the plan.*'d=a': a compaction is planned"):
        table.ttl.run(day(30), strict=True)
    assert table.scan().count() == 2 and not list(table.plans())
    plan = table.plan_delete_partitions(["d=a"])
    assert plan.empty
    with pytest.raises(Conflict, match="left out"):
        plan.apply(strict=True)
    ran = table.ttl.run(day(30))
    assert ran.applied is not None and ran.applied.done == ("d=b",)
    with pytest.raises(Conflict, match="left out"):
        table.ttl.run(day(30), strict=True)
    assert [record.state for record in table.plans()] == [PlanState.APPLIED]


def test_strict_lets_the_most_of_one_run_go(table: lw.Table) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 1)
    most = {"hoodie.partition.ttl.strategy.max.delete.partitions": "3"}
    ran = table.ttl.run(strict=True, options=most)
    assert ran.applied is not None and len(ran.applied.done) == 3
    assert ran.plan.skipped[-1].rest and Plan.from_json(ran.plan.to_json()) == ran.plan


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lakewright.undo.window", "abc"),
        ("lakewright.undo.savepoint", "maybe"),
        ("lakewright.plans.retention", "-1"),
        ("hoodie.cleaner.policy", "NEVER"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_kept(
    table: lw.Table, key: str, value: str
) -> None:
    table.ttl.add("/", "KEEP_BY_TIME", 1)
    wrong = {key: value}
    before = sorted(Path(table.path, ".hoodie").rglob("*"))
    attempts: list[Callable[[], object]] = [
        lambda: table.ttl.run(options=wrong),
        lambda: table.ttl.plan(options=wrong),
        lambda: table.plan_delete_partitions([partition(1, 0)], options=wrong),
        lambda: table.plan_orphans(options=wrong),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidOption, match=key):
            attempt()
    assert sorted(Path(table.path, ".hoodie").rglob("*")) == before
    plan = table.ttl.plan()
    again = table.plan(plan.id, options=wrong)
    with pytest.raises(InvalidOption, match=key):
        again.apply()
    assert plan.state is PlanState.PLANNED
    plan.apply()
    with pytest.raises(InvalidOption, match=key):
        again.undo()
    assert plan.state is PlanState.APPLIED
