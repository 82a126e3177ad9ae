"""Slices without log records: the base file as it is."""

from collections.abc import Iterator

import pyarrow as pa

from lakewright.table.reader.source import BATCH_ROWS, SliceSource


def plain_rows(source: SliceSource) -> Iterator[pa.RecordBatch]:
    """Stream the rows of the base file; row groups that cannot match are not read."""
    base = source.file_slice.base
    if base is None:
        return
    with source.open_base(base, in_codes=True) as opened:
        groups = source.matching_row_groups(opened)
        for batch in opened.batches(source.projection.from_files, groups, BATCH_ROWS):
            yield from source.finish(batch, opened.names)
