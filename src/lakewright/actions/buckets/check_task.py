"""Whether the rows of a slice belong into its bucket: the keys stream by and are hashed."""

from dataclasses import dataclass

import numpy as np

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.compact import sized, slice_reader
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.config import TableConfig
from lakewright.model.files import FileSlice
from lakewright.model.schema import RECORD_KEY, STRING, Field, Struct
from lakewright.table.reader.keys import key_columns, record_keys

#: Where a slice belongs whose id names no bucket.
NO_BUCKET = -1


@dataclass(frozen=True, slots=True)
class CheckWork:
    """A slice, the bucket that its id names, and how many its partition has."""

    slice: FileSlice
    bucket: int
    buckets: int
    hash_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SliceChecked:
    """What was found in a slice.

    ``astray`` rows belong into other buckets, which ``targets`` names; ``example`` is the key of
    one of them.
    """

    partition: str
    file_id: str
    bucket: int
    rows: int
    astray: int
    targets: tuple[int, ...]
    example: str | None = None


def check_slice(spec: ServiceSpec, work: CheckWork, attempt: Attempt) -> SliceChecked:
    """Hash the keys of a slice's rows, logs merged in; memory holds a batch of keys."""
    piece = sized(work.slice, spec.open_storage())
    reader = slice_reader(spec).project(key_schema(spec.config, spec.schema))
    path = piece.paths[0] if piece.paths else piece.group.file_id
    rows = astray = 0
    targets: set[int] = set()
    example: str | None = None
    for batch in reader.open(piece):
        keys = record_keys(batch, spec.config, path)
        buckets = bucket_of(keys, work.hash_fields, work.buckets)
        rows += len(buckets)
        wrong = np.flatnonzero(buckets != work.bucket)
        if len(wrong):
            astray += len(wrong)
            targets.update(np.unique(buckets[wrong]).tolist())
            if example is None:
                example = str(keys[int(wrong[0])].as_py())
    group = piece.group
    found = tuple(sorted(targets))
    return SliceChecked(group.partition, group.file_id, work.bucket, rows, astray, found, example)


def key_schema(config: TableConfig, schema: Struct) -> Struct:
    """Return the columns that record keys are read from."""
    if config.populate_meta_fields:
        return Struct((Field(RECORD_KEY, STRING),))
    return Struct(tuple(schema.field(name) for name in key_columns(config)))
