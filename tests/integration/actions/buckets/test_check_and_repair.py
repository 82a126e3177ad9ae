"""Damaged buckets are found, told of by name, and mended without losing a row."""

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.buckets import repair
from lakewright.actions.buckets.repair_task import Repaired, RepairWork, repair_partition
from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.api.table import Table
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.simple_hash_meta import (
    PartitionHashInfo,
    SimpleHashMeta,
    encode_hash_meta,
)

DAYS = ("2026-11-01", "2026-11-02")
Row = dict[str, object]


def rows(numbers: range, day: str, ts: int = 1) -> list[Row]:
    return [{"id": f"k{n}", "n": ts * 1000 + n, "ts": ts, "dt": day} for n in numbers]


def make(path: Path, kind: str, version: int, order_by: str | None = "ts") -> Table:
    table = lw.create_table(
        path,
        schema="id string, n int, ts bigint, dt string",
        key="id",
        order_by=order_by,
        partition_by="dt",
        type=kind,
        version=version,
        buckets=4,
    )
    for day in DAYS:
        table.upsert(rows(range(40), day))
    return table


def claim_buckets(table: Table, number: int) -> None:
    """Make writers believe in another number, as one with wrong options of Hudi does."""
    file = Path(table.path) / ".hoodie" / "hoodie.properties"
    text = re.sub(r"(hoodie\.bucket\.index\.num\.buckets=)\d+", rf"\g<1>{number}", file.read_text())
    file.write_text(re.sub(r"hoodie\.table\.checksum=.*\n", "", text))


def bucket(row: Row, number: int) -> int:
    return int(bucket_of(pa.array([str(row["id"])]), ("id",), number)[0])


def contents(table: Table) -> dict[tuple[object, object], object]:
    found = table.scan(columns=["id", "dt", "n"]).to_arrow().to_pylist()
    assert len({(row["id"], row["dt"]) for row in found}) == len(found)
    return {(row["id"], row["dt"]): row["n"] for row in found}


def groups(table: Table, day: str) -> list[str]:
    return sorted(
        piece.group.file_id[:8]
        for snapshot in table.files.list_files_at()
        if snapshot.descriptor.path == f"dt={day}"
        for piece in snapshot.file_slices
    )


def files_of(table: Table, day: str) -> list[str]:
    return sorted(file.name for file in (Path(table.path) / f"dt={day}").iterdir())


kinds = pytest.mark.parametrize(
    ("kind", "version"),
    [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 6)],
)


@kinds
def test_a_sound_table_is_sound(tmp_path: Path, kind: str, version: int) -> None:
    table = make(tmp_path / "t", kind, version)
    report = table.buckets.check()
    assert report.ok
    assert report.checked == {"partitions": 2, "file groups": 8, "rows": 80}
    plan = table.buckets.repair()
    assert plan.plan.empty
    assert plan.apply().instant is None


@kinds
def test_rows_of_a_writer_with_another_number_are_found_and_mended(
    tmp_path: Path, kind: str, version: int
) -> None:
    table = make(tmp_path / "t", kind, version)
    table.upsert(rows(range(30, 50), DAYS[0], ts=2))
    expected = contents(table)
    claim_buckets(table, 6)
    table.upsert(rows(range(60), DAYS[0], ts=3))
    claim_buckets(table, 4)
    expected.update({(r["id"], r["dt"]): r["n"] for r in rows(range(60), DAYS[0], ts=3)})
    assert table.scan().count() > len(expected)  # keys are there twice
    report = table.buckets.check()
    assert not report.ok
    assert {problem.code for problem in report.problems} == {"rows-astray", "bucket-beyond"}
    assert {problem.partition for problem in report.problems} == {f"dt={DAYS[0]}"}
    assert json.loads(report.to_json())["ok"] is False
    before = files_of(table, DAYS[1])
    plan = table.buckets.repair()
    assert [item.partition for item in plan.plan.items] == [f"dt={DAYS[0]}"]
    result = plan.apply()
    assert result.rows == 60 and result.dropped > 0
    assert contents(table) == expected
    assert table.buckets.check().ok
    assert groups(table, DAYS[0]) == [f"{n:08d}" for n in range(4)]
    assert files_of(table, DAYS[1]) == before  # what is sound is left alone
    assert table.fsck(deep=True).ok
    table.upsert(rows(range(5), DAYS[0], ts=4))
    expected.update({(r["id"], r["dt"]): r["n"] for r in rows(range(5), DAYS[0], ts=4)})
    assert contents(table) == expected


def second_group(table: Table, day: str) -> tuple[str, str]:
    """Copy a group of bucket 1 under another id, as two writers that made it at once leave it."""
    folder = Path(table.path) / f"dt={day}"
    file = next(file for file in sorted(folder.iterdir()) if file.name.startswith("00000001-"))
    old, rest = file.name.split("_", 1)
    new = "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0"
    shutil.copy(file, folder / f"{new}_{rest}")
    return old, new


def test_two_groups_of_a_bucket_become_one_and_nothing_else_is_touched(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    expected = contents(table)
    old, new = second_group(table, DAYS[0])
    by_names = table.buckets.check(rows=False)
    assert [problem.code for problem in by_names.problems] == ["bucket-twice"]
    assert old in by_names.problems[0].message and new in by_names.problems[0].message
    assert by_names.checked["rows"] == 0
    plan = table.buckets.repair()
    (item,) = plan.plan.items
    assert (item.mended, item.groups, item.why) == (1, 2, "1 groups too many")
    result = plan.apply()
    assert (result.groups, result.files, result.dropped) == (2, 1, result.rows)
    assert contents(table) == expected
    assert table.buckets.check().ok
    body = table.timeline.commit_metadata(result.instant)  # type: ignore[arg-type]
    assert {path: set(ids) for path, ids in body.replaced.items()} == {f"dt={DAYS[0]}": {old, new}}


def test_groups_beyond_the_number_go_where_their_rows_belong(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    claim_buckets(table, 9)
    table.upsert(rows(range(100, 150), DAYS[0]))
    claim_buckets(table, 4)
    expected = contents(table)
    assert "bucket-beyond" in {problem.code for problem in table.buckets.check().problems}
    table.buckets.repair().apply()
    assert contents(table) == expected
    assert groups(table, DAYS[0]) == [f"{n:08d}" for n in range(4)]
    assert table.buckets.check().ok


def test_the_merge_mode_decides_which_row_of_a_key_stays(tmp_path: Path) -> None:
    for mode, order_by, kept in (("event", "ts", 9_000), ("commit", None, 2_000)):
        table = make(tmp_path / mode, "COPY_ON_WRITE", 9, order_by)
        table.upsert(rows(range(40), DAYS[0], ts=9))
        claim_buckets(table, 6)
        table.upsert(rows(range(40), DAYS[0], ts=2))  # later, and older by its ordering value
        claim_buckets(table, 4)
        table.buckets.repair().apply()
        found = {key: n for key, n in contents(table).items() if key[1] == DAYS[0]}
        strays = {n: found[f"k{n}", DAYS[0]] for n in range(40)}
        # Where both numbers lead to the same bucket, the upsert itself has merged them.
        assert set(strays.values()) == {kept + n for n in range(40)}, mode


def test_rows_keep_their_commit_times(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    times = table.scan(columns=["id", "dt", "_hoodie_commit_time"]).to_arrow()
    second_group(table, DAYS[0])
    last = table.timeline.latest_data()
    assert last is not None
    table.buckets.repair().apply()
    again = table.scan(columns=["id", "dt", "_hoodie_commit_time"]).to_arrow()
    by = [("dt", "ascending"), ("id", "ascending")]
    assert again.sort_by(by).to_pylist() == times.sort_by(by).to_pylist()
    assert table.incremental(last.completed).count() == 0
    assert table.changes(last.completed).count() == 0


def test_a_plan_that_the_table_has_outgrown_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    second_group(table, DAYS[0])
    plan = table.buckets.repair()
    table.delete_partitions([f"dt={DAYS[0]}"])
    with pytest.raises(lw.Conflict, match="not as the repair was planned on"):
        plan.apply()
    assert not table.timeline.pending()
    assert table.buckets.repair().plan.empty


def test_metadata_that_names_another_number_is_put_right(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    table.buckets.set("11-02,8", default=2)
    table.upsert(rows(range(20), "2026-11-03"))
    (meta,) = (Path(table.path) / ".hoodie/.hashing_meta/simple").glob("*.hashing_meta")
    wrong = SimpleHashMeta({"dt=2026-11-03": PartitionHashInfo(5, meta.stem)}, 2)
    meta.write_bytes(encode_hash_meta(wrong))
    with pytest.raises(lw.Corrupt, match=r"buckets\.check"):
        table.upsert(rows(range(20), "2026-11-03", ts=2))
    report = table.buckets.check()
    (problem,) = report.problems
    assert (problem.code, problem.partition) == ("hashing-meta", "dt=2026-11-03")
    assert "5 buckets" in problem.message and "config 2" in problem.message
    plan = table.buckets.repair()
    assert plan.plan.metadata == {"dt=2026-11-03": 2}
    plan.apply()
    assert table.buckets.check().ok
    table.upsert(rows(range(20), "2026-11-03", ts=2))
    assert table.buckets.check().ok


@pytest.mark.parametrize("memory", ["1", "20000"])
def test_little_memory_is_enough(tmp_path: Path, memory: str) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    claim_buckets(table, 6)
    table.upsert(rows(range(60), DAYS[0], ts=3))
    claim_buckets(table, 4)
    plan = table.buckets.repair(options={"lakewright.write.spill-bytes": memory})
    result = plan.apply()
    assert (result.rows, result.files) == (60, 4)
    expected = {(r["id"], r["dt"]): r["n"] for r in rows(range(60), DAYS[0], ts=3)}
    assert {key: n for key, n in contents(table).items() if key[1] == DAYS[0]} == expected
    assert table.buckets.check().ok


@pytest.mark.parametrize("version", [6, 9])
def test_two_keys_hashed_by_one_in_a_table_without_partitions(tmp_path: Path, version: int) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, at string, n int",
        key=["id", "at"],
        hash_by="id",
        buckets=4,
        version=version,
        type="MERGE_ON_READ",
    )
    given = [{"id": f"é{n % 7}", "at": f"1{n}:30,x", "n": n} for n in range(50)]
    table.upsert(given)
    assert table.buckets.check().ok
    claim_buckets(table, 6)
    table.upsert([{**row, "n": 1000} for row in given[:30]])
    claim_buckets(table, 4)
    assert not table.buckets.check().ok
    table.buckets.repair().apply()
    found = table.scan().to_arrow().to_pylist()
    assert sorted(row["n"] for row in found) == sorted([*range(30, 50), *[1000] * 30])
    assert table.buckets.check().ok


def test_writers_are_refused_while_buckets_are_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    strays = [row for row in rows(range(100, 150), DAYS[0]) if bucket(row, 6) < 4]
    claim_buckets(table, 6)
    table.upsert(strays)
    claim_buckets(table, 4)
    expected = contents(table)
    plan = table.buckets.repair()
    refused: list[str] = []

    def meanwhile(spec: ServiceSpec, work: RepairWork, attempt: Attempt) -> Repaired:
        with pytest.raises(lw.Conflict) as told:
            table.upsert(rows(range(5), DAYS[0], ts=7))
        refused.append(str(told.value))
        table.upsert(rows(range(5), DAYS[1], ts=7))  # another partition goes on
        return repair_partition(spec, work, attempt)

    monkeypatch.setattr(repair, "repair_partition", meanwhile)
    plan.apply()
    assert len(refused) == 1
    expected.update({(r["id"], r["dt"]): r["n"] for r in rows(range(5), DAYS[1], ts=7)})
    assert contents(table) == expected
    assert table.buckets.check().ok


def test_a_repair_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    second_group(table, DAYS[0])
    plan = table.buckets.repair()
    files = files_of(table, DAYS[0])

    def dies(spec: ServiceSpec, work: RepairWork, attempt: Attempt) -> Repaired:
        repair_partition(spec, work, attempt)
        raise OSError("the disk is full")

    monkeypatch.setattr(repair, "repair_partition", dies)
    with pytest.raises(OSError, match="full"):
        plan.apply()
    assert files_of(table, DAYS[0]) == files
    assert not table.timeline.pending()
    monkeypatch.undo()
    plan.apply()
    assert table.buckets.check().ok


def test_a_file_that_goes_away_makes_the_plan_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", "COPY_ON_WRITE", 9)
    second_group(table, DAYS[0])
    plan = table.buckets.repair()

    def without(spec: ServiceSpec, work: RepairWork, attempt: Attempt) -> Repaired:
        for path in work.slices[0].paths:
            (Path(table.path) / path).unlink()
        return repair_partition(spec, work, attempt)

    monkeypatch.setattr(repair, "repair_partition", without)
    with pytest.raises(lw.Conflict, match="a file went away"):
        plan.apply()
    assert not table.timeline.pending()
