"""``.hoodie/.index_defs/index.json``: which indexes the metadata table holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.json_text import decode_json, encode_json
from lakewright.format.hudi.metadata.shapes import (
    STRING,
    Member,
    Nullable,
    RecordOf,
    listed,
    mapped,
    optional,
)

INDEX_DEFS_PATH = ".hoodie/.index_defs/index.json"


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index; version 9 tables require ``version``."""

    name: str
    type: str
    function: str = ""
    source_fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None


@dataclass(frozen=True, slots=True)
class _Definitions:
    by_partition: Mapping[str, IndexDefinition]


_TEXT = Nullable(STRING, null_is="", writes_null=False)
_DEFINITION = RecordOf(
    "indexDefinition",
    IndexDefinition,
    (
        Member("indexName", _TEXT),
        Member("indexType", _TEXT),
        Member("indexFunction", _TEXT),
        listed("sourceFields", STRING),
        mapped("indexOptions", STRING),
        optional("version", STRING),
    ),
)
_FILE = RecordOf("index.json", _Definitions, (mapped("indexDefinitions", _DEFINITION),))


def decode_index_defs(data: bytes, path: str = INDEX_DEFS_PATH) -> Mapping[str, IndexDefinition]:
    """Read the definitions by the partition of the metadata table that holds each index."""
    return decode_json(data, path, _FILE).by_partition


def encode_index_defs(definitions: Iterable[IndexDefinition]) -> bytes:
    """Write the definitions; an index lies in the partition of its own name."""
    return encode_json(_Definitions({index.name: index for index in definitions}), _FILE)
