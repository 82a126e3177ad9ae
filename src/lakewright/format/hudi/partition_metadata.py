"""The file by which Java finds a partition: ``.hoodie_partition_metadata`` in its folder."""

import datetime as dt
import io
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.format.hudi.properties import parse_properties, render_properties
from lakewright.model.errors import Corrupt

PARTITION_METADATA_NAME = ".hoodie_partition_metadata"
#: The other form, in the footer of a file without rows, which some tables ask for.
PARTITION_METADATA_PARQUET_NAME = ".hoodie_partition_metadata.parquet"
PARTITION_METADATA_NAMES = frozenset({PARTITION_METADATA_NAME, PARTITION_METADATA_PARQUET_NAME})

_COMMIT = "commitTime"
_DEPTH = "partitionDepth"
_PARQUET_MAGIC = b"PAR1"
_MAX_DEPTH = 10_000


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """Which instant made a partition, and how many levels its path has (0 at the root)."""

    commit_time: str
    depth: int

    @staticmethod
    def of(partition: str, commit_time: str) -> "PartitionMetadata":
        """Return what the file of this partition must say."""
        return PartitionMetadata(commit_time, len(partition.split("/")) if partition else 0)


def decode_partition_metadata(data: bytes, path: str) -> PartitionMetadata:
    """Read either form of the file."""
    values = (
        _from_footer(data, path) if data[:4] == _PARQUET_MAGIC else parse_properties(data, path)
    )
    depth = values.get(_DEPTH, "")
    if _COMMIT not in values or not (depth.isascii() and depth.isdigit() and len(depth) < 6):
        raise Corrupt(
            f"{path}: {_COMMIT} or {_DEPTH} is missing or no number.",
            next_step="Write the file anew: it names the instant that made the partition.",
            path=path,
        )
    return PartitionMetadata(values[_COMMIT], min(int(depth), _MAX_DEPTH))


def _from_footer(data: bytes, path: str) -> dict[str, str]:
    try:
        pairs = pq.read_metadata(pa.BufferReader(data)).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise Corrupt(
            f"{path}: the parquet footer cannot be read ({cause}).",
            next_step="Write the file anew.",
            path=path,
        ) from cause
    return {
        key.decode("utf-8", "replace"): v.decode("utf-8", "replace") for key, v in pairs.items()
    }


def encode_partition_metadata(metadata: PartitionMetadata) -> bytes:
    """Write the text form."""
    now = dt.datetime.now(dt.UTC)
    comments = ("partition metadata", f"{now:%a %b %d %H:%M:%S} UTC {now:%Y}")
    return render_properties(_pairs(metadata), comments)


def encode_partition_metadata_parquet(metadata: PartitionMetadata) -> bytes:
    """Write the form for tables with ``hoodie.partition.metafile.use.base.format``."""
    out = io.BytesIO()
    schema = pa.schema([pa.field("dummyint", pa.int64())])
    with pq.ParquetWriter(out, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(_pairs(metadata))
    return out.getvalue()


def _pairs(metadata: PartitionMetadata) -> dict[str, str]:
    return {_COMMIT: metadata.commit_time, _DEPTH: str(metadata.depth)}
