"""Records in Avro binary form, without a container, as Arrow tables."""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_columns import PADDING, ColumnDecoder, Cursors, Ints
from lakewright.format.hudi.avro_schema import parse_avro, parse_avro_schema
from lakewright.model.errors import Corrupt

#: Records are decoded in runs of at most so many bytes, which bounds the working memory.
_RUN_BYTES = 64 << 20


def decode_records(
    schema_text: str,
    datums: Sequence[bytes],
    columns: Sequence[str] | None = None,
    path: str = "",
) -> pa.Table:
    """Return records as a table; ``columns`` names those wanted, absent names are passed over."""
    framed = b"".join(struct.pack(">i", len(datum)) + datum for datum in datums)
    return decode_framed(schema_text, framed, len(datums), columns, path=path)


def decode_framed(
    schema_text: str,
    data: bytes | memoryview,
    count: int,
    columns: Sequence[str] | None = None,
    *,
    path: str = "",
    offset: int = 0,
) -> pa.Table:
    """Return ``count`` records, each preceded by its length in four bytes, as a table.

    ``offset`` is where ``data`` lies in the file, for messages.
    """
    record = parse_avro(schema_text, path)
    schema = to_arrow_schema(parse_avro_schema(schema_text, path))
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns if name in record.names])
    wanted = None if columns is None else frozenset(schema.names)
    starts, ends = _frames(data, count, path, offset)
    tables = []
    for first, last in _runs(starts, ends):
        low = int(starts[first])
        piece = pa.py_buffer(
            b"".join((memoryview(data)[low : int(ends[last - 1])], b"\0" * PADDING))
        )
        cursors = Cursors(starts[first:last] - low, ends[first:last] - low)
        decoder = ColumnDecoder(piece, path, offset + low)
        made = decoder.columns(record, cursors, wanted)
        tables.append(pa.table([made[name] for name in schema.names], schema=schema))
    if not tables:
        return schema.empty_table()
    return pa.concat_tables(tables)


def _frames(data: bytes | memoryview, count: int, path: str, offset: int) -> tuple[Ints, Ints]:
    """Return where records begin and end."""
    total = len(data)
    if count < 0 or count * 4 > total:
        raise Corrupt(
            f"{count} records cannot lie in {total} bytes of {path}.", path=path, offset=offset
        )
    starts = np.empty(count, np.int64)
    ends = np.empty(count, np.int64)
    unpack = struct.Struct(">i").unpack_from
    at = 0
    for i in range(count):
        if at + 4 > total:
            raise Corrupt(f"records end early in {path}.", path=path, offset=offset + at)
        size = unpack(data, at)[0]
        at += 4
        starts[i] = at
        if size < 0 or size > total - at:
            raise Corrupt(
                f"a record claims {size} bytes in {path}.", path=path, offset=offset + at - 4
            )
        at += size
        ends[i] = at
    if at != total:
        raise Corrupt(f"bytes follow the last record in {path}.", path=path, offset=offset + at)
    return starts, ends


def _runs(starts: Ints, ends: Ints) -> Iterator[tuple[int, int]]:
    first = 0
    while first < len(starts):
        last = int(np.searchsorted(ends, starts[first] + _RUN_BYTES, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last
