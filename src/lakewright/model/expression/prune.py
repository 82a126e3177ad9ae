"""Pruning: can a file, row group or partition hold a row that satisfies a condition?

The law: the answer is never no for one that holds a matching row. What is unknown keeps.

Each node is turned into a closure once, and the closures are called once per file. A condition
answers with the set of outcomes that its rows may have, a value with the span it may lie in.
Floating-point columns follow Spark's order, in which NaN is equal to itself and greater than
everything, while the statistics of files leave NaN out: unless a range says that there is no
NaN, its upper bound says nothing.
"""

from collections.abc import Callable

from lakewright.model.expression.analyse import conjuncts
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.outcomes import TRUE, compile_condition
from lakewright.model.expression.spans import ColumnRange, Ranges

__all__ = ["ColumnRange", "Ranges", "compile_pruner", "may_match"]


def compile_pruner(bound: BoundExpression) -> Callable[[Ranges], bool]:
    """Return ``may_match`` for one condition, to be asked about many files."""
    parts = [compile_condition(part) for part in conjuncts(bound)]

    def may_match(ranges: Ranges) -> bool:
        try:
            for outcomes in parts:  # noqa: SIM110 - a generator would double the cost
                if not outcomes(ranges) & TRUE:
                    return False
            return True
        except TypeError:
            # Statistics of another type than the column has now (it was altered since the file
            # was written) cannot be compared, so they are unknown.
            return True

    return may_match


def may_match(bound: BoundExpression, ranges: Ranges) -> bool:
    """Tell whether rows within these ranges can satisfy the condition."""
    return compile_pruner(bound)(ranges)
