"""What happens to one file group: a new base file, the next one, or a log."""

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_log import write_log
from lakewright.actions.tasks.write_merge import write_merged
from lakewright.actions.tasks.write_new import write_new
from lakewright.actions.tasks.write_spec import FileWritten, GroupWork, WriteSpec
from lakewright.model.errors import Conflict, Unsupported
from lakewright.model.table import TableType


def write_group(spec: WriteSpec, work: GroupWork, attempt: Attempt) -> tuple[FileWritten, ...]:
    """Write the files of one group; none where nothing of it changes.

    A new group, or one without files, gets a base file (tables without buckets: several where
    one would become too large). A group of a copy-on-write table gets its next base file, one
    of a merge-on-read table a log; a small base file without logs takes inserts of a table
    without buckets by being written anew. So does one that holds several rows of a key that
    changes: a log record would take the first of them and leave the others. Where logs are in
    the way a delete of such a key is refused.
    """
    piece = work.slice
    if piece is None:
        return tuple(write_new(spec, work, attempt))
    _refuse_clustered(spec, work)
    anew = work.insert_only or work.repeated
    anew = anew and spec.layout.buckets is None and not piece.logs
    rewritten = spec.config.table_type is TableType.COPY_ON_WRITE or anew
    if rewritten and piece.base is not None:
        made = write_merged(spec, work, piece.base, attempt)
    else:
        _refuse_repeated(work)
        made = write_log(spec, work, piece, attempt)
    return () if made is None else (made,)


def _refuse_clustered(spec: WriteSpec, work: GroupWork) -> None:
    # Once the clustering is done, the group is gone, and what was added to it since with it.
    if work.group.file_id in spec.pinned.clustering.get(work.group.partition, ()):
        raise Conflict(
            f"a clustering of the file group {work.group} is planned or at work.",
            next_step="Nothing of this write took effect; let the plan be carried out "
            "(table.cluster()) or take it back (table.rollback(its instant), which "
            "table.timeline.pending() lists), and try it again.",
            group=str(work.group),
        )


def _refuse_repeated(work: GroupWork) -> None:
    if work.repeated and work.deletes is not None:
        raise Unsupported(
            f"the base file of the file group {work.group} holds several rows of a key that is to "
            "be deleted, and has logs: a delete in another log would take one row only.",
            next_step="Merge the logs first: table.compact(), or `lakewright compact PATH`.",
            group=str(work.group),
        )
