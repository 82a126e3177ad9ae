"""A whole table read from every kind of storage gives the rows of the local one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.index.hashing_store import HashingStore
from lakewright.storage.open import open_storage
from support.rescaling import check_law, made_table, table_of
from support.rescaling import rows as rescaling_rows
from support.s3_server import S3Server, running_s3_server

Tables = Callable[[str], Path]
NAMES = ["orders_cow", "orders_mor", "archived_mor_v8"]


def copy(source: Path, uri: str, options: dict[str, str]) -> None:
    target = open_storage(uri, options)
    for file in source.rglob("*"):
        if file.is_file():
            target.write(str(file.relative_to(source)), file.read_bytes())


def answers(table: lw.Table) -> list[list[str]]:
    first = next(i for i in table.timeline.completed() if i.action.writes_data)
    scans = [
        table.scan(meta=True),
        table.scan(where="city = 'oslo'", columns=["id", "total"]),
        table.incremental(first.completed),
        table.changes(first.completed),
    ]
    return [sorted(map(str, scan.to_arrow().to_pylist())) for scan in scans]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with running_s3_server() as running:
        running.make_bucket("lake")
        yield running


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["memory", "fsspec+memory", "file"])
def test_a_table_is_the_same_elsewhere(
    own_table: Tables, tmp_path: Path, name: str, kind: str
) -> None:
    uri = f"{kind}://{tmp_path}/copy" if kind == "file" else f"{kind}://{tmp_path.name}/{name}"
    copy(own_table(name), uri, {})
    assert answers(lw.open_table(uri)) == answers(lw.open_table(own_table(name)))
    assert lw.open_table(uri).fsck(deep=True).ok


@pytest.mark.service
@pytest.mark.parametrize("name", NAMES)
def test_a_table_on_s3_is_the_same(own_table: Tables, server: S3Server, name: str) -> None:
    uri = f"s3://lake/{name}"
    copy(own_table(name), uri, server.options)
    table = lw.open_table(uri, options=server.options)
    assert answers(table) == answers(lw.open_table(own_table(name)))
    assert table.path == uri and table.fsck().ok


@pytest.mark.service
def test_every_verb_writes_on_s3(server: S3Server) -> None:
    table = lw.create_table(
        "s3://lake/written",
        schema="id STRING, p STRING, n BIGINT",
        key="id",
        partition_by="p",
        order_by="n",
        type="MERGE_ON_READ",
        options=server.options,
    )

    def rows(*numbers: int, n: int = 0, p: str = "a") -> list[dict[str, object]]:
        return [{"id": f"k{i}", "p": p, "n": n + i} for i in numbers]

    table.bulk_insert(rows(1, 2, 3))
    table.upsert(rows(2, 4, n=10))
    table.insert(rows(5), dedupe=True)
    table.delete(["k1"])
    table.delete(where="n = 3")
    table.upsert(rows(8, 9, p="b"), options={"lakewright.write.driver-bytes": "0"})
    table.insert_overwrite(rows(7, p="b"))
    table.insert(rows(6, p="c"))
    assert table.delete_partitions(["p=c", "p=none"]).absent == ("p=none",)
    found = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {"k2": 12, "k4": 14, "k5": 5, "k7": 7}
    assert table.fsck(deep=True).ok
    assert table.insert_overwrite_table([]).instant is not None
    assert table.scan().count() == 0


@pytest.mark.service
def test_bucket_rules_on_s3(server: S3Server) -> None:
    """They are set, moved, archived and taken back where nothing is renamed in one step."""
    storage = open_storage("s3://lake/ruled", server.options)
    table = made_table(storage, buckets="p=x,3;p=.,2")
    table.upsert(table_of(rescaling_rows(range(30), 1, "xy")))
    server.set_faults({"method": "PUT", "key": "hashing_config", "how": "lose"})
    done = table.buckets.set("p=w,5", default=4)
    assert done.pins == {"p=x": 3, "p=y": 2}
    table.upsert(table_of(rescaling_rows(range(40), 2, "wxy")))
    assert check_law(storage) == {"p=w": 5, "p=x": 3, "p=y": 2}
    table.buckets.plan_rescale().apply()
    assert check_law(storage) == {"p=w": 5, "p=x": 4, "p=y": 4}
    table.buckets.undo()
    assert check_law(storage) == {"p=w": 5, "p=x": 3, "p=y": 2}
    store = HashingStore(storage)
    kept = [version.rules for version in store.history(table.timeline)]
    # As if the timeline began after both.
    later = table.buckets.set("p=v,6", default=4).instant
    view = table.timeline
    entries = tuple(e for e in view.entries if e.instant.requested >= later)
    moved = store.archive(replace(view, entries=entries))
    assert moved and done.instant in moved
    assert [version.rules for version in store.history(table.timeline)][: len(kept)] == kept
    assert check_law(storage) == {"p=w": 5, "p=x": 3, "p=y": 2}
