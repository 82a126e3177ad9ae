"""Updating rows in this process."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakewright.actions.rowlevel.arrow import Edits, carry_out, lowered
from lakewright.actions.rowlevel.names import target_name
from lakewright.actions.rowlevel.plan import Rules, Step
from lakewright.model.errors import Invalid

#: Rows that an error shows.
SAMPLE = 5


def update_rows(step: Step, batches: Iterable[pa.RecordBatch], rules: Rules) -> Iterator[Edits]:
    """Stream what becomes of the rows, all of which are updated.

    The rows hold the table's columns and those of the rules' identity. Rows whose ordering value
    would sink are counted to the end and then refused: their update would be lost.
    """
    sunk, sample = 0, list[object]()
    for batch in batches:
        edits = carry_out(step, as_target(batch), rules)
        low = lowered(edits, rules)
        if low is not None:
            sunk += low.num_rows
            names = [*(rules.key or rules.identity), *rules.ordering]
            shown = low.select([target_name(n) for n in names]).slice(0, SAMPLE - len(sample))
            sample += [dict(zip(names, row.values(), strict=True)) for row in shown.to_pylist()]
        yield edits
    if sunk:
        raise refuse_lowered(rules, sunk, sample)


def refuse_lowered(rules: Rules, count: int, sample: list[object]) -> Invalid:
    """Return the error for updates that would lose against what is stored."""
    return Invalid(
        f"{count} rows would get a lower {', '.join(rules.ordering)} than they have, and the table "
        f"keeps the row with the greatest: the update would be lost. Such as {sample}.",
        next_step="Nothing was written. Leave the column alone or raise it; to go back, delete "
        "the rows and insert them anew.",
        count=count,
        sample=sample,
    )


def as_target(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of the table under their names in joined rows."""
    return batch.rename_columns([target_name(name) for name in batch.schema.names])
