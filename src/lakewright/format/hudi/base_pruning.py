"""What a base file's footer rules out: value ranges of row groups, and keys that it lacks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.parquet_statistics import ColumnStatistics, decode_bound
from lakewright.format.hudi.base_footer import BaseFooter
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.model.errors import Invalid
from lakewright.model.expression.prune import ColumnRange

Path = tuple[str, ...]


def group_ranges(
    footer: BaseFooter, group: int, paths: Collection[Path], target: pa.Schema | None = None
) -> dict[Path, ColumnRange]:
    """Return the ranges of those named columns that one row group has statistics for.

    With ``target`` (the table's schema now) the bounds are in its types, so that they compare
    with what the rows will show; bounds that do not carry over are unknown.
    """
    columns = [_Column.of(footer, path, target) for path in paths if path in footer.leaves]
    found = footer.statistics(frozenset(column.number for column in columns))[group]
    nans = 0 if footer.bounds_rule_out_nan else None
    rows = int(footer.metadata.row_group(group).num_rows)
    return {c.path: _range(found.get(c.number), c, rows, nans) for c in columns}


def file_ranges(
    footer: BaseFooter, paths: Collection[Path], target: pa.Schema | None = None
) -> dict[Path, ColumnRange]:
    """Return the ranges of the named columns over the whole file."""
    groups = [
        group_ranges(footer, group, paths, target)
        for group in range(footer.metadata.num_row_groups)
    ]
    if not groups:
        return {path: ColumnRange(nulls=0, rows=0) for path in paths}
    return {path: _joined([ranges[path] for ranges in groups]) for path in groups[0]}


def may_contain_key(footer: BaseFooter, keys: Sequence[str]) -> bool:
    """Say whether the file may hold any of the record keys; False is certain.

    A file without key range and bloom filter may hold anything. An unreadable filter raises.
    """
    candidates = list(keys)
    if footer.key_range is not None:
        low, high = (java_order(key) for key in footer.key_range)
        candidates = [key for key in candidates if low <= java_order(key) <= high]
    if not candidates or footer.bloom is None:
        return bool(candidates)
    kind, text = footer.bloom
    bloom = parse_bloom(kind, text, footer.path, footer.offset)
    return bool(bloom.contains(pa.array(candidates, pa.string())).any())


def java_order(text: str) -> bytes:
    """Return a value that sorts as Java sorts strings: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _type_at(schema: pa.Schema, path: Path) -> pa.DataType | None:
    fields: Any = schema
    kind: pa.DataType | None = None
    for name in path:
        index = fields.get_field_index(name) if kind is None or pa.types.is_struct(kind) else -1
        if index < 0:
            return None
        fields = kind = fields.field(index).type
    return kind


@dataclass(frozen=True, slots=True)
class _Column:
    """A column in the file and in the table: its number, type and stored form, and its type now."""

    path: Path
    number: int
    kind: pa.DataType
    physical: str
    wanted: pa.DataType | None

    @classmethod
    def of(cls, footer: BaseFooter, path: Path, target: pa.Schema | None) -> "_Column":
        number = footer.leaves[path]
        kind = _type_at(footer.file_schema, path)
        wanted = kind if target is None else _type_at(target, path)
        return cls(path, number, kind, footer.metadata.schema.column(number).physical_type, wanted)


def _range(
    found: ColumnStatistics | None, column: _Column, rows: int, nans: int | None
) -> ColumnRange:
    if found is None or found.low is None or found.high is None:
        return ColumnRange(nulls=found.nulls if found else None, rows=rows)
    try:
        low = decode_bound(found.low, column.kind, column.physical, upper=False)
        high = decode_bound(found.high, column.kind, column.physical, upper=True)
        if column.kind != column.wanted:
            low, high = _carried(low, high, column.kind, column.wanted)
    except (ValueError, OverflowError, Invalid, pa.ArrowException):
        # A time beyond Python's calendar, a text cut within a letter, a type that changed.
        return ColumnRange(nulls=found.nulls, rows=rows)
    return ColumnRange(low, high, found.nulls, rows, nans)


def _carried(
    low: object, high: object, kind: pa.DataType, wanted: pa.DataType | None
) -> tuple[object, object]:
    """Return bounds in the type that the column has now; only where order is kept."""
    if wanted is None:
        return None, None
    times = pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted)
    if not times and not (_is_number(kind) and _is_number(wanted)):
        return None, None
    bounds = pa.record_batch([pa.array([low, high], kind)], ["bound"])
    made = conform(bounds, pa.schema([pa.field("bound", wanted)])).column(0).to_pylist()
    return made[0], made[1]


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _joined(ranges: Sequence[ColumnRange]) -> ColumnRange:
    # A group of nulls alone has no bounds, and needs none.
    valued = [r for r in ranges if not (r.rows is not None and r.nulls == r.rows)]
    lows = [r.low for r in valued]
    highs = [r.high for r in valued]
    nulls = [r.nulls for r in ranges]
    rows = [r.rows for r in ranges]
    nans = [r.nans for r in valued]
    return ColumnRange(
        min(lows) if lows and None not in lows else None,
        max(highs) if highs and None not in highs else None,
        _total(nulls),
        _total(rows),
        _total(nans),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
