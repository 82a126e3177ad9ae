"""What Spark's Python workers do to find stored keys: number rows by key, list and read slices."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_spec import WriteSpec
from lakewright.engine.spark.carrying import error_text, unpack_job
from lakewright.engine.spark.worker import settle
from lakewright.engine.spark.write_worker import TaskError, conformed, here
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.index.key_lookup import stored_keys
from lakewright.model.errors import LakewrightError
from lakewright.model.files import FileSlice
from lakewright.model.schema import PARTITION_PATH, RECORD_KEY

#: The columns in which rows carry what they are looked up by.
KEY, PATH = "_lakewright_key", "_lakewright_path"
#: Slices per batch of a listing.
_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class KeysJob:
    """How rows get their keys; ``schema`` holds their columns.

    ``instant`` is part of the keys that are made for rows which have none yet.
    """

    maker: KeyMaker
    schema: pa.Schema
    instant: str


def add_keys(job: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add record key and partition path as the last columns of batches."""
    settle()
    work = cast("KeysJob", unpack_job(job))
    task, done = here()[0], 0
    for batch in batches:
        rows = conformed(batch, work.schema)
        names = rows.schema.names
        try:
            keys = rows.column(RECORD_KEY) if RECORD_KEY in names else work.maker.keys(rows)
            known = PARTITION_PATH in names
            paths = rows.column(PARTITION_PATH) if known else work.maker.partitions(rows)
            if work.maker.generated and keys.null_count:
                made = work.maker.generated_keys(work.instant, task, done, len(rows))
                keys, paths = work.maker.completed(rows, keys, paths, made)
        except LakewrightError as error:
            raise TaskError(error_text(error)) from error
        done += len(rows)
        columns = [*batch.columns, keys, paths.cast(pa.string())]
        yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, KEY, PATH])


def list_slices(job: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """List partitions, and hand over the slices in them."""
    settle()
    spec = cast("WriteSpec", unpack_job(job))
    for batch in batches:
        for path in batch.column(0).to_pylist():
            try:
                slices = spec.pinned.slices(path)
            except LakewrightError as error:
                raise TaskError(error_text(error)) from error
            for start in range(0, len(slices), _LISTED):
                some = [pickle.dumps(piece) for piece in slices[start : start + _LISTED]]
                yield pa.RecordBatch.from_arrays([pa.array(some, pa.binary())], names=["slice"])


def read_keys(job: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand over the keys that slices hold: partition, file id, row in the base file, and more.

    Of a key that logs deleted ``deleted`` is the instant of the base file that holds it.
    """
    settle()
    spec = cast("WriteSpec", unpack_job(job))
    for batch in batches:
        for data in batch.column(0).to_pylist():
            piece: FileSlice = pickle.loads(data)
            try:
                keys, found = stored_keys(spec.pinned, piece)
            except LakewrightError as error:
                raise TaskError(error_text(error)) from error
            count = len(keys)
            columns = [
                keys,
                pa.repeat(pa.scalar(piece.group.partition), count),
                pa.repeat(pa.scalar(piece.group.file_id), count),
                pa.array(np.asarray(found.position, np.int64)),
                pc.if_else(pa.array(found.alive), None, pa.scalar(piece.base_instant)),
            ]
            names = ["key", "path", "id", "position", "deleted"]
            yield from pa.Table.from_arrays(columns, names=names).to_batches(max_chunksize=1 << 16)
