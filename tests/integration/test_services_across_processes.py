"""Services in processes that share nothing but the table's path, beside each other and writers."""

import json
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.storage.open import open_storage
from support.service_contest import answer, start
from support.service_scenarios import FEW
from support.table_files import strays
from support.write_contest import SCHEMA, judge, processes
from support.write_machine import by_hudi
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

SERVICES = ("compaction", "log_compaction", "clustering", "cleaning")
SHAPES: dict[str, dict[str, Any]] = {
    "mor_bucket": {"buckets": 2, "type": "MERGE_ON_READ"},
    "cow_lookup": {},
    "mor_lookup_v6": {"type": "MERGE_ON_READ", "version": 6},
}


def create(path: Path, **kind: Any) -> lw.Table:
    return lw.create_table(
        path, schema=SCHEMA, key="id", partition_by=["p"], properties=FEW, **kind
    )


def put(table: lw.Table, tag: str, *ids: str) -> None:
    table.upsert([{"id": name, "p": f"p{len(name) % 2}", "tag": tag} for name in ids])


def rows(table: lw.Table) -> Counter[tuple[str, str]]:
    found = Counter((r["id"], r["tag"]) for r in table.scan().to_arrow().to_pylist())
    assert found == Counter((r["id"], r["tag"]) for r in by_hudi(table.path))
    return found


def table_for(service: str, path: Path) -> lw.Table:
    """A table that the service has something to do on."""
    table = create(path, **SHAPES["cow_lookup" if service == "cleaning" else "mor_bucket"])
    if service == "clustering":
        table = create(path.with_name("u"), type="MERGE_ON_READ")
    for tag in ("one", "two", "three"):
        put(table, tag, "a", "bb", "c")
    return table


@pytest.mark.parametrize("service", SERVICES)
def test_a_plan_is_carried_out_elsewhere(tmp_path: Path, service: str) -> None:
    table = table_for(service, tmp_path / "t")
    before = rows(table)
    plan = answer(start("schedule", table.path, service))
    assert [i.requested for i in table.timeline.pending()] == [plan]
    assert rows(table) == before
    told = answer(start("carry_out", table.path, service), "go\n")
    assert told == {"outcome": "done", "instant": plan}
    assert table.timeline.pending() == ()
    assert rows(table) == before
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("service", SERVICES)
def test_two_carry_out_one_plan(tmp_path: Path, service: str) -> None:
    table = table_for(service, tmp_path / "t")
    before = rows(table)
    plan = answer(start("schedule", table.path, service))
    both = [start("carry_out", table.path, service, plan) for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == "ready"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [answer(process) for process in both]
    winners = [one for one in told if one["outcome"] == "done"]
    assert winners
    assert {one["instant"] for one in winners} == {plan}
    # Deleting twice is no harm, so that two may clean; files are written by one alone.
    assert len(winners) == 1 or service == "cleaning", told
    assert rows(table) == before
    assert table.timeline.pending() == ()
    put(table, "last", "a")
    assert strays(open_storage(table.path)) == []
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("service", SERVICES)
def test_a_deserted_plan_is_taken_over(tmp_path: Path, service: str) -> None:
    table = table_for(service, tmp_path / "t")
    before = rows(table)
    plan = answer(start("schedule", table.path, service))
    dead = start("die", table.path, service, 3)
    dead.communicate(timeout=600)
    assert dead.returncode == -signal.SIGKILL
    assert rows(table) == before
    assert [i.requested for i in table.timeline.pending()] == [plan]
    told = answer(start("carry_out", table.path, service), "go\n")
    assert told == {"outcome": "done", "instant": plan}
    assert rows(table) == before
    put(table, "last", "a")
    assert strays(open_storage(table.path)) == []
    assert table.fsck(deep=True).ok


def contend(
    request: pytest.FixtureRequest, folder: Path, names: Sequence[str], seconds: float
) -> None:
    tables = [create(folder / name, **SHAPES[name]) for name in names]
    runner = start("look_after", json.dumps([table.path for table in tables]))
    try:
        assert runner.stdout is not None
        assert json.loads(runner.stdout.readline()) == "ready"
        tries = processes(tables, {}, 4, seconds, folder)
        total = Counter(answer(runner))
    finally:
        runner.kill()
        runner.communicate()
    assert total["cleanings"]
    for table in tables:
        total += judge(table, tries, by_hudi if SHAPES[Path(table.path).name] else None)
        put(table, "last", "last")
        assert strays(open_storage(table.path)) == []
        report = table.fsck(deep=True)
        assert report.ok, report.problems
    assert total["writes"]
    tell(request, total, f"4 writers beside services, {seconds:.0f} s")


def test_writers_beside_services(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    contend(request, tmp_path, list(SHAPES), 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SHAPES))
def test_writers_beside_services_for_minutes(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    contend(request, tmp_path, [name], 180)
