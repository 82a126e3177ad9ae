"""Ordering values of rows: each needs one where it decides which version of a record wins."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_spec import ROUTE_DELETE
from lakewright.format.arrow.nested import Rows, field_values
from lakewright.format.hudi.config import TableConfig
from lakewright.model.errors import Invalid
from lakewright.model.schema import IS_DELETED
from lakewright.model.table import MergeMode

_SAMPLE = 5


def check_ordering(rows: Rows, config: TableConfig) -> None:
    """Refuse rows without an ordering value, with their count and a sample.

    Real Hudi writes them and then fails on the next upsert of their keys, so that such a table
    could not be written any more. Rows that delete need none.
    """
    if config.merge_mode is not MergeMode.EVENT_TIME_ORDERING:
        return
    for name in config.ordering:
        values = field_values(rows, name)
        if values is not None and not values.null_count:
            continue
        missing = pc.is_null(values) if values is not None else pa.repeat(True, rows.num_rows)
        for mark in (IS_DELETED, ROUTE_DELETE):
            if mark in rows.schema.names:
                spared = pc.fill_null(rows.column(mark), False)
                missing = pc.and_(missing, pc.invert(spared))
        places = np.flatnonzero(missing.to_numpy(zero_copy_only=False))
        if len(places):
            raise _without(rows, name, [int(place) for place in places])


def _without(rows: Rows, name: str, places: list[int]) -> Invalid:
    sample = [rows.slice(place, 1).to_pylist()[0] for place in places[:_SAMPLE]]
    return Invalid(
        f"{len(places)} of {rows.num_rows} rows have no ordering value: {name} is null. "
        f"The first: {'; '.join(str(row)[:200] for row in sample)}.",
        next_step="Nothing was written. Give every row a value that says how new it is.",
        count=len(places),
        sample=sample,
        column=name,
    )
