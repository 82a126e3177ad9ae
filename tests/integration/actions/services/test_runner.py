"""The services runner: what it does for tables, in which order, and what it leaves to others."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.actions.services.runner import RUNS, Chosen
from lakewright.api.runner import ServicesRunner
from lakewright.api.table import Table
from lakewright.model.errors import Invalid, InvalidOption
from lakewright.model.instant import Action, Instant, State
from lakewright.model.services import Outcome, Service, ServiceRun
from lakewright.timeline import heartbeats
from lakewright.timeline.locks.services_lock import services_lock
from lakewright.timeline.storage_committer import StorageCommitter
from support.faulty_storage import Fault, FaultyStorage
from support.served import contents, place, rows, served_table, small_files

DUE = {
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
    "lakewright.clean.grace": "0",
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
}


def outcomes(told: Any) -> list[tuple[str | None, str]]:
    return [(t.service and t.service.value, t.outcome.value) for t in told]


def test_it_compacts_cleans_and_archives_what_is_due() -> None:
    table = served_table(properties=DUE)
    before = contents(table)
    told = ServicesRunner([table]).once()
    assert outcomes(told) == [("compaction", "done"), ("cleaning", "done"), ("archiving", "done")]
    assert told[1].counts.files_deleted > 0 and told[0].seconds > 0
    assert contents(table) == before and table.fsck().ok
    again = ServicesRunner([table]).once()
    assert {t.outcome for t in again} <= {Outcome.NOT_DUE, Outcome.NOTHING}


def test_it_clusters_where_the_table_asks_for_it() -> None:
    table = small_files()
    due = {"hoodie.clustering.inline.max.commits": "3"}
    assert "clustering" not in {s for s, _ in outcomes(table.look_after(options=due))}
    chosen = {"lakewright.services": "cleaning,clustering", **due}
    told = table.look_after(options=chosen)
    assert outcomes(told)[0] == ("clustering", "done")
    assert [len(snapshot.file_slices) for snapshot in table.get_latest_snapshot()] == [1, 1]


def test_settings_of_the_call_win_over_the_tables() -> None:
    table = served_table(properties=DUE)
    every = {"lakewright.services": "archiving", "hoodie.keep.max.commits": "100"}
    assert outcomes(ServicesRunner([table], settings=every).once()) == [("archiving", "not due")]
    own = {table.name: {"lakewright.services": "none"}}
    assert ServicesRunner([table], settings=every, table_settings=own).once() == ()
    assert ServicesRunner([table], table_settings={table.path: own[table.name]}).once() == ()


def test_readers_are_given_time_by_default() -> None:
    table = served_table(properties={k: v for k, v in DUE.items() if "grace" not in k})
    told = ServicesRunner([table], settings={"lakewright.services": "compaction,cleaning"}).once()
    assert outcomes(told) == [("compaction", "done"), ("cleaning", "nothing to do")]


def test_waiting_plans_are_carried_out_first() -> None:
    table = served_table()
    plan = table.schedule_compaction(partitions=["p=y"])
    assert plan is not None and plan.instant is not None
    told = table.look_after(options={"lakewright.services": "compaction"})
    assert outcomes(told) == [("compaction", "done"), ("compaction", "not due")]
    assert told[0].why == f"planned {plan.instant.requested}"
    assert told[0].instant is not None and told[0].instant.is_completed


def test_deserted_plans_are_finished_whatever_is_chosen() -> None:
    table = served_table()
    plan = table.schedule_compaction()
    assert plan is not None and plan.instant is not None
    nothing = {"lakewright.services": "none"}
    assert table.look_after(options=nothing) == ()
    committer = StorageCommitter(table._storage, table._state().config, {})
    committer.take(plan.instant, "COMPACT")
    at_work = table.look_after(options=nothing)
    assert outcomes(at_work) == [("compaction", "left to others")]
    assert "Somebody is carrying out the plan" in at_work[0].why
    _die(table, plan.instant.requested)
    told = table.look_after(options=nothing)
    assert outcomes(told) == [("compaction", "done")]
    assert told[0].why == f"begun {plan.instant.requested} and not finished"


def _die(table: lw.Table, instant: str) -> None:
    """Let the heartbeat look like one of a process that has ended."""
    record = heartbeats.read_record(table._storage, instant)
    assert record is not None
    heartbeats._LIVE.discard(record.owner.token)


def test_while_somebody_is_at_work_nothing_else_is_begun() -> None:
    table = served_table(properties=DUE)
    plan = table.schedule_compaction(partitions=["p=y"])
    assert plan is not None and plan.instant is not None
    committer = StorageCommitter(table._storage, table._state().config, {})
    ticket = committer.take(plan.instant, "COMPACT")
    told = table.look_after()
    assert outcomes(told)[-1] == ("compaction", "left to others")
    assert not any(t.outcome is Outcome.DONE for t in told)
    committer.abandon(ticket)
    assert [o for _, o in outcomes(table.look_after())].count("done") >= 2


def test_two_runners_never_do_the_same(tmp_path: Path) -> None:
    table = served_table(
        str(tmp_path / "t"), properties={**DUE, "lakewright.services": "compaction"}
    )
    start, told = threading.Barrier(4), list[ServiceRun]()

    def run() -> None:
        start.wait()
        told.extend(ServicesRunner([str(tmp_path / "t")]).once())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [t.outcome for t in told].count(Outcome.DONE) == 1
    assert not [t for t in told if t.outcome is Outcome.FAILED]
    assert len(list(table.compactions())) == 1


def test_what_another_one_has_just_done_is_not_done_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = served_table()
    table.compact()
    plan = table.schedule_cleaning(policy="versions", retain=1)
    assert plan is not None

    def locked(*arguments: Any) -> Any:
        table.clean(plan)  # the holder before us did it, and let go
        return services_lock(*arguments)

    monkeypatch.setattr("lakewright.actions.services.tending.services_lock", locked)
    told = table.look_after(options={"lakewright.services": "cleaning"})
    assert outcomes(told) == [("cleaning", "not due")]
    assert len(list(table.cleanings())) == 1


def test_a_lock_that_storage_cannot_tell_of_is_no_busy_table(tmp_path: Path) -> None:
    table = served_table(str(tmp_path / "t"), properties=DUE)
    faulty = FaultyStorage(table._storage, [Fault("create", path="services.lock")])
    (told,) = Table(faulty).look_after()
    assert (told.outcome, told.why) == (
        Outcome.FAILED,
        "Unavailable: The storage was told to fail.",
    )


def test_a_busy_table_is_passed_over_and_its_holder_named(tmp_path: Path) -> None:
    table = served_table(str(tmp_path / "t"), properties=DUE)
    with services_lock(table._storage, {}).acquire():
        (told,) = table.look_after()
    assert (told.service, told.outcome) == (None, Outcome.LEFT)
    assert "process" in told.why and "looks after it" in told.why


def test_an_error_of_one_table_does_not_stop_the_next(tmp_path: Path) -> None:
    table = served_table(properties=DUE)
    broken = served_table(commits=1)
    settings = {broken.name: {"lakewright.services": "dusting"}}
    runner = ServicesRunner([str(tmp_path / "nowhere"), broken, table], table_settings=settings)
    told = runner.once()
    assert outcomes(told[:2]) == [(None, "failed"), (None, "failed")]
    assert "TableNotFound" in told[0].why and "a comma list of compaction" in told[1].why
    assert outcomes(told[2:])[0] == ("compaction", "done")


def test_an_error_of_one_service_does_not_stop_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("no space left")

    monkeypatch.setattr("lakewright.actions.services.compaction.carry_out", fail)
    table = served_table(properties={**DUE, "lakewright.services": "compaction,archiving"})
    told = table.look_after()
    assert outcomes(told)[0] == ("compaction", "failed") and "no space left" in told[0].why
    assert outcomes(told)[1][0] == "archiving"


def test_a_lake_is_asked_for_its_tables_in_each_round(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    runner = ServicesRunner(lake, settings={"lakewright.services": "archiving"})
    assert runner.once() == ()
    lake.create_table("shop.a", schema="id string", key="id")
    lake.create_table("shop.b", schema="id string", key="id")
    assert [t.table for t in runner.once()] == ["shop.a", "shop.b"]


def test_it_goes_on_until_it_is_stopped() -> None:
    table = served_table(commits=1)
    runner = ServicesRunner([table], settings={"lakewright.services": "archiving"})
    told: list[ServiceRun] = []

    def tell(ran: ServiceRun) -> None:
        told.append(ran)
        if len(told) == 3:
            runner.stop()

    runner.run(0.001, tell)
    assert len(told) == 3
    runner.run("1h")  # it is stopped, and stays so


def test_it_stops_between_services() -> None:
    table = served_table(properties=DUE)
    runner = ServicesRunner([table])
    told: list[ServiceRun] = []

    def tell(ran: ServiceRun) -> None:
        told.append(ran)
        runner.stop()

    runner.run("1h", tell)
    assert outcomes(told) == [("compaction", "done")]


@pytest.mark.parametrize("every", ["soon", "0", -1, "5 parsecs"])
def test_a_duration_that_is_none_is_refused(every: str | float) -> None:
    with pytest.raises(Invalid, match="every="):
        ServicesRunner([]).run(every)


def test_the_chosen_services_as_text() -> None:
    assert str(RUNS.default) == "compaction,cleaning,archiving"
    assert Chosen.parse(str(RUNS.default)) == RUNS.default
    assert str(Chosen.parse("log-compaction, Compaction")) == "log-compaction,compaction"
    assert Chosen.parse("none").services == () and str(Chosen(())) == "none"
    with pytest.raises(InvalidOption, match=r"lakewright[.]services"):
        RUNS.read({"lakewright.services": ""})


def test_what_was_done_as_text_and_for_programs() -> None:
    instant = Instant("20260101000000000", Action.COMPACTION, State.REQUESTED)
    ran = ServiceRun("t", Service.COMPACTION, Outcome.DONE, "due", instant, "1 group")
    assert str(ran) == "t: compaction done: 1 group; due"
    assert json.loads(ran.to_json())["instant"] == instant.requested
    assert str(ServiceRun("t", None, Outcome.LEFT, "busy")) == "t: services left to others: busy"


def test_rows_written_meanwhile_are_kept() -> None:
    table = served_table(place(), properties=DUE)
    plan = table.schedule_compaction()
    assert plan is not None
    table.upsert(rows(50))
    before = contents(table)
    table.look_after()
    assert contents(table) == before
