"""Reading less of the table: what the source says about the rows that can match."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.rowlevel.arrow import evaluate
from lakewright.actions.rowlevel.names import own_names, source_name
from lakewright.actions.rowlevel.plan import MergePlan
from lakewright.model.expression.bound import BoundExpression, BoundReference
from lakewright.model.expression.nodes import And, Between, Expression, In, Literal, Reference
from lakewright.model.expression.types import Value, is_floating
from lakewright.model.expression.unbind import unbind

#: Values up to this many are listed one by one; of more only the range is told.
LISTED = 256


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a column of the source: all its values, or (``ends``) the outermost two."""

    values: tuple[Value, ...]
    ends: bool = False


def narrowing(plan: MergePlan, known: Mapping[int, Known]) -> Expression | None:
    """Return a condition on the table that every row with a match satisfies.

    ``known`` is by the number of the pair. None where all rows are wanted.
    """
    if not plan.moot:
        return None
    parts = [own_names(unbind(condition)) for condition in plan.target_only]
    for place, told in known.items():
        left = plan.pairs[place][0]
        if isinstance(left, BoundReference):
            parts.append(_condition(own_names(Reference(left.path)), told))
    whole: Expression | None = None
    for part in parts:
        whole = part if whole is None else And(whole, part)
    return whole


def _condition(column: Expression, known: Known) -> Expression:
    values = [Literal(value) for value in known.values]
    return Between(column, *values) if known.ends else In(column, tuple(values))


def narrowable(plan: MergePlan) -> dict[int, BoundExpression]:
    """Return the source's side of each pair whose other side is a plain column of the table."""
    return {
        place: right
        for place, (left, right) in enumerate(plan.pairs)
        if plan.moot and isinstance(left, BoundReference) and not is_floating(left.type)
    }


def known_values(plan: MergePlan, source: pa.Table) -> dict[int, Known]:
    """Look at the source's values for ``narrowing``."""
    found: dict[int, Known] = {}
    renamed = source.rename_columns([source_name(name) for name in source.column_names])
    for place, right in narrowable(plan).items():
        arrays = [evaluate(right, batch) for batch in renamed.to_batches()]
        if not arrays:
            found[place] = Known(())
            continue
        distinct = pc.unique(pa.chunked_array(arrays)).drop_null()
        if len(distinct) > LISTED:
            ends = pc.min_max(distinct)
            found[place] = Known((ends["min"].as_py(), ends["max"].as_py()), ends=True)
        else:
            found[place] = Known(tuple(distinct.to_pylist()))
    return found
