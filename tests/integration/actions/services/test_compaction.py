"""Compaction from plan to commit: rows, what Hudi's readers find, rivals, crashes."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.services import compaction, compaction_planning
from lakewright.actions.services.compaction import compact, schedule_compaction
from lakewright.actions.services.compaction_scope import partitions_with_logs
from lakewright.api.table import Table
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.model.errors import Conflict, Invalid
from lakewright.model.instant import Action, Instant
from lakewright.model.services import ServiceResult
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_upkeep import StorageUpkeep
from support.commits import committer
from support.grouped import by_hudi, crash_everywhere, deleted, grouped_table, put, rows
from support.servicing import servicing

KINDS = [(9, 2, "n"), (9, None, None), (6, 2, None), (6, None, "n")]


@pytest.fixture(params=KINDS, ids=lambda kind: f"v{kind[0]}-{kind[1] or 'lookup'}-{kind[2]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return made(tmp_path, *request.param)


@pytest.fixture
def modern(tmp_path: Path) -> Table:
    return made(tmp_path, 9, 2, "n")


def made(folder: Path, version: int, buckets: int | None, order: str | None) -> Table:
    kind = "MERGE_ON_READ"
    return grouped_table(folder, version=version, type=kind, buckets=buckets, order_by=order)


def history(table: Table) -> list[str]:
    """Rows, updates, late rows, deletes; partition c has nothing left, partition d no logs."""
    return [
        put(table, 2, "a1", "a2", "a3", "b1", "b2", "c1", "d1"),
        put(table, 4, "a1", "a4", "b1"),
        put(table, 1, "b1", "a5"),
        deleted(table, "a3", "c1"),
        put(table, 5, "a3"),
    ]


def run(table: Table, plan: Instant | None = None, **options: str) -> ServiceResult:
    return compact(servicing(open_storage(table.path), **options), plan)


def plan_of(table: Table, **options: str) -> Instant:
    found = schedule_compaction(servicing(open_storage(table.path), **options))
    assert found is not None and found.instant is not None
    return found.instant


def bases(table: Table, instant: str) -> list[Path]:
    return sorted(Path(table.path).glob(f"*/*_{instant}.parquet"))


# --------------------------------------------------------------------------------- rows


def test_rows_stay_and_logs_go(table: Table) -> None:
    instants = history(table)
    before = rows(table)
    seen = {instant: rows(table, as_of=instant) for instant in instants}
    window = table.incremental(instants[0], None)
    changed = {row["id"] for row in window.to_arrow().to_pylist()}
    done = run(table)
    assert rows(table) == before == by_hudi(table)
    assert all(not split.slice.logs for split in table.scan().plan())
    # Before and after it, time travel sees what it saw.
    assert {instant: rows(table, as_of=instant) for instant in instants} == seen
    assert done.instant is not None
    assert rows(table, as_of=done.instant.requested) == before
    # Whoever reads changes is not told of rows that were only moved.
    again = table.incremental(instants[0], None).to_arrow().to_pylist()
    assert {row["id"] for row in again} == changed
    latest = max(i.completed or "" for i in table.timeline.data() if i != done.instant)
    assert table.incremental(latest, None).to_arrow().num_rows == 0
    assert lw.open_table(table.path).fsck().ok
    assert run(table).instant is None
    put(table, 9, "a1", "c1")
    assert [row["n"] for row in rows(table) if row["id"] in ("a1", "c1")] == [9, 9]
    assert run(table).instant is not None
    assert lw.open_table(table.path).fsck().ok


def test_the_commit_tells_what_hudis_tells(table: Table) -> None:
    history(table)
    done = run(table)
    assert done.instant is not None
    view = open_state(open_storage(table.path)).timeline
    body = view.commit_metadata(done.instant)
    assert (done.instant.action, body.operation, body.compacted) == (Action.COMMIT, "COMPACT", True)
    assert body.schema
    stats = [stat for found in body.write_stats.values() for stat in found]
    plan = view.plan(done.instant)
    assert isinstance(plan, CompactionPlan)
    planned = {op.file_id: op for op in plan.operations}
    assert sorted(planned) == sorted(stat.file_id for stat in stats)
    assert "p=d" not in body.write_stats  # nothing to merge there
    for stat in stats:
        operation = planned[stat.file_id]
        path = Path(table.path) / str(stat.path)
        assert stat.total_log_files_compacted == len(operation.log_files)
        assert stat.total_log_size_compacted == operation.metrics["TOTAL_LOG_FILES_SIZE"]
        assert stat.prev_base_file == operation.base_file
        assert stat.prev_commit == (operation.base_instant if operation.base_file else "null")
        assert stat.file_size_in_bytes == stat.total_write_bytes == path.stat().st_size
        assert stat.total_log_blocks >= stat.total_log_files_compacted
        footer = read_footer(open_storage(table.path), str(stat.path))
        assert footer.num_rows == stat.num_writes
        if stat.num_writes:
            held = [r for r in rows(table) if r["p"] == path.parent.name[2:]]
            found = pa.array([r["_hoodie_record_key"] for r in held])
            assert footer.bloom is not None
            known = parse_bloom(*footer.bloom, str(path)).contains(found)
            assert int(known.sum()) >= stat.num_writes
    gone = [stat for stat in stats if stat.partition_path == "p=c"]
    assert [(stat.num_writes, stat.num_deletes) for stat in gone] == [(0, 1)]
    assert done.total.rows == sum(stat.num_writes for stat in stats)


def test_groups_of_logs_alone(modern: Table) -> None:
    put(modern, 1, "a1")
    instant = bases(modern, modern.timeline.data()[0].requested)
    put(modern, 2, "a1")
    # As Hudi with an index of logs leaves it: the first write of the group lies in a log.
    log = next(Path(modern.path).glob("p=a/.*log*"))
    for base in instant:
        base.unlink()
    assert log.exists()
    done = run(modern)
    assert done.total.rows == 1
    assert [row["n"] for row in rows(modern)] == [2]


def test_columns_that_were_added_and_widened(table: Table) -> None:
    history(table)
    table.add_columns("more string")
    wider = [{"id": "a1", "p": "a", "n": 7, "s": None, "more": "x"}]
    table.upsert(pa.Table.from_pylist(wider, schema=table.schema))
    before = rows(table)
    run(table)
    assert rows(table) == before


# ------------------------------------------------------------------------------ planning


def test_a_plan_is_looked_at_without_a_trace(table: Table) -> None:
    history(table)
    work = servicing(open_storage(table.path))
    files = sorted(Path(table.path).rglob("*"))
    plan = schedule_compaction(work, dry_run=True)
    assert plan is not None
    assert plan.instant is None
    assert {item.partition for item in plan.items} == {"p=a", "p=b", "p=c"}
    assert plan.bytes_in > 0
    assert "LogFileSizeBasedCompactionStrategy" in str(plan)
    assert sorted(Path(table.path).rglob("*")) == files


def test_only_the_partitions_that_were_asked_for(table: Table) -> None:
    history(table)
    before = rows(table)
    plan = schedule_compaction(servicing(open_storage(table.path)), partitions=["p=b", "p=none"])
    assert plan is not None
    assert {item.partition for item in plan.items} == {"p=b"}
    body = plan.body
    assert isinstance(body, CompactionPlan)
    # Hudi, which looks at what was written since, comes back to the others.
    assert {"p=a", "p=c"} <= set(body.missing_partitions)
    assert "p=b" not in body.missing_partitions
    run(table, plan.instant)
    assert rows(table) == before
    again = schedule_compaction(servicing(open_storage(table.path)), dry_run=True)
    assert again is not None
    assert {item.partition for item in again.items} == {"p=a", "p=c"}


def test_groups_of_unfinished_plans_are_passed_over(table: Table) -> None:
    history(table)
    first = schedule_compaction(servicing(open_storage(table.path)), partitions=["p=a"])
    second = schedule_compaction(servicing(open_storage(table.path)))
    assert first is not None and second is not None
    groups = {item.group for item in first.items}
    assert groups.isdisjoint(item.group for item in second.items)
    assert ("in an unfinished compaction", len(groups)) in second.passed_over
    before = rows(table)
    assert schedule_compaction(servicing(open_storage(table.path))) is None
    put(table, 6, "a1", "b1")
    latest = rows(table)
    assert run(table).instant == replace_state(table, first.instant)
    assert run(table).instant == replace_state(table, second.instant)
    assert rows(table) == latest == by_hudi(table)
    assert before != latest


def replace_state(table: Table, plan: Instant | None) -> Instant:
    assert plan is not None
    return next(i for i in table.timeline.data() if i.requested == plan.requested)


def test_writes_between_the_look_and_the_lock_are_in_the_plan(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(table)
    listed: list[object] = []
    looking = StorageUpkeep.schedule

    def late(self: StorageUpkeep, *given: object, **more: object) -> object:
        put(table, 8, "d1")
        real = compaction_planning.list_slices

        def counted(state: object, partitions: object = None) -> Iterator[object]:
            listed.append(partitions)
            return real(state, partitions)  # type: ignore[arg-type]

        monkeypatch.setattr(compaction_planning, "list_slices", counted)
        return looking(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(StorageUpkeep, "schedule", late)
    plan = schedule_compaction(servicing(open_storage(table.path)))
    assert plan is not None
    assert listed == [["p=d"]]  # and no other partition is looked at under the lock
    assert "p=d" in {item.partition for item in plan.items}
    monkeypatch.undo()
    before = rows(table)
    run(table)
    assert rows(table) == before


def test_the_next_plan_looks_only_where_logs_can_be(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(table)
    looked: list[object] = []
    real = compaction_planning.list_slices

    def counted(state: object, partitions: object = None) -> Iterator[object]:
        looked.append(partitions)
        return real(state, partitions)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction_planning, "list_slices", counted)
    first = schedule_compaction(servicing(open_storage(table.path)), partitions=["p=a"])
    assert first is not None
    run(table)
    assert run(table).instant is not None  # the others: the first plan did not know of them
    assert looked == [("p=a",), None]
    looked.clear()
    assert schedule_compaction(servicing(open_storage(table.path))) is None
    put(table, 6, "b1", "d1")
    plan = schedule_compaction(servicing(open_storage(table.path)), partitions=["p=d"])
    assert plan is not None
    put(table, 7, "a1")
    again = schedule_compaction(servicing(open_storage(table.path)))
    assert again is not None
    assert {item.partition for item in again.items} == {"p=a", "p=b"}
    assert looked == [(), ("p=d",), ("p=a", "p=b")]
    before = rows(table)
    assert run(table).instant is not None
    assert run(table).instant is not None
    assert rows(table) == before
    assert partitions_with_logs(open_state(open_storage(table.path)).timeline) == frozenset()


def test_groups_that_come_back_are_looked_at_again(table: Table) -> None:
    history(table)
    table.delete_partitions(["p=a"])
    gone = table.timeline.latest_data()
    assert gone is not None
    plan_of(table)
    assert partitions_with_logs(open_state(open_storage(table.path)).timeline) is not None
    table.rollback(gone.requested)
    assert partitions_with_logs(open_state(open_storage(table.path)).timeline) is None
    plan = schedule_compaction(servicing(open_storage(table.path)))
    assert plan is not None
    assert {item.partition for item in plan.items} == {"p=a"}


def test_writes_under_way_are_looked_at_later(modern: Table) -> None:
    history(modern)
    storage = open_storage(modern.path)
    by = committer(storage)
    ticket = by.begin(Action.DELTACOMMIT, "UPSERT")
    plan_of(modern)
    assert partitions_with_logs(open_state(storage).timeline) == frozenset()
    by.abandon(ticket)
    # It may have been taken back, or archived: nobody knows what it wrote.
    assert partitions_with_logs(open_state(storage).timeline) is None


def test_a_table_without_logs_has_nothing_to_do(table: Table) -> None:
    put(table, 1, "a1")
    assert schedule_compaction(servicing(open_storage(table.path))) is None
    assert run(table).instant is None


def test_copy_on_write_tables_are_refused(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string", key="id")
    with pytest.raises(Invalid, match="no logs to compact"):
        schedule_compaction(servicing(open_storage(table.path)))


def test_version_6_waits_for_writes_under_way(tmp_path: Path) -> None:
    table = made(tmp_path, 6, 2, "n")
    history(table)
    storage = open_storage(table.path)
    by = committer(storage)
    ticket = by.begin(Action.DELTACOMMIT, "UPSERT")
    assert schedule_compaction(servicing(storage)) is None
    by.abandon(ticket)
    assert schedule_compaction(servicing(storage)) is not None


def test_version_6_plans_again_where_a_writer_took_itself_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its logs may have been seen among those of others, and nothing tells where they were."""
    table = made(tmp_path, 6, 2, "n")
    history(table)
    storage = open_storage(table.path)
    by = committer(storage)
    ticket = by.begin(Action.DELTACOMMIT, "UPSERT")
    looking = StorageUpkeep.schedule

    def late(self: StorageUpkeep, *given: object, **more: object) -> object:
        by.abandon(ticket)
        return looking(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(StorageUpkeep, "schedule", late)
    with pytest.raises(Conflict, match="taken back by its writer"):
        schedule_compaction(servicing(storage))
    monkeypatch.undo()
    assert schedule_compaction(servicing(storage)) is not None


# ------------------------------------------------------------------ rivals and failures


def test_writes_while_it_is_carried_out(modern: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    history(modern)
    plan = plan_of(modern)
    put(modern, 6, "a2", "b2")
    real = compaction.compact_group

    def slow(*given: object) -> object:
        monkeypatch.setattr(compaction, "compact_group", real)
        put(modern, 7, "a4")
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "compact_group", slow)
    run(modern, plan, lakewright__write__threads="1")
    put(modern, 8, "a1")
    found = {row["id"]: row["n"] for row in rows(modern)}
    assert found == {"a1": 8, "a2": 6, "a3": 5, "a4": 7, "a5": 1, "b1": 4, "b2": 6, "d1": 2}
    assert rows(modern) == by_hudi(modern)
    # What was written since lies in the logs of the new slices.
    assert run(modern).instant is not None
    assert {row["id"]: row["n"] for row in rows(modern)} == found


def test_one_that_fails_leaves_the_plan(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    history(table)
    before = rows(table)
    plan = plan_of(table)

    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(compaction, "compact_group", broken)
    with pytest.raises(OSError, match="the disk is full"):
        run(table)
    monkeypatch.undo()
    assert [i.requested for i in table.timeline.pending()] == [plan.requested]
    assert not bases(table, plan.requested)
    assert rows(table) == before
    assert run(table).instant is not None
    assert rows(table) == before == by_hudi(table)


def test_groups_that_were_replaced_since_are_passed_over(modern: Table) -> None:
    history(modern)
    plan = plan_of(modern)
    modern.delete_partitions(["p=a"])
    for file in Path(modern.path).glob("p=a/*.parquet"):
        file.unlink()  # as a cleaner of other software may leave it
    done = run(modern, plan)
    assert set(done.partitions) == {"p=b", "p=c"}
    assert [row["id"] for row in rows(modern)] == ["b1", "b2", "d1"]


@pytest.mark.parametrize("whole", [True, False])
def test_a_plan_is_carried_out_though_an_overwrite_began_its_buckets_anew(
    table: Table, whole: bool
) -> None:
    history(table)
    plan = plan_of(table)
    fresh = pa.Table.from_pylist(
        [{"id": i, "p": "a", "n": 0} for i in ("a1", "a2", "a3")], schema=table.schema
    )
    (table.insert_overwrite_table if whole else table.insert_overwrite)(fresh)
    put(table, 7, "a1")
    before = rows(table)
    done = run(table, plan)
    assert set(done.partitions) == (set() if whole else {"p=b", "p=c"})
    assert not list(table.timeline.pending())
    assert rows(table) == before == by_hudi(table)
    assert run(table).instant is not None
    assert rows(table) == before
    assert lw.open_table(table.path).fsck().ok


def test_plans_that_are_worked_on_are_left_alone(table: Table) -> None:
    history(table)
    before = rows(table)
    plan = plan_of(table)
    busy = servicing(open_storage(table.path))
    ticket = busy.committer.take(plan, "COMPACT")
    assert run(table).instant is None
    with pytest.raises(Conflict, match="Somebody is carrying out"):
        run(table, plan)
    busy.committer.abandon(ticket)
    assert run(table).instant is not None
    assert rows(table) == before


@pytest.mark.parametrize("version", [9, 6])
def test_a_crash_at_any_call_leaves_the_rows_and_the_next_run_finishes(
    version: int, tmp_path: Path
) -> None:
    table = made(tmp_path, version, 2, "n")
    put(table, 1, "a1", "a2")
    put(table, 2, "a1")
    # Each copy costs a compaction; every third call is enough to meet all kinds of them.
    crash_everywhere(tmp_path, table, compact, step=3)
