"""Column types and schemas, free of any library; conversions live with the libraries they know.

The types are those that a Hudi table can hold. Avro, Arrow and Spark forms are made from
these by ``format`` and ``engine.spark``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from lakewright.model.errors import Invalid, UnknownColumn


class Kind(StrEnum):
    """Types without parameters."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"


class Unit(StrEnum):
    """The resolution of times."""

    MILLIS = "millis"
    MICROS = "micros"


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters."""

    kind: Kind

    def __str__(self) -> str:
        return self.kind.value


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact numbers of ``precision`` digits, ``scale`` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise Invalid(
                f"decimal({self.precision},{self.scale}) is not a decimal type.",
                next_step="Allowed: 1 <= precision <= 38, 0 <= scale <= precision.",
            )

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Fixed:
    """Exactly ``size`` bytes."""

    size: int

    def __str__(self) -> str:
        return f"fixed({self.size})"


@dataclass(frozen=True, slots=True)
class Time:
    """Time of day."""

    unit: Unit

    def __str__(self) -> str:
        return f"time_{self.unit}"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A moment (``utc``), or a wall-clock reading without a zone (not ``utc``)."""

    unit: Unit
    utc: bool = True

    def __str__(self) -> str:
        return f"timestamp_{self.unit}" if self.utc else f"local_timestamp_{self.unit}"


@dataclass(frozen=True, slots=True)
class List:
    """A list; ``element_nullable`` says whether elements may be null."""

    element: "DataType"
    element_nullable: bool = True

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """A map; keys are never null (and are strings where Avro is involved)."""

    value: "DataType"
    key: "DataType" = Primitive(Kind.STRING)
    value_nullable: bool = True

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """One named column or member of a struct; ``id`` only where the table numbers its fields."""

    name: str
    type: "DataType"
    nullable: bool = True
    doc: str | None = None
    id: int | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.nullable else " not null")


@dataclass(frozen=True, slots=True)
class Struct:
    """An ordered set of fields; a table's schema is one."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        names = [f.name for f in self.fields]
        if len(set(names)) != len(names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise Invalid(
                f"columns named twice: {', '.join(twice)}.",
                next_step="Give each a name of its own.",
                columns=twice,
            )

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        return any(f.name == name for f in self.fields)

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(f.name for f in self.fields)

    def field(self, name: str) -> Field:
        """Return the field of this name; the error lists the known ones."""
        for field in self.fields:
            if field.name == name:
                return field
        raise UnknownColumn(
            f"no column {name!r}.",
            next_step=f"Known: {', '.join(self.names)}.",
            column=name,
            known=list(self.names),
        )

    def find(self, path: str) -> "DataType | None":
        """Return the type of a column, by its dotted path if it is nested; None without one."""
        found: DataType | None = self
        for part in [path] if path in self else path.split("."):
            if not isinstance(found, Struct) or part not in found:
                return None
            found = found.field(part).type
        return found

    def select(self, names: tuple[str, ...]) -> "Struct":
        """Return the named fields in the order asked for."""
        return Struct(tuple(self.field(n) for n in names))

    def without(self, names: frozenset[str]) -> "Struct":
        """Return the schema less these fields; absent names are no error."""
        return Struct(tuple(f for f in self.fields if f.name not in names))

    def nullable(self) -> "Struct":
        """Return the schema with every top-level field nullable, as readers must expect."""
        return Struct(tuple(replace(f, nullable=True) for f in self.fields))


DataType: TypeAlias = Primitive | Decimal | Fixed | Time | Timestamp | List | Map | Struct
Schema: TypeAlias = Struct

BOOLEAN = Primitive(Kind.BOOLEAN)
INT = Primitive(Kind.INT)
LONG = Primitive(Kind.LONG)
FLOAT = Primitive(Kind.FLOAT)
DOUBLE = Primitive(Kind.DOUBLE)
STRING = Primitive(Kind.STRING)
BINARY = Primitive(Kind.BINARY)
DATE = Primitive(Kind.DATE)
TIMESTAMP = Timestamp(Unit.MICROS)

#: Hudi's own columns, in the order in which they lead every base file.
COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
OPERATION = "_hoodie_operation"
IS_DELETED = "_hoodie_is_deleted"
META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
META_FIELDS = tuple(Field(name, STRING) for name in META_COLUMNS)
