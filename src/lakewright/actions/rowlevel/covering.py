"""Partitions of which a condition takes every row, so that they can go as a whole."""

from collections.abc import Callable

from lakewright.model.expression.analyse import references
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.outcomes import TRUE, compile_condition
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.spans import Ranges
from lakewright.table.file_index import FileIndex
from lakewright.table.pruning import partition_ranges
from lakewright.table.state import TableState, table_schema


def whole_partitions(state: TableState, where: Expression | str) -> tuple[str, ...] | None:
    """Return the partitions that hold every row of a condition and no other row.

    None where the condition looks at more than the values of partitions, or where a partition's
    path does not tell them exactly: rows must be read then. Only listings are touched.
    """
    fields = state.config.partition_fields
    columns = {field.name for field in fields if field.kind == "SIMPLE"}
    written = parse_expression(where) if isinstance(where, str) else where
    bound = bind(written, table_schema(state))
    named = references(bound)
    if not named or any(len(path) > 1 or path[0] not in columns for path in named):
        return None
    outcomes = _certain(bound)
    found = []
    for partition in FileIndex(state).partitions((bound,)):
        unsure = None in partition.values.values()  # null, or an empty text: paths do not say
        told = None if unsure else outcomes(partition_ranges(partition.values))
        if told is None:
            return None
        if told:
            found.append(partition.path)
    return tuple(found)


def _certain(bound: BoundExpression) -> Callable[[Ranges], bool | None]:
    """Return the question whether a condition holds for all rows (True), or for none (False)."""
    outcomes = compile_condition(bound)

    def ask(ranges: Ranges) -> bool | None:
        try:
            told = outcomes(ranges)
        except TypeError:
            return None
        if told == TRUE:
            return True
        return None if told & TRUE else False

    return ask
