"""The options of a write, read once."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.options import declare, parse_bool, parse_count, parse_positive


class BlockFormat(StrEnum):
    """In which form log blocks hold records."""

    PARQUET = "parquet"
    AVRO = "avro"


class SortMode(StrEnum):
    """How a bulk insert orders rows before they are written."""

    NONE = "NONE"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    GLOBAL_SORT = "GLOBAL_SORT"

    @property
    def by_key(self) -> bool:
        """Whether rows are sorted by their keys; every mode but ``NONE`` gathers partitions."""
        return self in (SortMode.PARTITION_SORT, SortMode.GLOBAL_SORT)


_SIZE = "a whole number of bytes"

SMALL_FILE = declare(
    "hoodie.parquet.small.file.limit",
    parse_count,
    100 << 20,
    doc="A base file below this size takes new rows before a new file group is made; 0 turns "
    "that off. Bucket tables have no use for it.",
    since="0.1",
    allowed=_SIZE,
)
MAX_FILE = declare(
    "hoodie.parquet.max.file.size",
    parse_positive,
    120 << 20,
    doc="About how large a base file may become before a new file group is begun.",
    since="0.1",
    allowed=_SIZE,
)
BLOCK_FORMAT = declare(
    "hoodie.logfile.data.block.format",
    lambda text: BlockFormat(text.strip().lower()),
    BlockFormat.PARQUET,
    doc="The form of records in log blocks. Parquet is many times cheaper to write and to read.",
    since="0.1",
    allowed=", ".join(BlockFormat),
)
POSITIONS = declare(
    "hoodie.write.record.positions",
    parse_bool,
    True,
    doc="Whether log blocks say which rows of the base file they replace, which makes reading "
    "quicker and costs a look at the file's keys. Version 6 tables have none.",
    since="0.1",
    allowed="true or false",
)
SORT_MODE = declare(
    "hoodie.bulkinsert.sort.mode",
    lambda text: SortMode(text.strip().upper()),
    SortMode.NONE,
    doc="How a bulk insert orders rows: not at all, by partition (both ways to repartition: the "
    "rows of a partition come together, and are written one partition after the other), by key "
    "within each task's partitions, or by partition and key over all.",
    since="0.1",
    allowed=", ".join(SortMode),
)
COMBINE_ON_INSERT = declare(
    "hoodie.combine.before.insert",
    parse_bool,
    False,
    doc="Whether an insert combines rows of one batch that share a key.",
    since="0.1",
    allowed="true or false",
)
DRIVER_BYTES = declare(
    "lakewright.write.driver-bytes",
    parse_count,
    64 << 20,
    doc="Rows up to this size in memory are taken to the driver and routed there, without a "
    "shuffle; 0 sends every row to the executors.",
    since="0.1",
    allowed=_SIZE,
)
DRIVER_WORK = declare(
    "lakewright.write.driver-work",
    parse_count,
    1 << 30,
    doc="With Spark: up to so many bytes to read and write the driver's own threads write the "
    "files of a small batch on a local master; more, or on a cluster, goes to the executors.",
    since="0.1",
    allowed=_SIZE,
)
SPILL_BYTES = declare(
    "lakewright.write.spill-bytes",
    parse_positive,
    256 << 20,
    doc="Rows that a task holds in memory before it puts them on its own disk.",
    since="0.1",
    allowed=_SIZE,
)


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """The options that decide how a write is carried out."""

    small_file: int
    max_file: int
    block_format: BlockFormat
    positions: bool
    sort_mode: SortMode
    combine_on_insert: bool
    driver_bytes: int
    driver_work: int
    spill_bytes: int

    @staticmethod
    def of(values: Mapping[str, str]) -> "WriteSettings":
        """Read the settings; ``values`` are the table's properties under the caller's options."""
        return WriteSettings(
            small_file=SMALL_FILE.read(values),
            max_file=MAX_FILE.read(values),
            block_format=BLOCK_FORMAT.read(values),
            positions=POSITIONS.read(values),
            sort_mode=SORT_MODE.read(values),
            combine_on_insert=COMBINE_ON_INSERT.read(values),
            driver_bytes=DRIVER_BYTES.read(values),
            driver_work=DRIVER_WORK.read(values),
            spill_bytes=SPILL_BYTES.read(values),
        )
