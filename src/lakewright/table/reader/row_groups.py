"""Row groups that may hold rows of the result, by their statistics."""

from collections.abc import Mapping

import pyarrow as pa

from lakewright.format.hudi.base_file import BaseFileReader
from lakewright.format.hudi.base_pruning import group_ranges
from lakewright.model.expression.analyse import references
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.prune import may_match
from lakewright.table.pruning import partition_ranges
from lakewright.table.reader.names import FileNames


def matching_row_groups(
    reader: BaseFileReader,
    condition: BoundExpression | None,
    constants: Mapping[str, object],
    schema: pa.Schema,
    names: FileNames,
) -> list[int]:
    """Return the row groups that may match; what is not known is kept.

    ``constants`` are the values of columns that files do not decide, ``schema`` the types that
    rows will have; columns that the file calls otherwise are not known.
    """
    groups = list(range(reader.num_row_groups))
    if condition is None:
        return groups
    known = partition_ranges(constants)
    paths = [p for p in references(condition) if p[0] not in constants and names.knows(p)]
    return [
        group
        for group in groups
        if may_match(condition, {**group_ranges(reader.footer, group, paths, schema), **known})
    ]
