"""The verbs that keep a table fast and small, as a user calls them."""

import json
import os
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.model.errors import (
    Conflict,
    InstantNotFound,
    Invalid,
    InvalidOption,
    NotFound,
    Unsupported,
)
from lakewright.model.services import Service
from support.served import contents, served_table, small_files


def test_a_plan_is_a_value_that_another_process_carries_out(tmp_path: Path) -> None:
    table = served_table(str(tmp_path / "t"))
    before = contents(table)
    plan = table.schedule_compaction()
    assert plan is not None and plan.instant is not None
    assert json.loads(plan.to_json())["instant"] == plan.instant.requested
    (waiting,) = table.compactions()
    assert (waiting.instant.requested, waiting.groups) == (plan.instant.requested, 2)
    result = lw.open_table(tmp_path / "t").compact(plan=plan.instant.requested)
    assert result.instant is not None and result.instant.requested == plan.instant.requested
    assert result.total.rows == 6 and set(result.partitions) == {"p=x", "p=y"}
    assert contents(table) == before
    with pytest.raises(Conflict, match="has been carried out"):
        table.compact(plan)


def test_a_dry_run_puts_nothing_on_the_timeline() -> None:
    table = served_table()
    before = table.timeline.instants
    plan = table.schedule_compaction(dry_run=True)
    assert plan is not None and plan.instant is None and len(plan.items) == 2
    assert table.schedule_cleaning(policy="versions", retain=1, dry_run=True) is None
    assert "compactions count" in str(table.plan_archive(min_commits=1, max_commits=2))
    assert table.timeline.instants == before
    with pytest.raises(Invalid, match="made to be looked at"):
        table.compact(plan)


def test_only_the_given_partitions_are_compacted() -> None:
    table = served_table()
    assert set(table.compact(partitions=["p=y"]).partitions) == {"p=y"}
    assert set(table.compact().partitions) == {"p=x"}
    assert table.compact().instant is None


def test_a_given_instant_is_taken() -> None:
    table = served_table()
    result = table.compact(instant="29990101000000000")
    assert result.instant is not None and result.instant.requested == "29990101000000000"


@pytest.mark.parametrize("strategy", ["unbounded", "UnBoundedCompactionStrategy"])
def test_a_strategy_by_either_name(strategy: str) -> None:
    plan = served_table().schedule_compaction(strategy=strategy, dry_run=True)
    assert plan is not None and plan.strategy == "UnBoundedCompactionStrategy"


def test_io_is_bounded() -> None:
    plan = served_table().schedule_compaction(strategy="bounded_io", target_io=0, dry_run=True)
    assert plan is None or len(plan.items) == 1


def test_what_a_call_cannot_mean_is_refused() -> None:
    table = served_table()
    plan = table.schedule_compaction()
    with pytest.raises(Invalid, match="partitions would make another one"):
        table.compact(plan, partitions=["p=x"])
    with pytest.raises(Invalid, match="plan is one of a compaction, not of a cleaning"):
        table.clean(plan)
    with pytest.raises(Invalid, match="'tomorrow' is no plan"):
        table.compact("tomorrow")
    with pytest.raises(InstantNotFound):
        table.compact("20200101000000000")
    with pytest.raises(InvalidOption, match="KEEP_LATEST_COMMITS"):
        table.clean(policy="all of it")
    with pytest.raises(InvalidOption, match=r"Did you mean 'lakewright[.]clean[.]grace'"):
        table.clean(options={"lakewright.clean.gracee": "1m"})


def test_logs_are_compacted_alone() -> None:
    table = served_table(properties={"hoodie.log.compaction.blocks.threshold": "2"})
    before = contents(table)
    plan = table.schedule_log_compaction(partitions=["p=x"])
    assert plan is not None and plan.service is Service.LOG_COMPACTION
    assert table.log_compact(plan).total.groups == 1
    assert [found.groups for found in table.log_compactions()] == [1]
    assert set(table.log_compact().partitions) == {"p=y"}
    assert contents(table) == before


def test_small_files_are_put_together_and_sorted() -> None:
    table = small_files()
    before = contents(table)
    assert table.schedule_clustering(small_file=0, dry_run=True) is None
    plan = table.schedule_clustering(partitions=["p=x"], sort_by=["n"], layout="linear")
    assert plan is not None and plan.instant is not None and plan.service is Service.CLUSTERING
    assert [(c.groups, c.partitions) for c in table.clusterings()] == [(1, ("p=x",))]
    result = table.cluster(plan)
    assert (result.total.files_read, result.total.files_written) == (3, 1)
    other = table.cluster(sort_by="n,id", layout="z-order", target_size=1 << 20)
    assert set(other.partitions) >= {"p=y"}
    assert [len(snapshot.file_slices) for snapshot in table.get_latest_snapshot()] == [1, 1]
    assert contents(table) == before
    with pytest.raises(Invalid, match="no column 'colour'"):
        table.cluster(sort_by=["colour"])
    with pytest.raises(Invalid, match="ZORDER orders rows by columns, and none is given"):
        table.schedule_clustering(layout="zorder")
    with pytest.raises(InvalidOption, match="HILBERT"):
        table.cluster(sort_by=["n"], layout="spiral")


def test_retain_counts_what_the_policy_counts() -> None:
    stored = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
    table = served_table(properties=stored, type="COPY_ON_WRITE", commits=4)
    plan = table.schedule_cleaning(retain=1, dry_run=True)
    assert plan is not None and "KEEP_LATEST_FILE_VERSIONS (1 versions)" in plan.strategy
    plan = table.schedule_cleaning(policy="commits", retain=1, dry_run=True)
    assert plan is not None and "KEEP_LATEST_COMMITS (1 commits)" in plan.strategy


def test_cleaning_deletes_what_was_compacted_and_tells_of_it() -> None:
    table = served_table()
    before = contents(table)
    table.compact()
    assert table.schedule_cleaning(policy="versions", retain=1, grace="1h", dry_run=True) is None
    plan = table.schedule_cleaning(policy="versions", retain=1)
    assert plan is not None
    result = table.clean(plan)
    assert result.total.files_deleted == plan.files > 0
    (cleaned,) = table.cleanings()
    assert cleaned.done is not None and cleaned.done.total_deleted == plan.files
    assert contents(table) == before
    assert table.clean(policy="versions", retain=1).instant is None


def test_archiving_shortens_the_timeline_and_keeps_the_history() -> None:
    table = served_table(type="COPY_ON_WRITE", commits=4)
    before = len(table.timeline.data())
    planned = table.plan_archive(min_commits=2, max_commits=3)
    done = table.archive(min_commits=2, max_commits=3)
    assert done.instants == planned.instants and len(done.instants) == before - 2
    assert len(table.timeline.data()) == 2
    assert len(table.timeline.with_history().data()) == before


def test_savepoints_and_going_back() -> None:
    table = served_table(commits=2)
    first, last = (i.requested for i in table.timeline.data())
    table.savepoint(first, "before the change", by="me")
    (saved,) = table.savepoints()
    assert (saved.instant.requested, saved.by, saved.note, saved.files) == (
        first,
        "me",
        "before the change",
        2,
    )
    plan = table.plan_rollback(last)
    assert plan.undone.files == 2 and last in str(plan)
    assert json.loads(plan.to_json())["instant"] == last
    assert len(table.timeline.data()) == 2
    done = table.rollback(last)
    (undone,) = table.rollbacks()
    assert undone.instant.requested == done.requested and undone.done.commits == (last,)
    with pytest.raises(InstantNotFound):
        table.plan_rollback(last)
    with pytest.raises(Conflict, match="savepoint"):
        table.plan_rollback(first)


def test_a_partition_that_is_not_there_is_told() -> None:
    table = served_table()
    verbs = (table.schedule_compaction, table.schedule_log_compaction, table.schedule_clustering)
    for verb in (*verbs, table.compact, table.log_compact, table.cluster):
        with pytest.raises(NotFound, match=r"no partition 'x'.*such as 'p=[xy]'"):
            verb(partitions=["p=y", "x"])
    assert table.schedule_compaction(partitions=["p=y"]) is not None


def test_instants_are_taken_as_they_are_given() -> None:
    table = served_table(commits=2)
    first, last = table.timeline.data()
    preview = table.plan_savepoint(first, "why", by="me")
    assert json.loads(preview.to_json())["files"] == preview.files == 2
    assert "(why)" in str(preview) and not list(table.savepoints())
    table.savepoint(first)
    (saved,) = table.savepoints()
    assert [u.instant for u in table.plan_restore(saved.instant).undone] == [last]
    assert table.plan_rollback(last).undone.instant == last
    assert table.restore(saved.instant) is not None
    gone = table.plan_delete_savepoint(saved.instant)
    assert gone.deletes and gone.files == 2
    table.delete_savepoint(saved.instant)
    assert not list(table.savepoints())
    with pytest.raises(InstantNotFound, match="Savepoints: none"):
        table.plan_delete_savepoint(first)


@pytest.mark.parametrize("service", ["compaction", "clustering", "log_compaction"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_plan_is_not_requested_before_the_writes_that_it_is_for(
    tmp_path: Path, service: str, dry_run: bool
) -> None:
    # Writes under given times complete by the clock: such a plan would wait for ever.
    table = lw.create_table(
        tmp_path / "t", schema="id string, n int", key="id", order_by="n", type="MERGE_ON_READ"
    )
    for n in range(3):
        table.upsert([{"id": "a", "n": n}], instant=f"2026010{n + 1}000000000")
    schedule = getattr(table, f"schedule_{service}")
    with pytest.raises(Invalid, match="when the newest write completed"):
        schedule(instant="20260201000000000", dry_run=dry_run)
    assert not table.timeline.pending()


def test_in_version_6_a_plan_follows_the_times_that_writes_were_given(tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, n int",
        key="id",
        order_by="n",
        type="MERGE_ON_READ",
        version=6,
    )
    for n in range(3):
        table.upsert([{"id": "a", "n": n}], instant=f"2026010{n + 1}000000000")
    assert table.compact(instant="20260201000000000").total.rows == 1


def test_a_table_that_is_not_written_here_is_refused_before_anything_is_repaired(
    tmp_path: Path,
) -> None:
    table = served_table(str(tmp_path / "t"))
    table.downgrade(8)
    cut_off = tmp_path / "t" / ".hoodie" / "timeline" / "20200101000000000.rollback.requested"
    cut_off.write_bytes(b"")
    os.utime(cut_off, (1e9, 1e9))  # nobody works on it any more
    with pytest.raises(Unsupported, match="version 8"):
        table.clean()
    assert cut_off.exists()
