"""Rows and deletes meet a base file: the group's next base file.

The old file streams by, one row group at a time; only the incoming rows are held. An incoming
row wins over the stored one of its key unless event time decides and the stored ordering value
is greater. A row that stays keeps its commit time and sequence number.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_changes import ChangeLog
from lakewright.actions.tasks.write_contest import Contest
from lakewright.actions.tasks.write_files import in_partition, new_file
from lakewright.actions.tasks.write_fold import FoldedContest
from lakewright.actions.tasks.write_new import base_spec
from lakewright.actions.tasks.write_old import OldBase
from lakewright.actions.tasks.write_spec import FileWritten, GroupWork, WriteSpec
from lakewright.format.hudi.base_write import (
    write_base,
)
from lakewright.format.hudi.file_names import base_file_name
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.files import BaseFile
from lakewright.table.merge.policy import MergePolicy
from lakewright.timeline.markers import MarkerKind

#: Old rows that are looked through for a change before the new file is begun.
_LOOK_AHEAD = 64 << 20


def write_merged(
    spec: WriteSpec, work: GroupWork, base: BaseFile, attempt: Attempt
) -> FileWritten | None:
    """Write the next base file of a group; None where nothing of it changes."""
    policy = MergePolicy.of(spec.config)
    with ExitStack() as open_files:
        old = open_files.enter_context(OldBase.open(spec, base))
        changes = None
        if spec.config.cdc_enabled:
            changes = open_files.enter_context(ChangeLog(spec, work, attempt))
        contest: Contest | FoldedContest
        if policy.by_column and not work.insert_only:
            contest = FoldedContest(spec, work, policy, attempt.task, changes)
        else:
            contest = Contest(work, policy, changes)
        batches = contest.run(old)
        ahead = _look_ahead(batches, contest)
        if ahead is None:
            return None
        made = _write(spec, work, base, attempt, old, contest, chain(ahead, batches))
        if changes is None:
            return made
        return replace(made, stat=replace(made.stat, cdc_stats=changes.finish()))


def _look_ahead(
    batches: Iterator[pa.RecordBatch], contest: Contest | FoldedContest
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
    contest: Contest | FoldedContest,
    batches: Iterator[pa.RecordBatch],
) -> FileWritten:
    partition = work.group.partition
    name = base_file_name(work.group.file_id, attempt.token, spec.instant)
    path = in_partition(partition, name)
    bloom = old.filter_for(work.rows)
    file = base_spec(spec, partition, name, attempt.task, work.rows, bloom)
    if spec.config.populate_meta_fields:
        file = replace(file, bounds=old.bounds_with(work.rows))
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
