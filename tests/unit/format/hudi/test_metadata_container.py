"""Avro containers from strangers: other codecs and schemas, lies, and bombs."""

import io
import json
import tracemalloc
import zlib
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.metadata import container
from lakewright.format.hudi.metadata.commit import (
    COMMIT,
    CommitMetadata,
    decode_commit,
    encode_commit,
)
from lakewright.format.hudi.metadata.commit import WriteStat as Stat
from lakewright.format.hudi.metadata.restore import (
    RestorePlan,
    decode_restore_plan,
    decode_savepoint,
)
from lakewright.format.hudi.metadata.shapes import avro_schema
from lakewright.model.errors import Corrupt, LakewrightError, Unsupported

VALUE = CommitMetadata(
    {"p": (Stat("f", "p/f.parquet", "null", 3, log_files=("a", "b")),)},
    extra={"schema": "{}"},
    operation="UPSERT",
)
DATA = encode_commit(VALUE, 2, replace=False)


def varint(value: int) -> bytes:
    encoded = ((value << 1) ^ (value >> 63)) & (2**64 - 1)
    out = bytearray()
    while encoded > 0x7F:
        out.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    return bytes([*out, encoded])


def file_of(schema: Any, body: bytes, codec: bytes = b"null", count: int = 1) -> bytes:
    """Frame any body with any schema, however dishonest."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    pairs = [(b"avro.schema", text), (b"avro.codec", codec)]
    header = b"".join(varint(len(part)) + part for pair in pairs for part in pair)
    sync = b"s" * 16
    return b"".join(
        [
            b"Obj\x01",
            varint(2),
            header,
            varint(0),
            sync,
            varint(count),
            varint(len(body)),
            body,
            sync,
        ]
    )


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }


def test_our_files_are_read_by_fastavro() -> None:
    reader = fastavro.reader(io.BytesIO(DATA))
    (found,) = list(reader)
    assert found["partitionToWriteStats"]["p"][0]["fileId"] == "f"
    assert reader.codec == "null"
    assert set(reader.metadata) == {"avro.schema"}
    assert b'"avro.java.string":"String"' in DATA


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_files_of_fastavro_are_read(codec: str) -> None:
    (fields,) = fastavro.reader(io.BytesIO(DATA))
    out = io.BytesIO()
    fastavro.writer(out, avro_schema(COMMIT), [fields], codec=codec)
    assert decode_commit(out.getvalue(), "") == VALUE


def test_a_default_stands_in_even_beside_unknown_fields() -> None:
    schema = {
        "type": "record",
        "name": "HoodieRestorePlan",
        "fields": [
            {"name": "renamed", "type": "int"},
            {"name": "more", "type": "int"},
            {"name": "savepointToRestoreTimestamp", "type": ["null", "string"]},
        ],
    }
    found = decode_restore_plan(file_of(schema, b"\x02\x02\x00"), "")
    assert found == RestorePlan()


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(Unsupported, match="zstandard"):
        decode_commit(file_of(avro_schema(COMMIT), b"", b"zstandard"), "")


def test_fields_may_be_fewer_more_and_in_another_order() -> None:
    stat = {
        "type": "record",
        "name": "Trimmed",
        "fields": [
            {"name": "somethingNew", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "path", "type": "string"},
            {"name": "fileId", "type": ["string", "null"]},
            {"name": "numWrites", "type": "int"},
        ],
    }
    schema = record(
        ("operationType", {"type": "string", "avro.java.string": "String"}),
        ("partitionToWriteStats", {"type": "map", "values": {"type": "array", "items": stat}}),
    )
    out = io.BytesIO()
    row = {"somethingNew": 1, "path": "p/f", "fileId": "f", "numWrites": 3}
    fastavro.writer(out, schema, [{"operationType": "X", "partitionToWriteStats": {"p": [row]}}])
    found = decode_commit(out.getvalue(), "")
    assert found.write_stats == {"p": (Stat("f", "p/f", num_writes=3),)}
    assert found.operation == "X"
    assert found.version == 1


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 50_000, "cannot be read"),
        ("string", "string for HoodieReplaceCommitMetadata"),
        ({"type": "record", "name": "X", "fields": []}, "no fields"),
        (record(("compacted", "string")), "string for .*compacted"),
        (record(("operationType", ["null", "bytes"])), "bytes for .*operationType"),
        (record(("a", "null")), "unknown type 'null'"),
        (record(("a", {"type": "fixed", "name": "F", "size": 0})), "no width"),
        (record(("a", {"type": "array", "items": "null"})), "unknown type 'null'"),
        (record(("a", ["null", "HoodieCommitMetadata"])), "recursive"),
        (record(("a", "Nobody")), "unknown type"),
        (
            record(
                (
                    "a",
                    {
                        "type": "record",
                        "name": "HoodieCommitMetadata",
                        "fields": [{"name": "b", "type": "int"}],
                    },
                )
            ),
            "twice",
        ),
        ({"type": "record", "name": "X", "fields": [{"type": "int"}]}, "without a name"),
        (record(*((f"f{i}", "int") for i in range(6000))), "too large"),
    ],
)
def test_schemas_that_do_not_fit_are_refused(schema: Any, fault: str) -> None:
    with pytest.raises(Corrupt, match=fault) as caught:
        decode_commit(file_of(schema, b"\x00" * 64), "some/file")
    assert caught.value.facts["path"] == "some/file"


def test_a_deep_schema_is_refused() -> None:
    deep: Any = "int"
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    with pytest.raises(Corrupt, match="too large"):
        decode_commit(file_of(record(("a", deep)), b"\x00"), "")


def test_records_in_records_without_a_byte_of_their_own_are_refused() -> None:
    kind: Any = "int"
    for level in range(5):
        fields = [{"name": "f", "type": kind}]
        kind = {"type": "record", "name": f"R{level}", "fields": fields}
    with pytest.raises(Corrupt, match="too deeply"):
        decode_commit(file_of(record(("a", {"type": "array", "items": kind})), b"\x00"), "")


def test_a_schema_of_megabytes_is_refused() -> None:
    with pytest.raises(Corrupt, match="schema of"):
        decode_commit(file_of(b" " * (2 << 20), b""), "")


def test_missing_fields_without_a_default_are_refused() -> None:
    schema = {
        "type": "record",
        "name": "S",
        "fields": [{"name": "savepointedBy", "type": "string"}],
    }
    with pytest.raises(Corrupt, match=r"lacks .*savepointedAt"):
        decode_savepoint(file_of(schema, b"\x00"), "")
    nullable = {
        "type": "record",
        "name": "S",
        "fields": [{"name": "savepointedBy", "type": ["null", "string"]}],
    }
    with pytest.raises(Corrupt, match=r"null for .*savepointedBy"):
        decode_savepoint(file_of(nullable, b"\x00"), "")


def peak(data: bytes) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt):
            decode_commit(data, "a/b")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("claim", [2**20, 2**31, 2**40, 2**62, -1, -(2**40)])
def test_a_length_beyond_the_file_costs_nothing(claim: int) -> None:
    text = record(("operationType", "string"))
    assert peak(file_of(text, varint(claim) + b"x")) < 1 << 20


@pytest.mark.parametrize("claim", [2**31, 2**62])
def test_a_count_beyond_the_file_costs_nothing(claim: int) -> None:
    stats = {"type": "map", "values": {"type": "array", "items": "string"}}
    assert peak(file_of(record(("partitionToReplaceFileIds", stats)), varint(claim))) < 1 << 20


@pytest.mark.parametrize(
    "data",
    [
        b"Obj\x01" + varint(2**40),
        b"Obj\x01" + varint(1) + varint(2**40),
        b"Obj\x01" + varint(1) + varint(-5),
        b"Obj\x01" + b"\xff" * 20,
        b"Obj\x01" + varint(-1) + varint(5),
        b"Obj\x01",
        b"Obj\x02" + DATA[4:],
        DATA[:-1],
        DATA[:-20],
        DATA[: len(DATA) // 2],
        DATA[:-16] + b"x" * 16,
        file_of(avro_schema(COMMIT), b"", count=0),
    ],
)
def test_broken_framing_is_corrupt(data: bytes) -> None:
    assert peak(data) < 1 << 20


def test_a_bomb_does_not_unfold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "MAX_UNCOMPRESSED", 1 << 20)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = deflate.compress(b"\x00" * (64 << 20)) + deflate.flush()
    data = file_of(avro_schema(COMMIT), bomb, b"deflate")
    assert len(data) < 100_000
    assert peak(data) < 4 << 20


def test_a_damaged_deflate_block_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="decompressed"):
        decode_commit(file_of(avro_schema(COMMIT), b"\xff\xff\xff", b"deflate"), "")


@given(st.integers(0, len(DATA) - 1), st.binary(min_size=1, max_size=9))
def test_overwritten_bytes_are_read_or_refused(at: int, patch: bytes) -> None:
    try:
        found = decode_commit(DATA[:at] + patch + DATA[at + len(patch) :], "a/b")
    except LakewrightError as error:
        assert error.facts.get("path") == "a/b"
    else:
        assert isinstance(found, CommitMetadata)
