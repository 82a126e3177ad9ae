"""The bodies of every action: each value survives its bytes, in each form it has."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewright.format.hudi.metadata import (
    archived,
    clean,
    commit,
    compaction,
    indexing,
    replace_plan,
    restore,
    rollback,
)
from lakewright.format.hudi.metadata.commit import (
    CommitMetadata,
    WriteStat,
    decode_commit,
    encode_commit,
)
from lakewright.format.hudi.metadata.shapes import (
    ListOf,
    MapOf,
    Nullable,
    RecordOf,
    Scalar,
    Shape,
    avro_schema,
)
from lakewright.model.errors import Corrupt, LakewrightError

TEXT = st.text(max_size=8)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
    "double": st.floats(allow_nan=False),
}


def values(shape: Shape) -> st.SearchStrategy[Any]:
    """Every value that a shape can hold, in the form its decoder gives it."""
    match shape:
        case Scalar(avro):
            return SCALARS[avro]
        case ListOf(items):
            return st.lists(values(items), max_size=2).map(tuple)
        case MapOf(inner):
            return st.dictionaries(TEXT, values(inner), max_size=2)
        case Nullable(inner, null_is=null):
            return st.just(null) | values(inner)
        case RecordOf(build=build, members=members):
            return st.tuples(*(values(member.shape) for member in members)).map(
                lambda fields: build(*fields)
            )


CODECS: dict[str, tuple[RecordOf[Any], Callable[[Any], bytes], Callable[[bytes, str], Any]]] = {
    "commit": (
        commit.COMMIT,
        lambda value: encode_commit(value, 2, replace=False),
        decode_commit,
    ),
    "replace commit": (
        commit.REPLACE_COMMIT,
        lambda value: encode_commit(value, 2, replace=True),
        decode_commit,
    ),
    "clean plan": (clean.CLEAN_PLAN, clean.encode_clean_plan, clean.decode_clean_plan),
    "clean": (clean.CLEAN, clean.encode_clean, clean.decode_clean),
    "compaction plan": (
        compaction.COMPACTION_PLAN,
        compaction.encode_compaction_plan,
        compaction.decode_compaction_plan,
    ),
    "replace plan": (
        replace_plan.REPLACE_PLAN,
        replace_plan.encode_replace_plan,
        replace_plan.decode_replace_plan,
    ),
    "rollback plan": (
        rollback.ROLLBACK_PLAN,
        rollback.encode_rollback_plan,
        rollback.decode_rollback_plan,
    ),
    "rollback": (rollback.ROLLBACK, rollback.encode_rollback, rollback.decode_rollback),
    "restore plan": (
        restore.RESTORE_PLAN,
        restore.encode_restore_plan,
        restore.decode_restore_plan,
    ),
    "restore": (restore.RESTORE, restore.encode_restore, restore.decode_restore),
    "savepoint": (restore.SAVEPOINT, restore.encode_savepoint, restore.decode_savepoint),
    "index plan": (indexing.INDEX_PLAN, indexing.encode_index_plan, indexing.decode_index_plan),
    "index commit": (
        indexing.INDEX_COMMIT,
        indexing.encode_index_commit,
        indexing.decode_index_commit,
    ),
}


@pytest.mark.parametrize("name", CODECS)
def test_every_body_survives_its_bytes(name: str) -> None:
    shape, encode, decode = CODECS[name]

    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    @given(values(shape))
    def check(value: object) -> None:
        data = encode(value)
        assert decode(data, "a/b") == value
        assert encode(value) == data

    check()


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(values(commit.REPLACE_COMMIT))
def test_commits_survive_json(value: CommitMetadata) -> None:
    unversioned = replace(value, version=None)
    data = encode_commit(unversioned, 1, replace=True)
    assert decode_commit(data, "a/b") == unversioned
    assert b'" : ' in data


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(values(archived.ARCHIVED_ENTRY))
def test_archived_entries_survive_their_bytes(value: archived.ArchivedEntry) -> None:
    decoder = archived.EntryDecoder(archived.ARCHIVED_SCHEMA, "a/b")
    assert decoder.decode(archived.encode_entry(value), 0) == value


def test_a_plain_commit_has_no_place_for_replaced_files() -> None:
    value = CommitMetadata(replaced={"p": ("f",)}, operation="UPSERT")
    assert b"partitionToReplaceFileIds" not in encode_commit(value, 2, replace=False)
    assert b"partitionToReplaceFileIds" not in encode_commit(value, 1, replace=False)
    assert decode_commit(encode_commit(value, 2, replace=False), "").replaced == {}


def test_the_layout_of_json_is_that_of_real_files() -> None:
    text = encode_commit(CommitMetadata({"p": (WriteStat("f"),)}, operation="X"), 1, replace=False)
    assert list(json.loads(text)) == [
        "partitionToWriteStats",
        "compacted",
        "extraMetadata",
        "operationType",
    ]
    assert text.startswith(b'{\n  "partitionToWriteStats" : {\n    "p" : [')


def test_json_of_old_releases_is_read() -> None:
    body = {
        "partitionToWriteStats": {
            "p": [{"fileId": "f", "path": "p/f", "numWrites": 3, "recordsStats": {"val": {}}}]
        },
        "compacted": False,
        "extraMetadata": {"schema": "{}"},
        "operationType": "UPSERT",
        "totalRecordsDeleted": 0,
        "fileIdAndRelativePaths": {"f": "p/f"},
    }
    found = decode_commit(json.dumps(body).encode(), "a/b")
    assert found.write_stats == {"p": (WriteStat("f", "p/f", num_writes=3),)}
    assert found.schema == "{}"
    assert found.operation == "UPSERT"


def test_null_collections_and_counters_are_empty() -> None:
    found = decode_commit(
        b'{"partitionToWriteStats": {"p": [{"fileId": null, "numWrites": null}]},'
        b'"extraMetadata": null, "compacted": null}',
        "",
    )
    assert found == CommitMetadata({"p": (WriteStat(),)})
    assert found.schema is None


def test_an_empty_body_is_an_empty_commit_or_plan() -> None:
    assert decode_commit(b"", "") == CommitMetadata()
    assert replace_plan.decode_replace_plan(b"", "") == replace_plan.ReplacePlan()


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"[]", "no object"),
        (b'{"compacted": 1}', "compacted is no boolean"),
        (b'{"operationType": {}}', "operationType is no string"),
        (b'{"extraMetadata": {"a": 1}}', "extraMetadata is no string"),
        (b'{"extraMetadata": []}', "extraMetadata is no object"),
        (b'{"partitionToWriteStats": {"p": {}}}', "no list"),
        (b'{"partitionToWriteStats": {"p": [1]}}', "no object"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": "3"}]}}', "numWrites is no long"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": true}]}}', "numWrites is no long"),
        (b'{"partitionToWriteStats": {"p": [{"runtimeStats": []}]}}', "runtimeStats is no object"),
        (b'{"partitionToWriteStats": {"p": [{"logFiles": [1]}]}}', "logFiles is no string"),
        (b"{", "neither Avro nor JSON"),
        (b"\xff\xfe\xfa", "neither Avro nor JSON"),
        (b"[" * 100_000, "neither Avro nor JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "neither Avro nor JSON"),
    ],
)
def test_json_that_is_no_commit_is_corrupt(body: bytes, fault: str) -> None:
    with pytest.raises(Corrupt, match=fault) as caught:
        decode_commit(body, "some/file")
    assert caught.value.facts["path"] == "some/file"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *(m.name for m in commit.WRITE_STAT.members),
                        "partitionToWriteStats",
                        "p",
                        "extraMetadata",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_any_json_is_a_commit_or_corrupt(body: object) -> None:
    try:
        found = decode_commit(json.dumps(body).encode(), "")
    except LakewrightError:
        return
    assert isinstance(found, CommitMetadata)


def test_names_are_defined_once_in_a_schema() -> None:
    text = json.dumps(avro_schema(archived.ARCHIVED_ENTRY))
    assert text.count('"name": "HoodieWriteStat"') == 1
    assert text.count('"namespace"') == 1
