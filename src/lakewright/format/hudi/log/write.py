"""Writing log files: each function returns the bytes of one whole block."""

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_encoding import encode_framed
from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.base_footer import AVRO_SCHEMA
from lakewright.format.hudi.log.blocks import (
    CONTENT_VERSION,
    LOG_VERSION,
    MAGIC,
    ROLLBACK,
    BlockKind,
    HeaderKey,
)
from lakewright.format.hudi.log.deletes import OrderingValue, encode_deletes
from lakewright.format.hudi.parquet_writing import ParquetFile, repeating_columns
from lakewright.format.hudi.positions import encode_positions
from lakewright.model.errors import Invalid
from lakewright.model.schema import COMMIT_SEQNO, RECORD_KEY

Header = Mapping[HeaderKey, str]

#: Rows that are encoded at a time: that takes some times the memory of what comes out.
_RUN_ROWS = 16 << 10


def data_header(
    instant: str,
    schema_text: str,
    *,
    positions: npt.NDArray[np.uint64] | None = None,
    base_instant: str | None = None,
    partial: bool = False,
    compacted: Sequence[str] = (),
) -> dict[HeaderKey, str]:
    """Return the header of a block of records or deletes.

    ``positions`` are the rows of the base file of ``base_instant`` that the block's records
    replace, in ascending order as the records must be; give both or neither.
    """
    if (positions is None) != (base_instant is None):
        raise Invalid(
            "record positions need the instant of their base file, and it needs them.",
            next_step="Please report it: this is a fault of Lakewright.",
        )
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema_text}
    if positions is not None and base_instant is not None:
        if bool(np.any(positions[1:] <= positions[:-1])):
            raise Invalid(
                "record positions must rise and be distinct.",
                next_step="Please report it: this is a fault of Lakewright.",
            )
        header[HeaderKey.RECORD_POSITIONS] = encode_positions(positions)
        header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = base_instant
    if partial:
        header[HeaderKey.IS_PARTIAL] = "true"
    if compacted:
        header[HeaderKey.COMPACTED_BLOCK_TIMES] = ",".join(compacted)
    return header


def avro_block(table: pa.Table, header: Header) -> bytes:
    """Return an AVRO_DATA block; columns are found by name in the header's schema."""
    return frame(BlockKind.AVRO_DATA, header, _avro_content(table, header))


def cdc_block(table: pa.Table, header: Header) -> bytes:
    """Return a CDC_DATA block; the header's schema is one of the change schemas."""
    return frame(BlockKind.CDC_DATA, header, _avro_content(table, header))


def parquet_block(
    table: pa.Table,
    header: Header,
    repeating: frozenset[str] | None = None,
    key_columns: Sequence[str] = (),
) -> bytes:
    """Return a PARQUET_DATA block; columns are found by name in the header's schema.

    ``repeating`` names the columns that get a dictionary; None looks for them in the rows.
    ``key_columns`` are those that make up the record key.
    """
    text = header[HeaderKey.SCHEMA]
    schema = _with_dictionaries(_arrow_schema(text), table.schema)
    rows = conform(table, schema)
    keys = {RECORD_KEY, COMMIT_SEQNO, *key_columns}
    sink = BytesIO()
    found = repeating_columns(rows, keys) if repeating is None else repeating
    writer = ParquetFile(sink, schema, keys, found)
    writer.write(rows)
    writer.close({AVRO_SCHEMA: text})
    return frame(BlockKind.PARQUET_DATA, header, sink.getvalue())


@lru_cache(maxsize=64)
def _arrow_schema(text: str) -> pa.Schema:
    # Blocks are many, and the schemas that they are written with few.
    return to_arrow_schema(parse_avro_schema(text))


def _with_dictionaries(schema: pa.Schema, rows: pa.Schema) -> pa.Schema:
    """Return the schema with the dictionaries that rows have: parquet stores the same text."""
    coded = pa.dictionary(pa.int32(), pa.string())
    fields = []
    for field in schema:
        index = rows.get_field_index(field.name)
        same = index >= 0 and rows.field(index).type == coded and pa.types.is_string(field.type)
        fields.append(field.with_type(coded) if same else field)
    return pa.schema(fields)


def delete_block(
    keys: Sequence[str],
    partitions: Sequence[str],
    header: Header,
    ordering: Sequence[Sequence[OrderingValue | None]] | None = None,
) -> bytes:
    """Return a DELETE block; without ``ordering`` the deletes win over all that came before."""
    content = encode_deletes(keys, partitions, ordering)
    return frame(
        BlockKind.DELETE, header, struct.pack(">ii", CONTENT_VERSION, len(content)) + content
    )


def rollback_block(instant: str, target: str) -> bytes:
    """Return the command block by which ``instant`` undoes the blocks of ``target``."""
    header = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK,
    }
    return frame(BlockKind.COMMAND, header, b"")


def frame(kind: BlockKind, header: Header, content: bytes | pa.Buffer) -> bytes:
    """Return a block: magic, length, header, content, empty footer, length again."""
    if HeaderKey.INSTANT_TIME not in header:
        raise Invalid(
            "a block without an instant would be passed over by every reader.",
            next_step="Please report it: this is a fault of Lakewright.",
        )
    head = bytearray(struct.pack(">iii", LOG_VERSION, kind, len(header)))
    for key, value in header.items():
        raw = value.encode("utf-8")
        head += struct.pack(">ii", key, len(raw)) + raw
    head += struct.pack(">q", len(content))
    length = len(head) + len(content) + 4 + 8
    tail = struct.pack(">iq", 0, length + len(MAGIC))
    return b"".join((MAGIC, struct.pack(">q", length), head, content, tail))


def _avro_content(table: pa.Table, header: Header) -> bytes:
    text = header[HeaderKey.SCHEMA]
    rows = conform(table, _arrow_schema(text))
    parts = [struct.pack(">ii", CONTENT_VERSION, rows.num_rows)]
    for start in range(0, rows.num_rows, _RUN_ROWS):
        parts.append(encode_framed(rows.slice(start, _RUN_ROWS), text))
    return b"".join(parts)
