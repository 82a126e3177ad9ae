"""The procedures of table services over a lake, under the names and arguments of Hudi's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.interfaces.sql.procedures.known import all_procedures, find_procedure
from lakewright.interfaces.sql.procedures.registry import DRY_RUN
from lakewright.model.errors import InstantNotFound, Invalid
from support.served import contents, served_table, small_files

Rows = list[dict[str, Any]]
Call = Callable[[str], Rows]

# What `CALL help(cmd => …)` of Hudi 1.2.0 says: parameters in order, then columns.
UPSTREAM = {
    "run_compaction": (
        "op table path timestamp options instants limit",
        "timestamp operation_size state",
    ),
    "show_compaction": ("table path limit", "timestamp operation_size state"),
    "run_clustering": (
        "table path predicate order show_involved_partition op order_strategy options instants "
        "selected_partitions partition_regex_pattern limit",
        "timestamp input_group_size state involved_partitions",
    ),
    "show_clustering": (
        "table path limit show_involved_partition",
        "timestamp input_group_size state involved_partitions",
    ),
    "run_clean": (
        "table schedule_in_line clean_policy retain_commits hours_retained "
        "file_versions_retained trigger_strategy trigger_max_commits options",
        "start_clean_time time_taken_in_millis total_files_deleted earliest_commit_to_retain "
        "bootstrap_part_metadata version",
    ),
    "show_cleans": (
        "table limit showArchived filter",
        "clean_time state_transition_time action start_clean_time time_taken_in_millis "
        "total_files_deleted earliest_commit_to_retain last_completed_commit_timestamp version",
    ),
    "show_clean_plans": (
        "table limit showArchived filter",
        "plan_time state action earliest_instant_to_retain last_completed_commit_timestamp policy "
        "version total_partitions_to_clean total_partitions_to_delete extra_metadata",
    ),
    "show_cleans_metadata": (
        "table limit showArchived filter",
        "clean_time state_transition_time action start_clean_time partition_path policy "
        "delete_path_patterns success_delete_files failed_delete_files is_partition_deleted "
        "time_taken_in_millis total_files_deleted",
    ),
    "rollback_to_instant": ("table instant_time", "rollback_result"),
    "create_savepoint": ("table commit_time user comments path", "create_savepoint_result"),
    "delete_savepoint": ("table instant_time path", "delete_savepoint_result"),
    "show_savepoints": ("table path", "savepoint_time"),
    "rollback_to_savepoint": ("table instant_time path", "rollback_savepoint_result"),
    "archive_commits": (
        "table path min_commits max_commits retain_commits enable_metadata",
        "result",
    ),
    "show_archived_commits": ("table limit start_ts end_ts", "commit_time state_transition_time"),
    "show_archived_commits_metadata": (
        "table limit start_ts end_ts",
        "commit_time state_transition_time action partition file_id previous_commit num_writes",
    ),
    "show_rollbacks": (
        "table limit",
        "instant rollback_instant total_files_deleted time_taken_in_millis total_partitions",
    ),
    "show_rollback_detail": (
        "table limit instant_time",
        "instant rollback_instant partition deleted_file succeeded",
    ),
    "show_commits": (
        "table limit",
        "commit_time state_transition_time action total_bytes_written total_files_added "
        "total_files_updated total_partitions_written total_records_written "
        "total_update_records_written total_errors",
    ),
    "show_commits_metadata": (
        "table limit",
        "commit_time state_transition_time action partition file_id previous_commit num_writes "
        "num_inserts num_deletes num_update_writes total_errors total_log_blocks "
        "total_corrupt_log_blocks total_rollback_blocks total_log_records "
        "total_updated_records_compacted total_bytes_written",
    ),
    "show_commit_files": (
        "table limit instant_time",
        "action partition_path file_id previous_commit total_records_updated "
        "total_records_written total_bytes_written total_errors file_size",
    ),
    "show_commit_partitions": (
        "table limit instant_time",
        "action partition_path total_files_added total_files_updated total_records_inserted "
        "total_records_updated total_bytes_written total_errors",
    ),
    "show_commit_write_stats": (
        "table limit instant_time",
        "action total_bytes_written total_records_written avg_record_size",
    ),
    "show_commit_extra_metadata": (
        "table limit instant_time metadata_key",
        "instant_time action metadata_key metadata_value",
    ),
    "show_timeline": (
        "table path limit showArchived filter startTime endTime",
        "instant_time action state requested_time inflight_time completed_time timeline_type "
        "rollback_info",
    ),
    "show_fsview_all": (
        "table path",
        "partition file_id base_instant data_file data_file_size num_delta_files "
        "total_delta_file_size delta_files",
    ),
}


@pytest.mark.parametrize("name", UPSTREAM)
def test_arguments_and_columns_are_those_of_hudi(name: str) -> None:
    parameters, columns = (text.split() for text in UPSTREAM[name])
    found = find_procedure(name)
    assert [p.name for p in found.parameters[: len(parameters)]] == parameters
    assert found.returns.names[: len(columns)] == columns


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    return served_table(str(tmp_path / "t"))


@pytest.fixture
def call(tmp_path: Path, table: lw.Table) -> Call:
    lake = lw.connect(tmp_path / "lake")
    lake.register_table("shop.t", table.path)

    def run(text: str) -> Rows:
        return lake.sql(f"CALL {text}").to_pylist()  # type: ignore[union-attr]

    return run


def test_a_compaction_is_scheduled_shown_and_run(call: Call, table: lw.Table) -> None:
    before = contents(table)
    (made,) = call("run_compaction(op => 'schedule', table => 'shop.t')")
    assert (made["operation_size"], made["state"]) == (2, "REQUESTED")
    assert call(f"show_compaction(path => '{table.path}')") == [made]
    (done,) = call("run_compaction('run', 'shop.t')")
    assert done == {**made, "state": "COMPLETED"}
    assert call("show_compaction('shop.t')") == [done]
    assert call("show_compactions('shop.t')") == [done]
    assert call("run_compaction('run', 'shop.t')") == []
    assert call("run_compaction('scheduleAndExecute', 'shop.t')") == []
    assert contents(table) == before


def test_some_plans_are_run(call: Call, table: lw.Table) -> None:
    plans = [
        call(
            "run_compaction(op => 'schedule', table => 'shop.t', options => "
            "'hoodie.compaction.strategy=PartitionRegexBasedCompactionStrategy,"
            f"hoodie.compaction.partition.path.regex=p={p}')"
        )[0]["timestamp"]
        for p in "xy"
    ]
    (done,) = call(f"run_compaction(op => 'run', table => 'shop.t', instants => '{plans[1]}')")
    assert done["timestamp"] == plans[1]
    (done,) = call(f"run_compaction(op => 'execute', table => 'shop.t', timestamp => '{plans[0]}')")
    assert done["timestamp"] == plans[0]
    with pytest.raises(InstantNotFound, match="Waiting: none"):
        call(f"run_compaction(op => 'run', table => 'shop.t', instants => '{plans[0]}')")
    assert len(call("show_compaction('shop.t', limit => 1)")) == 1


def test_what_a_call_cannot_mean_is_refused(call: Call) -> None:
    with pytest.raises(Invalid, match="scheduleAndExecute"):
        call("run_compaction('squeeze', 'shop.t')")
    with pytest.raises(Invalid, match="is no setting"):
        call("run_compaction(op => 'schedule', table => 'shop.t', options => 'fast')")
    with pytest.raises(Invalid, match="NUM_COMMITS"):
        call("run_clean(table => 'shop.t', trigger_strategy => 'MOON')")
    with pytest.raises(Invalid, match="needs instant_time"):
        call("rollback_to_instant(table => 'shop.t')")
    with pytest.raises(InstantNotFound, match="no savepoint"):
        call("rollback_to_savepoint(table => 'shop.t')")
    with pytest.raises(InstantNotFound, match="no savepoint"):
        call("delete_savepoint(table => 'shop.t')")


def test_clusterings(tmp_path: Path) -> None:
    table = small_files(str(tmp_path / "t"))
    before, lake = contents(table), lw.connect(tmp_path / "lake")
    lake.register_table("t", table.path)

    def call(text: str) -> Rows:
        return lake.sql(f"CALL {text}").to_pylist()  # type: ignore[union-attr]

    (planned,) = call(
        "run_clustering(table => 't', op => 'schedule', predicate => \"p = 'y'\", order => 'n', "
        "show_involved_partition => true)"
    )
    assert (planned["state"], planned["involved_partitions"]) == ("REQUESTED", "p=y")
    (other,) = call("run_clustering(table => 't', op => 'schedule', selected_partitions => 'p=x')")
    assert other["involved_partitions"] == "*"
    (done,) = call(f"run_clustering(table => 't', instants => '{planned['timestamp']}')")
    assert (done["timestamp"], done["state"]) == (planned["timestamp"], "COMPLETED")
    (rest,) = call("run_clustering(table => 't', op => 'execute')")
    assert rest["timestamp"] == other["timestamp"]
    shown = call("show_clustering('t', show_involved_partition => true)")
    assert [s["involved_partitions"] for s in shown] == ["p=x", "p=y"]
    assert call("run_clustering('t')") == []
    assert contents(table) == before
    with pytest.raises(Invalid, match="n is no partition column"):
        call("run_clustering(table => 't', predicate => 'n > 1')")
    with pytest.raises(Invalid, match="one of them"):
        call("run_clustering(table => 't', predicate => \"p = 'y'\", selected_partitions => 'z')")


def test_a_cleaning_is_run_and_shown(call: Call, table: lw.Table) -> None:
    table.compact()
    (done,) = call(
        "run_clean(table => 'shop.t', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', "
        "file_versions_retained => 1)"
    )
    assert done["total_files_deleted"] == 6
    (shown,) = call("show_cleans('shop.t')")
    assert shown["total_files_deleted"] == 6 and shown["action"] == "clean"
    (plan,) = call("show_clean_plans('shop.t')")
    assert (plan["state"], plan["policy"]) == ("COMPLETED", "KEEP_LATEST_FILE_VERSIONS")
    parts = call("show_cleans_metadata('shop.t')")
    assert [(p["partition_path"], p["success_delete_files"]) for p in parts] == [
        ("p=x", 3),
        ("p=y", 3),
    ]
    (one,) = call("show_cleans_metadata('shop.t', filter => \"partition_path = 'p=y'\")")
    assert one == parts[1]
    assert call("run_clean('shop.t', clean_policy => 'KEEP_LATEST_FILE_VERSIONS')") == []


def test_a_waiting_cleaning_is_run(call: Call, table: lw.Table) -> None:
    table.compact()
    plan = table.schedule_cleaning(policy="versions", retain=1)
    assert plan is not None
    assert call("show_cleans('shop.t')") == []
    (waiting,) = call("show_clean_plans('shop.t')")
    assert waiting["state"] == "REQUESTED"
    (done,) = call("run_clean(table => 'shop.t', schedule_in_line => false)")
    assert done["total_files_deleted"] == plan.files


def test_commits_are_archived_and_shown(tmp_path: Path) -> None:
    table = served_table(str(tmp_path / "t"), type="COPY_ON_WRITE", commits=4)
    lake = lw.connect(tmp_path / "lake")

    def call(text: str) -> Rows:
        return lake.sql(f"CALL {text.format(table.path)}").to_pylist()  # type: ignore[union-attr]

    commits = call("show_commits(path => '{}')")
    (done,) = call("archive_commits(path => '{}', min_commits => 2, max_commits => 3)")
    assert done == {"result": 0, "instants": 2}
    assert call("show_commits(path => '{}')") == commits[:2]
    archived = call("show_archived_commits(path => '{}')")
    assert archived == commits[2:]
    last = archived[0]["commit_time"]
    assert call(f"show_archived_commits(path => '{{}}', end_ts => '{last}')") == archived[1:]
    assert call("show_archived_commits(path => '{}', limit => 1)") == archived[:1]
    files = call("show_archived_commits_metadata(path => '{}')")
    assert {f["commit_time"] for f in files} == {a["commit_time"] for a in archived}
    (kind,) = call(
        f"show_timeline(path => '{{}}', showArchived => true, endTime => '{last}', limit => 1)"
    )
    assert (kind["instant_time"], kind["timeline_type"]) == (last, "ARCHIVED")


HUGE = "99999999999999999999"
REFUSED = [
    (f"show_timeline('shop.t', limit => {HUGE})", f"64 bits, not {HUGE}"),
    ("show_timeline('shop.t', limit => -1)", "limit is -1. Give 0 or more"),
    ("run_clustering('shop.t', limit => -1)", "limit is -1. Give 0 or more"),
    ("run_compaction('schedule', 'shop.t', timestamp => 'x', dry_run => true)", "'x' is no inst"),
    ("run_compaction('schedule', 'shop.t', timestamp => 'x')", "'x' is no instant time"),
    ("run_compaction('scheduleAndExecute', 'shop.t', instants => 'x')", "instants is 'x', and op"),
    ("run_compaction('run', 'shop.t', instants => 'x')", "no plan x waits"),
    ("run_clustering('shop.t', op => 'schedule', instants => 'x')", "instants is 'x', and op"),
    ("show_timeline('shop.t', startTime => 'x')", "startTime is 'x', which is no instant"),
    ("show_timeline('shop.t', endTime => '2026-11-16')", "endTime is '2026-11-16'"),
    ("show_archived_commits('shop.t', start_ts => 'x')", "start_ts is 'x'"),
    ("show_archived_commits_metadata('shop.t', end_ts => 'x')", "end_ts is 'x'"),
    ("show_rollback_detail('shop.t', instant_time => 'x')", "there is no rollback x"),
    ("archive_commits('shop.t', retain_commits => -1)", "retain_commits is -1. Give 1 or more"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_arguments_that_mean_nothing_are_refused_before_anything_is_done(
    call: Call, table: lw.Table, text: str, why: str
) -> None:
    before = table.timeline.instants
    with pytest.raises((Invalid, InstantNotFound), match=why):
        call(text)
    assert lw.open_table(table.path).timeline.instants == before


@pytest.mark.parametrize("service", ["compaction", "clustering", "log_compaction", "cleaning"])
def test_a_dry_run_judges_the_instant_that_is_asked_for(table: lw.Table, service: str) -> None:
    with pytest.raises(Invalid, match="'x' is no instant time"):
        getattr(table, f"schedule_{service}")(instant="x", dry_run=True)


def test_commits_in_detail(call: Call, table: lw.Table) -> None:
    first, _, last = (i.requested for i in table.timeline.data())
    files = call(f"show_commit_files('shop.t', instant_time => '{last}')")
    assert [f["partition_path"] for f in files] == ["p=x", "p=y"]
    assert all(f["total_records_written"] == 3 and f["file_name"] for f in files)
    parts = call(f"show_commit_partitions('shop.t', 10, '{first}')")
    assert [(p["total_files_added"], p["total_records_inserted"]) for p in parts] == [(1, 3)] * 2
    (stats,) = call(f"show_commit_write_stats('shop.t', instant_time => '{first}')")
    assert stats["total_records_written"] == 6 and stats["avg_record_size"] > 0
    extra = call("show_commit_extra_metadata('shop.t', metadata_key => 'schema')")
    assert [(e["instant_time"], e["metadata_key"]) for e in extra] == [(last, "schema")]
    each = call("show_commits_metadata('shop.t', limit => 3)")
    assert [e["commit_time"] for e in each][:2] == [last, last] and len(each) == 3
    slices = call("show_fsview_latest('shop.t')")
    assert {(s["partition"], s["num_delta_files"]) for s in slices} == {("p=x", 2), ("p=y", 2)}
    table.compact()
    assert len(call("show_fsview_all('shop.t')")) == 4
    assert len(call("show_fsview_all('shop.t', filter => 'num_delta_files = 0')")) == 2


def test_savepoints_and_going_back(call: Call, table: lw.Table) -> None:
    first, second, last = (i.requested for i in table.timeline.data())
    (made,) = call(f"create_savepoint('shop.t', '{first}', 'me', 'before it')")
    assert made == {"create_savepoint_result": True, "savepoint_time": first}
    (saved,) = call("show_savepoints('shop.t')")
    assert (saved["savepoint_time"], saved["user"], saved["comments"]) == (first, "me", "before it")
    (undone,) = call(f"rollback_to_instant('shop.t', '{last}')")
    assert undone["rollback_result"] is True
    (shown,) = call("show_rollbacks('shop.t')")
    assert (shown["instant"], shown["rollback_instant"]) == (undone["rollback_instant"], last)
    gone = call(f"show_rollback_detail('shop.t', instant => '{shown['instant']}')")
    assert len(gone) == shown["total_files_deleted"] and all(g["succeeded"] for g in gone)
    (found,) = call("show_timeline('shop.t', filter => \"action = 'rollback'\")")
    assert found["rollback_info"] == f"Rolled back: {last}"
    (back,) = call("rollback_to_savepoint('shop.t')")
    assert back["rollback_savepoint_result"] is True
    assert [i.requested for i in table.timeline.data()] == [first]
    (deleted,) = call(f"delete_savepoint('shop.t', '{first}')")
    assert deleted == {"delete_savepoint_result": True}
    assert call("show_savepoints('shop.t')") == []
    assert second not in str(table.timeline.instants)


def test_a_write_without_a_savepoint_is_restored_too(call: Call, table: lw.Table) -> None:
    first = table.timeline.data()[0].requested
    (done,) = call(f"restore_to_instant('shop.t', '{first}')")
    assert done["restore_result"] is True and done["restore_instant"]
    assert [i.requested for i in table.timeline.data()] == [first]


def test_the_other_name_of_a_rollback(call: Call, table: lw.Table) -> None:
    last = table.timeline.data()[-1].requested
    (done,) = call(f"rollback_to_instant_time(table => 'shop.t', commit_time => '{last}')")
    assert done["rollback_result"] is True


def test_all_are_listed_with_what_they_do(tmp_path: Path) -> None:
    shown = lw.connect(tmp_path).sql("SHOW PROCEDURES").to_pylist()  # type: ignore[union-attr]
    named = {str(row[next(iter(row))]) for row in shown}
    assert set(UPSTREAM) <= named
    assert all(found.doc.endswith((".", "success.")) for found in all_procedures())


def test_all_that_write_can_be_asked_what_they_would_do() -> None:
    # These run dry unless they are told otherwise, as Hudi's does.
    own = {"partition_bucket_index_manager", "plan_orphans", "repair_buckets", "run_ttl"}
    for found in all_procedures():
        last = found.parameters[-1:] == (DRY_RUN,)
        asked = any(one.name == DRY_RUN.name for one in found.parameters)
        assert (asked if found.name in own else last) is found.writes, found.name


def test_a_dry_run_answers_with_the_plan_and_changes_nothing(call: Call, table: lw.Table) -> None:
    first, last = (i.requested for i in (table.timeline.data()[0], table.timeline.data()[-1]))
    table.savepoint(first, "why")
    before = table.timeline.instants
    calls = {
        "run_compaction(op => 'schedule', table => 'shop.t'": "2 logs",
        "run_compaction(op => 'run', table => 'shop.t'": "nothing to do",
        "run_clustering(table => 'shop.t'": "clustering of",
        "run_clean(table => 'shop.t'": "nothing to do",
        "archive_commits(table => 'shop.t', min_commits => 1, max_commits => 2": "archiving of",
        f"rollback_to_instant(table => 'shop.t', instant_time => '{last}'": "is undone",
        "create_savepoint(table => 'shop.t'": "6 files of 2 partitions are kept",
        "delete_savepoint(table => 'shop.t'": "2 files of 2 partitions may be cleaned",
        "rollback_to_savepoint(table => 'shop.t'": "2 instants are undone",
        f"restore_to_instant(table => 'shop.t', instant_time => '{first}'": "2 instants are undone",
        "upgrade_table(table => 'shop.t', to_version => 'EIGHT'": "version 9 -> 8",
        "downgrade_table(table => 'shop.t', to_version => '6'": "version 9 -> 6",
    }
    for text, expected in calls.items():
        lines = [row["plan"] for row in call(f"{text}, dry_run => true)")]
        assert any(expected in line for line in lines), (text, lines)
    assert table.timeline.instants == before and table.definition.version == 9
    plan = table.schedule_compaction()
    assert plan is not None and plan.instant is not None
    shown = call("run_compaction(op => 'run', table => 'shop.t', dry_run => true)")
    assert plan.instant.requested in shown[0]["plan"] and "(requested)" in shown[0]["plan"]


def test_a_cleaning_with_a_trigger_waits_for_commits(call: Call, table: lw.Table) -> None:
    table.compact()
    policy = "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1"
    how = f"table => 'shop.t', {policy}"
    assert call(f"run_clean({how}, trigger_max_commits => 9)") == []
    shown = call(f"run_clean({how}, trigger_max_commits => 9, dry_run => true)")
    assert shown == [{"plan": "nothing to do"}]
    shown = call(f"run_clean({how}, trigger_max_commits => 4, dry_run => true)")
    assert "cleaning of" in shown[0]["plan"] and not list(table.cleanings())
    (done,) = call(f"run_clean({how}, trigger_max_commits => 4)")
    assert done["total_files_deleted"] == 6
