"""Bucket numbers: the worked examples, a plain rereading of the rules, and file ids."""

import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.bucket_hash import (
    bucket_file_id,
    bucket_number,
    bucket_of,
    hash_values,
    key_hashes,
    string_hashes,
)
from lakewright.model.errors import Invalid

texts = st.text(max_size=20).filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t))


def java_hash(text: str) -> int:
    h = 0
    units = np.frombuffer(text.encode("utf-16-le"), "<u2").tolist()
    for unit in units:
        h = (31 * h + unit) & 0xFFFFFFFF
    return h


@pytest.mark.parametrize(
    ("key", "fields", "count", "values", "hashed", "bucket"),
    [
        ("id1", "id", 4, ["id1"], 104085, 1),
        ("1", "id", 256, ["1"], 80, 80),
        ("334e26e9-8355-45cc-97c6-c31daf0df330", "uuid", 256, None, 1880221155, 227),
        ("id:1,name:Alice", "id", 8, ["1"], 80, 0),
        ("id:1,name:Alice", "id,name", 8, ["1", "Alice"], 63352848, 0),
        ("id:1,name:Alice", "name", 8, ["Alice"], 63350399, 7),
        ("id:1,name:Alice", "", 8, ["1", "Alice"], 63352848, 0),
        ("a:__null__,b:__empty__", "a,b", 16, [None, ""], 961, 1),
        (
            "col1:val1,col2:2014-10-22 13:50:42,col3:val3",
            "col2",
            10,
            ["2014-10-22 13:50:42"],
            -2011593182,
            6,
        ),
        ("日本語", "k", 16, ["日本語"], 25921974, 6),
        ("id:é,ctry:中国", "id,ctry", 32, ["é", "中国"], 650856, 8),
        ("😀", "k", 7, ["😀"], 1772930, 5),
        ("id:42", "id", 4, ["id:42"], 100006236, 0),
        ("x,y", "k", 5, ["x,y"], 116836, 1),
        ("a:1,b:2", "c", 5, ["a:1,b:2"], None, None),
    ],
)
def test_worked_examples(
    key: str,
    fields: str,
    count: int,
    values: list[str | None] | None,
    hashed: int | None,
    bucket: int | None,
) -> None:
    names = fields.split(",")
    if values is not None:
        assert hash_values(key, names) == values
    if hashed is not None:
        assert key_hashes(pa.array([key]), names).astype(np.int32).tolist() == [hashed]
        assert bucket_of(pa.array([key]), names, count).tolist() == [bucket]


@given(st.lists(texts))
def test_columns_hash_like_single_strings(values: list[str]) -> None:
    made = string_hashes(pa.array(values, pa.string()))
    assert made.tolist() == [java_hash(value) for value in values]


@given(st.lists(texts), st.integers(1, 300))
def test_buckets_are_those_of_the_list_hash(keys: list[str], count: int) -> None:
    expected = []
    for key in keys:
        h = 1
        for value in hash_values(key, []):
            h = (31 * h + (java_hash(value) if value is not None else 0)) & 0xFFFFFFFF
        expected.append((h & 0x7FFFFFFF) % count)
    assert bucket_of(pa.array(keys, pa.string()), [], count).tolist() == expected


def test_chunked_dictionary_and_sliced_columns() -> None:
    keys = pa.array(["a", "id:1,b:2", "é", "id:7,b:x"])
    expected = bucket_of(keys, ["id"], 97).tolist()
    assert bucket_of(pa.chunked_array([keys[:1], keys[1:]]), ["id"], 97).tolist() == expected
    assert bucket_of(keys.dictionary_encode(), ["id"], 97).tolist() == expected
    assert bucket_of(keys.slice(2), ["id"], 97).tolist() == expected[2:]
    assert bucket_of(pa.array([], pa.string()), ["id"], 97).tolist() == []


def test_null_keys_and_no_buckets_are_refused() -> None:
    with pytest.raises(Invalid, match="1 of 2 keys are null"):
        bucket_of(pa.array(["a", None]), [], 4)
    with pytest.raises(Invalid, match="number of buckets"):
        bucket_of(pa.array(["a"]), [], 0)


@given(st.integers(0, 99_999_999), st.uuids())
def test_file_ids_state_their_bucket(bucket: int, unique: uuid.UUID) -> None:
    made = bucket_file_id(bucket, unique)
    assert bucket_number(made) == bucket
    assert len(made) == 38


def test_other_file_ids_have_no_bucket() -> None:
    assert bucket_number("f1d2-33") is None
    assert bucket_number("00000001-0eb4-4290-827b-c58e99f2de63") == 1
    with pytest.raises(Invalid):
        bucket_file_id(10**8, uuid.uuid4())
