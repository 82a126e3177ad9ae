"""Hashing configs of the partition-level bucket index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.hashing_config import (
    HashingConfig,
    decode_hashing_config,
    encode_hashing_config,
    hashing_config_name,
    parse_hashing_config_name,
)
from lakewright.model.errors import Corrupt

REAL = b"""{
  "expressions" : "2024-.*,3;special,5",
  "defaultBucketNumber" : 1,
  "rule" : "regex",
  "version" : 1,
  "instant" : "20261115104822923"
}"""


def test_real_bytes_both_ways() -> None:
    config = HashingConfig("2024-.*,3;special,5", 1, "20261115104822923")
    assert decode_hashing_config(REAL, "x") == config
    assert encode_hashing_config(config) == REAL


@given(
    st.builds(
        HashingConfig,
        st.text(),
        st.integers(1, 2**31 - 1),
        st.from_regex(r"[0-9]{17}", fullmatch=True),
        st.text(min_size=1),
        st.integers(1, 9),
    )
)
def test_configs_round_trip(config: HashingConfig) -> None:
    assert decode_hashing_config(encode_hashing_config(config), "x") == config


def test_unknown_keys_and_defaults() -> None:
    text = b'{"defaultBucketNumber": 4, "instant": "00000000000000", "more": []}'
    assert decode_hashing_config(text, "x") == HashingConfig("", 4, "00000000000000")


def test_names() -> None:
    assert parse_hashing_config_name(hashing_config_name("00000000000000")) == "00000000000000"
    for name in (
        "x.hashing_config",
        "1.hashing_meta",
        ".1.hashing_config.crc",
        "1.hashing_config\n",
    ):
        assert parse_hashing_config_name(name) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"defaultBucketNumber": 0, "instant": "1"}',
        b'{"defaultBucketNumber": 1}',
    ],
)
def test_anything_else_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        decode_hashing_config(data, "some/file")
    assert caught.value.facts["path"] == "some/file"
