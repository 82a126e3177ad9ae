"""Change rows: operations with images of the record before and after."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.schema import to_arrow_type
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

    ``fresh`` marks rows that the instant in question wrote; None where rows do not tell.
    """

    keys: pa.Array
    rows: pa.Table
    fresh: Flags | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, places: Places) -> "Images":
        """Return the images at these places."""
        picked = pa.array(places)
        fresh = None if self.fresh is None else self.fresh[places]
        return Images(self.keys.take(picked), self.rows.take(picked), fresh)


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Makes change rows of one instant."""

    table: Struct
    instant: str

    @property
    def image_type(self) -> pa.DataType:
        """The Arrow type of an image."""
        return to_arrow_type(self.table.nullable())

    def inserts(self, rows: pa.Table) -> pa.RecordBatch:
        """Return one insert per row of a table."""
        return self._made(INSERT, None, rows, rows.num_rows)

    def deletes(self, rows: pa.Table) -> pa.RecordBatch:
        """Return one delete per row of a table."""
        return self._made(DELETE, rows, None, rows.num_rows)

    def updates(self, before: pa.Table, after: pa.Table) -> pa.RecordBatch:
        """Return one update per pair of rows."""
        return self._made(UPDATE, before, after, after.num_rows)

    def _made(
        self, op: str, before: pa.Table | None, after: pa.Table | None, count: int
    ) -> pa.RecordBatch:
        kind = self.image_type
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
        """Return the changes that lead from ``before`` to ``after``, keys being unique in each.

        A record in both is an update where the instant wrote it, or, where rows do not tell who
        wrote them, where its columns differ.
        """
        found = pc.index_in(after.keys, value_set=before.keys)
        known = np.asarray(found.is_valid(), dtype=bool)
        old = found.drop_null().to_numpy().astype(np.int64)
        new = np.flatnonzero(known)
        gone = np.ones(len(before), dtype=bool)
        gone[old] = False
        yield self.deletes(before.take(np.flatnonzero(gone)).rows)
        pairs_before, pairs_after = before.take(old), after.take(new)
        changed = (
            differing(pairs_before.rows, pairs_after.rows)
            if pairs_after.fresh is None
            else pairs_after.fresh
        )
        places = np.flatnonzero(changed)
        yield self.updates(pairs_before.take(places).rows, pairs_after.take(places).rows)
        yield self.inserts(after.take(np.flatnonzero(~known)).rows)


def image(rows: pa.Table | None, kind: pa.DataType, count: int) -> pa.StructArray:
    """Return rows of a table as one struct array; nulls where there are no rows."""
    if rows is None:
        return pa.nulls(count, kind)
    columns = [column.combine_chunks() for column in rows.columns]
    if not columns:
        return pa.array([{}] * count, kind)
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
