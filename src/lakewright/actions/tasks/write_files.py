"""Beginning a data file: first its marker, then the partition's own file, then the bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import IO

import pyarrow as pa

from lakewright.actions.tasks.service_spec import MakesFiles
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.parquet_writing import repeating_columns
from lakewright.format.hudi.partition_metadata import (
    PARTITION_METADATA_NAME,
    PARTITION_METADATA_PARQUET_NAME,
    PartitionMetadata,
    encode_partition_metadata,
    encode_partition_metadata_parquet,
)
from lakewright.model.options import parse_bool
from lakewright.model.schema import COMMIT_TIME, FILE_NAME, META_FIELDS, PARTITION_PATH, Struct
from lakewright.timeline.markers import MarkerKind, Markers

#: Tables with this property keep a partition's metadata in the footer of a parquet file.
_METADATA_IN_PARQUET = "hoodie.partition.metafile.use.base.format"


class _Numbers:
    """Counts the rows that this process writes; with a task's number they are unique."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._next = 0

    def take(self, rows: int) -> int:
        with self._lock:
            first = self._next
            self._next += rows
        return first


_NUMBERS = _Numbers()
#: Hudi's own columns that hold one value, or few.
_CONSTANT = frozenset({COMMIT_TIME, PARTITION_PATH, FILE_NAME})


@contextmanager
def new_file(
    spec: MakesFiles, path: str, partition: str, kind: MarkerKind, *, partition_known: bool
) -> Iterator[IO[bytes]]:
    """Open a data file that is whole once the block ends, and that nobody sees before the commit.

    The marker comes first, so that whoever finds this write dead finds the file.
    """
    storage = spec.open_storage()
    Markers(storage, spec.instant).create(path, kind)
    if not partition_known:
        _describe_partition(spec, partition)
    with storage.writer(path) as sink:
        yield sink


def in_partition(partition: str, name: str) -> str:
    """Return the path of a file of a partition."""
    return f"{partition}/{name}" if partition else name


def first_number(rows: int) -> int:
    """Return a number from which so many rows may count without meeting those of other files."""
    return _NUMBERS.take(rows)


@lru_cache(maxsize=64)
def record_schema(schema: Struct, table: str, *, meta: bool) -> str:
    """Return the Avro schema of a table's records as text, with Hudi's columns or without."""
    fields = Struct((*META_FIELDS, *schema.fields)) if meta else schema
    return to_avro_schema(fields, *record_name(table))


def record_name(table: str) -> tuple[str, str]:
    """Return name and namespace of the Avro record of a table."""
    return f"{table}_record", f"hoodie.{table}"


class Layout:
    """What the files of one write share beside its spec: found out by the first of them."""

    def __init__(self) -> None:
        self._repeating: frozenset[str] | None = None

    def repeating(self, rows: pa.Table, keys: tuple[str, ...]) -> frozenset[str]:
        """Return the columns that get a dictionary, judged by the first rows that come by."""
        if self._repeating is None:
            self._repeating = repeating_columns(rows, keys) | _CONSTANT
        return self._repeating


@lru_cache(maxsize=64)
def layout_of(uri: str, instant: str) -> Layout:
    """Return what files of a write share in this process."""
    return Layout()


def _describe_partition(spec: MakesFiles, partition: str) -> None:
    """Write the file by which Java finds a partition, unless it is there; ask once per write."""
    if partition in spec.pinned.described:
        return
    metadata = PartitionMetadata.of(partition, spec.instant)
    if parse_bool(spec.config.properties.get(_METADATA_IN_PARQUET) or "false"):
        name, data = PARTITION_METADATA_PARQUET_NAME, encode_partition_metadata_parquet(metadata)
    else:
        name, data = PARTITION_METADATA_NAME, encode_partition_metadata(metadata)
    spec.open_storage().create(in_partition(partition, name), data)
    spec.pinned.described.add(partition)
