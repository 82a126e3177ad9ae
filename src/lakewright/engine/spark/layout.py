"""Deciding which files Spark reads by itself, and which slices its Python workers merge.

Spark reads a base file natively where the result is exactly what the slice reader would give:
the columns have the types of the table (or integers that widen), nothing inside a column
changed, and every partition value comes from the folder as Spark itself reads it, or is in the
file as the folder says. All other slices are read by Python workers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakewright.actions.tasks.read import ReadSpec, ReadTask, Task
from lakewright.engine.spark.paths import can_be_given
from lakewright.engine.spark.schema import as_nullable
from lakewright.engine.spark.shapes import Shape, file_shapes
from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.model.expression.analyse import references
from lakewright.model.files import PartitionDescriptor, ReadingMode
from lakewright.model.schema import (
    COMMIT_TIME,
    DOUBLE,
    INT,
    LONG,
    META_FIELDS,
    STRING,
    DataType,
    Decimal,
    Field,
    Fixed,
    Kind,
    List,
    Map,
    Primitive,
    Struct,
    Time,
)

#: Types whose text in a folder name Spark and the slice reader understand alike.
_PATH_KINDS = frozenset({Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.STRING, Kind.DATE})
#: The column in which Spark's parquet scan counts the rows of a file, whoever asks for it.
_ROW_INDEX = "_tmp_metadata_row_index"
#: How the columns begin that scans of ours put beside those of the table.
_BESIDE = "_lakewright_"
#: Changes of type in which Spark's cast gives what the slice reader gives.
_WIDENINGS = frozenset({(INT, LONG), (INT, DOUBLE), (INT, STRING), (LONG, STRING)})


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """Slices whose base files Spark reads in one scan.

    ``read_as`` holds the columns with the types that the files have; ``by_path`` says that
    partition columns come from folder names.
    """

    read_as: Struct
    by_path: bool
    tasks: tuple[ReadTask, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a scan is spread: files read natively, base files to be overlaid with logs, the rest.

    ``columns`` are those of the result and of the filter.
    """

    columns: Struct
    native: tuple[NativeFiles, ...]
    overlaid: tuple[NativeFiles, ...]
    merged: tuple[Task, ...]


def lay_out(spec: ReadSpec, tasks: Sequence[Task], *, overlay: bool) -> Layout:
    """Lay out a scan; ``overlay`` sends slices with logs to native scans as far as possible.

    Beyond the plan, only some footers of base files are read.
    """
    if spec.mode is ReadingMode.CDC or names_taken(spec):
        return Layout(spec.schema, (), (), tuple(tasks))
    columns = needed_columns(spec)
    merged: list[Task] = []
    plain: list[ReadTask] = []
    logged: list[ReadTask] = []
    for task in tasks:
        if not isinstance(task, ReadTask) or task.slice.base is None or task.whole:
            merged.append(task)
        elif not task.slice.logs or spec.mode is ReadingMode.SNAPSHOT_READ_OPTIMIZED:
            plain.append(task)
        elif overlay:
            logged.append(task)
        else:
            merged.append(task)
    shapes = file_shapes(spec, [*plain, *logged])
    places = _Places(spec)
    native, left = _grouped(plain, columns, shapes, places)
    overlaid, left_logged = _grouped(logged, columns, shapes, places)
    return Layout(columns, native, overlaid, (*merged, *left, *left_logged))


def names_taken(spec: ReadSpec) -> bool:
    """Say whether the table has a column of a name that means something else in a Spark plan.

    Spark's scan fills one such column with row numbers, and ours lie beside the table's own.
    Spark does not tell capitals from small letters.
    """
    names = (name.lower() for name in spec.table_schema.names)
    return any(name == _ROW_INDEX or name.startswith(_BESIDE) for name in names)


def needed_columns(spec: ReadSpec) -> Struct:
    """Return the columns of the result, then those that only the filter names."""
    names = list(spec.schema.names)
    if spec.filter is not None:
        names += sorted({path[0] for path in references(spec.filter)})
    if spec.changed_by is not None:
        names.append(COMMIT_TIME)
    own = Struct((*META_FIELDS, *spec.table_schema.fields))
    more = [own.field(name) for name in dict.fromkeys(names) if name not in spec.schema]
    return Struct((*spec.schema.fields, *more))


def _grouped(
    tasks: Iterable[ReadTask],
    columns: Struct,
    shapes: Mapping[str, Shape],
    places: "_Places",
) -> tuple[tuple[NativeFiles, ...], tuple[ReadTask, ...]]:
    groups: dict[tuple[Struct, bool], list[ReadTask]] = {}
    left: list[ReadTask] = []
    read_as: dict[tuple[str, bool], Struct | None] = {}
    for task in tasks:
        base = task.slice.base
        place = places.of(task.partition)
        if base is None or place is None or not places.can_give(base.path):
            left.append(task)
            continue
        known = (base.instant, place.by_path)
        if known not in read_as:
            read_as[known] = _read_as(columns, shapes[base.instant], places, place)
        found = read_as[known]
        if found is None:
            left.append(task)
        else:
            groups.setdefault((found, place.by_path), []).append(task)
    native = tuple(NativeFiles(s, by_path, tuple(t)) for (s, by_path), t in groups.items())
    return native, tuple(left)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the partition columns of a partition come from: the folder, or the file."""

    by_path: bool


class _Places:
    """Decides, partition by partition, how Spark gets the partition columns."""

    def __init__(self, spec: ReadSpec) -> None:
        self._fields = spec.config.partition_fields
        self._schema = spec.table_schema
        self.names = frozenset(f.name for f in self._fields)
        self._root = spec.open_storage().locate("").rstrip("/")
        self._usable = all(self._kind_of(f.name) in _PATH_KINDS for f in self._fields)

    def _kind_of(self, name: str) -> Kind | None:
        kind = self._schema.field(name).type if name in self._schema else None
        return kind.kind if isinstance(kind, Primitive) else None

    def can_give(self, path: str) -> bool:
        """Say whether Spark's scan can be told to read exactly this file."""
        return can_be_given(f"{self._root}/{path}")

    def of(self, partition: PartitionDescriptor) -> _Place | None:
        """Return None where neither folder nor file has the values that readers show."""
        values = partition.values
        if not values:
            return _Place(by_path=False)
        segments = partition.path.split("/")
        hive = len(segments) == len(self._fields) == len(values) and all(
            segment.startswith(f"{field.name}=")
            for segment, field in zip(segments, self._fields, strict=True)
        )
        if hive and self._usable:
            return _Place(by_path=True)
        plain = not any("=" in s or "%" in s or s == DEFAULT_PARTITION for s in segments)
        trusted = all(self._kind_of(name) in _PATH_KINDS for name in values)
        return _Place(by_path=False) if plain and trusted else None


def _read_as(columns: Struct, file: Shape, places: _Places, place: _Place) -> Struct | None:
    """Return the columns with the types to ask the file for; None where Spark cannot read it."""
    if file is None:
        return None
    fields = []
    for field in columns:
        if place.by_path and field.name in places.names:
            fields.append(Field(field.name, as_nullable(field.type)))
            continue
        if field.name not in file:
            if field.name in places.names:
                return None
            kind: DataType | None = field.type
        else:
            kind = _native_type(file.field(field.name).type, field.type)
        if kind is None:
            return None
        fields.append(Field(field.name, as_nullable(kind)))
    return Struct(tuple(fields))


def _native_type(held: DataType, wanted: DataType) -> DataType | None:
    if _holds_foreign(held):
        return None
    held, wanted = as_nullable(held), as_nullable(wanted)
    if held == wanted or (held, wanted) in _WIDENINGS:
        return held
    if isinstance(held, Decimal) and isinstance(wanted, Decimal):
        widened = held.scale == wanted.scale and held.precision <= wanted.precision
        return held if widened else None
    return None


def _holds_foreign(kind: DataType) -> bool:
    """Whether the type holds something that Spark's parquet reader has no type for."""
    match kind:
        case Time() | Fixed():
            return True
        case List():
            return _holds_foreign(kind.element)
        case Map():
            return _holds_foreign(kind.key) or _holds_foreign(kind.value)
        case Struct():
            return any(_holds_foreign(f.type) for f in kind)
        case _:
            return False


def path_columns(files: NativeFiles, spec: ReadSpec) -> Struct:
    """Return the columns to declare to Spark: those read, and every partition column.

    Spark derives the columns that folders name whether they are wanted or not; declaring them
    keeps it from guessing their types.
    """
    if not files.by_path:
        return files.read_as
    own = spec.table_schema
    more = [
        Field(f.name, own.field(f.name).type if f.name in own else STRING)
        for f in spec.config.partition_fields
        if f.name not in files.read_as
    ]
    return Struct((*files.read_as.fields, *more))
