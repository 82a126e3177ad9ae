"""Writing: from rows and a request to a commit, on any engine."""

import logging
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lakewright.actions.executor import Executor, Staged
from lakewright.actions.tasks.write import plan_groups, stream_groups, write_group
from lakewright.actions.tasks.write_spec import FileWritten
from lakewright.actions.write.admission import admit
from lakewright.actions.write.begun import (
    BegunWrite,
    abandoned_on_error,
    begin_write,
    finish_write,
)
from lakewright.actions.write.intake import Intake, take_in
from lakewright.actions.write.overwrite import outcome_of
from lakewright.actions.write.progress import Progress
from lakewright.actions.write.request import R, WriteRequest
from lakewright.actions.write.result import Outcome, write_result
from lakewright.actions.write.routing import spread_of
from lakewright.model.errors import Conflict
from lakewright.model.logs import facts
from lakewright.model.writing import Operation, WriteResult
from lakewright.table.standing import files_standing
from lakewright.table.state import TableState
from lakewright.timeline.committing import Committer

log = logging.getLogger(__name__)

#: Seconds before a write runs again after its first conflict; doubled for each further one.
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0


def write(
    state: TableState,
    executor: Executor[R],
    rows: R | None,
    request: WriteRequest[R],
    committer: Committer,
    progress: Progress,
) -> WriteResult:
    """Carry out a write; on an error nothing of it is left.

    Rows are checked before anything is begun: their columns always, their keys where they are
    few enough to be looked at here. After a ``Conflict`` the table is opened anew and the write
    runs again, up to ``request.retry`` times.
    """
    try:
        for attempt in range(1, request.retry + 2):
            try:
                result = _attempt(state, executor, rows, request, committer, progress)
            except Conflict as conflict:
                if attempt > request.retry:
                    raise
                _wait(state, attempt, conflict)
                state = state.refresh()
            else:
                _tell(state, result := replace(result, attempts=attempt))
                return result
        raise AssertionError("the last attempt returns or raises")
    finally:
        progress.close()


def _wait(state: TableState, attempt: int, conflict: Conflict) -> None:
    pause = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * random.uniform(0.5, 1.5)
    told = facts(table=state.storage.uri, attempt=attempt, pause=pause, why=str(conflict))
    log.info("another writer was first; the write runs again", extra=told)
    time.sleep(pause)


def _attempt(
    state: TableState,
    executor: Executor[R],
    rows: R | None,
    request: WriteRequest[R],
    committer: Committer,
    progress: Progress,
) -> WriteResult:
    admit(state, request.options)
    progress.stage("checking the rows")
    intake = take_in(state, executor, rows, None, request)
    if request.change is None and intake.is_empty and _needs_rows(request):
        return write_result(request.operation, Outcome(), None)
    begun = begin_write(state, request, intake.schema, committer)
    with abandoned_on_error(committer, begun.ticket):
        if request.change is not None:
            change = request.change(begun.state)
            intake = take_in(begun.state, executor, change.rows, change.deletes, request)
            begun = replace(begun, spec=replace(begun.spec, schema=intake.schema))
        with files_standing():
            files = tuple(_files(executor, intake, begun, progress))
            outcome = outcome_of(begun.spec, files, request.partitions)
        progress.stage("publishing")
    return finish_write(begun, outcome, committer, request.guard)


def _needs_rows(request: WriteRequest[R]) -> bool:
    """Whether a write without rows has nothing to do; some mean to empty what is there."""
    match request.operation:
        case Operation.INSERT_OVERWRITE_TABLE:
            return False
        case Operation.DELETE_PARTITION:
            return not request.partitions
        case _:
            return True


def _files(
    executor: Executor[R], intake: Intake[R], begun: BegunWrite, progress: Progress
) -> Iterator[FileWritten]:
    spec = begun.spec
    made: Iterable[tuple[FileWritten, ...]]
    if intake.many is not None:
        spec, spread = spread_of(spec)
        progress.stage("writing")
        work = Staged(stream_groups, write_group)
        made = ((file,) for file in executor.stream(work, spec, intake.many, spread))
    elif intake.is_empty:
        return
    else:
        progress.stage("finding file groups")
        deletes = intake.placed(executor, begun.state)
        works = list(plan_groups(spec, intake.few, deletes))
        progress.stage("writing", len(works))
        made = executor.map(write_group, spec, works, size=lambda work: work.size)
    for files in made:
        progress.advance(rows=sum(file.stat.num_writes for file in files), files=len(files))
        yield from files


def _tell(state: TableState, result: WriteResult) -> None:
    told = facts(
        table=state.storage.uri,
        operation=result.operation.value,
        instant=result.instant.requested if result.instant else None,
        inserted=result.inserted,
        updated=result.updated,
        deleted=result.deleted,
        files=result.files,
        bytes=result.bytes,
        attempts=result.attempts,
    )
    log.info("written" if result.instant else "nothing to write", extra=told)
