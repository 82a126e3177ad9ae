"""Slices whose log records are merged column by column: partial updates and custom mergers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.failures import placed
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.model.schema import OPERATION, Struct
from lakewright.model.table import MergeMode
from lakewright.table.merge.fold import FoldedBase, Folding, Versions
from lakewright.table.merge.merger import custom_merger
from lakewright.table.merge.winners import BlockEntries, Flags
from lakewright.table.reader.keys import key_columns, record_keys
from lakewright.table.reader.logs import SliceLogs
from lakewright.table.reader.projection import times_as_text
from lakewright.table.reader.source import BATCH_ROWS, SliceSource


def folded_rows(source: SliceSource, logs: SliceLogs) -> Iterator[pa.RecordBatch]:
    """Stream the merged rows; the merged log records are held in memory, one row per key.

    Of a window these are the rows that its records, late ones too, had a part in, as they are
    at its end: a record alone may name some columns only, and is no row of the table.
    """
    policy = source.policy
    custom = policy.mode is MergeMode.CUSTOM
    folding = Folding(policy, source.merger or custom_merger(policy))
    schema = _columns(source, everything=custom)
    state: Versions | None = None
    named: list[pa.Array] = []
    for number, block in enumerate(logs.blocks):
        tombstones = block.kind is BlockKind.DELETE
        versions = _versions(logs, number, schema)
        state = folding.add(state, versions, tombstones=tombstones)
        if source.window is not None and block.instant in source.window:
            named.append(versions.keys)
    if state is None:
        return
    folded = FoldedBase(folding, state)
    touched = pa.chunked_array(named, pa.string()).unique()
    whole = replace(source, window=None)
    for merged in _base_rows(source, folded, schema):
        yield from whole.finish_table(_news(source, merged, touched))
    rest = folded.rest()
    yield from whole.finish_table(_news(source, rest, touched))
    if source.counts is not None:
        source.counts.keys = len(state)
        source.counts.records = logs.record_count
        source.counts.deleted = folded.deleted
        source.counts.updated = folded.met - folded.deleted
        source.counts.inserted = rest.num_rows


def _news(source: SliceSource, rows: pa.Table, touched: pa.Array) -> pa.Table:
    """Return the merged rows that a window has: those it wrote, and those it wrote to."""
    if source.window is None:
        return rows
    keys = record_keys(rows, source.config, str(source.file_slice.group))
    return rows.filter(pc.or_(source.in_window(rows), pc.is_in(keys, value_set=touched)))


def _columns(source: SliceSource, *, everything: bool) -> pa.Schema:
    if everything:
        return to_arrow_schema(source.schema.nullable())
    names = dict.fromkeys(
        (
            *source.projection.from_files,
            *key_columns(source.config),
            *source.policy.columns(source.schema),
        )
    )
    wanted = Struct(tuple(f for f in source.schema if f.name in names))
    return to_arrow_schema(wanted.nullable())


def _versions(logs: SliceLogs, number: int, schema: pa.Schema) -> Versions:
    block = logs.blocks[number]
    if block.kind is BlockKind.DELETE:
        entries = logs.delete_entries(number)
        rows = pa.table([pa.nulls(len(entries), f.type) for f in schema], schema=schema)
        return _described(entries, rows, {})
    # An operation column is no column of the table, and still says which records delete.
    found = logs.read(number, [*schema.names, OPERATION])
    logs.count(number, found.num_rows)
    entries = logs.record_entries(block, found)
    missing = [n for n in schema.names if block.is_partial and n not in found.schema.names]
    absent = {name: np.ones(len(entries), dtype=bool) for name in missing}
    rows = conform(times_as_text(found, schema), schema, logs.names(number).inner)
    return _described(entries, rows, absent)


def _described(entries: BlockEntries, rows: pa.Table, absent: Mapping[str, Flags]) -> Versions:
    nothing = np.zeros(len(entries), dtype=bool)
    return Versions(
        keys=entries.keys,
        rows=rows,
        absent=absent,
        deleted=nothing if entries.deletes is None else entries.deletes,
        hard=nothing if entries.hard is None else entries.hard,
        ordering=entries.ordering,
    )


def _base_rows(source: SliceSource, folded: FoldedBase, schema: pa.Schema) -> Iterator[pa.Table]:
    base = source.file_slice.base
    if base is None:
        return
    with source.open_base(base) as opened:
        groups = range(opened.reader.num_row_groups)
        for batch in opened.batches(schema.names, groups, BATCH_ROWS):
            with placed(opened.reader.path, opened.reader.footer.offset):
                keys = record_keys(batch, source.config, opened.reader.path)
            held = conform(times_as_text(batch, schema), schema, opened.names.inner)
            rows = pa.Table.from_batches([held])
            yield folded.meet(keys, rows, source.ordering(batch))
