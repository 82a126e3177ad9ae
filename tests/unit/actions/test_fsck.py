"""A sound table is found sound, and every way to break one is told by its code."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.actions.checks.findings import KEPT, Findings
from lakewright.actions.fsck import FsckReport, fsck
from lakewright.format.hudi.bloom import BloomBuilder
from lakewright.format.hudi.hashing_config import FIRST_INSTANT, hashing_config_path
from lakewright.format.hudi.log.write import avro_block, data_header, delete_block
from lakewright.format.hudi.metadata.clean import CleanedPartition, CleanMetadata, encode_clean
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat, encode_commit
from lakewright.format.hudi.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
)
from lakewright.format.hudi.metadata.restore import (
    SavepointMetadata,
    SavepointPartition,
    encode_savepoint,
)
from lakewright.format.hudi.partition_metadata import PartitionMetadata, encode_partition_metadata
from lakewright.format.hudi.simple_hash_meta import (
    PartitionHashInfo,
    SimpleHashMeta,
    encode_hash_meta,
    hash_config_path,
    hash_meta_path,
)
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from support.tiny_tables import SCHEMA, TinyTable, at, base_name, completion, log_name

GROUP, OTHER = "00000000-aaaa-0", "00000001-aaaa-0"


def rows(
    name: str, partition: str = "dt=a", keys: tuple[str | None, ...] = ("k1", "k2"), **footer: str
) -> bytes:
    table = pa.table(
        {
            "_hoodie_commit_time": [at(1)] * len(keys),
            "_hoodie_commit_seqno": [f"{at(1)}_0_{i}" for i in range(len(keys))],
            "_hoodie_record_key": pa.array(keys, pa.string()),
            "_hoodie_partition_path": [partition] * len(keys),
            "_hoodie_file_name": [name] * len(keys),
            "id": pa.array(keys, pa.string()),
        }
    )
    return parquet_of(table, **footer)


def parquet_of(table: pa.Table, **footer: str) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer)
    return sink.getvalue()


def sound(version: int = 9, *, mor: bool = False) -> TinyTable:
    first, second = base_name(GROUP, 1), base_name(OTHER, 2)
    table = TinyTable(version, mor=mor)
    table.commit(1, {"dt=a": {first: rows(first)}})
    return table.commit(2, {"dt=b": {second: rows(second, "dt=b")}})


def codes(report: FsckReport) -> set[str]:
    return {problem.code for problem in report.problems}


def noted(report: FsckReport) -> set[str]:
    return {note.code for note in report.notes}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_table_is_ok_and_everything_was_counted(version: int, deep: bool) -> None:
    report = fsck(sound(version).state(), deep=deep)
    assert report.ok
    assert report.problems == report.notes == ()
    assert report.checked["instants"] == 2
    assert report.checked["bodies"] == 2
    assert report.checked["partitions"] == 2
    assert report.checked["base files"] == 2
    assert report.checked["written files"] == 2
    assert report.checked["file slices"] == 2
    assert report.checked["buckets"] == 2
    assert report.checked.get("rows", 0) == (4 if deep else 0)
    assert str(report).startswith("ok; checked")


TIMELINE = ".hoodie/timeline"
FIRST = f"dt=a/{base_name(GROUP, 1)}"
META = ".hoodie_partition_metadata"
NONSENSE = b"Obj\x01nonsense"


def misfiled(table: TinyTable) -> None:
    stat = WriteStat(file_id="g", path=FIRST, file_size_in_bytes=0)
    body = encode_commit(CommitMetadata(write_stats={"dt=b": (stat,)}), 2, replace=False)
    table.instant(3, None, "commit", body)


def completed_twice(table: TinyTable) -> None:
    other = table.storage.read(f"{TIMELINE}/{at(2)}_{completion(2)}.commit")
    table.touch(f"{TIMELINE}/{at(1)}_{at(9)}.commit", other)


def saved(table: TinyTable, minute: int, name: str) -> None:
    kept = {"dt=a": SavepointPartition("dt=a", (name,))}
    body = encode_savepoint(SavepointMetadata("me", 1, "", kept))
    table.touch(f"{TIMELINE}/{at(minute)}.savepoint.inflight")
    table.touch(f"{TIMELINE}/{at(minute)}_{at(59)}.savepoint", body)


def planned(table: TinyTable, log: str) -> None:
    operation = CompactionOperation(at(1), (log,), base_name(GROUP, 1), GROUP, "dt=a")
    plan = encode_compaction_plan(CompactionPlan((operation,)))
    table.touch(f"{TIMELINE}/{at(9)}.compaction.requested", plan)


BROKEN: dict[str, tuple[str, Callable[[TinyTable], object]]] = {
    "a key column that the schema lacks": (
        "unknown-column",
        lambda t: t.commit(3, schema=SCHEMA.replace('"id"', '"ident"')),
    ),
    "a name like no instant": (
        "instant-name",
        lambda t: t.touch(f"{TIMELINE}/{at(3)}.commitment"),
    ),
    "an instant that is no date": (
        "instant-time",
        lambda t: t.touch(f"{TIMELINE}/20269999999999999.commit.requested"),
    ),
    "an end before the beginning": ("completed-early", lambda t: t.commit(30, completed=3)),
    "two different ends": ("completed-twice", completed_twice),
    "two actions at one time": (
        "instant-reused",
        lambda t: t.commit(2, action="deltacommit", completed=3),
    ),
    "two ends at one time": (
        "completion-reused",
        lambda t: t.commit(3, completed=5).commit(4, completed=5),
    ),
    "a body of nonsense": (
        "body",
        lambda t: t.touch(f"{TIMELINE}/{at(0)}_{completion(0)}.commit", NONSENSE),
    ),
    "a plan of nonsense": (
        "plan",
        lambda t: t.touch(f"{TIMELINE}/{at(3)}.clustering.requested", NONSENSE),
    ),
    "a history of nonsense": (
        "history",
        lambda t: t.touch(f"{TIMELINE}/history/_version_", b"1").touch(
            f"{TIMELINE}/history/manifest_1", b"{"
        ),
    ),
    "a savepoint of nothing": ("savepoint-alone", lambda t: saved(t, 5, base_name(GROUP, 1))),
    "a savepointed file gone": ("missing-file", lambda t: saved(t, 1, base_name(GROUP, 0))),
    "a planned log gone": ("missing-file", lambda t: planned(t, log_name(GROUP, 2))),
    "a written file gone": ("missing-file", lambda t: t.storage.delete([FIRST])),
    "a file that grew": ("size", lambda t: t.touch(FIRST, t.storage.read(FIRST) + b"more")),
    "a file under another partition": ("stat-path", misfiled),
    "no partition metadata": ("partition-metadata", lambda t: t.storage.delete([f"dt=a/{META}"])),
    "partition metadata of nonsense": (
        "partition-metadata",
        lambda t: t.touch(f"dt=a/{META}", b"a=b"),
    ),
    "a wrong depth": (
        "partition-depth",
        lambda t: t.touch(f"dt=a/{META}", encode_partition_metadata(PartitionMetadata(at(1), 3))),
    ),
    "two attempts of one task": (
        "base-twice",
        lambda t: t.touch(f"dt=a/{base_name(GROUP, 1, '0-9-9')}"),
    ),
    "two groups of one bucket": (
        "bucket-twice",
        lambda t: t.commit(3, {"dt=a": {base_name("00000000-bbbb-0", 3): b""}}),
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_each_break_is_found_and_nothing_else(how: str) -> None:
    code, break_it = BROKEN[how]
    table = sound()
    break_it(table)
    report = fsck(table.state())
    assert not report.ok
    assert codes(report) == {code}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("held", [b"", b"{cut off"], ids=["empty", "cut off"])
def test_a_damaged_body_is_told_once_with_the_file_that_is_there(version: int, held: bytes) -> None:
    table = sound(version)
    state = table.state()
    name = f"{at(1)}.commit" if version == 6 else f"{at(1)}_{completion(1)}.commit"
    path = f"{state.config.timeline_folder}/{name}"
    assert state.storage.stat(path) is not None
    state.storage.write(path, held)
    report = fsck(table.state())
    assert [(p.code, p.path) for p in report.problems if p.code == "body"] == [("body", path)]


def test_a_wrong_checksum_is_found_in_a_table_that_was_open_before() -> None:
    table = sound()
    state = table.state()
    path = ".hoodie/hoodie.properties"
    table.touch(path, table.storage.read(path).replace(b"checksum=", b"checksum=9"))
    assert codes(fsck(state)) == {"checksum"}


def test_a_log_that_cannot_be_read_is_found() -> None:
    table = sound(mor=True)
    table.commit(3, {"dt=a": {log_name(GROUP, 3): b"#HUDI#"}})
    report = fsck(table.state())
    assert report.ok, "a torn block is passed over by readers"
    assert noted(report) == {"corrupt-block"}
    assert report.checked["log files"] == 1


def base_of(**changes: object) -> bytes:
    settings: dict[str, object] = {"name": base_name(GROUP, 1), **changes}
    return rows(**settings)  # type: ignore[arg-type]


DEEP: dict[str, tuple[str, bytes]] = {
    "not parquet": ("base-file", b"no parquet at all"),
    "another file name": ("meta-value", base_of(name="other")),
    "another partition": ("meta-value", base_of(partition="dt=z")),
    "a key twice": ("key-twice", base_of(keys=("k1", "k1"))),
    "a row without key": ("key-null", base_of(keys=("k1", None))),
    "a wrong key range": (
        "key-range",
        base_of(hoodie_min_record_key="k1", hoodie_max_record_key="k1"),
    ),
    "a wrong bloom filter": (
        "bloom",
        base_of(
            **{
                "org.apache.hudi.bloomfilter": BloomBuilder().build("SIMPLE").encode(),
                "hoodie_bloom_filter_type_code": "SIMPLE",
            }
        ),
    ),
    "no meta columns": ("meta-columns", parquet_of(pa.table({"id": ["k1"]}))),
}


@pytest.mark.parametrize("how", DEEP)
def test_rows_are_checked_when_asked_to(how: str) -> None:
    code, data = DEEP[how]
    table = TinyTable().commit(1, {"dt=a": {base_name(GROUP, 1): data}})
    assert fsck(table.state()).ok
    assert codes(fsck(table.state(), deep=True)) == {code}


def test_values_of_every_column_are_read_when_asked_to() -> None:
    table = sound()
    data = bytearray(table.storage.read(FIRST))
    column = pq.read_metadata(io.BytesIO(data)).row_group(0).column(5)
    assert column.path_in_schema == "id"
    start = column.dictionary_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    table.touch(FIRST, bytes(data))
    assert fsck(table.state()).ok
    (problem,) = fsck(table.state(), deep=True).problems
    assert (problem.code, problem.path) == ("base-file", FIRST)


def test_blocks_of_logs_are_read_when_asked_to() -> None:
    schema = '{"type":"record","name":"r","fields":[{"name":"id","type":["null","string"]}]}'
    block = avro_block(pa.table({"id": ["k1", "k2"]}), data_header(at(3), schema))
    gone = delete_block(["k1"], ["dt=a"], data_header(at(3), schema))
    name = log_name(GROUP, 3)
    table = sound(mor=True).commit(3, {"dt=a": {name: block + gone}})
    report = fsck(table.state(), deep=True)
    assert report.ok and report.checked["log records"] == 3
    # The length of a text inside the first record; frames and sizes stay as they are.
    table.touch(f"dt=a/{name}", block.replace(b"\x02\x04k1", b"\x02\x7ek1") + gone)
    assert fsck(table.state()).ok
    (problem,) = fsck(table.state(), deep=True).problems
    assert (problem.code, problem.path) == ("log-block", f"dt=a/{name}")


def test_a_row_newer_than_its_file_is_found() -> None:
    name = base_name(GROUP, 0)
    table = TinyTable().commit(0, {"dt=a": {name: rows(name)}})
    assert codes(fsck(table.state(), deep=True)) == {"meta-value"}


def test_what_is_allowed_is_only_noted() -> None:
    table = sound().touch(f"dt=a/{base_name('lost', 9)}").touch("dt=a/data.parquet", b"x")
    table.touch(f"{TIMELINE}/{at(8)}.commit.requested")
    twin = table.storage.read(f"{TIMELINE}/{at(1)}_{completion(1)}.commit")
    table.touch(f"{TIMELINE}/{at(1)}_{at(7)}.commit", twin)
    table.storage.delete([f"{TIMELINE}/{at(2)}.inflight"])
    table.touch(".hoodie/hoodie.properties.backup", b"")
    report = fsck(table.state())
    assert report.ok
    assert noted(report) == {
        "orphan-file", "foreign-file", "pending", "completed-twice", "state-missing", "backup",
    }  # fmt: skip
    assert report.found == dict.fromkeys(noted(report), 1)


def test_files_that_a_cleaning_deleted_are_not_missed() -> None:
    table = sound()
    gone = {"dt=a": CleanedPartition("dt=a", "KEEP_LATEST_COMMITS", (), (base_name(GROUP, 1),))}
    body = encode_clean(CleanMetadata(at(3), 1, 1, at(2), at(2), gone))
    table.instant(3, None, "clean", body).storage.delete([FIRST])
    assert fsck(table.state()).ok


def test_logs_of_layout_1_may_have_grown_since() -> None:
    table = sound(6, mor=True).commit(3, {"dt=a": {log_name(GROUP, 1): b"xy"}})
    table.touch(f"dt=a/{log_name(GROUP, 1)}", b"xyz")
    assert "size" not in codes(fsck(table.state()))
    table.touch(f"dt=a/{log_name(GROUP, 1)}", b"x")
    assert "size" in codes(fsck(table.state()))


def test_very_many_problems_are_counted_and_the_first_ones_kept() -> None:
    findings = Findings()
    for number in range(KEPT + 5):
        findings.problem("code", str(number), "broken")
    report = findings.report()
    assert len(report.problems) == KEPT
    assert report.found == {"code": KEPT + 5}
    assert str(report.problems[0]) == "code: 0: broken"


# -------------------------------------------------------------------- bucket rules


def ruled(default: int = 2) -> tuple[TinyTable, HashingStore]:
    table = sound()
    store = HashingStore(table.storage)
    store.write_config(FIRST_INSTANT, BucketRules((BucketRule("dt=a", 1),), default), {})
    return table, store


def test_bucket_rules_and_their_numbers_are_checked() -> None:
    table, store = ruled()
    store.write_meta(at(2), {"dt=a": 1, "dt=b": 2}, table.state().timeline)
    report = fsck(table.state())
    assert report.ok and not report.notes
    assert (report.checked["bucket rules"], report.checked["fixed bucket numbers"]) == (1, 2)
    assert "bucket rules" not in fsck(sound().state()).checked


def test_a_bucket_beyond_the_rules_is_a_problem() -> None:
    table, _ = ruled(default=1)
    assert codes(fsck(table.state())) == {"bucket-beyond"}


def test_rules_that_cannot_be_read_or_disagree_are_problems() -> None:
    table, store = ruled()
    meta = SimpleHashMeta({"dt=b": PartitionHashInfo(7, at(2))})
    table.touch(hash_meta_path(at(2)), encode_hash_meta(meta))
    assert codes(fsck(table.state())) == {"bucket-numbers"}
    table.touch(hash_meta_path(at(2)), b"{")
    assert codes(fsck(table.state())) == {"bucket-numbers"}
    table.storage.delete([hash_meta_path(at(2))])
    table.storage.move(hashing_config_path(FIRST_INSTANT), hashing_config_path(at(1)))
    assert codes(fsck(table.state())) == {"bucket-rules"}
    table.touch(hashing_config_path(at(1)), b"{}")
    assert codes(fsck(table.state())) == {"bucket-rules"}
    assert store.is_empty() is False


def test_what_dead_writes_left_of_rules_is_noted() -> None:
    table, _ = ruled()
    table.touch(hash_config_path(at(9)), b"{}")
    table.touch(hash_meta_path(at(9)), b"{}")
    report = fsck(table.state())
    assert report.ok
    assert noted(report) == {"left-rules", "left-numbers"}
