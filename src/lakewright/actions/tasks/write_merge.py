"""Rows and deletes meet a base file: the group's next base file.

The old file streams by, one row group at a time; only the incoming rows are held. An incoming
row wins over the stored one of its key unless event time decides and the stored ordering value
is greater. A row that stays keeps its commit time and sequence number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_files import in_partition, new_file
from lakewright.actions.tasks.write_new import base_spec
from lakewright.actions.tasks.write_old import OldBase
from lakewright.actions.tasks.write_spec import FileWritten, GroupWork, WriteSpec
from lakewright.format.hudi.base_write import (
    constant,
    key_bounds,
    sequence_numbers,
    write_base,
)
from lakewright.format.hudi.file_names import base_file_name
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.files import BaseFile
from lakewright.model.schema import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from lakewright.table.merge import ordering as order
from lakewright.table.merge.combine import incoming_deletes, incoming_versions, ordering_columns
from lakewright.table.merge.fold import FoldedBase, Folding, Versions, stack
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Flags, Places
from lakewright.timeline.markers import MarkerKind

#: Old rows that are looked through for a change before the new file is begun.
_LOOK_AHEAD = 64 << 20


def write_merged(
    spec: WriteSpec, work: GroupWork, base: BaseFile, attempt: Attempt
) -> FileWritten | None:
    """Write the next base file of a group; None where nothing of it changes."""
    policy = MergePolicy.of(spec.config)
    with OldBase.open(spec, base) as old:
        contest: _Contest | _FoldedContest
        if policy.by_column and not work.insert_only:
            contest = _FoldedContest(spec, work, policy, attempt.task)
        else:
            contest = _Contest(spec, work, policy)
        batches = contest.run(old)
        ahead = _look_ahead(batches, contest)
        if ahead is None:
            return None
        return _write(spec, work, base, attempt, old, contest, chain(ahead, batches))


def _look_ahead(
    batches: Iterator[pa.RecordBatch], contest: "_Contest | _FoldedContest"
) -> list[pa.RecordBatch] | None:
    """Return the first batches, up to the first change or a size; None where nothing changes."""
    ahead: list[pa.RecordBatch] = []
    size = 0
    while not contest.changed() and size < _LOOK_AHEAD:
        batch = next(batches, None)
        if batch is None:
            return ahead if contest.changed() else None
        ahead.append(batch)
        size += batch.nbytes
    return ahead


def _write(
    spec: WriteSpec,
    work: GroupWork,
    base: BaseFile,
    attempt: Attempt,
    old: OldBase,
    contest: "_Contest | _FoldedContest",
    batches: Iterator[pa.RecordBatch],
) -> FileWritten:
    partition = work.group.partition
    name = base_file_name(work.group.file_id, attempt.token, spec.instant)
    path = in_partition(partition, name)
    bloom = old.filter_for(work.rows)
    file = base_spec(spec, partition, name, attempt.task, work.rows, bloom)
    with new_file(
        spec, path, partition, MarkerKind.MERGE, partition_known=work.partition_known
    ) as sink:
        written = write_base(sink, batches, file)
        size = sink.tell()
    done = contest.outcome()
    stat = WriteStat(
        file_id=work.group.file_id,
        path=path,
        prev_commit=base.instant,
        num_writes=written.rows,
        num_inserts=done.inserted,
        num_update_writes=done.updated,
        num_deletes=done.deleted,
        total_write_bytes=size,
        file_size_in_bytes=size,
        partition_path=partition,
        prev_base_file=base.name,
    )
    return FileWritten(
        partition,
        stat,
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        key_range=done.key_range,
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    inserted: int
    updated: int
    deleted: int
    key_range: tuple[str, str] | None


class _Contest:
    """Whole rows against whole rows: each key has one winner."""

    def __init__(self, spec: WriteSpec, work: GroupWork, policy: MergePolicy) -> None:
        self._ordering = () if work.insert_only or not policy.event_time else policy.ordering
        self._insert_only = work.insert_only
        self._rows = work.rows
        deletes = 0 if work.deletes is None else len(work.deletes)
        count = 0 if work.rows is None else work.rows.num_rows
        flags = (np.zeros(0, bool), np.zeros(0, bool))
        keys: list[pa.Array] = []
        self._values: order.Columns = ()
        if work.rows is not None:
            keys += work.rows.column(RECORD_KEY).chunks
            flags = incoming_deletes(work.rows, policy)
            self._values = ordering_columns(work.rows, self._ordering)
        if work.deletes is not None:
            keys.append(work.deletes)
        every = np.ones(deletes, bool)
        self._keys = _joined(keys)
        self._count = count
        self._deletes = np.concatenate([flags[0], every])
        self._hard = np.concatenate([flags[1], every])
        self._met = np.zeros(count + deletes, bool)
        self._lost = np.zeros(count + deletes, bool)
        self._changed = False

    def run(self, old: OldBase) -> Iterator[pa.RecordBatch]:
        """Stream the stored rows that stay, then the incoming rows that win."""
        for batch in old.batches():
            if self._insert_only:
                yield batch
                continue
            stays = self._stays(old.keys(batch), batch)
            if stays is None:
                yield batch
            else:
                yield batch.filter(pa.array(stays))
        wins = ~self._lost[: self._count] & ~self._deletes[: self._count]
        if self._rows is not None and wins.any():
            self._changed = True
            chosen = self._rows if wins.all() else self._rows.filter(pa.array(wins))
            yield from chosen.to_batches()

    def _stays(self, keys: pa.Array, batch: pa.RecordBatch) -> Flags | None:
        """Mark the stored rows that stay; None where all do."""
        found = pc.index_in(keys, value_set=self._keys)
        if found.null_count == len(found):
            return None
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        which = found.drop_null().to_numpy().astype(np.int64)
        self._met[which] = True
        beaten = np.ones(len(rows), bool)
        if self._values:
            beaten = ~self._beats(batch, rows, which)
            self._lost[which[~beaten]] = True
        if not beaten.any():
            return None
        self._changed = True
        stays = np.ones(len(keys), bool)
        stays[rows[beaten]] = False
        return stays

    def _beats(self, batch: pa.RecordBatch, rows: Places, which: Places) -> Flags:
        """Say which stored rows beat the incoming ones of their key."""
        hard = self._hard[which]
        met = np.where(hard, 0, which)
        if not self._count:
            return np.zeros(len(rows), bool)
        taken = pa.array(rows)
        stored = tuple(c.take(taken) for c in ordering_columns(batch, self._ordering))
        incoming = tuple(column.take(pa.array(met)) for column in self._values)
        beats: Flags = order.exceeds(stored, incoming) & ~hard
        return beats

    def changed(self) -> bool:
        """Say whether the rows streamed so far differ from the stored ones."""
        return self._changed

    def outcome(self) -> _Outcome:
        """Return the counts, once all has been streamed."""
        wins = ~self._lost
        count = self._count
        new = ~self._met[:count] & ~self._deletes[:count]
        return _Outcome(
            inserted=int(new.sum()),
            updated=int((self._met & wins & ~self._deletes).sum()),
            deleted=int((self._met & wins & self._deletes).sum()),
            key_range=key_bounds(self._keys.filter(pa.array(_padded(new, len(self._met))))),
        )


class _FoldedContest:
    """Rows that may leave columns to the stored ones: merged column by column."""

    def __init__(self, spec: WriteSpec, work: GroupWork, policy: MergePolicy, task: int) -> None:
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
            made = self._folded.meet(keys, table, ordering_columns(batch, self._ordering))
            self._changed = self._changed or made is not table
            yield from made.to_batches()
        rest = self._folded.rest()
        if rest.num_rows:
            self._changed = True
            yield from rest.to_batches()

    def changed(self) -> bool:
        """Say whether the rows streamed so far differ from the stored ones."""
        return self._changed

    def outcome(self) -> _Outcome:
        """Return the counts; a late row that filled a gap counts as an update."""
        met, deleted = self._met, self._state.deleted
        new = ~met & ~deleted
        return _Outcome(
            inserted=int(new.sum()),
            updated=int((met & ~deleted).sum()),
            deleted=int((met & deleted).sum()),
            key_range=key_bounds(self._state.keys.filter(pa.array(new))),
        )


def _stamped(spec: WriteSpec, rows: pa.Table, task: int, schema: pa.Schema) -> pa.Table:
    """Return the rows with the commit time and sequence number that they will carry."""
    count = rows.num_rows
    meta = {
        COMMIT_TIME: constant(spec.instant, count).dictionary_decode(),
        COMMIT_SEQNO: sequence_numbers(spec.instant, task, 0, count),
    }
    columns = [meta[n] if n in meta else rows.column(n) for n in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _deletes(keys: pa.Array, schema: pa.Schema, policy: MergePolicy) -> Versions:
    rows = pa.table([pa.nulls(len(keys), f.type) for f in schema], schema=schema)
    every = np.ones(len(keys), bool)
    fields = policy.ordering if policy.event_time else ()
    return Versions(keys, rows, {}, every, every, ordering_columns(rows, fields))


def _joined(parts: list[pa.Array]) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.chunked_array(parts, pa.string()).combine_chunks()


def _padded(flags: Flags, size: int) -> Flags:
    return np.concatenate([flags, np.zeros(size - len(flags), bool)])
