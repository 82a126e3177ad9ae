"""Bloom filters: a plain rereading of the format, growth, and filters that lie."""

import base64
import contextlib
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.texts import texts_of
from lakewright.format.hudi.bloom import (
    DYNAMIC,
    SIMPLE,
    BloomBuilder,
    parse_bloom,
    positions,
    shape_for,
)
from lakewright.model.errors import Corrupt, Invalid, LakewrightError, Unsupported

texts = st.text(max_size=17).filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t))


def murmur(data: bytes, seed: int) -> int:
    """Hadoop's Murmur hash, word for word; a signed int."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (seed ^ len(data)) & mask
    for at in range(0, len(data) - 3, 4):
        k = int.from_bytes(data[at : at + 4], "little") * factor & mask
        k = (k ^ (k >> 24)) * factor & mask
        h = (h * factor & mask) ^ k
    left = len(data) & 3
    signed = [b - 256 if b > 127 else b for b in data]
    if left >= 3:
        h ^= signed[-3] << 16
    if left >= 2:
        h ^= signed[-2] << 8
    if left >= 1:
        h ^= signed[-1]
        h = (h & mask) * factor & mask
    h &= mask
    h = (h ^ (h >> 13)) * factor & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def places(key: str, hashes: int, bits: int) -> list[int]:
    seed, out = 0, []
    for _ in range(hashes):
        seed = murmur(key.encode(), seed)
        out.append(abs(seed) % bits)
    return out


def build(keys: list[str], kind: str = DYNAMIC, row_keys: int = 100_000) -> str:
    builder = BloomBuilder(row_keys)
    builder.add(pa.array(keys, pa.string()))
    return builder.build(kind).encode()


@settings(max_examples=40)
@given(st.lists(texts, min_size=1), st.integers(1, 12), st.integers(1, 2**31 - 1))
def test_positions_are_those_of_the_format(keys: list[str], hashes: int, bits: int) -> None:
    found: dict[int, list[int]] = {}
    for rows, made in positions(texts_of(pa.array(keys, pa.string())), hashes, bits):
        found |= dict(zip(rows.tolist(), made.T.tolist(), strict=True))
    assert [found[i] for i in range(len(keys))] == [places(k, hashes, bits) for k in keys]


@given(st.lists(texts), st.sampled_from([DYNAMIC, SIMPLE]))
def test_every_key_is_found_again(keys: list[str], kind: str) -> None:
    text = build(keys, kind)
    made = parse_bloom(kind, text)
    assert made.contains(pa.array(keys, pa.string())).all()
    assert made.encode() == text


def test_other_keys_are_mostly_absent() -> None:
    keys = [f"key-{i}" for i in range(3000)]
    made = parse_bloom(DYNAMIC, build(keys))
    others = pa.array([f"other-{i}" for i in range(20_000)])
    assert made.contains(others).sum() <= 3


def test_large_files_get_further_rows() -> None:
    keys = [f"k{i}" for i in range(250)]
    made = parse_bloom(DYNAMIC, build(keys, row_keys=100))
    assert (len(made.rows), made.row_keys, made.last_keys) == (3, 100, 50)
    assert made.contains(pa.array(keys)).all()
    full = parse_bloom(DYNAMIC, build(keys[:200], row_keys=100))
    assert (len(full.rows), full.last_keys) == (2, 100)
    with pytest.raises(Invalid, match="holds up to 100 keys"):
        build(keys, SIMPLE, row_keys=100)


def test_keys_may_come_in_any_pieces() -> None:
    keys = [f"k{i}" for i in range(250)]
    builder = BloomBuilder(100)
    for begin in range(0, 250, 7):
        builder.add(pa.array(keys[begin : begin + 7]))
    assert builder.build().encode() == build(keys, row_keys=100)


def test_the_shape_is_the_one_that_hudi_computes() -> None:
    shape = shape_for(60_000, 1e-9)
    assert (shape.bits, shape.hashes) == (2_587_966, 30)
    with pytest.raises(Invalid):
        shape_for(0, 0.5)
    with pytest.raises(Invalid):
        shape_for(5, 1.0)


def raw(*, version: int = -1, hashes: int = 3, kind: int = 1, bits: int = 64) -> bytes:
    return struct.pack(">iibi", version, hashes, kind, bits)


@pytest.mark.parametrize(
    ("kind", "data", "error"),
    [
        (SIMPLE, b"", Corrupt),
        (SIMPLE, raw(), Corrupt),
        (SIMPLE, raw() + bytes(9), Corrupt),
        (SIMPLE, raw(bits=2**31 - 1) + bytes(8), Corrupt),
        (SIMPLE, raw(bits=-1) + bytes(8), Corrupt),
        (SIMPLE, raw(hashes=0) + bytes(8), Corrupt),
        (SIMPLE, raw(hashes=2**31 - 1) + bytes(8), Corrupt),
        (SIMPLE, raw(kind=0) + bytes(8), Unsupported),
        (SIMPLE, raw(version=5) + bytes(8), Unsupported),
        (DYNAMIC, raw() + struct.pack(">iii", 1, 1, 2**30), Corrupt),
        (DYNAMIC, raw() + struct.pack(">iii", 1, 1, -1), Corrupt),
        (DYNAMIC, raw() + struct.pack(">iii", 1, 1, 1) + raw(bits=32) + bytes(4), Corrupt),
        ("CUCKOO", raw() + bytes(8), Unsupported),
    ],
)
def test_filters_that_lie(kind: str, data: bytes, error: type[LakewrightError]) -> None:
    with pytest.raises(error):
        parse_bloom(kind, base64.b64encode(data).decode(), "f.parquet")


def test_text_that_is_no_base64() -> None:
    with pytest.raises(Corrupt, match="not base64"):
        parse_bloom(SIMPLE, "***")


@settings(max_examples=100)
@given(st.binary(max_size=80), st.sampled_from([DYNAMIC, SIMPLE]))
def test_noise_raises_our_errors_alone(noise: bytes, kind: str) -> None:
    with contextlib.suppress(LakewrightError):
        parse_bloom(kind, base64.b64encode(raw() + noise).decode()).contains(pa.array(["a"]))


def test_slices_and_views_of_keys() -> None:
    keys = pa.array(["zero", "one", "two", "three"])
    made = parse_bloom(DYNAMIC, build(["two", "three"]))
    expected = [False, False, True, True]
    assert made.contains(keys).tolist() == expected
    assert made.contains(keys.slice(1)).tolist() == expected[1:]
    assert made.contains(keys.cast(pa.large_string())).tolist() == expected
    assert made.contains(keys.cast(pa.string_view())).tolist() == expected
    assert made.contains(keys.dictionary_encode()).tolist() == expected
    assert np.array_equal(made.contains(pa.array([], pa.string())), np.empty(0, bool))


@given(st.lists(texts, min_size=1, max_size=30), st.lists(texts, min_size=1, max_size=30))
def test_a_grown_filter_knows_old_and_new_keys(old: list[str], new: list[str]) -> None:
    builder = BloomBuilder()
    builder.add(pa.array(old, pa.string()))
    grown = builder.build().grown(pa.array(new, pa.string()))
    if grown is None:
        assert len(new) > len(old) // 4
    else:
        again = parse_bloom(DYNAMIC, grown.encode())
        assert again.contains(pa.array(old + new, pa.string())).all()
        assert again.last_keys == len(old) + len(new)


def test_a_filter_grows_by_a_quarter_and_no_further() -> None:
    builder = BloomBuilder()
    builder.add(pa.array([f"k{n}" for n in range(400)]))
    first = builder.build()
    grown = first.grown(pa.array([f"n{n}" for n in range(100)]))
    assert grown is not None
    assert grown.grown(pa.array(["one more"])) is None
    assert builder.build(SIMPLE).grown(pa.array(["x"])) is None
    absent = pa.array([f"absent {n}" for n in range(20_000)])
    assert grown.contains(absent).sum() < 20
