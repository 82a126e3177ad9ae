"""Index definitions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.index_defs import (
    IndexDefinition,
    decode_index_defs,
    encode_index_defs,
)
from lakewright.model.errors import Corrupt

DEFINITIONS = st.builds(
    IndexDefinition,
    st.text(),
    st.text(),
    st.text(),
    st.lists(st.text(), max_size=3).map(tuple),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.none() | st.sampled_from(["V1", "V2"]),
)


@given(st.lists(DEFINITIONS, max_size=3, unique_by=lambda index: index.name))
def test_definitions_round_trip(definitions: list[IndexDefinition]) -> None:
    found = decode_index_defs(encode_index_defs(definitions))
    assert found == {index.name: index for index in definitions}


def test_missing_parts_are_empty() -> None:
    text = json.dumps({"indexDefinitions": {"files": {"indexName": "files", "more": 1}}}).encode()
    assert decode_index_defs(text) == {"files": IndexDefinition("files", "")}
    assert decode_index_defs(b"{}") == {}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"indexDefinitions": {"a": {"indexName": 1}}}'])
def test_anything_else_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_index_defs(data)
