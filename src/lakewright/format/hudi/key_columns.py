"""Record keys and partition paths of many rows at once.

The texts are exactly those of ``key_text`` and ``partition_paths``, which work value by value.
Keys of the common types are made by Arrow and numpy over whole columns; floats, and the columns
that make partition paths, cost one step per distinct value.

Timestamps in keys are written as their count since the epoch, as upserts of real Hudi write
them. Its bulk inserts write another text for the same row, so that tables with such keys are not
created here.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.nested import Rows, field_values
from lakewright.format.arrow.schema import to_arrow_type
from lakewright.format.arrow.texts import texts_of
from lakewright.format.hudi.config import KeyGenerator, PartitionField, TableConfig
from lakewright.format.hudi.key_clashes import check_clashes
from lakewright.format.hudi.key_text import EMPTY_PART, NULL_PART, value_text
from lakewright.format.hudi.partition_paths import partition_segment
from lakewright.format.hudi.time_partitions import epoch_unit, same_text_for
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.options import declare, parse_bool
from lakewright.model.schema import (
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    Fixed,
    Kind,
    List,
    Map,
    Primitive,
    Struct,
    Time,
    Timestamp,
    Unit,
)

PLAIN_SINGLE_KEY = declare(
    "hoodie.write.complex.keygen.new.encoding",
    parse_bool,
    False,
    doc="Whether a table of version 6 with one key column and several partition columns writes "
    "keys as '42', as Hudi 0.14.1 to 1.0.2 did, or as 'id:42'. Stored with the table. Version 9 "
    "always writes 'id:42'.",
    since="0.1",
    allowed="true or false",
)

#: Days between which a date has four digits for its year.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_SAMPLE = 5
_UNITS = {Unit.MILLIS: dt.timedelta(milliseconds=1), Unit.MICROS: dt.timedelta(microseconds=1)}
#: From 1990 on, times in any zone are cut as in UTC.
_SETTLED = dt.datetime(1990, 1, 1) - dt.datetime(1970, 1, 1)
_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), "<u2")
_NO_KEYS = frozenset({KeyGenerator.METADATA, KeyGenerator.USER_PROVIDED})
_NAMED = frozenset({KeyGenerator.COMPLEX, KeyGenerator.GLOBAL_DELETE})


@dataclass(frozen=True, slots=True)
class KeyMaker:
    """Makes the record keys and partition paths of a table's rows.

    ``named`` says that keys have the form ``a:1,b:2``; without it the one key column is the key.
    ``generated`` says that the table has no key columns: keys are made when rows are written.
    """

    config: TableConfig
    key_types: tuple[DataType, ...]
    partition_types: tuple[DataType, ...]
    named: bool

    @staticmethod
    def of(config: TableConfig, schema: Struct) -> "KeyMaker":
        """Take the columns of a table that is written with ``schema``."""
        if config.key_generator in _NO_KEYS:
            raise Unsupported(
                f"the keys of the table are made by its own generator ({config.key_generator}).",
                next_step="Write it with the software that has the generator.",
            )
        fields = config.partition_fields
        return KeyMaker(
            config,
            tuple(_key_type(name, schema, "key") for name in config.record_key),
            tuple(_key_type(field.name, schema, "partition") for field in fields),
            _is_named(config),
        )

    @property
    def generated(self) -> bool:
        """Whether keys are made at write time, since the table has no key columns."""
        return not self.config.record_key

    def keys(self, rows: Rows) -> pa.Array:
        """Return the record key of each row.

        ``Invalid`` with a sample where a row has none, or two different ones have the same.
        """
        names = self.config.record_key
        if not names:
            raise Invalid(
                "the table has no key columns: its keys are generated.",
                next_step="Rows can be inserted, and found again by _hoodie_record_key.",
            )
        columns = [
            _texts(_column(rows, name, kind), kind)
            for name, kind in zip(names, self.key_types, strict=True)
        ]
        absent = [_is_absent(texts) for texts in columns]
        empty = absent[0]
        for more in absent[1:]:
            empty = pc.and_(empty, more)
        if pc.any(empty).as_py():
            raise self._without_key(rows, empty)
        if not self.named:
            return columns[0]
        parts: list[object] = []
        for name, texts, missing in zip(names, columns, absent, strict=True):
            parts.append(f"{',' if parts else ''}{name}:")
            parts.append(_written(texts, missing))
        keys = pc.binary_join_element_wise(*parts, "")
        if len(names) > 1 and STRING in self.key_types:
            check_clashes(names, columns, keys)
        return keys

    def _without_key(self, rows: Rows, empty: pa.Array) -> Invalid:
        places = np.flatnonzero(empty.to_numpy(zero_copy_only=False))
        sample = [_shown(rows, int(place)) for place in places[:_SAMPLE]]
        names = ", ".join(self.config.record_key)
        return Invalid(
            f"{len(places)} of {rows.num_rows} rows have no record key: {names} is null or empty. "
            f"The first: {'; '.join(map(str, sample))}.",
            next_step="Nothing was written. Give every row a key that is neither null nor empty.",
            count=len(places),
            sample=sample,
            columns=list(self.config.record_key),
        )

    def generated_keys(self, instant: str, task: int, start: int, count: int) -> pa.Array:
        """Return the keys of ``count`` rows of a task, from its row number ``start`` on."""
        numbers = pa.array(np.arange(start, start + count)).cast(pa.string())
        return pc.binary_join_element_wise(f"{instant}_{task}_", numbers, "")

    def completed(
        self, rows: Rows, keys: pa.Array, paths: pa.Array, made: pa.Array
    ) -> tuple[pa.Array, pa.Array]:
        """Return record keys and partition paths of rows some of which have neither yet.

        ``made`` are keys for those.
        """
        own = self.partitions(rows).cast(pa.string())
        return pc.coalesce(keys, made), pc.coalesce(paths.cast(pa.string()), own)

    def partitions(self, rows: Rows) -> pa.DictionaryArray:
        """Return the partition path of each row; a table without partitions has the one ``""``."""
        codes = np.zeros(rows.num_rows, np.int32)
        paths = [""]
        fields = self.config.partition_fields
        for place, (field, kind) in enumerate(zip(fields, self.partition_types, strict=True)):
            column = _column(rows, field.name, kind)
            more, segments = _segments(column, field, kind, self.config)
            if not place:
                codes, paths = more, segments
                continue
            pairs = codes.astype(np.int64) * len(segments) + more
            distinct, codes = _dense(pairs, len(paths) * len(segments))
            paths = [f"{paths[p // len(segments)]}/{segments[p % len(segments)]}" for p in distinct]
        if not rows.num_rows:
            paths = []
        return _merged(codes, paths)


def _is_named(config: TableConfig) -> bool:
    if len(config.record_key) != 1:
        return True
    if config.key_generator not in _NAMED:
        return False
    return config.version > 8 or not PLAIN_SINGLE_KEY.read(config.properties)


def _key_type(name: str, schema: Struct, role: str) -> DataType:
    kind = schema.find(name)
    if kind is None:
        raise Invalid(
            f"the {role} column {name!r} is not among the columns.",
            next_step=f"Known: {', '.join(schema.names)}.",
            column=name,
        )
    if isinstance(kind, Struct | List | Map | Time):
        raise Unsupported(
            f"the {role} column {name!r} is a {kind}, which has no text form.",
            next_step="Choose a column of another type, or make one of it.",
            column=name,
        )
    return kind


def _column(rows: Rows, name: str, kind: DataType) -> pa.Array:
    """Return a column as one array of exactly its type."""
    column = field_values(rows, name)
    if column is None:
        raise Invalid(
            f"the rows have no column {name!r}, which the table's keys or partitions are made of.",
            next_step=f"Add it; the rows have {', '.join(rows.schema.names) or 'no columns'}.",
            column=name,
        )
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    target = to_arrow_type(kind)
    if array.type == target:
        return array
    whole = pa.RecordBatch.from_arrays([array], [name])
    return conform(whole, pa.schema([pa.field(name, target)])).column(0)


def _texts(array: pa.Array, kind: DataType) -> pa.Array:
    """Return values in the text form of keys; null stays null."""
    match kind:
        case Primitive(kind=Kind.STRING):
            return array
        case Primitive(kind=Kind.FLOAT | Kind.DOUBLE):
            return _by_value(array, lambda value: value_text(value, kind))
        case Primitive(kind=Kind.BINARY) | Fixed():
            return _hexadecimal(array.cast(pa.binary()))
        case Primitive(kind=Kind.DATE):
            _check_days(array)
            return array.cast(pa.string())
        case Timestamp():
            return array.view(pa.int64()).cast(pa.string())
        case Primitive() | Decimal():
            return array.cast(pa.string())
        case _:
            raise AssertionError(kind)


def _check_days(array: pa.Array) -> None:
    limits = pc.min_max(array.view(pa.int32())).as_py()
    if limits["min"] is not None and (limits["min"] < _FIRST_DAY or limits["max"] > _LAST_DAY):
        raise Invalid(
            "a date in a key lies outside the years 1 to 9999.",
            next_step="Give dates between those years.",
        )


def _by_value(array: pa.Array, convert: Callable[[object], str]) -> pa.Array:
    # Bits tell apart what compares as equal (0.0 and -0.0) and join what does not (NaN).
    bits = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    coded = bits.dictionary_encode()
    values = coded.dictionary.view(array.type).to_pylist()
    return pa.array([convert(value) for value in values], pa.string()).take(coded.indices)


def _hexadecimal(array: pa.Array) -> pa.Array:
    filled = pc.fill_null(array, b"")
    texts = texts_of(filled)
    if len(texts):
        begin, end = int(texts.start[0]), int(texts.start[-1] + texts.size[-1])
        data = _HEX[texts.data[begin:end]]
        marks = np.zeros(len(texts) + 1, np.int32)
        np.cumsum(texts.size * 2, out=marks[1:])
        buffers = [None, pa.py_buffer(marks), pa.py_buffer(data)]
        made = pa.StringArray.from_buffers(len(texts), buffers[1], buffers[2])
    else:
        made = pa.array([], pa.string())
    return pc.if_else(array.is_valid(), made, None) if array.null_count else made


def _is_absent(texts: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(pc.binary_length(texts), 0), True)


def _written(texts: pa.Array, absent: pa.Array) -> pa.Array:
    if not pc.any(absent).as_py():
        return texts
    return pc.fill_null(pc.if_else(pc.equal(texts, ""), EMPTY_PART, texts), NULL_PART)


def _shown(rows: Rows, place: int) -> Mapping[str, object]:
    """Return a row for a message, its long values cut."""
    row = rows.slice(place, 1).to_pylist()[0]
    return {name: _cut(value) for name, value in list(row.items())[:8]}


def _cut(value: object) -> object:
    text = repr(value)
    return value if len(text) <= 80 else f"{text[:77]}..."


def _segments(
    array: pa.Array, field: PartitionField, kind: DataType, config: TableConfig
) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return for each row the number of its segment, and the segments."""
    if field.kind == "TIMESTAMP":
        array = _coarse(array, kind, config.properties)
    wide = pa.types.is_floating(array.type)
    bits = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()) if wide else array
    coded = bits.dictionary_encode(null_encoding="encode")
    distinct = coded.dictionary.view(array.type) if wide else coded.dictionary
    if isinstance(kind, Timestamp) and field.kind != "TIMESTAMP":
        values: Sequence[object] = distinct.view(pa.int64()).to_pylist()
        segments = [partition_segment(field, value, config, None) for value in values]
    else:
        segments = [partition_segment(field, v, config, kind) for v in distinct.to_pylist()]
    return coded.indices.to_numpy(zero_copy_only=False), segments


def _coarse(array: pa.Array, kind: DataType, properties: Mapping[str, str]) -> pa.Array:
    """Return times cut to spans that share a text, so that few of them are distinct."""
    span = same_text_for(properties)
    unit = _UNITS[kind.unit] if isinstance(kind, Timestamp) else epoch_unit(properties)
    counts = isinstance(kind, Timestamp) or kind in (INT, LONG)
    if span is None or unit is None or not counts or span < unit:
        return array
    numbers = array.view(pa.int64()) if isinstance(kind, Timestamp) else array.cast(pa.int64())
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    late = values >= (_SETTLED // unit)
    cut = np.where(late, values - values % (span // unit), values)
    made = pa.array(cut, mask=array.is_null().to_numpy(zero_copy_only=False))
    return made.view(array.type) if isinstance(kind, Timestamp) else made.cast(array.type)


def _dense(
    pairs: npt.NDArray[np.int64], limit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the distinct numbers, and for each row the place of its own."""
    if limit > max(1 << 16, 4 * len(pairs)):
        distinct, codes = np.unique(pairs, return_inverse=True)
        return distinct, codes.astype(np.int32)
    # Few possible numbers: marking them is many times quicker than sorting the rows.
    seen = np.zeros(limit, np.bool_)
    seen[pairs] = True
    distinct = np.flatnonzero(seen)
    places = np.zeros(limit, np.int32)
    places[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, places[pairs]


def _merged(codes: npt.NDArray[np.int32], paths: list[str]) -> pa.DictionaryArray:
    """Return the paths by row; values that share a path (null and empty) share a code."""
    known: dict[str, int] = {}
    place = np.array([known.setdefault(path, len(known)) for path in paths], np.int32)
    if len(known) != len(paths):
        codes = place[codes]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32()), pa.array(list(known), pa.string())
    )
