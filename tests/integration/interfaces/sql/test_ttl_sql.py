"""Partition TTL by SQL: the specification's script as it is written, and the other procedures."""

from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.api.lake import Lake
from lakewright.model.errors import Invalid, NotFound
from support.retention import day, held, partition, row, users_table

#: The script of the specification, letter by letter.
SCRIPT = """\
-- Set default policy for all user_id, which keeps the data for 30 days.
call add_ttl_policy(table => 'test', partitionSpec => 'user_id=*/', policy => 'KEEP_BY_TIME', policyValue => '30');
 
--For partition user_id=1/, keep 10 sub partitions.
call add_ttl_policy(table => 'test', partitionSpec => 'user_id=1/', policy => 'KEEP_BY_COUNT', policyValue => '10');

--For partition user_id=2/, keep 100GB data in total
call add_ttl_policy(table => 'test', partitionSpec => 'user_id=2/', policy => 'KEEP_BY_SIZE', policyValue => '107374182400');

--For partition user_id=3/, keep the data for 7 day.
call add_ttl_policy(table => 'test', partitionSpec => 'user_id=3/', policy => 'KEEP_BY_TIME', policyValue => '7');

-- Show all the TTL policies including default and explicit policies
call show_ttl_policies(table => 'test');
"""  # noqa: E501, W293 - as it is written there
#: What it says that the script prints.
OUTPUT = """\
user_id=*/	KEEP_BY_TIME	30
user_id=1/	KEEP_BY_COUNT	10
user_id=2/	KEEP_BY_SIZE	107374182400
user_id=3/	KEEP_BY_TIME	7
"""
DAYS = {1: range(12), 2: range(3), 3: [4], 4: [0, 11]}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lw.connect(tmp_path / "lake")
    users_table(tmp_path / "t", DAYS)
    found.register_table("test", tmp_path / "t")
    return found


def answer(lake: Lake, text: str) -> list[dict[str, Any]]:
    found: Any = lake.sql(text)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_the_script_of_the_specification(lake: Lake) -> None:
    shown = answer(lake, SCRIPT)
    assert "".join("\t".join(map(str, one.values())) + "\n" for one in shown) == OUTPUT
    now = day(12).isoformat()
    rows = answer(lake, f"CALL show_expired_partitions(table => 'test', now => '{now}')")
    assert {one["partition"] for one in rows} == {
        partition(1, 0),
        partition(1, 1),
        partition(3, 4),
    }


def test_adding_answers_with_what_it_does(lake: Lake) -> None:
    call = "CALL add_ttl_policy('test', 'user_id=1/', 'KEEP_BY_COUNT', 10)"
    (told,) = answer(lake, call)
    assert told == {
        "partition_spec": "user_id=1/",
        "policy": "KEEP_BY_COUNT",
        "policy_value": 10,
        "replaced": None,
        "matches": 12,
        "would_expire": 2,
    }
    (again,) = answer(lake, call.replace("10)", "'11')"))
    assert again["replaced"] == "user_id=1/ KEEP_BY_COUNT 10" and again["would_expire"] == 1
    (event,) = answer(
        lake,
        "CALL add_ttl_policy(table => 'test', partitionSpec => 'user_id=4/', policy => "
        "'KEEP_BY_EVENT_TIME', policyValue => 3, zone => 'Europe/Berlin', reference => 'end')",
    )
    assert event["matches"] == 2
    (gone,) = answer(lake, "CALL drop_ttl_policy(table => 'test', partitionSpec => 'user_id=4/')")
    assert gone["policy"] == "KEEP_BY_EVENT_TIME"
    with pytest.raises(NotFound, match="no TTL policy"):
        lake.sql("CALL drop_ttl_policy('test', 'user_id=4/')")
    for bad in ("policyValue => 'ten'", "policyValue => 0", "policyValue => -5"):
        with pytest.raises(Invalid):
            lake.sql(
                "CALL add_ttl_policy(table => 'test', partitionSpec => '/', "
                f"policy => 'KEEP_BY_TIME', {bad})"
            )
    with pytest.raises(Invalid, match="KEEP_BY_TIME"):
        lake.sql("CALL add_ttl_policy('test', '/', 'KEEP_FOREVER', 1)")


def test_what_would_be_done_is_told(lake: Lake) -> None:
    table = lake.table("test")
    added = "CALL add_ttl_policy(table => 'test', partitionSpec => '/', policy => 'KEEP_BY_TIME', "
    (told,) = answer(lake, added + "policyValue => 5, dry_run => true)")
    assert told["plan"].startswith("nothing is stored: added / KEEP_BY_TIME 5: matches 18")
    assert len(table.ttl.show()) == 0
    lake.sql(added + "policyValue => 5)")
    drop = "CALL drop_ttl_policy(table => 'test', partitionSpec => '/', dry_run => true)"
    (told,) = answer(lake, drop)
    assert told["plan"] == "/\tKEEP_BY_TIME\t5" and len(table.ttl.show()) == 1
    plan = table.ttl.plan(day(6))
    asked = f"(table => 'test', plan => '{plan.id}', dry_run => true)"
    assert len(answer(lake, f"CALL apply_plan{asked}")) == 4
    (told,) = answer(lake, f"CALL undo_plan{asked}")
    assert "cannot be undone" in told["plan"] and len(held(table)) == 18
    plan.apply()
    shown = [one["plan"] for one in answer(lake, f"CALL undo_plan{asked}")]
    assert shown[0] == f"the plan {plan.id} can be undone: 3 come back" and len(shown) == 4


def test_a_run_is_dry_unless_it_is_told_otherwise(lake: Lake) -> None:
    table = lake.table("test")
    lake.sql("CALL add_ttl_policy('test', 'user_id=1/', 'KEEP_BY_COUNT', 10)")
    dry = answer(lake, "CALL run_ttl(table => 'test')")
    assert [(one["deleted_partitions"], one["plan"]) for one in dry] == [
        (partition(1, 0), None),
        (partition(1, 1), None),
    ]
    assert all(one["status"].startswith("would be dropped: dry_run => false") for one in dry)
    assert list(table.plans()) == [] and len(held(table)) == 18
    ran = answer(lake, "CALL run_ttl(table => 'test', dry_run => false)")
    assert [one["status"] for one in ran] == ["dropped", "dropped"]
    assert len(held(table)) == 16
    assert answer(lake, "CALL run_ttl(table => 'test', dry_run => false)") == []
    (kept,) = answer(lake, "CALL show_plans(table => 'test')")
    assert (kept["plan"], kept["state"]) == (ran[0]["plan"], "applied")
    back = answer(lake, f"CALL undo_plan(table => 'test', plan => '{kept['plan']}')")
    assert {one["status"] for one in back} == {"restored"} and len(held(table)) == 18


def test_the_arguments_of_hudi(lake: Lake) -> None:
    now = day(12).isoformat()
    call = f"CALL run_ttl(table => 'test', retain_days => 10, now => '{now}')"
    assert {one["deleted_partitions"] for one in answer(lake, call)} == {
        partition(user, n) for user, given in DAYS.items() for n in given if n < 2
    }
    by_creation = call.replace("retain", "ttl_policy => 'KEEP_BY_CREATION_TIME', retain")
    assert len(answer(lake, by_creation)) == 5
    with pytest.raises(Invalid, match="how many days"):
        lake.sql("CALL run_ttl(table => 'test', ttl_policy => 'KEEP_BY_TIME')")
    with pytest.raises(Invalid, match="retain_days is 0"):
        lake.sql("CALL run_ttl(table => 'test', retain_days => 0)")
    with pytest.raises(Invalid, match="no time with a time zone"):
        lake.sql("CALL run_ttl(table => 'test', now => '2026-01-01')")


def test_why_a_partition_is_kept(lake: Lake) -> None:
    lake.sql("CALL add_ttl_policy('test', '/', 'KEEP_BY_TIME', 5)")
    (told,) = answer(
        lake,
        f"CALL explain_ttl(table => 'test', partition => '{partition(3, 4)}', "
        f"now => '{day(5).isoformat()}')",
    )
    assert told["expired"] is False and told["expires_at"] == day(9)
    assert told["policy"] == "/ KEEP_BY_TIME 5"
    assert told["reason"] == (
        "last changed 2026-01-05 12:00:00 UTC, kept for 5 days: goes after 2026-01-10 12:00:00 UTC"
    )


def test_a_plan_is_applied_by_its_id(lake: Lake) -> None:
    table = lake.table("test")
    table.ttl.add("/", "KEEP_BY_TIME", 5)
    made = table.ttl.plan(day(6))
    table.upsert([row(1, 0, n=9)])
    told = answer(lake, f"CALL apply_plan(table => 'test', plan => '{made.id}')")
    statuses = {one["target"]: one["status"] for one in told}
    assert statuses == {
        partition(1, 0): "skipped",
        partition(2, 0): "done",
        partition(4, 0): "done",
    }
