"""The views of table services: our procedures and Hudi's say the same of one table."""

import uuid
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from support.hudi_writer import PLAIN

pytestmark = pytest.mark.interop

#: Columns whose values depend on who says them: durations, and times of files.
LOOSE = {
    "time_taken_in_millis",
    "start_clean_time",
    "state_transition_time",
    "requested_time",
    "inflight_time",
    "completed_time",
    "bootstrap_part_metadata",
    "extra_metadata",
}


def made(place: Path, version: int) -> lw.Table:
    """Make a table and do everything for it that services do."""
    table = lw.create_table(
        place,
        schema="id string, p string, n bigint, ts bigint",
        key="id",
        order_by="ts",
        partition_by="p",
        type="MERGE_ON_READ",
        version=version,
    )
    for ts in range(4):
        table.upsert([{"id": f"{p}{k}", "p": p, "n": ts, "ts": ts} for p in "xy" for k in "ab"])
    table.compact()
    table.clean(policy="versions", retain=1)
    table.upsert([{"id": "xa", "p": "x", "n": 9, "ts": 9}])
    table.rollback(table.upsert([{"id": "xb", "p": "x", "n": 9, "ts": 9}]).instant.requested)  # type: ignore[union-attr]
    table.cluster(sort_by=["n"])
    table.savepoint(note="kept", by="me")
    table.upsert([{"id": "ya", "p": "y", "n": 10, "ts": 10}])
    table.schedule_compaction()
    return table


@pytest.mark.parametrize("version", [9, 6])
def test_both_say_the_same(hudi_spark: Any, tmp_path: Path, version: int) -> None:
    table = made(tmp_path / "t", version)
    lake = lw.connect(tmp_path / "lake")
    name = f"t_{uuid.uuid4().hex}"
    hudi_spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{table.path}'")
    lake.register_table(name, table.path)
    commit = table.timeline.data()[-1].requested
    rollback = next(table.rollbacks()).instant.requested
    wrong = {}
    for call in (
        "show_compaction(table => '{}')",
        "show_clustering(table => '{}', show_involved_partition => true)",
        "show_cleans(table => '{}')",
        "show_clean_plans(table => '{}')",
        "show_cleans_metadata(table => '{}')",
        "show_savepoints(table => '{}')",
        "show_rollbacks(table => '{}')",
        f"show_rollback_detail(table => '{{}}', instant_time => '{rollback}')",
        "show_commits(table => '{}')",
        f"show_commit_files(table => '{{}}', instant_time => '{commit}')",
        f"show_commit_partitions(table => '{{}}', instant_time => '{commit}')",
        f"show_commit_write_stats(table => '{{}}', instant_time => '{commit}')",
        "show_commits_metadata(table => '{}', limit => 100)",
    ):
        asked = f"CALL {call.format(name)}"
        theirs = [row.asDict() for row in hudi_spark.sql(asked).collect()]
        ours = lake.sql(asked).to_pylist()  # type: ignore[union-attr]
        columns = [c for c in (theirs[0] if theirs else ()) if c not in LOOSE]
        if not theirs or rows(ours, columns) != rows(theirs, columns):
            wrong[call] = (columns, rows(ours, columns), rows(theirs, columns))
    assert not wrong


def rows(found: list[dict[str, Any]], columns: list[str]) -> list[list[Any]]:
    return sorted(([row.get(c) for c in columns] for row in found), key=str)


def test_plans_go_both_ways_by_procedure(hudi_spark: Any, tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9)
    before = sorted(table.scan().to_arrow().to_pylist(), key=str)
    lake = lw.connect(tmp_path / "lake")
    name = f"t_{uuid.uuid4().hex}"
    hudi_spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{table.path}'")
    lake.register_table(name, table.path)
    options = ",".join(f"{key}={value}" for key, value in PLAIN.items())
    (done,) = hudi_spark.sql(
        f"CALL run_compaction(op => 'run', table => '{name}', options => '{options}')"
    ).collect()
    (ours,) = (row for row in table.compactions() if row.instant.requested == done.timestamp)
    assert ours.instant.is_completed and done.operation_size == ours.groups
    table.upsert([{"id": "xa", "p": "x", "n": 9, "ts": 9}])
    planned = hudi_spark.sql(
        f"CALL run_compaction(op => 'schedule', table => '{name}', "
        f"options => '{options},hoodie.compact.inline.max.delta.commits=1')"
    ).collect()
    (executed,) = lake.sql(f"CALL run_compaction('run', '{name}')").to_pylist()  # type: ignore[union-attr]
    assert executed["timestamp"] == planned[0].timestamp and executed["state"] == "COMPLETED"
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == before
