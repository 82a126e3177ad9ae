"""The blocks of a log file: records with and without positions, deletes of either kind."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.actions.tasks.write_entries import Entries, EntryPlaces, writes_positions
from lakewright.actions.tasks.write_files import (
    first_number,
    record_schema,
)
from lakewright.actions.tasks.write_new import repeating_in
from lakewright.actions.tasks.write_settings import BlockFormat
from lakewright.actions.tasks.write_spec import GroupWork, WriteSpec
from lakewright.format.arrow.nested import field_values
from lakewright.format.hudi.base_write import constant, sequence_numbers
from lakewright.format.hudi.log.blocks import HeaderKey
from lakewright.format.hudi.log.deletes import OrderingValue, wrap_ordering
from lakewright.format.hudi.log.write import avro_block, data_header, delete_block, parquet_block
from lakewright.model.files import FileSlice
from lakewright.model.schema import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
)
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Places

#: The default ordering value: the delete wins over whatever came before it.
_ALWAYS = (OrderingValue("IntWrapper", 0),)


def data_blocks(
    spec: WriteSpec,
    work: GroupWork,
    entries: Entries,
    found: EntryPlaces | None,
    piece: FileSlice,
    task: int,
) -> list[bytes]:
    """Return the blocks of records: those that have a place in the base file, then others."""
    if entries.rows is None:
        return []
    rows = _with_meta(spec, work, entries.rows, task)
    if found is None or not writes_positions(spec):
        return [_data_block(spec, rows, None, piece)]
    # Readers can use positions only where every record of a block has one.
    known = np.flatnonzero(found.rows >= 0)
    known = known[np.argsort(found.rows[known], kind="stable")]
    unknown = np.flatnonzero(found.rows < 0)
    blocks = []
    if len(known):
        blocks.append(_data_block(spec, rows.take(pa.array(known)), found.rows[known], piece))
    if len(unknown):
        some = rows if len(unknown) == rows.num_rows else rows.take(pa.array(unknown))
        blocks.append(_data_block(spec, some, None, piece))
    return blocks


def _data_block(
    spec: WriteSpec, rows: pa.Table, positions: Places | None, piece: FileSlice
) -> bytes:
    header = _header(spec, positions, piece)
    if spec.settings.block_format is BlockFormat.AVRO:
        return avro_block(rows, header)
    return parquet_block(rows, header, repeating_in(spec, rows), spec.config.record_key)


def _header(spec: WriteSpec, positions: Places | None, piece: FileSlice) -> dict[HeaderKey, str]:
    schema = record_schema(spec.schema, spec.config.name, meta=spec.config.populate_meta_fields)
    if positions is None or piece.base is None:
        return data_header(spec.instant, schema)
    marks: npt.NDArray[np.uint64] = positions.astype(np.uint64)
    return data_header(spec.instant, schema, positions=marks, base_instant=piece.base.instant)


def _with_meta(spec: WriteSpec, work: GroupWork, rows: pa.Table, task: int) -> pa.Table:
    if not spec.config.populate_meta_fields:
        return rows
    count = rows.num_rows
    meta = {
        COMMIT_TIME: constant(spec.instant, count),
        COMMIT_SEQNO: sequence_numbers(spec.instant, task, first_number(count), count),
        RECORD_KEY: rows.column(RECORD_KEY),
        PARTITION_PATH: constant(work.group.partition, count),
        # In a log this column holds the file id, not a name.
        FILE_NAME: constant(work.group.file_id, count),
    }
    own = {name: rows.column(name) for name in rows.schema.names if name != RECORD_KEY}
    return pa.table({**meta, **own})


def delete_blocks(
    spec: WriteSpec,
    work: GroupWork,
    entries: Entries,
    found: EntryPlaces | None,
    piece: FileSlice,
    policy: MergePolicy,
) -> list[bytes]:
    """Return the blocks of deletes: those with ordering values, then those that always win."""
    if not entries.delete_count:
        return []
    ordering = [*_soft_ordering(entries.soft, policy), *([_ALWAYS] * len(entries.hard))]
    # Some readers refuse a block in which ordering values have more than one type.
    always = np.array([values is _ALWAYS for values in ordering])
    blocks = []
    for chosen in (np.flatnonzero(~always), np.flatnonzero(always)):
        if not len(chosen):
            continue
        positions = None
        if found is not None and writes_positions(spec):
            positions, chosen = _in_file_order(found.deletes, chosen)
        header = _header(spec, positions, piece)
        texts = entries.delete_keys.take(pa.array(chosen)).to_pylist()
        partitions = [work.group.partition] * len(chosen)
        blocks.append(delete_block(texts, partitions, header, [ordering[i] for i in chosen]))
    return blocks


def _in_file_order(places: Places, chosen: Places) -> tuple[Places | None, Places]:
    """Return the places of the chosen entries, rising, and the entries in that order."""
    mine = places[chosen]
    if bool((mine < 0).any()):
        return None, chosen
    chosen = chosen[np.argsort(mine, kind="stable")]
    return places[chosen], chosen


def _soft_ordering(
    soft: pa.Table | None, policy: MergePolicy
) -> list[tuple[OrderingValue | None, ...]]:
    if soft is None:
        return []
    if not policy.event_time:
        return [_ALWAYS] * soft.num_rows
    columns: list[list[OrderingValue | None]] = []
    for name in policy.ordering:
        column = field_values(soft, name)
        if column is None:
            columns.append([None] * soft.num_rows)
            continue
        plain = _plain(column.combine_chunks())
        columns.append([wrap_ordering(v, column.type) for v in plain.to_pylist()])
    rows = list(zip(*columns, strict=True))
    return [_ALWAYS if all(v is None for v in row) else row for row in rows]


def _plain(column: pa.Array) -> pa.Array:
    """Return days and microseconds since the epoch as the numbers that they are."""
    if pa.types.is_date32(column.type):
        return column.view(pa.int32())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", tz=column.type.tz)).view(pa.int64())
    if pa.types.is_time64(column.type):
        return column.view(pa.int64())
    return column
