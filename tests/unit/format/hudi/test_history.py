"""The archived timeline of both layouts: written, merged, read back in order."""

import io
import json
import uuid
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.history import ArchivedInstant, append_history, read_history
from lakewright.format.hudi.history_lsm import current_manifest
from lakewright.format.hudi.log.blocks import HeaderKey
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.format.hudi.metadata.clean import (
    CleanMetadata,
    CleanPlan,
    encode_clean,
    encode_clean_plan,
)
from lakewright.format.hudi.metadata.commit import (
    COMMIT,
    REPLACE_COMMIT,
    CommitMetadata,
    decode_commit,
    encode_commit,
)
from lakewright.format.hudi.metadata.compaction import CompactionPlan, encode_compaction_plan
from lakewright.format.hudi.metadata.indexing import IndexCommit, encode_index_commit
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan, encode_replace_plan
from lakewright.format.hudi.metadata.restore import SavepointMetadata, encode_savepoint
from lakewright.format.hudi.metadata.rollback import RollbackMetadata, encode_rollback
from lakewright.format.hudi.metadata.shapes import avro_schema
from lakewright.model.errors import Conflict, Corrupt
from lakewright.model.instant import Action, Instant, State
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage


def memory() -> Storage:
    return open_storage(f"memory://{uuid.uuid4()}")


def config(layout: int, **properties: str) -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "6" if layout == 1 else "9",
            "hoodie.timeline.compaction.batch.size": "3",
            "hoodie.commits.archival.batch": "4",
            **properties,
        }
    )


def time(number: int) -> str:
    return f"20261115{number:09d}"


def completed(number: int, action: Action, layout: int) -> Instant:
    done = time(number) if layout == 1 else time(number + 1)
    return Instant(time(number), action, State.COMPLETED, done)


def commit(number: int, layout: int = 2) -> ArchivedInstant:
    body = encode_commit(CommitMetadata(extra={"n": str(number)}), 2, replace=False)
    return ArchivedInstant(completed(number, Action.COMMIT, layout), body)


def every_kind(layout: int) -> list[ArchivedInstant]:
    plan = encode_clean_plan(CleanPlan(None, time(1), "KEEP_LATEST_COMMITS"))
    bodies: list[tuple[Action, bytes | None, bytes | None]] = [
        (Action.COMMIT, encode_commit(CommitMetadata(), 2, replace=False), None),
        (
            Action.COMMIT,
            encode_commit(CommitMetadata(compacted=True), 2, replace=False),
            encode_compaction_plan(CompactionPlan()),
        ),
        (Action.DELTACOMMIT, encode_commit(CommitMetadata(), 2, replace=False), None),
        (
            Action.REPLACECOMMIT,
            encode_commit(CommitMetadata(replaced={"p": ("f",)}), 2, replace=True),
            encode_replace_plan(ReplacePlan()),
        ),
        (Action.CLEAN, encode_clean(CleanMetadata(time(5), 1, 0, time(1), time(2))), plan),
        (Action.ROLLBACK, encode_rollback(RollbackMetadata(time(6), 1, 0, (time(0),))), None),
        (Action.SAVEPOINT, encode_savepoint(SavepointMetadata("me", 1, "why")), None),
        (Action.INDEXING, encode_index_commit(IndexCommit()), None),
        (Action.COMMIT, None, None),
    ]
    return [
        ArchivedInstant(completed(2 * i, action, layout), metadata, plan)
        for i, (action, metadata, plan) in enumerate(bodies)
    ]


@pytest.mark.parametrize("layout", [1, 2])
def test_every_kind_of_instant_comes_back(layout: int) -> None:
    storage, table = memory(), config(layout)
    append_history(storage, table, reversed(every_kind(layout)))
    assert list(read_history(storage, table)) == every_kind(layout)


def bare(container: bytes | None) -> bytes | None:
    """Take the record out of its container, as Hudi 1.0 archives it on the way from version 6."""
    if container is None:
        return None
    (block,) = fastavro.block_reader(io.BytesIO(container))
    record: bytes = block.bytes_.getvalue()
    return record


def test_bodies_without_a_container_get_one() -> None:
    storage, table = memory(), config(2)
    kinds = every_kind(2)
    moved = [ArchivedInstant(one.instant, bare(one.metadata), bare(one.plan)) for one in kinds]
    assert all(
        one.metadata != other.metadata for one, other in zip(moved, kinds[:-1], strict=False)
    )
    append_history(storage, table, moved)
    assert list(read_history(storage, table)) == kinds


def test_a_replaced_group_is_found_where_the_version_has_its_null_last() -> None:
    # As in the schema of 1.0, in which such records come out of its upgrade.
    schema = avro_schema(REPLACE_COMMIT)
    for member in schema["fields"]:
        if member["name"] == "version":
            member["type"] = ["int", "null"]
            member.pop("default", None)
    out = io.BytesIO()
    held = {"partitionToReplaceFileIds": {"p": ["f"]}, "version": 1, "operationType": "CLUSTER"}
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), held)
    storage, table = memory(), config(2)
    instant = completed(1, Action.REPLACECOMMIT, 2)
    append_history(storage, table, [ArchivedInstant(instant, out.getvalue())])
    (found,) = read_history(storage, table)
    assert found.metadata is not None
    read = decode_commit(found.metadata, "p")
    assert (read.replaced, read.version, read.operation) == ({"p": ("f",)}, 1, "CLUSTER")


def test_a_commit_as_releases_before_1_0_2_moved_it() -> None:
    schema = avro_schema(COMMIT)
    schema["fields"] = [f for f in schema["fields"] if f["name"] != "compacted"]
    stat = schema["fields"][0]["type"][1]["values"]["items"]
    del stat["fields"][[f["name"] for f in stat["fields"]].index("cdcStats") + 1 :]
    out = io.BytesIO()
    stats = {"p": [{"fileId": "f", "path": "p/f_1.parquet", "numWrites": 3}]}
    held = {"partitionToWriteStats": stats, "version": 1, "operationType": "UPSERT"}
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), held)
    storage, table = memory(), config(2)
    instant = completed(1, Action.COMMIT, 2)
    append_history(storage, table, [ArchivedInstant(instant, out.getvalue())])
    (found,) = read_history(storage, table)
    assert found.metadata is not None
    read = decode_commit(found.metadata, "p")
    assert [(s.path, s.num_writes) for s in read.write_stats["p"]] == [("p/f_1.parquet", 3)]
    assert (read.version, read.operation) == (1, "UPSERT")


@pytest.mark.parametrize("body", [b"\x02", b"no record of ours", b"\x00" * 40])
def test_a_body_that_is_no_record_stays_damaged(body: bytes) -> None:
    storage, table = memory(), config(2)
    append_history(storage, table, [ArchivedInstant(completed(1, Action.COMMIT, 2), body)])
    (found,) = read_history(storage, table)
    assert found.metadata == body
    with pytest.raises(Corrupt):
        decode_commit(body, "p")


def upgraded_by_hudi(*numbers: int) -> tuple[Storage, TableConfig]:
    """Return a history whose one file has its rows, and its name, as Hudi 1.0 moved them there."""
    storage, table = memory(), config(2)
    append_history(storage, table, [commit(n) for n in sorted(numbers)])
    (file,) = current_manifest(storage, table.history_folder).files
    rows = pq.read_table(pa.BufferReader(storage.read(f"{table.history_folder}/{file.name}")))
    places = [sorted(numbers).index(n) for n in numbers]
    out = io.BytesIO()
    pq.write_table(rows.take(places), out)
    name = f"{time(numbers[0])}_{time(numbers[-1])}_0.parquet"
    storage.write(f"{table.history_folder}/{name}", out.getvalue())
    listed = {"files": [{"fileName": name, "fileLen": len(out.getvalue())}]}
    storage.write(f"{table.history_folder}/manifest_1", json.dumps(listed).encode())
    return storage, table


def test_an_archive_that_was_moved_newest_file_first_is_read_in_order() -> None:
    storage, table = upgraded_by_hudi(5, 6, 3, 4, 1)
    assert list(read_history(storage, table)) == [commit(n) for n in (1, 3, 4, 5, 6)]
    for after in (1, 2, 5):
        found = [past.instant.requested for past in read_history(storage, table, after=time(after))]
        assert found == [time(n) for n in (1, 3, 4, 5, 6) if n > after]


def test_what_is_merged_with_such_a_file_is_named_by_its_rows() -> None:
    storage, table = upgraded_by_hudi(5, 6, 3, 4)
    append_history(storage, table, [commit(8)])
    append_history(storage, table, [commit(9)])
    (file,) = current_manifest(storage, table.history_folder).files
    assert (file.first, file.last, file.level, file.in_order) == (time(3), time(9), 1, True)
    assert list(read_history(storage, table)) == [commit(n) for n in (3, 4, 5, 6, 8, 9)]


@pytest.mark.parametrize("layout", [1, 2])
def test_a_table_without_an_archive_has_no_history(layout: int) -> None:
    storage = memory()
    assert list(read_history(storage, config(layout))) == []
    append_history(storage, config(layout), [])
    assert list(storage.list("", recursive=True)) == []


@pytest.mark.parametrize("layout", [1, 2])
@settings(max_examples=15)
@given(
    st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=4), max_size=8), st.integers(0, 40)
)
def test_archiving_in_any_order_is_read_in_order(
    layout: int, batches: list[set[int]], after: int
) -> None:
    storage, table = memory(), config(layout)
    for batch in batches:
        append_history(storage, table, [commit(number, layout) for number in batch])
    numbers = sorted(set().union(*batches))
    assert list(read_history(storage, table)) == [commit(n, layout) for n in numbers]
    later = [n for n in numbers if n > after]
    found = read_history(storage, table, after=time(after))
    assert list(found) == [commit(n, layout) for n in later]


def test_files_of_one_name_are_joined() -> None:
    storage, table = memory(), config(2)
    saved = ArchivedInstant(
        completed(1, Action.SAVEPOINT, 2), encode_savepoint(SavepointMetadata("me", 1, "why"))
    )
    append_history(storage, table, [commit(1)])
    append_history(storage, table, [saved])
    append_history(storage, table, [commit(1)])
    assert list(read_history(storage, table)) == [commit(1), saved]
    assert len(current_manifest(storage, table.history_folder).files) == 1


def names(storage: Storage, table: TableConfig) -> set[str]:
    return {stat.path.rpartition("/")[2] for stat in storage.list(table.history_folder)}


def test_full_levels_are_merged_and_old_files_go_later() -> None:
    storage, table = memory(), config(2)
    for number in range(20):
        append_history(storage, table, [commit(number)])
        manifest = current_manifest(storage, table.history_folder)
        assert all(sum(file.level == level for file in manifest.files) < 3 for level in range(4))
        assert {file.name for file in manifest.files} <= names(storage, table)
    assert len(list(read_history(storage, table))) == 20
    assert len(names(storage, table)) < 30
    assert storage.read(f"{table.history_folder}/_version_") == str(manifest.version).encode()


def test_the_manifest_decides_not_the_folder() -> None:
    storage, table = memory(), config(2)
    append_history(storage, table, [commit(1)])
    append_history(storage, table, [commit(2)])
    folder = table.history_folder
    storage.write(f"{folder}/{time(9)}_{time(9)}_0.parquet", b"left by a crash")
    assert [e.instant.requested for e in read_history(storage, table)] == [time(1), time(2)]
    storage.write(f"{folder}/_version_", b"1")
    assert [e.instant.requested for e in read_history(storage, table)] == [time(1)]


@pytest.mark.parametrize("version", [None, b"", b"x", b"99"])
def test_without_a_version_the_newest_manifest_counts(version: bytes | None) -> None:
    storage, table = memory(), config(2)
    for number in range(12):
        append_history(storage, table, [commit(number)])
    path = f"{table.history_folder}/_version_"
    storage.delete([path])
    if version is not None:
        storage.write(path, version)
    assert len(list(read_history(storage, table))) == 12


def test_files_are_what_java_expects() -> None:
    storage, table = memory(), config(2)
    append_history(storage, table, [commit(1), commit(2)])
    folder = table.history_folder
    manifest = json.loads(storage.read(f"{folder}/manifest_1"))
    (entry,) = manifest["files"]
    assert entry["fileName"] == f"{time(1)}_{time(2)}_0.parquet"
    data = storage.read(f"{folder}/{entry['fileName']}")
    assert entry["fileLen"] == len(data)
    file = pq.ParquetFile(pa.BufferReader(data))
    footer = file.metadata.metadata
    assert json.loads(footer[b"parquet.avro.schema"])["name"] == "HoodieLSMTimelineInstant"
    assert footer[b"writer.model.name"] == b"avro"
    assert file.schema.column(5).max_definition_level == 0
    assert file.metadata.row_group(0).column(0).compression == "GZIP"
    assert decode_commit(file.read()["metadata"][0].as_py(), "").extra == {"n": "1"}


class Slow:
    """A storage in which another archiver publishes its manifest first."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name = storage, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def create(self, path: str, data: bytes) -> bool:
        if path.endswith(self._name):
            self._storage.write(path, b'{"files":[]}')
        return self._storage.create(path, data)


@pytest.mark.parametrize(("layout", "name"), [(1, ".commits_.archive.1_1-0-1"), (2, "manifest_1")])
def test_two_archivers_do_not_both_win(layout: int, name: str) -> None:
    with pytest.raises(Conflict, match="another archiver"):
        append_history(Slow(memory(), name), config(layout), [commit(1, layout)])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("manifest_1", b"{"),
        ("manifest_1", b'{"files":[{"fileName":"../../x_1_0.parquet","fileLen":1}]}'),
        ("manifest_1", b'{"files":[{"fileName":"1_2_0.parquet"}]}'),
        ("manifest_1", b'{"files":[{"fileName":"1_20279999999999999_0.parquet","fileLen":1}]}'),
        ("data", b"PAR1 not really PAR1"),
        ("data", b""),
    ],
)
def test_a_damaged_archive_is_corrupt(name: str, data: bytes) -> None:
    storage, table = memory(), config(2)
    append_history(storage, table, [commit(1)])
    name = f"{time(1)}_{time(1)}_0.parquet" if name == "data" else name
    storage.write(f"{table.history_folder}/{name}", data)
    with pytest.raises(Corrupt) as caught:
        list(read_history(storage, table))
    assert table.history_folder in str(caught.value.facts["path"])


def rows(**columns: list[object]) -> bytes:
    out = pa.BufferOutputStream()
    given: dict[str, list[object]] = {
        "instantTime": [time(1)],
        "completionTime": [time(2)],
        "action": ["commit"],
        "metadata": [b""],
        "plan": [None],
    }
    table = pa.table({**given, **columns})
    pq.write_table(table, out)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "data",
    [
        rows(action=["unheard of"]),
        rows(action=[None]),
        rows(metadata=["text"]),
        rows(plan=[3]),
        rows(instantTime=[7]),
        rows(completionTime=[7]),
    ],
)
def test_rows_of_the_wrong_kind_are_corrupt(data: bytes) -> None:
    storage, table = memory(), config(2)
    append_history(storage, table, [commit(1)])
    storage.write(f"{table.history_folder}/{time(1)}_{time(1)}_0.parquet", data)
    with pytest.raises(Corrupt):
        list(read_history(storage, table))


def test_rows_without_a_completion_time_and_other_names_are_read() -> None:
    storage, table = memory(), config(2)
    append_history(storage, table, [commit(1)])
    path = f"{table.history_folder}/{time(1)}_{time(1)}_0.parquet"
    storage.write(path, rows(completionTime=[None], action=["compaction"]))
    (found,) = read_history(storage, table)
    assert found == ArchivedInstant(Instant(time(1), Action.COMMIT, State.COMPLETED, time(1)))


def test_an_archive_of_layout_1_is_a_log_with_schemas_alone() -> None:
    storage, table = memory(), config(1)
    append_history(storage, table, [commit(number, 1) for number in range(3)])
    append_history(storage, table, [commit(4, 1)])
    paths = sorted(stat.path for stat in storage.list(table.history_folder))
    assert [path.rpartition("/")[2] for path in paths] == [
        ".commits_.archive.1_1-0-1",
        ".commits_.archive.2_1-0-1",
    ]
    stat = storage.stat(paths[0])
    assert stat is not None
    with storage.open(paths[0]) as file:
        blocks = list(scan_blocks(file, stat.size, paths[0]))
    assert len(blocks) == 3
    assert all(set(block.header) == {HeaderKey.SCHEMA} for block in blocks)


def test_a_cut_archive_loses_its_tail_only() -> None:
    storage, table = memory(), config(1)
    append_history(storage, table, [commit(number, 1) for number in range(4)])
    path = f"{table.history_folder}/.commits_.archive.1_1-0-1"
    storage.write(path, storage.read(path)[:-20])
    found = [entry.instant.requested for entry in read_history(storage, table)]
    assert found == [time(0), time(1)]


def test_a_lie_inside_an_archive_is_corrupt() -> None:
    storage, table = memory(), config(1)
    append_history(storage, table, [commit(1, 1)])
    path = f"{table.history_folder}/.commits_.archive.1_1-0-1"
    data = storage.read(path)
    with storage.open(path) as file:
        (block,) = scan_blocks(file, len(data), path)
    for at, patch in ((0, b"\0\0\0\7"), (4, b"\0\0\1\0"), (8, b"\x7f\0\0\0"), (12, b"\xff" * 8)):
        start = block.content_offset + at
        storage.write(path, data[:start] + patch + data[start + len(patch) :])
        with pytest.raises(Corrupt) as caught:
            list(read_history(storage, table))
        assert caught.value.facts["path"] == path
