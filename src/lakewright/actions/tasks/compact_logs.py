"""The logs of one slice become one log: Hudi's form of a compacted block."""

import time
from collections.abc import Iterator

import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.compact import (
    Compacted,
    CompactWork,
    sized,
    slice_reader,
    with_log_totals,
)
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_files import in_partition, new_file, record_schema
from lakewright.actions.tasks.write_settings import BLOCK_FORMAT, BlockFormat
from lakewright.format.hudi.file_names import log_file_name
from lakewright.format.hudi.log.deletes import OrderingValue, wrap_ordering
from lakewright.format.hudi.log.write import (
    Header,
    avro_block,
    data_header,
    delete_block,
    parquet_block,
)
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.schema import META_FIELDS, Struct
from lakewright.table.reader.counts import MergeCounts
from lakewright.table.reader.merged_logs import MergedLogs
from lakewright.timeline.markers import MarkerKind

#: Rows of one block, in memory.
_BLOCK_BYTES = 64 << 20
#: The default ordering value: the delete wins over whatever came before it.
_ALWAYS = (OrderingValue("IntWrapper", 0),)


def compact_logs(spec: ServiceSpec, work: CompactWork, attempt: Attempt) -> Compacted | None:
    """Write the merged logs of a slice as one log; None where that would change their sense.

    Rows keep their commit times, so that whoever reads changes finds them where they were made.
    """
    began = time.monotonic()
    piece = sized(work.slice, spec.open_storage())
    counts = MergeCounts()
    partition, file_id = piece.group.partition, piece.group.file_id
    name = log_file_name(file_id, spec.instant, 1, attempt.token)
    path = in_partition(partition, name)
    reader = slice_reader(spec).project(Struct((*META_FIELDS, *spec.schema.fields)))
    with reader.merged_logs(piece, counts) as merged:
        if merged is None:
            return None
        with new_file(spec, path, partition, MarkerKind.CREATE, partition_known=True) as sink:
            deletes = 0
            schema = record_schema(spec.schema, spec.config.name, meta=True)
            header = data_header(spec.instant, schema, compacted=merged.instants)
            written = 0
            for rows in _tables(merged):
                sink.write(_data_block(spec, rows, header))
                written += rows.num_rows
            for block, count in _delete_blocks(merged, header):
                sink.write(block)
                deletes += count
            size = sink.tell()
    stat = WriteStat(
        file_id=file_id,
        path=path,
        prev_commit=piece.base_instant,
        num_writes=written,
        num_update_writes=written,
        num_deletes=deletes,
        total_write_bytes=size,
        file_size_in_bytes=size,
        partition_path=partition,
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=(name,),
    )
    log_bytes = sum(log.size for log in piece.logs)
    return Compacted(with_log_totals(stat, piece, counts, began), len(piece.logs), log_bytes)


def _tables(merged: MergedLogs) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in merged.rows():
        held.append(batch)
        size += batch.nbytes
        if size >= _BLOCK_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _data_block(spec: ServiceSpec, rows: pa.Table, header: Header) -> bytes:
    if BLOCK_FORMAT.read(spec.settings) is BlockFormat.AVRO:
        return avro_block(rows, header)
    return parquet_block(rows, header)


def _delete_blocks(merged: MergedLogs, header: Header) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of deletes: with ordering values, and such that win whatever came before."""
    types = merged.ordering_types
    for found in merged.deletes():
        # Some readers refuse a block in which ordering values have more than one type.
        for timed in (True, False):
            places = [i for i, v in enumerate(found.ordering) if (v is not None) is timed]
            if not places:
                continue
            picked = pa.array(places)
            ordering: list[tuple[OrderingValue | None, ...]] = []
            for place in places:
                values = found.ordering[place]
                ordering.append(
                    _ALWAYS
                    if values is None or not types
                    else tuple(wrap_ordering(v, t) for v, t in zip(values, types, strict=True))
                )
            keys = found.keys.take(picked).to_pylist()
            partitions = found.partitions.take(picked).to_pylist()
            yield delete_block(keys, partitions, header, ordering), len(places)
