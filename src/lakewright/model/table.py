"""What a table is: its identity, its kind and its definition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.model.schema import Schema


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """The name of a table within a catalog."""

    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.database}.{self.name}" if self.database else self.name


class TableType(StrEnum):
    """Where updates go: into new base files, or into logs beside them."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeMode(StrEnum):
    """Which of two versions of a record wins."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class TableDef:
    """A table as it stands: identity, place, latest schema, kind, keys and properties."""

    table_id: TableId
    base_path: str
    schema: Schema
    table_type: TableType
    version: int
    record_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    ordering: tuple[str, ...] = ()
    merge_mode: MergeMode = MergeMode.COMMIT_TIME_ORDERING
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableDescriptor:
    """What a catalog needs to create a table; the place may be left to the catalog."""

    table_id: TableId
    schema: Schema
    record_key: tuple[str, ...]
    table_type: TableType = TableType.COPY_ON_WRITE
    base_path: str | None = None
    partition_by: tuple[str, ...] = ()
    ordering: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
