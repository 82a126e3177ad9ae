"""Writers with different bucket rules, and rescales beside writers, in processes of their own."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.storage.open import open_storage
from support.bucket_contest import SCHEMA, go_on, heard, put, start
from support.rescaling import check_law
from support.table_files import strays
from support.write_machine import by_hudi
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

KINDS = [
    ("COPY_ON_WRITE", 9),
    ("MERGE_ON_READ", 6),
    pytest.param(("COPY_ON_WRITE", 6), marks=pytest.mark.slow),
    pytest.param(("MERGE_ON_READ", 9), marks=pytest.mark.slow),
]
IDS = [f"k{number}" for number in range(24)]
BUCKET_FILES = (".hoodie/.bucket_index/", ".hoodie/.hashing_meta/")


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0][:4].lower()}-v{kind[1]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> lw.Table:
    kind, version = request.param
    made = lw.create_table(
        tmp_path / "t",
        schema=SCHEMA,
        key="id",
        partition_by="p",
        type=kind,
        version=version,
        buckets={"expressions": [], "defaultBucketNumber": 4},
    )
    assert put(made, "first", IDS, "a")["outcome"] == "done"
    assert put(made, "first", IDS, "b")["outcome"] == "done"
    return made


def held(rows: Sequence[dict[str, Any]]) -> Counter[tuple[str, str, str]]:
    return Counter((row["p"], row["id"], row["tag"]) for row in rows)


def judge(table: lw.Table, tries: Sequence[dict[str, Any]]) -> None:
    """What took effect is there, in order, and nothing else; buckets are by the law."""
    expected = {(p, i): "first" for p in "ab" for i in IDS}
    done = [tried for tried in tries if tried["outcome"] == "done" and "completed" in tried]
    for tried in sorted(done, key=lambda tried: tried["completed"]):
        expected |= {(tried["partition"], i): tried["tag"] for i in tried["ids"]}
    rows = Counter((p, i, tag) for (p, i), tag in expected.items())
    found = held(table.scan().to_arrow().to_pylist())
    assert found == rows, f"missing {rows - found}, strange {found - rows}"
    assert held(by_hudi(table.path)) == rows
    check_law(open_storage(table.path))
    assert table.buckets.check().ok
    # Whoever writes next takes away what losers left.
    assert put(table, "last", ["last"], "a")["outcome"] == "done"
    left = [path for path in strays(open_storage(table.path)) if not path.startswith(BUCKET_FILES)]
    assert not left
    report = table.fsck(deep=True)
    assert report.ok, report.problems


@pytest.mark.parametrize("apart", [True, False], ids=["apart", "together"])
def test_of_two_writers_with_different_rules_one_aborts(table: lw.Table, apart: bool) -> None:
    slow = start("paused", table.path, "slow", " ".join(IDS), "new")
    assert heard(slow) == "waiting"
    table.buckets.set("new,9", default=4)
    # Where no group is both writers', only the numbers tell that they do not agree.
    beyond = bucket_of(pa.array(IDS), ["id"], 9) >= 4
    ids = [name for name, far in zip(IDS, beyond, strict=True) if far or not apart]
    quick = put(table, "quick", ids, "new")
    assert quick["outcome"] == "done"
    (told,) = go_on(slow)
    assert told["outcome"] == "conflict"
    assert "'p=new'" in told["why"]
    if apart:
        assert "has 9 buckets" in told["why"]
        assert "counted 4" in told["why"]
    assert check_law(open_storage(table.path)) == {"p=a": 4, "p=b": 4, "p=new": 9}
    judge(table, [quick, told])


def test_a_writer_with_old_rules_loses_even_alone(table: lw.Table) -> None:
    """Nobody else brought the partition, but the rules say another number of it by now."""
    slow = start("paused", table.path, "slow", " ".join(IDS), "new")
    assert heard(slow) == "waiting"
    table.buckets.set("new,9", default=4)
    (told,) = go_on(slow)
    assert told["outcome"] == "conflict"
    judge(table, [told])


def test_a_writer_with_old_rules_goes_on_where_its_partition_kept_its_number(
    table: lw.Table,
) -> None:
    slow = start("paused", table.path, "slow", " ".join(IDS[:9]), "a")
    assert heard(slow) == "waiting"
    told = table.buckets.set("new,9", default=7)
    assert set(told.pins) == {"p=a", "p=b"}
    (done,) = go_on(slow)
    assert done["outcome"] == "done"
    assert check_law(open_storage(table.path)) == {"p=a": 4, "p=b": 4}
    judge(table, [done])


def test_an_upsert_that_began_before_a_rescale_does_not_end_after_it(table: lw.Table) -> None:
    slow = start("paused", table.path, "slow", "k1 k2 fresh", "a")
    assert heard(slow) == "waiting"
    table.buckets.plan_rescale(rules=6).apply()
    (told,) = go_on(slow)
    assert told["outcome"] == "conflict"
    assert set(check_law(open_storage(table.path)).values()) == {6}
    judge(table, [told])


@pytest.mark.parametrize("partition", ["a", "new"])
def test_while_a_rescale_runs_writers_are_refused_or_it_gives_way(
    table: lw.Table, partition: str
) -> None:
    slow = start("paused_rescale", table.path, 6)
    assert heard(slow) == "waiting"
    quick = put(table, "quick", IDS[:7], partition)
    (told,) = go_on(slow)
    if partition == "a":
        # The rescale has this partition's groups.
        assert quick["outcome"] == "conflict"
        assert told["outcome"] == "done"
    else:
        # A new partition by the old rules: one of the two lost, or it is pinned.
        assert "done" in (quick["outcome"], told["outcome"])
    judge(table, [quick, told])


def test_of_two_rescales_one_wins(table: lw.Table) -> None:
    slow = start("paused_rescale", table.path, 6)
    assert heard(slow) == "waiting"
    with pytest.raises(lw.Conflict):
        table.buckets.plan_rescale(rules=3).apply()
    with pytest.raises(lw.Conflict):
        table.buckets.set("a,2", default=4)
    assert go_on(slow) == [{"outcome": "done"}]
    assert set(check_law(open_storage(table.path)).values()) == {6}
    judge(table, [])


def contend(request: pytest.FixtureRequest, table: lw.Table, writers: int, seconds: float) -> None:
    processes = [start("write", table.path, f"w{n}", seconds) for n in range(writers)]
    processes.append(start("change", table.path, "changer", seconds))
    try:
        for process in processes:
            assert heard(process) == "ready"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told = [go_on(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    tries = [tried for lines in told[:-1] for tried in lines]
    judge(table, tries)
    total = Counter(f"writes {tried['outcome']}" for tried in tries)
    total += Counter(f"{one['what']} {one['outcome']}" for one in told[-1])
    assert total["writes done"]
    assert any(one["outcome"] == "done" for one in told[-1])
    tell(request, total, f"{writers} writers beside rescales, {seconds:.0f} s")


def test_rescales_beside_writers(request: pytest.FixtureRequest, table: lw.Table) -> None:
    contend(request, table, 2, 8)


@pytest.mark.slow
def test_rescales_beside_writers_for_minutes(
    request: pytest.FixtureRequest, table: lw.Table
) -> None:
    contend(request, table, 4, 120)
