"""Rows that may leave columns to the stored ones: merged with a base file column by column."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_changes import ChangeLog
from lakewright.actions.tasks.write_contest import Outcome
from lakewright.actions.tasks.write_files import first_number
from lakewright.actions.tasks.write_old import OldBase
from lakewright.actions.tasks.write_spec import GroupWork, WriteSpec
from lakewright.format.hudi.base_write import (
    constant,
    key_bounds,
    sequence_numbers,
)
from lakewright.model.schema import COMMIT_SEQNO, COMMIT_TIME
from lakewright.table.changes.images import differing
from lakewright.table.merge.combine import incoming_versions, ordering_columns
from lakewright.table.merge.fold import FoldedBase, Folding, Meeting, Versions, stack
from lakewright.table.merge.policy import MergePolicy


class FoldedContest:
    """Rows that may leave columns to the stored ones: merged column by column."""

    def __init__(
        self,
        spec: WriteSpec,
        work: GroupWork,
        policy: MergePolicy,
        task: int,
        changes: ChangeLog | None = None,
    ) -> None:
        self._changes = changes
        self._schema = OldBase.schema_of(spec)
        parts: list[Versions] = []
        if work.rows is not None and work.rows.num_rows:
            parts.append(incoming_versions(_stamped(spec, work.rows, task, self._schema), policy))
        if work.deletes is not None and len(work.deletes):
            parts.append(_deletes(work.deletes, self._schema, policy))
        self._state = stack(parts)
        self._folded = FoldedBase(Folding(policy), self._state)
        self._met = np.zeros(len(self._state), bool)
        self._ordering = policy.ordering if policy.event_time else ()
        self._changed = False

    def run(self, old: OldBase) -> Iterator[pa.RecordBatch]:
        """Stream the stored rows, merged with the incoming ones, then those that met none."""
        for batch in old.batches():
            table, keys = pa.Table.from_batches([batch]), old.keys(batch)
            self._met |= np.asarray(pc.is_in(self._state.keys, value_set=keys), bool)
            met = self._folded.meeting(keys, table, ordering_columns(batch, self._ordering))
            if met is None:
                yield batch
                continue
            self._changed = True
            if self._changes is not None:
                _tell(self._changes, met)
            yield from met.rows.to_batches()
        rest = self._folded.rest()
        if rest.num_rows:
            self._changed = True
            if self._changes is not None:
                self._changes.inserted(rest)
            yield from rest.to_batches()

    def changed(self) -> bool:
        """Say whether the rows streamed so far differ from the stored ones."""
        return self._changed

    def outcome(self) -> Outcome:
        """Return the counts; a late row that filled a gap counts as an update."""
        met, deleted = self._met, self._state.deleted
        new = ~met & ~deleted
        return Outcome(
            inserted=int(new.sum()),
            updated=int((met & ~deleted).sum()),
            deleted=int((met & deleted).sum()),
            key_range=key_bounds(self._state.keys.filter(pa.array(new))),
        )


def _tell(changes: ChangeLog, met: Meeting) -> None:
    """Tell what became of stored rows; one that a late row left as it was did not change."""
    gone = met.after.deleted
    changes.deleted(met.before.filter(pa.array(gone)))
    changed = pa.array(~gone & differing(met.before, met.after.rows))
    changes.updated(met.before.filter(changed), met.after.rows.filter(changed))


def _stamped(spec: WriteSpec, rows: pa.Table, task: int, schema: pa.Schema) -> pa.Table:
    """Return the rows with the commit time and sequence number that they will carry."""
    count = rows.num_rows
    meta = {
        COMMIT_TIME: constant(spec.instant, count).dictionary_decode(),
        COMMIT_SEQNO: sequence_numbers(spec.instant, task, first_number(count), count),
    }
    columns = [meta[n] if n in meta else rows.column(n) for n in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _deletes(keys: pa.Array, schema: pa.Schema, policy: MergePolicy) -> Versions:
    rows = pa.table([pa.nulls(len(keys), f.type) for f in schema], schema=schema)
    every = np.ones(len(keys), bool)
    fields = policy.ordering if policy.event_time else ()
    return Versions(keys, rows, {}, every, every, ordering_columns(rows, fields))
