"""Structs of the thrift compact protocol: taken apart in one pass, and refused when forged."""

import pytest

from lakewright.format.arrow.thrift_compact import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Fields,
    Forged,
    binary,
    join,
    join_list,
    list_head,
    packed,
    split,
    split_at,
    value_at,
)

INNER: Fields = {1: (I32, packed(-7)), 4: (BINARY, binary(b"bound")), 40: (I64, packed(1 << 40))}
OUTER: Fields = {2: (I64, packed(5)), 3: (STRUCT, join(INNER)), 4: (I32, packed(300))}


def test_a_struct_is_taken_apart_with_the_one_in_it() -> None:
    data = b"before" + join(OUTER) + b"after"
    fields, inner, end = split_at(data, 6, 3)
    assert fields == {**OUTER, 3: (STRUCT, b"")}
    assert inner == INNER == split(OUTER[3][1])
    assert data[end:] == b"after"
    assert split_at(data, 6) == (OUTER, {}, end)
    assert split_at(data, 6, 9) == (OUTER, {}, end)


def test_a_field_is_found_without_those_after_it() -> None:
    elements = [join(OUTER), join(INNER)]
    data = join({**OUTER, 9: (LIST, join_list(STRUCT, elements))})
    size, kind, at = list_head(data, value_at(data, 0, 9))
    assert (size, kind) == (2, STRUCT)
    assert split_at(data, at)[0] == OUTER
    assert value_at(data[:4], 0, 2) == 1
    with pytest.raises(Forged, match="no field 8"):
        value_at(data, 0, 8)


@pytest.mark.parametrize("cut", range(1, len(join(OUTER))))
def test_a_struct_that_is_cut_short_is_refused(cut: int) -> None:
    data = join(OUTER)[:cut]
    with pytest.raises((Forged, IndexError)):
        split_at(data, 0, 3)
