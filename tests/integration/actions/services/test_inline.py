"""Services right after a write: off unless asked for, in order, and never the write's undoing."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.model.errors import InvalidOption
from lakewright.model.instant import Action
from lakewright.model.services import Outcome, Service
from lakewright.timeline.locks.services_lock import services_lock
from support.served import contents, rows, served_table, small_files

COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
CLEAN = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
ARCHIVE = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
NOW = {"lakewright.clean.grace": "0"}


def actions(table: lw.Table) -> list[Action]:
    view = table.timeline
    return [view.planned_as(instant) for instant in view.instants]


def test_nothing_runs_by_itself() -> None:
    table = served_table(commits=1)
    result = table.upsert(rows(1), options={"hoodie.compact.inline.max.delta.commits": "1"})
    assert result.services == ()
    assert actions(table) == [Action.DELTACOMMIT] * 2


@pytest.mark.parametrize("by_table", [True, False], ids=["table", "write"])
def test_a_compaction_runs_when_it_is_due(by_table: bool) -> None:
    table = served_table(commits=0, properties=COMPACT if by_table else {})
    given: Mapping[str, str] = {} if by_table else COMPACT
    assert table.upsert(rows(0), options=given).services == ()
    (told,) = table.upsert(rows(1), options=given).services
    assert (told.service, told.outcome) == (Service.COMPACTION, Outcome.DONE)
    assert told.why == "2 delta commits since the last compaction, 2 are enough"
    assert told.counts.rows == 6 and told.instant is not None
    assert actions(table) == [Action.DELTACOMMIT, Action.DELTACOMMIT, Action.COMPACTION]
    assert [row["n"] for row in table.scan().to_arrow().sort_by("id").to_pylist()] == [
        row["n"] for row in rows(1)
    ]


def test_a_compaction_may_be_planned_alone() -> None:
    table = served_table(commits=1)
    options = {**COMPACT, "hoodie.compact.inline": "false"}
    options["hoodie.compact.schedule.inline"] = "true"
    (told,) = table.upsert(rows(1), options=options).services
    assert told.outcome is Outcome.PLANNED
    (waiting,) = table.compactions()
    assert waiting.instant == told.instant and not waiting.instant.is_completed
    (again,) = table.upsert(rows(2), options={**COMPACT}).services
    assert (again.outcome, again.why) == (Outcome.DONE, f"planned {waiting.instant.requested}")


def test_one_after_the_other() -> None:
    table = served_table(commits=3)
    before = {*table.timeline.data()}
    told = table.upsert(rows(9), options={**COMPACT, **CLEAN, **NOW}).services
    assert [(t.service, t.outcome) for t in told] == [
        (Service.COMPACTION, Outcome.DONE),
        (Service.CLEANING, Outcome.DONE),
    ]
    assert told[1].counts.files_deleted > 0  # what the compaction before it superseded
    assert before < {*table.timeline.data()}
    assert table.fsck().ok


def test_clustering_after_a_write() -> None:
    table = small_files()
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "4"}
    (told,) = table.bulk_insert(rows(7), options={**options, **CLEAN}).services
    assert (told.service, told.outcome) == (Service.CLUSTERING, Outcome.DONE)
    assert told.counts.files_read == 8 and told.counts.files_written == 2
    alone = {**options, "hoodie.clustering.inline": "false"}
    alone["hoodie.clustering.schedule.inline"] = "true"
    alone["hoodie.clustering.inline.max.commits"] = "1"
    (told,) = table.bulk_insert(rows(8), options=alone).services
    assert (told.service, told.outcome) == (Service.CLUSTERING, Outcome.PLANNED)
    assert [c.instant.is_completed for c in table.clusterings()] == [False, True]


def test_archiving_after_a_write() -> None:
    table = served_table(commits=3, type="COPY_ON_WRITE")
    (told,) = table.upsert(rows(9), options=ARCHIVE).services
    assert (told.service, told.outcome, told.why) == (
        Service.ARCHIVING,
        Outcome.DONE,
        "4 commits, more than 3",
    )
    assert len(table.timeline.data()) == 2


def test_readers_are_given_time_unless_the_option_says_otherwise() -> None:
    table = served_table(commits=2, type="COPY_ON_WRITE")
    assert table.upsert(rows(2), options=CLEAN).services == ()
    (told,) = table.upsert(rows(3), options={**CLEAN, **NOW}).services
    assert told.counts.files_deleted == 6


def test_the_switch_turns_all_off() -> None:
    table = served_table(commits=1, properties=COMPACT)
    off = {"hoodie.table.services.enabled": "false"}
    assert table.upsert(rows(1), options=off).services == ()


def test_what_an_option_cannot_mean_is_refused_before_the_write() -> None:
    table = served_table(commits=1)
    with pytest.raises(InvalidOption, match="true, false"):
        table.upsert(rows(1), options={"hoodie.clean.automatic": "perhaps"})
    assert len(table.timeline.instants) == 1


def test_a_service_that_fails_never_fails_the_write(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr("lakewright.actions.services.compaction.carry_out", fail)
    table = served_table(commits=1)
    with caplog.at_level(logging.WARNING):
        result = table.upsert(rows(1), options={**COMPACT, **CLEAN, **NOW})
    assert result.instant is not None and result.instant in table.timeline.data()
    (told,) = result.services
    assert (told.service, told.outcome) == (Service.COMPACTION, Outcome.FAILED)
    assert "the disk is on fire" in told.why and "the disk is on fire" in caplog.text
    monkeypatch.undo()
    before = contents(table)
    assert table.compact().instant is not None, "the plan waits for whoever comes next"
    assert contents(table) == before


def test_a_setting_that_fails_the_service_does_not_fail_the_write() -> None:
    table = served_table(commits=1, type="COPY_ON_WRITE")
    broken = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "9"}
    (told,) = table.upsert(rows(1), options={**broken, "hoodie.keep.max.commits": "3"}).services
    assert told.outcome is Outcome.FAILED and "is not below" in told.why


def test_a_table_that_another_one_looks_after_is_left_to_it(tmp_path: Path) -> None:
    table = served_table(str(tmp_path / "t"), commits=1)
    with services_lock(table._storage, {}).acquire():
        (told,) = table.upsert(rows(1), options=COMPACT).services
    assert (told.service, told.outcome) == (None, Outcome.LEFT)
    assert "looks after it" in told.why
    assert table.compact().instant is not None


def test_deletes_overwrites_and_changes_by_condition_end_alike() -> None:
    table = served_table(commits=1)
    options = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    for write in (
        lambda: table.delete(where="id = 'x0'", options=options),
        lambda: table.update({"n": "n + 1"}, where="id = 'x1'", options=options),
    ):
        (told,) = write().services
        assert (told.service, told.outcome) == (Service.COMPACTION, Outcome.DONE)


def test_streams_and_sql_have_it_too(tmp_path: Path) -> None:
    table = served_table(commits=1, properties=COMPACT)
    result = table.stream_writer(stream="s")(rows(1), 0)
    assert result is not None and [t.outcome for t in result.services] == [Outcome.DONE]
    lake = lw.connect(tmp_path)
    lake.sql(
        "CREATE TABLE t (id STRING, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id', "
        "type = 'mor', 'hoodie.compact.inline' = 'true', "
        "'hoodie.compact.inline.max.delta.commits' = '2')"
    )
    lake.sql("INSERT INTO t VALUES ('a', 1); UPDATE t SET n = 2 WHERE id = 'a'")
    assert [found.groups for found in lake.table("t").compactions()] == [1]
