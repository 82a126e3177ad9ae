"""Statements as values: what is asked, free of the text it was asked in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lakewright.actions.rowlevel.clauses import Clause
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.types import Value
from lakewright.model.schema import Field, Struct

#: Partition columns with the values that a statement gives them; None leaves one open.
PartitionSpec: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Query:
    """Anything that an engine answers; ``prefix`` goes before it (EXPLAIN)."""

    text: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Other:
    """A statement that is none of ours, for an engine that may know it."""

    text: str


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE [IF NOT EXISTS]."""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE [IF EXISTS] [CASCADE]."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE, with columns or from a query."""

    name: str
    columns: Struct | None
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    if_not_exists: bool = False
    query: str | None = None


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS] [PURGE]."""

    name: str
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE [PARTITION (…)]."""

    name: str
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO or OVERWRITE."""

    name: str
    query: str
    columns: tuple[str, ...] | None = None
    partition: PartitionSpec | None = None
    overwrite: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """UPDATE … SET … [WHERE …]."""

    name: str
    values: Mapping[str, Expression]
    where: Expression | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Delete:
    """DELETE FROM … [WHERE …]."""

    name: str
    where: Expression | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """MERGE INTO; ``source`` is a query."""

    name: str
    source: str
    on: Expression
    clauses: Mapping[str, tuple[Clause, ...]]
    alias: str | None = None
    source_names: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ALTER TABLE … ADD COLUMNS (…)."""

    columns: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ChangeType:
    """ALTER TABLE … ALTER COLUMN … TYPE …."""

    column: str
    field: Field


@dataclass(frozen=True, slots=True)
class SetProperties:
    """ALTER TABLE … SET or UNSET TBLPROPERTIES; None removes an entry."""

    changes: Mapping[str, str | None]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropPartitions:
    """ALTER TABLE … DROP PARTITION (…), …."""

    partitions: tuple[PartitionSpec, ...]


Alteration: TypeAlias = AddColumns | ChangeType | SetProperties | DropPartitions


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, one change at a time."""

    name: str
    change: Alteration


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE [EXTENDED]."""

    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW …: ``what`` is its first word; ``name`` a table or a database, ``pattern`` a filter."""

    what: str
    name: str | None = None
    pattern: str | None = None
    partition: PartitionSpec | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """CALL procedure(arguments)."""

    procedure: str
    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)


Statement: TypeAlias = (
    Query
    | Other
    | CreateDatabase
    | DropDatabase
    | CreateTable
    | DropTable
    | Truncate
    | Insert
    | Update
    | Delete
    | Merge
    | AlterTable
    | Describe
    | Show
    | Call
)
