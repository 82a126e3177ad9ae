"""Plans of scans: what they hold, how they travel, and what they refuse."""

import pickle
from typing import Any

import pytest

from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan, run_task
from lakewright.actions.tasks.read import ReadTask
from lakewright.engine.local.scan import scan_batches
from lakewright.model.errors import Invalid, InvalidOption, SnapshotGone, UnknownColumn, Unsupported
from lakewright.model.expression.build import col
from lakewright.model.files import ReadingMode
from lakewright.model.schema import META_COLUMNS
from lakewright.storage.open import open_storage
from lakewright.table.pruning import Reason
from lakewright.table.state import TableState
from support.tiny_tables import TinyTable, at, base_name, parquet_bytes

OWN = ("id", "n", "dt", "hour")


@pytest.fixture
def table(tmp_path) -> TinyTable:
    made = TinyTable(storage=open_storage(tmp_path))
    for minute, day in enumerate(("1", "2", "3"), 1):
        files = {
            base_name(f"g{day}{number}", minute): parquet_bytes(
                [f"{day}{number}{i}" for i in range(3)],
                [int(f"{day}{number}{i}") for i in range(3)],
                at(minute),
            )
            for number in range(2)
        }
        made.commit(minute, {f"dt={day}": files})
    return made


@pytest.fixture
def state(table: TinyTable) -> TableState:
    return table.state()


def ids(plan: ScanPlan) -> list[str]:
    return sorted(i for batch in scan_batches(plan) for i in batch.column("id").to_pylist())


def test_the_tasks_of_a_plan_are_slices(state: TableState) -> None:
    plan = plan_scan(state, ScanRequest())
    assert plan.schema.names == OWN
    assert len(plan.tasks) == 6
    assert all(isinstance(task, ReadTask) and task.size > 0 for task in plan.tasks)
    assert {task.partition.values["dt"] for task in plan.tasks} == {"1", "2", "3"}
    assert (plan.report.partitions_kept, plan.report.slices_kept) == (3, 6)
    assert plan.size == plan.report.bytes_kept


def test_a_plan_travels_and_runs_elsewhere(state: TableState) -> None:
    plan = plan_scan(state, ScanRequest(where="n >= 210", columns=("n",)))
    spec, tasks = pickle.loads(pickle.dumps((plan.spec, plan.tasks)))
    assert spec.storage is None
    rows = [n for task in tasks for b in run_task(spec, task) for n in b.column("n").to_pylist()]
    assert sorted(rows) == [210, 211, 212, 300, 301, 302, 310, 311, 312]


def test_a_plan_does_not_see_what_comes_later(table: TinyTable) -> None:
    plan = plan_scan(table.state(), ScanRequest(columns=("id",)))
    before = ids(plan)
    table.commit(4, {"dt=4": {base_name("g4", 4): parquet_bytes(["new"], [1], at(4))}})
    assert ids(plan) == before
    assert "new" in ids(plan_scan(table.state(), ScanRequest(columns=("id",))))


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("dt = '2'", ["200", "201", "202", "210", "211", "212"]),
        (col("n") == 111, ["111"]),
        ("n IN (100, 302) AND dt < '3'", ["100"]),
        ("n > 1000", []),
        ("_hoodie_commit_time = '" + at(3) + "' AND id LIKE '%12'", ["312"]),
    ],
)
def test_filters_choose_rows(state: TableState, where: Any, wanted: list[str]) -> None:
    assert ids(plan_scan(state, ScanRequest(where=where, columns=("id",)))) == wanted


def test_partitions_that_cannot_match_are_not_read(state: TableState) -> None:
    plan = plan_scan(state, ScanRequest(where="dt = '2'"))
    assert [task.partition.path for task in plan.tasks] == ["dt=2", "dt=2"]
    assert plan.report.left_out[Reason.PARTITION] == 2


@pytest.mark.parametrize(
    ("columns", "meta", "wanted"),
    [
        (None, False, OWN),
        (None, True, (*META_COLUMNS, *OWN)),
        (("n", "id"), False, ("n", "id")),
        (("n",), True, (*META_COLUMNS, "n")),
        (("*", "_hoodie_commit_time"), False, (*OWN, "_hoodie_commit_time")),
        (("n", "*"), False, ("n", "id", "dt", "hour")),
        ((), False, ()),
    ],
)
def test_columns(state: TableState, columns: Any, meta: bool, wanted: tuple[str, ...]) -> None:
    plan = plan_scan(state, ScanRequest(columns=columns, meta=meta))
    assert plan.schema.names == wanted
    batches = list(scan_batches(plan))
    assert all(tuple(batch.schema.names) == wanted for batch in batches)
    assert sum(batch.num_rows for batch in batches) == 18


def test_unknown_columns_are_refused_with_the_known_ones(state: TableState) -> None:
    for request in (ScanRequest(columns=("nope",)), ScanRequest(where="nope = 1")):
        with pytest.raises(UnknownColumn, match="nope") as refused:
            plan_scan(state, request)
        assert "hour" in str(refused.value)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ScanRequest(start=at(1)), "start and end"),
        (ScanRequest(mode=ReadingMode.INCREMENTAL, as_of=at(1)), "as of"),
        (ScanRequest(mode=ReadingMode.CDC, meta=True), "meta columns"),
    ],
)
def test_requests_that_contradict_themselves(state, request_: ScanRequest, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        plan_scan(state, request_)


def test_base_files_of_other_formats_are_refused_while_planning() -> None:
    table = TinyTable().commit(1, {"dt=1": {base_name("g", 1)[:-7] + "lance": b"?"}})
    with pytest.raises(Unsupported, match="Lance"):
        plan_scan(table.state(), ScanRequest())


def test_bootstrapped_tables_are_refused() -> None:
    table = TinyTable(hoodie__bootstrap__base__path="/plain/files")
    table.commit(1, {"dt=1": {base_name("g", 1): parquet_bytes(["a"], [1])}})
    with pytest.raises(Unsupported, match="/plain/files"):
        plan_scan(table.state(), ScanRequest())


def test_explain_says_what_is_read_and_why(state: TableState) -> None:
    text = plan_scan(state, ScanRequest(where="dt = '2'", columns=("n",))).explain()
    for words in ("columns: n", "filter: dt = '2'", "2 by partition values", "dt=2/g20_0-1-1_"):
        assert words in text
    many = plan_scan(state, ScanRequest(where=col("n") > 5)).explain()
    assert "`n` > 5" in many or "n > 5" in many


def test_a_request_describes_itself() -> None:
    request = ScanRequest(
        where="n > 1", columns=("n",), mode=ReadingMode.INCREMENTAL, start=at(1), end=at(2)
    )
    assert request.describe() == (
        f"incremental, after {at(1)} up to {at(2)}, columns n, where n > 1"
    )
    assert ScanRequest(as_of=at(1)).describe() == f"snapshot, as of {at(1)}"


def test_changes_can_be_filtered_and_projected(state: TableState) -> None:
    request = ScanRequest(
        mode=ReadingMode.CDC, where="op = 'i' AND after.n = 311", columns=("ts_ms", "after")
    )
    plan = plan_scan(state, request)
    rows = [row for batch in scan_batches(plan) for row in batch.to_pylist()]
    assert [(row["ts_ms"], row["after"]["id"]) for row in rows] == [(at(3), "311")]
    assert "after 000" not in plan.explain()


# ------------------------------------------------------------------------------ running


@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_threads_read_everything_once(tmp_path, table: TinyTable, threads: str) -> None:
    storage = open_storage(tmp_path, {"lakewright.read.threads": threads})
    plan = plan_scan(TinyTable.state(_At(storage)), ScanRequest(columns=("id",)))
    assert len(ids(plan)) == 18


class _At:
    def __init__(self, storage: Any) -> None:
        self.storage = storage


def test_a_bad_number_of_threads_is_refused(tmp_path, table: TinyTable) -> None:
    storage = open_storage(tmp_path, {"lakewright.read.threads": "-1"})
    plan = plan_scan(TinyTable.state(_At(storage)), ScanRequest())
    with pytest.raises(InvalidOption, match=r"lakewright\.read\.threads"):
        list(scan_batches(plan))


def test_the_first_error_of_a_task_is_raised(table: TinyTable) -> None:
    plan = plan_scan(table.state(), ScanRequest())
    gone = plan.tasks[3].paths[0]
    table.storage.delete([gone])
    with pytest.raises(SnapshotGone, match=gone.rpartition("/")[2]):
        list(scan_batches(plan))


def test_leaving_early_stops_the_work(state: TableState) -> None:
    batches = scan_batches(plan_scan(state, ScanRequest(columns=("id",))))
    assert next(batches).num_rows == 3
    batches.close()  # type: ignore[attr-defined]
    assert list(batches) == []
