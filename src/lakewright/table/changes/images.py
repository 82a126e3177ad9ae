"""Change rows: operations with images of the record before and after."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.schema import to_arrow_schema, to_arrow_type
from lakewright.model.schema import STRING, Field, Struct
from lakewright.table.merge.winners import Flags, Places

INSERT, UPDATE, DELETE = "i", "u", "d"


def change_schema(table: Struct) -> Struct:
    """Return the columns of a change stream over a table with these columns."""
    image = table.nullable()
    return Struct(
        (
            Field("op", STRING),
            Field("ts_ms", STRING),
            Field("before", image),
            Field("after", image),
        )
    )


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Rows of a table with the keys that name them; ``rows`` holds the table's columns alone.

    ``versions`` tell versions of a record apart: a row that was not written anew keeps its own.
    None where rows do not carry them.
    """

    keys: pa.Array
    rows: pa.Table
    versions: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, places: Places) -> "Images":
        """Return the images at these places."""
        picked = pa.array(places)
        versions = None if self.versions is None else self.versions.take(picked)
        return Images(self.keys.take(picked), self.rows.take(picked), versions)

    def where(self, flags: Flags) -> "Images":
        """Return the images that are marked."""
        return self if bool(flags.all()) else self.take(np.flatnonzero(flags))


def gather(parts: Iterable[Images], table: Struct) -> Images:
    """Put images below each other, in memory."""
    found = list(parts)
    if not found:
        none = pa.array([], pa.string())
        return Images(none, to_arrow_schema(table.nullable()).empty_table(), none)
    versions = [part.versions for part in found if part.versions is not None]
    return Images(
        pa.chunked_array([part.keys for part in found]).combine_chunks(),
        pa.concat_tables([part.rows for part in found]),
        pa.chunked_array(versions).combine_chunks() if len(versions) == len(found) else None,
    )


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Makes change rows of one instant."""

    table: Struct
    instant: str

    def inserts(self, rows: pa.Table) -> pa.RecordBatch:
        """Return one insert per row."""
        return self._made(INSERT, None, rows, rows.num_rows)

    def deletes(self, rows: pa.Table) -> pa.RecordBatch:
        """Return one delete per row."""
        return self._made(DELETE, rows, None, rows.num_rows)

    def updates(self, before: pa.Table, after: pa.Table) -> pa.RecordBatch:
        """Return one update per pair of rows."""
        return self._made(UPDATE, before, after, after.num_rows)

    def _made(
        self, op: str, before: pa.Table | None, after: pa.Table | None, count: int
    ) -> pa.RecordBatch:
        kind = to_arrow_type(self.table.nullable())
        return pa.RecordBatch.from_arrays(
            [
                pa.repeat(op, count),
                pa.repeat(self.instant, count),
                image(before, kind, count),
                image(after, kind, count),
            ],
            names=["op", "ts_ms", "before", "after"],
        )

    def compared(self, before: Images, after: Images) -> Iterator[pa.RecordBatch]:
        """Return the changes that lead from ``before`` to ``after``.

        Rows whose version is in both did not change, unless their columns differ: a late record
        can fill in columns of a row and leave it its version. Of the others, equal keys make
        updates, in the order of the rows where a key is held more than once; without versions,
        only if their columns differ.
        """
        before, after = _without_common(before, after)
        old_keys, new_keys = told_apart(before.keys), told_apart(after.keys)
        found = pc.index_in(new_keys, value_set=old_keys)
        known = np.asarray(found.is_valid(), dtype=bool)
        old = found.drop_null().to_numpy().astype(np.int64)
        gone = np.ones(len(before), dtype=bool)
        gone[old] = False
        yield self.deletes(before.where(gone).rows)
        pairs_before, pairs_after = before.take(old), after.take(np.flatnonzero(known))
        if after.versions is None:
            changed = differing(pairs_before.rows, pairs_after.rows)
            pairs_before, pairs_after = pairs_before.where(changed), pairs_after.where(changed)
        yield self.updates(pairs_before.rows, pairs_after.rows)
        yield self.inserts(after.where(~known).rows)


def _without_common(before: Images, after: Images) -> tuple[Images, Images]:
    if before.versions is None or after.versions is None:
        return before, after
    found = pc.index_in(told_apart(after.versions), value_set=told_apart(before.versions))
    new = np.flatnonzero(np.asarray(found.is_valid(), dtype=bool))
    old = found.drop_null().to_numpy().astype(np.int64)
    same = ~differing(before.take(old).rows, after.take(new).rows)
    gone, come = np.ones(len(before), dtype=bool), np.ones(len(after), dtype=bool)
    gone[old[same]] = False
    come[new[same]] = False
    return before.where(gone), after.where(come)


def told_apart(keys: pa.Array) -> pa.Array:
    """Return keys that differ from row to row: those that come again are numbered."""
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    if len(np.unique(codes)) == len(codes):
        return keys
    by_key = np.argsort(codes, kind="stable")
    fresh = np.concatenate([[True], np.diff(codes[by_key]) != 0])
    starts = np.maximum.accumulate(np.where(fresh, np.arange(len(codes)), 0))
    turn = np.empty(len(codes), dtype=np.int64)
    turn[by_key] = np.arange(len(codes)) - starts
    numbered = pc.binary_join_element_wise(keys, pa.array(turn).cast(pa.string()), "\x00")
    return pc.if_else(pa.array(turn > 0), numbered, keys)


def image(rows: pa.Table | None, kind: pa.DataType, count: int) -> pa.StructArray:
    """Return rows of a table as one struct array; nulls where there are no rows."""
    if rows is None:
        return pa.nulls(count, kind)
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def differing(left: pa.Table, right: pa.Table) -> Flags:
    """Say row by row whether two tables of equal schema differ; two nulls are equal."""
    differ = np.zeros(left.num_rows, dtype=bool)
    for a, b in zip(left.columns, right.columns, strict=True):
        if pa.types.is_nested(a.type):
            pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
            differ |= np.fromiter((x != y for x, y in pairs), dtype=bool, count=len(differ))
            continue
        equal = pc.fill_null(pc.equal(a, b), False)
        both_null = pc.and_(a.is_null(), b.is_null())
        differ |= ~np.asarray(pc.or_(equal, both_null), dtype=bool)
    return differ
