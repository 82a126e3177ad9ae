"""Bound expressions as Arrow filters.

``to_arrow`` gives an expression for scans: it keeps every row that matches and perhaps more.
``residual_filter`` gives the exact filter for batches in memory. Where Arrow's kernels differ
from SQL (NaN, NULL in lists), the translation makes up for it; what they cannot do exactly is
refused by name while planning.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.expression_values import (
    Datum,
    compile_value,
    kernel_type,
)
from lakewright.model.errors import Unsupported
from lakewright.model.expression.analyse import conjunction, negated
from lakewright.model.expression.bound import (
    BoundAnd,
    BoundExpression,
    BoundLiteral,
    BoundNot,
    BoundOr,
    BoundReference,
)

__all__ = ["ArrowFilter", "residual_filter", "to_arrow"]


@dataclass(frozen=True, slots=True)
class ArrowFilter:
    """A filter for scans; ``exact`` False means that it keeps more rows than match.

    ``expression`` is None when nothing can be said, and every row is kept.
    """

    expression: Any
    exact: bool


def to_arrow(bound: BoundExpression) -> ArrowFilter:
    """Translate as much of a condition as a scan can use; never less than all matching rows."""
    expression = _lazy(bound)
    if expression is not None:
        return ArrowFilter(expression, exact=True)
    weaker = _translatable(bound)
    return ArrowFilter(None if weaker is None else _lazy(weaker), exact=False)


def residual_filter(
    bound: BoundExpression,
) -> Callable[[pa.RecordBatch], pa.RecordBatch] | None:
    """Return the exact filter for batches that hold the named columns; None keeps every row.

    ``Unsupported`` names what Arrow's kernels cannot compute as SQL does.
    """
    if isinstance(bound, BoundLiteral) and bound.value is True:
        return None
    evaluate = compile_value(bound, lazy=False)

    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        mask = evaluate(lambda reference: column(batch, reference))
        if isinstance(mask, pa.Scalar):
            return batch if mask.as_py() is True else batch.slice(0, 0)
        return batch.filter(mask)

    return keep


def column(batch: pa.RecordBatch, reference: BoundReference) -> Datum:
    """Return a column, or a member of a struct column, in the type that the kernels expect."""
    first, *members = reference.path
    found = batch.column(first)
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    if members:
        found = pc.struct_field(found, members)
    wanted = kernel_type(reference.type)
    # Nanoseconds, which no table holds but a frame may, are cut to microseconds.
    return found if found.type == wanted else found.cast(wanted, safe=False)


def _field(reference: BoundReference) -> Datum:
    return pc.field(*reference.path)


def _lazy(bound: BoundExpression) -> Any | None:  # noqa: ANN401 - pyarrow is untyped
    try:
        evaluate = compile_value(bound, lazy=True)
    except Unsupported:
        return None
    return evaluate(_field)


def _translatable(bound: BoundExpression) -> BoundExpression | None:
    """Return a consequence of the condition that translates whole, if there is one."""
    if _lazy(bound) is not None:
        return bound
    match bound:
        case BoundAnd(left, right):
            kept = [_translatable(left), _translatable(right)]
            return conjunction([part for part in kept if part is not None])
        case BoundOr(left, right):
            one, other = _translatable(left), _translatable(right)
            return None if one is None or other is None else BoundOr(one, other)
        case BoundNot(child):
            turned = negated(child)
            return None if turned == bound else _translatable(turned)
        case _:
            return None
