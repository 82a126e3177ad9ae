"""Many writers at once: nothing is lost, nothing is there twice, the history is in order."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.storage.open import open_storage
from support.s3_server import running_s3_server
from support.table_files import strays
from support.write_contest import SCHEMA, Try, contend, judge, processes
from support.write_machine import by_hudi
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

SHAPES: dict[str, dict[str, Any]] = {
    "cow_bucket": {"buckets": 2},
    "cow_lookup": {},
    "mor_bucket": {"buckets": 2, "type": "MERGE_ON_READ"},
    "mor_lookup": {"type": "MERGE_ON_READ"},
    "cow_bucket_v6": {"buckets": 2, "version": 6},
    "mor_lookup_v6": {"type": "MERGE_ON_READ", "version": 6},
}


def create(root: str, options: Mapping[str, str], names: Sequence[str]) -> list[lw.Table]:
    return [
        lw.create_table(
            f"{root}/{name}",
            schema=SCHEMA,
            key="id",
            partition_by=["p"],
            options=options,
            **SHAPES[name],
        )
        for name in names
    ]


def settle(
    request: pytest.FixtureRequest,
    tables: Sequence[lw.Table],
    tries: Sequence[Try],
    options: Mapping[str, str],
    what: str,
) -> None:
    """Judge each table, then write once more and look for what writers left behind."""
    total: Counter[str] = Counter()
    for table in tables:
        total += judge(table, tries, None if options else by_hudi)
        table.upsert([{"id": "last", "p": "p0", "tag": "last"}])
        assert strays(open_storage(table.path, options)) == []
        report = table.fsck(deep=True)
        assert report.ok, report.problems
    assert total["writes"] > 0
    tell(request, total, what)


def test_eight_processes(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tables = create(str(tmp_path), {}, list(SHAPES))
    tries = processes(tables, {}, 8, 20, tmp_path)
    settle(request, tables, tries, {}, "8 processes, 20 s")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SHAPES))
def test_eight_processes_on_one_table(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    tables = create(str(tmp_path), {}, [name])
    tries = processes(tables, {}, 8, 60, tmp_path)
    settle(request, tables, tries, {}, f"8 processes, a minute, {name}")


@pytest.mark.slow
def test_eight_processes_for_five_minutes(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tables = create(str(tmp_path), {}, list(SHAPES))
    tries = processes(tables, {}, 8, 300, tmp_path)
    settle(request, tables, tries, {}, "8 processes, 5 minutes")


def test_threads_of_one_process(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tables = create(str(tmp_path), {}, ["cow_lookup", "mor_bucket"])
    tries: list[Try] = []
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            contend(tables, name, 3, tries.append)
        except BaseException as error:  # noqa: BLE001  (told below)
            failures.append(error)

    threads = [threading.Thread(target=write, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    settle(request, tables, tries, {}, "4 threads, 3 s")


@pytest.mark.service
def test_processes_on_s3(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="moto is not installed")
    with running_s3_server() as server:
        server.make_bucket("lake")
        tables = create("s3://lake/many", server.options, ["cow_bucket", "mor_lookup"])
        tries = processes(tables, server.options, 3, 6, tmp_path)
        settle(request, tables, tries, server.options, "3 processes on S3, 6 s")
