"""Merging a source into rows of a table, in this process.

The source is held in memory; the rows of the table stream past it in pieces that are at least as
long, so that hashing the source again for each piece costs no more than reading the table.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.rowlevel.arrow import Edits, carry_out, evaluate, holds, split
from lakewright.actions.rowlevel.clauses import Act
from lakewright.actions.rowlevel.names import source_name, target_name
from lakewright.actions.rowlevel.plan import MergePlan, Step
from lakewright.actions.rowlevel.update import SAMPLE, as_target
from lakewright.model.errors import Invalid
from lakewright.model.expression.bound import BoundExpression

#: Rows of the table that meet the source at once, at least; and bytes, at most.
PIECE_ROWS = 1 << 16
PIECE_BYTES = 256 << 20
#: Pairs of rows that a condition without any equality is tried on at once.
CROSSED = 1 << 21

_T, _S = "t", "s"


def merge_rows(
    plan: MergePlan, batches: Iterable[pa.RecordBatch], source: pa.Table
) -> Iterator[Edits]:
    """Stream what becomes of the rows of the table, then what the source adds.

    ``batches`` hold the table's columns and those of the rules' identity. Several source rows that
    change one row of the table are refused with a sample: which of them should win is not said.
    """
    merge = _Merge(plan, source)
    for piece in _pieces(batches, merge.piece_rows):
        yield from merge.meet(as_target(piece))
    yield from merge.rest()


def _pieces(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= PIECE_BYTES:
            yield from _cut(held, rows)
            held, count, size = [], 0, 0
    if count:
        yield from _cut(held, rows)


def _cut(held: Sequence[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    whole = _one_batch(pa.Table.from_batches(held))
    for start in range(0, whole.num_rows, rows):
        yield whole.slice(start, rows)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    if not table.num_columns:
        return pa.RecordBatch.from_arrays([], names=[])
    arrays = [chunked.combine_chunks() for chunked in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


class _Merge:
    def __init__(self, plan: MergePlan, source: pa.Table) -> None:
        names = [source_name(name) for name in source.column_names]
        self._plan = plan
        self._source = _one_batch(source.rename_columns(names))
        self._seen = np.zeros(self._source.num_rows, dtype=bool)
        self._keys = self._key_table([right for _, right in plan.pairs], self._source, _S)
        several = max(self._source.num_rows, 1)
        self.piece_rows = (
            max(PIECE_ROWS, several) if plan.pairs else max(min(CROSSED // several, PIECE_ROWS), 1)
        )

    def meet(self, target: pa.RecordBatch) -> Iterator[Edits]:
        """Match a piece of the table with the source."""
        lefts, rights = self._pairs(target)
        self._seen[rights] = True
        joined = self._joined(target, lefts, rights)
        claims = [(step, claimed) for step, claimed in split(self._plan.matched, joined)]
        self._refuse_twice(target, lefts, claims)
        for step, claimed in claims:
            yield from self._act(step, joined.filter(claimed))
        if not self._plan.moot:
            alone = np.ones(target.num_rows, dtype=bool)
            alone[lefts] = False
            yield from self._each(self._plan.by_source, target.filter(pa.array(alone)))

    def rest(self) -> Iterator[Edits]:
        """Go on with the source rows that met nothing."""
        alone = self._source.filter(pa.array(~self._seen))
        yield from self._each(self._plan.not_matched, alone)

    def _each(self, steps: Sequence[Step], rows: pa.RecordBatch) -> Iterator[Edits]:
        for step, claimed in split(steps, rows):
            yield from self._act(step, rows.filter(claimed))

    def _act(self, step: Step, rows: pa.RecordBatch) -> Iterator[Edits]:
        if rows.num_rows and step.act is not Act.IGNORE:
            yield carry_out(step, rows, self._plan.rules)

    def _pairs(self, target: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of rows that match, in the piece and in the source."""
        own = self._key_table([left for left, _ in self._plan.pairs], target, _T)
        keys = [f"k{i}" for i in range(max(len(self._plan.pairs), 1))]
        met = own.join(self._keys, keys, join_type="inner", use_threads=False)
        lefts, rights = met.column(_T).to_numpy(), met.column(_S).to_numpy()
        residual = self._plan.residual
        if residual is None or not len(lefts):
            return lefts, rights
        kept = holds(residual, self._joined(target, lefts, rights)).to_numpy(zero_copy_only=False)
        return lefts[kept], rights[kept]

    def _key_table(
        self, keys: Sequence[BoundExpression], rows: pa.RecordBatch, place: str
    ) -> pa.Table:
        arrays = [_comparable(evaluate(key, rows)) for key in keys]
        columns = {f"k{i}": array for i, array in enumerate(arrays)}
        if not columns:
            columns["k0"] = pa.repeat(pa.scalar(0), rows.num_rows)
        columns[place] = pa.array(np.arange(rows.num_rows))
        return pa.table(columns)

    def _joined(
        self, target: pa.RecordBatch, lefts: np.ndarray, rights: np.ndarray
    ) -> pa.RecordBatch:
        left, right = target.take(pa.array(lefts)), self._source.take(pa.array(rights))
        return pa.RecordBatch.from_arrays(
            [*left.columns, *right.columns], names=[*left.schema.names, *right.schema.names]
        )

    def _refuse_twice(
        self,
        target: pa.RecordBatch,
        lefts: np.ndarray,
        claims: Sequence[tuple[Step, pa.Array]],
    ) -> None:
        acting = [(s, c.to_numpy(zero_copy_only=False)) for s, c in claims if _acts(s)]
        if not any(step.act is Act.UPDATE for step, _ in acting):
            return  # a row that is deleted twice is gone
        touched = np.concatenate([lefts[claimed] for _, claimed in acting])
        places, counts = np.unique(touched, return_counts=True)
        twice = places[counts > 1]
        if len(twice):
            rules = self._plan.rules
            names = [target_name(name) for name in rules.key or rules.identity]
            shown = target.select(names).take(pa.array(twice[:SAMPLE])).to_pylist()
            raise refuse_twice(len(twice), [tuple(row.values()) for row in shown])


def _acts(step: Step) -> bool:
    return step.act is not Act.IGNORE


def refuse_twice(count: int, sample: Sequence[object]) -> Invalid:
    """Return the error for rows that more than one source row would change."""
    return Invalid(
        f"{count} row{'s' if count > 1 else ''} of the table match more than one source row, "
        f"such as key {', '.join(map(str, sample))}.",
        next_step="Nothing was written. Leave one source row per row of the table, or narrow "
        "the ON condition.",
        count=count,
        sample=list(sample),
    )


def _comparable(array: pa.Array) -> pa.Array:
    """Return floating-point keys as whole numbers: NaN equals NaN there, and 0.0 equals -0.0."""
    if not pa.types.is_floating(array.type):
        return array
    wide = array.cast(pa.float64())
    nan = pa.scalar(float("nan"))
    one = pc.if_else(pc.is_nan(wide), nan, pc.if_else(pc.equal(wide, 0.0), 0.0, wide))
    bits = np.asarray(one.fill_null(0.0)).view(np.int64)
    return pa.array(bits, mask=np.asarray(one.is_null()))
