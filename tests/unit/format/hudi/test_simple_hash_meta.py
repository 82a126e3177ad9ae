"""Hashing metadata of the partition-level bucket index."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.simple_hash_meta import (
    PartitionHashInfo,
    SimpleHashMeta,
    bucket_files_of,
    decode_hash_meta,
    encode_hash_meta,
    hash_config_path,
    hash_meta_path,
    parse_simple_name,
)
from lakewright.model.errors import Corrupt

INFOS = st.builds(
    PartitionHashInfo,
    st.integers(1, 10**8 - 1),
    st.from_regex(r"([0-9]{17})?", fullmatch=True),
)


@given(
    st.builds(
        SimpleHashMeta,
        st.dictionaries(st.text(st.characters(exclude_categories=())), INFOS, max_size=5),
        st.integers(1, 10**8 - 1),
        st.integers(1, 9),
    )
)
def test_metadata_round_trips(meta: SimpleHashMeta) -> None:
    assert decode_hash_meta(encode_hash_meta(meta), "x") == meta


def test_the_text_is_readable_json_in_the_names_of_the_schema() -> None:
    meta = SimpleHashMeta({"dt=é": PartitionHashInfo(7, "20261116000000000")}, 10)
    data = encode_hash_meta(meta)
    assert json.loads(data) == {
        "version": 1,
        "defaultBucketNumber": 10,
        "partitionMeta": {"dt=é": {"bucketNumber": 7, "instant": "20261116000000000"}},
    }
    assert "dt=é" in data.decode()


def test_nulls_stand_for_defaults() -> None:
    found = decode_hash_meta(b'{"version": null, "partitionMeta": null, "more": 1}', "x")
    assert found == SimpleHashMeta({}, 256, 1)
    text = b'{"partitionMeta": {"a": {"bucketNumber": null}}, "defaultBucketNumber": 9}'
    assert decode_hash_meta(text, "x").partitions == {"a": PartitionHashInfo(9, "")}


def test_partitions_of_one_write_share_their_entry() -> None:
    infos = {f"p={n}": PartitionHashInfo(4, "20261116000000000") for n in range(100)}
    found = decode_hash_meta(encode_hash_meta(SimpleHashMeta(infos)), "x")
    assert len({id(info) for info in found.partitions.values()}) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"partitionMeta": []}',
        b'{"partitionMeta": {"a": 1}}',
        b'{"partitionMeta": {"a": {"bucketNumber": 0}}}',
        b'{"partitionMeta": {"a": {"bucketNumber": true}}}',
        b'{"partitionMeta": {"a": {"bucketNumber": 100000000}}}',
        b'{"partitionMeta": {"a": {"bucketNumber": 1, "instant": 2}}}',
        b'{"defaultBucketNumber": -1}',
    ],
)
def test_anything_else_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        decode_hash_meta(data, "some/file")
    assert caught.value.facts["path"] == "some/file"


def test_names() -> None:
    for path, kind in (
        (hash_config_path("1"), "hash_config"),
        (hash_meta_path("1"), "hashing_meta"),
    ):
        assert parse_simple_name(path.rpartition("/")[2]) == ("1", kind)
    for name in (
        "x.hash_config",
        "1.hashing_config",
        ".1.hashing_meta.crc",
        "1.hash_config\n",
        "1",
    ):
        assert parse_simple_name(name) is None


def test_what_others_believe_is_deleted_first() -> None:
    assert bucket_files_of("1")[0].endswith("configs/1.hashing_config")
