"""The words of a log file: kinds of blocks, header keys, and a block as a scan finds it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

#: Every block begins with these bytes.
MAGIC = b"#HUDI#"
#: The version of the framing that is written, and the only one that is read.
LOG_VERSION = 1
#: The version of the content of AVRO_DATA, CDC_DATA and DELETE blocks.
CONTENT_VERSION = 3
#: A block without header entries and content still has these bytes after its length field.
LEAST_LENGTH = 32


class BlockKind(IntEnum):
    """What a block holds; the values are those on disk."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """The entries of a block's header; the values are those on disk."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


#: The only command there is, as the header writes it.
ROLLBACK = "0"


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A block as found by a scan: what its header says, and where its content lies.

    A CORRUPT block has no header; its content is what lies between its magic and the next.
    """

    kind: BlockKind
    header: Mapping[HeaderKey, str]
    offset: int
    content_offset: int
    content_length: int
    path: str

    @property
    def instant(self) -> str | None:
        """The instant that wrote the block; readers pass over blocks that have none."""
        return self.header.get(HeaderKey.INSTANT_TIME)

    @property
    def schema_text(self) -> str | None:
        """The Avro schema of the records, meta columns included."""
        return self.header.get(HeaderKey.SCHEMA)

    @property
    def is_partial(self) -> bool:
        """Whether the records hold only the columns that changed."""
        return self.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    @property
    def is_rollback(self) -> bool:
        """Whether the block undoes the blocks of ``target_instant``."""
        command = self.header.get(HeaderKey.COMMAND_BLOCK_TYPE)
        return self.kind is BlockKind.COMMAND and command == ROLLBACK

    @property
    def target_instant(self) -> str | None:
        """The instant that a rollback block undoes."""
        return self.header.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """The instants whose blocks a log compaction merged into this one."""
        text = self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
        return tuple(time.strip() for time in text.split(",") if time.strip())

    @property
    def positions_base_instant(self) -> str | None:
        """The instant of the base file whose rows the record positions number."""
        return self.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
