"""Damaged files of plans: the others are looked after, nothing that counts is lost or hidden."""

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lakewright as lw
from lakewright.api.table import Table
from lakewright.interfaces.cli.main import app
from lakewright.lifecycle import letting_go
from lakewright.lifecycle.plans.apply import purge_overdue
from lakewright.lifecycle.plans.quarantine import QUARANTINE_FOLDER
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PLANS_FOLDER, PlanStore
from lakewright.model.errors import Conflict, Corrupt, Unavailable
from lakewright.storage.open import open_storage
from lakewright.table.pins import PINS_FOLDER
from support.servicing import servicing

NOW = dt.datetime.now(dt.UTC)
LATER = NOW + dt.timedelta(days=400)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = lw.create_table(
        tmp_path / "t", schema="id string, d string", key="id", partition_by=["d"]
    )
    made.upsert([{"id": "1", "d": "a"}, {"id": "2", "d": "b"}], instant=NOW - dt.timedelta(days=20))
    made.upsert([{"id": "3", "d": "c"}])
    made.ttl.add("/", "KEEP_BY_TIME", 10)
    return made


def file(table: Table, plan: str, name: str) -> Path:
    return Path(table.path, PLANS_FOLDER, plan, name)


def edit(path: Path, *keys: str | int, value: object = None) -> None:
    """Set a member of a JSON file, or delete it."""
    body = json.loads(path.read_text())
    *outer, last = keys
    inner = body
    for key in outer:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    path.write_text(json.dumps(body))


def test_a_damaged_old_plan_hides_no_result_and_no_other_plan(table: Table) -> None:
    old = table.plan_delete_partitions(["d=c"])
    file(table, old.id, "plan.json").write_text('{"id"')
    ran = table.ttl.run()
    assert ran.applied is not None
    assert ran.applied.done == ("d=a", "d=b")
    found = {record.plan.id: record for record in table.plans()}
    assert found[ran.plan.id].state is PlanState.APPLIED
    damaged = found[old.id]
    assert (damaged.state, damaged.plan.kind) == (PlanState.DAMAGED, "delete-partitions")
    assert abs(damaged.plan.created_at - NOW) < dt.timedelta(hours=1)
    assert f"{old.id}/plan.json cannot be read" in str(damaged)
    assert "restore it from a copy. Otherwise delete its folder" in str(damaged)


def test_a_damaged_pin_hides_no_result(table: Table) -> None:
    open_storage(table.path).write(f"{PINS_FOLDER}/x.json", b"{")
    assert table.ttl.run().applied is not None
    assert table.scan().count() == 1


def test_what_cannot_be_let_go_of_is_told_and_not_raised(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise Unavailable("the store is away.", next_step="Wait.")

    monkeypatch.setattr(letting_go, "release_ended", fails)
    ran = table.ttl.run()
    assert ran.applied is not None
    assert ran.notes == ("the store is away. Wait.",)


@pytest.mark.parametrize("verb", ["finish_applying", "finish_undoing"])
def test_a_record_that_cannot_be_kept_hides_no_result(
    verb: str, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise Unavailable("the store is away.", next_step="Wait.")

    plan = table.ttl.plan()
    with monkeypatch.context() as patched:
        patched.setattr(PlanStore, verb, fails)
        assert plan.apply().done == ("d=a", "d=b")
        if verb == "finish_undoing":
            assert plan.undo().restored == ("d=a", "d=b")
    assert plan.undo().restored == ("d=a", "d=b")
    assert plan.state is PlanState.UNDONE
    assert table.scan().count() == 3


def test_a_damaged_record_is_not_to_be_deleted(table: Table) -> None:
    plan = table.ttl.plan()
    plan.apply()
    file(table, plan.id, "applied.json").write_text("{")
    (record,) = table.plans()
    assert record.state is PlanState.DAMAGED
    assert record.plan == plan.plan
    with pytest.raises(Corrupt, match="needs it: restore it from a copy") as told:
        plan.undo()
    assert "elete" not in str(told.value)


@pytest.mark.parametrize(
    "keys", [("partitions", "d=a", "slices"), ("partitions",), ("skipped",), ("until",)]
)
def test_a_prepared_file_without_a_member_is_corrupt(table: Table, keys: tuple[str, ...]) -> None:
    plan = table.ttl.plan()
    plan.apply()
    edit(file(table, plan.id, "prepared-1.json"), *keys)
    with pytest.raises(Corrupt, match=r"prepared-1\.json cannot be read.*restore it from a copy"):
        plan.undo()


@pytest.mark.parametrize("left", ["prepared-1.json", "applied.json"])
def test_records_that_contradict_each_other_are_refused(table: Table, left: str) -> None:
    plan = table.ttl.plan()
    plan.apply()
    keys = ("partitions", "d=b") if left == "prepared-1.json" else ("done", 1)
    edit(file(table, plan.id, left), *keys)
    with pytest.raises(Corrupt, match="'d=b' is in one of them alone"):
        plan.undo()
    with pytest.raises(Corrupt):
        plan.why_not_undoable()
    assert table.scan().count() == 1


EDITS: tuple[tuple[tuple[str | int, ...], object], ...] = (
    (("options",), {"lakewright.undo.window": "0s"}),
    (("items", 0, "target"), "d=c"),
    (("items", 0, "reason"), "somebody said so"),
    (("purge",), True),
    (("table",), "other"),
    (("seal",), "0" * 64),
)


@pytest.mark.parametrize(("keys", "value"), EDITS)
def test_an_edited_plan_is_refused(
    table: Table, keys: tuple[str | int, ...], value: object
) -> None:
    plan = table.plan_delete_partitions(["d=a"])
    edit(file(table, plan.id, "plan.json"), *keys, value=value)
    with pytest.raises(Corrupt, match=r"plan\.json is not as it was made: its seal"):
        table.plan(plan.id).apply()
    (record,) = table.plans()
    assert record.state is PlanState.DAMAGED
    assert table.scan().count() == 3


def test_a_plan_that_was_written_anew_is_refused(table: Table) -> None:
    plan = table.plan_delete_partitions(["d=a"])
    path = file(table, plan.id, "plan.json")
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    with pytest.raises(Corrupt, match="its seal is not at its end"):
        plan.apply()


def test_a_plan_in_the_folder_of_another_is_refused(table: Table) -> None:
    one, two = table.plan_delete_partitions(["d=a"]), table.plan_delete_partitions(["d=b"])
    file(table, two.id, "plan.json").write_bytes(file(table, one.id, "plan.json").read_bytes())
    with pytest.raises(Corrupt, match=f"it is the plan {one.id}"):
        two.apply()
    assert table.scan().count() == 3


def test_a_plan_of_another_table_is_refused(table: Table, tmp_path: Path) -> None:
    plan = table.plan_delete_partitions(["d=a"])
    other = lw.create_table(
        tmp_path / "u", schema="id string, d string", key="id", partition_by=["d"]
    )
    other.upsert([{"id": "1", "d": "a"}])
    shutil.copytree(file(table, plan.id, ""), file(other, plan.id, ""))
    with pytest.raises(Conflict, match="the plan is of another table"):
        other.plan(plan.id).apply()
    assert [record.state for record in other.plans()] == [PlanState.PLANNED]


def test_a_plan_is_stale_when_the_write_below_it_was_taken_back(table: Table) -> None:
    plan = table.plan_delete_partitions(["d=a"])
    table.rollback(table.timeline.data()[-1].requested)
    with pytest.raises(Conflict, match="that write was taken back"):
        plan.apply()


@pytest.mark.parametrize("kind", [None, "KEEP_BY_X"])
def test_an_edited_plan_without_a_seal_is_refused(table: Table, kind: str | None) -> None:
    plan = table.ttl.plan()
    edit(file(table, plan.id, "plan.json"), "items", 0, "facts", "kind", value=kind)
    edit(file(table, plan.id, "plan.json"), "seal")
    with pytest.raises(Corrupt, match="is not as plans of the kind ttl are"):
        table.plan(plan.id).apply()
    assert table.scan().count() == 3


def test_folders_of_others_are_no_plans(table: Table) -> None:
    plan = table.ttl.plan()
    Path(table.path, PLANS_FOLDER, "lost+found").mkdir()
    assert [record.plan.id for record in table.plans()] == [plan.id]


def test_a_damaged_quarantine_hides_no_other(table: Table) -> None:
    storage = open_storage(table.path)
    name = "orphans-20261116T074100123-4f2a"
    storage.write(f"{QUARANTINE_FOLDER}/{name}.json", b"{")
    other = "orphans-20261116T074100124-4f2a"
    body = {"plan": other, "until": NOW.isoformat(), "why": "w", "files": []}
    storage.write(f"{QUARANTINE_FOLDER}/{other}.json", json.dumps(body).encode())
    first, second = table.quarantined()
    assert (first.plan, second.damage) == (name, None)
    assert "where the files beside it belong" in str(first)
    assert [one.plan for one in purge_overdue(servicing(storage), LATER)] == [other]


def test_sql_and_the_command_line_list_damaged_plans(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path / "lake")
    columns = "id string, d string"
    made = lake.create_table("t", schema=columns, key="id", partition_by=["d"])
    made.upsert([{"id": "1", "d": "a"}])
    whole, damaged = (made.plan_delete_partitions(["d=a"]).id for _ in range(2))
    file(made, damaged, "plan.json").write_text("{")
    shown = {row["plan"]: row for row in lake.sql("CALL show_plans(table => 't')").to_pylist()}
    assert (shown[whole]["state"], shown[whole]["damage"]) == ("planned", None)
    assert shown[damaged]["state"] == "damaged"
    assert "restore it from a copy" in shown[damaged]["damage"]
    ran = CliRunner().invoke(app, ["plans", "list", made.path, "-o", "json"])
    told = {row["plan"]: row["damage"] for row in json.loads(ran.stdout)}
    assert told[whole] is None
    assert "restore it from a copy" in told[damaged]
