"""Text that is not UTF-8 and keys twice in a map are found; everything else passes."""

import struct
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.arrow.schema import normalised
from lakewright.format.arrow.soundness import check_sound
from lakewright.model.errors import Invalid

MAP = normalised(pa.schema([("m", pa.map_(pa.string(), pa.int32()))])).field(0).type


def texts(values: Sequence[bytes | None]) -> pa.Array:
    """Return bytes as text that nobody has looked at."""
    return pa.array(values, pa.binary()).view(pa.string())


def check(array: pa.Array) -> None:
    check_sound(pa.record_batch({"v": array}))


def is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


@given(
    st.lists(st.none() | st.binary(max_size=4) | st.text(max_size=3).map(str.encode), max_size=5),
    st.integers(0, 5),
)
def test_text_is_refused_where_python_refuses_it(values: list[bytes | None], start: int) -> None:
    array = texts(values).slice(start)
    if all(map(is_utf8, values[start:])):
        check(array)
    else:
        with pytest.raises(Invalid, match="v holds text that is not UTF-8"):
            check(array)


def test_a_character_over_two_values_is_in_neither() -> None:
    with pytest.raises(Invalid, match=r"such as '\\xc3'"):
        check(texts([b"\xc3", b"\xbc"]))


def test_bytes_under_a_null_are_no_text() -> None:
    marks = pa.py_buffer(struct.pack("<3i", 0, 1, 2))
    data = pa.py_buffer(b"\xffa")
    array = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), marks, data])
    assert array.to_pylist() == [None, "a"]
    check(array)
    check(pa.StructArray.from_arrays([texts([b"\xff"])], ["x"], mask=pa.array([True])))


@pytest.mark.parametrize(
    ("array", "path"),
    [
        (pa.StructArray.from_arrays([texts([b"\xff"])], ["x"]), "v.x"),
        (pa.ListArray.from_arrays([0, 1], texts([b"\xff"])), "v.element"),
        (pa.MapArray.from_arrays([0, 1], texts([b"\xff"]), pa.array([1])), "v.key"),
        (pa.MapArray.from_arrays([0, 1], pa.array(["a"]), texts([b"\xff"])), "v.value"),
    ],
)
def test_the_column_is_named_at_every_depth(array: pa.Array, path: str) -> None:
    with pytest.raises(Invalid, match=f"column {path} holds text that is not UTF-8"):
        check(array)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(Invalid) as caught:
        check(texts([b"\xff" + b"x" * 10_000]))
    assert len(str(caught.value)) < 300


@given(
    st.lists(st.none() | st.lists(st.sampled_from("abcd"), max_size=4), max_size=6),
    st.integers(0, 6),
    st.booleans(),
)
def test_a_key_stands_once_in_a_map(maps: list[list[str] | None], start: int, long: bool) -> None:
    if long:  # longer maps are looked at in another way
        maps = [*maps, [f"key{n}" for n in range(20)]]
    entries = [None if keys is None else [(key, 1) for key in keys] for keys in maps]
    array = pa.array(entries, MAP).slice(start)
    if all(len(set(keys or ())) == len(keys or ()) for keys in maps[start:]):
        check(array)
    else:
        with pytest.raises(Invalid, match=r"v holds a map in which the key '[abcd]' stands twice"):
            check(array)


def test_a_map_inside_a_list_is_looked_at() -> None:
    inner = pa.array([[("a", 1)], [("b", 1), ("b", 2)]], MAP)
    with pytest.raises(Invalid, match=r"v\.element holds a map in which the key 'b'"):
        check(pa.ListArray.from_arrays([0, 2], inner))
    check(pa.ListArray.from_arrays([0, 2], inner).slice(1))
