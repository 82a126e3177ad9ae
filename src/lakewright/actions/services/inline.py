"""Services right after a write, by its own hands: off unless the table or the write asks for them.

They come after the commit: what goes wrong with them is told, and never makes the write fail.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from lakewright.actions.executor import Executor
from lakewright.actions.services.clean_options import GRACE
from lakewright.actions.services.duties import duty_of
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.tending import Tending, Wish
from lakewright.actions.write.intake import write_options
from lakewright.actions.write.progress import Progress
from lakewright.actions.write.request import R, WriteRequest
from lakewright.actions.write.write import write
from lakewright.model.logs import facts
from lakewright.model.options import declare, parse_bool
from lakewright.model.services import Outcome, Service, ServiceRun
from lakewright.model.writing import WriteResult
from lakewright.table.state import TableState, open_state
from lakewright.timeline.committing import Committer
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.storage_upkeep import StorageUpkeep

log = logging.getLogger(__name__)

#: Says what a write with some settings does after its commit, where it is due.
Wishes: TypeAlias = Callable[[Mapping[str, str]], tuple[Wish, ...]]

#: For how long a cleaning that nobody called leaves what readers may be at.
UNASKED_GRACE = "15m"


SERVICES = declare(
    "hoodie.table.services.enabled",
    parse_bool,
    True,
    doc="With false, writes run no services inline, whatever other options say.",
    since="0.1",
    allowed="true, false",
)
COMPACT = declare(
    "hoodie.compact.inline",
    parse_bool,
    False,
    doc="Compact right after a write, where hoodie.compact.inline.trigger.strategy says that it "
    "is due.",
    since="0.1",
    allowed="true, false",
)
SCHEDULE_COMPACT = declare(
    "hoodie.compact.schedule.inline",
    parse_bool,
    False,
    doc="Plan a compaction right after a write, where one is due, and leave it to others to carry "
    "it out.",
    since="0.1",
    allowed="true, false",
)
LOG_COMPACT = declare(
    "hoodie.log.compaction.inline",
    parse_bool,
    False,
    doc="Merge the logs of slices that have hoodie.log.compaction.blocks.threshold of them right "
    "after a write.",
    since="0.1",
    allowed="true, false",
)
CLUSTER = declare(
    "hoodie.clustering.inline",
    parse_bool,
    False,
    doc="Cluster right after a write, where hoodie.clustering.inline.max.commits says that it is "
    "due.",
    since="0.1",
    allowed="true, false",
)
SCHEDULE_CLUSTER = declare(
    "hoodie.clustering.schedule.inline",
    parse_bool,
    False,
    doc="Plan a clustering right after a write, where one is due, and leave it to others to carry "
    "it out; until then writes to its file groups are refused.",
    since="0.1",
    allowed="true, false",
)
CLEAN = declare(
    "hoodie.clean.automatic",
    parse_bool,
    False,
    doc="Clean right after a write, where hoodie.clean.trigger.max.commits says that it is due. "
    f"Unless lakewright.clean.grace is set, files stay for {UNASKED_GRACE} after they ceased to "
    "be the latest.",
    since="0.1",
    allowed="true, false",
)
ARCHIVE = declare(
    "hoodie.archive.automatic",
    parse_bool,
    False,
    doc="Archive right after a write, where the timeline has more than hoodie.keep.max.commits.",
    since="0.1",
    allowed="true, false",
)


def inline_wishes(options: Mapping[str, str]) -> tuple[Wish, ...]:
    """Return the services that a write with these settings runs when they are due."""
    if not SERVICES.read(options):
        return ()
    found = []
    if COMPACT.read(options):
        found.append(Wish(duty_of(Service.COMPACTION)))
    elif SCHEDULE_COMPACT.read(options):
        found.append(Wish(duty_of(Service.COMPACTION), plan_only=True))
    if LOG_COMPACT.read(options):
        found.append(Wish(duty_of(Service.LOG_COMPACTION)))
    if CLUSTER.read(options):
        found.append(Wish(duty_of(Service.CLUSTERING)))
    elif SCHEDULE_CLUSTER.read(options):
        found.append(Wish(duty_of(Service.CLUSTERING), plan_only=True))
    if CLEAN.read(options):
        found.append(Wish(duty_of(Service.CLEANING)))
    if ARCHIVE.read(options):
        found.append(Wish(duty_of(Service.ARCHIVING)))
    return tuple(found)


def with_grace(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings of a service that nobody called: readers are given time."""
    return options if GRACE.given(options) else {**options, GRACE.key: UNASKED_GRACE}


def write_and_serve(
    name: str,
    state: TableState,
    executor: Executor[R],
    rows: R | None,
    request: WriteRequest[R],
    committer: Committer,
    progress: Progress,
    wishes: Wishes,
) -> WriteResult:
    """Carry out a write, as ``write`` does, and what is wished for and due after it."""
    options = write_options(state, request)
    wishes(options)  # what they cannot mean is refused before anything is written
    result = write(state, executor, rows, request, committer, progress)
    return serve_after(name, state, executor, options, progress, result, wishes)


def serve_after(
    name: str,
    state: TableState,
    executor: Executor[Any],
    options: Mapping[str, str],
    progress: Progress,
    result: WriteResult,
    wishes: Wishes,
) -> WriteResult:
    """Do what is wished for and due after a write, and tell of it in its result."""
    if result.instant is None:
        return result
    try:
        wanted = wishes(options)
        if not wanted:
            return result
        settings = with_grace(options)

        @contextmanager
        def opened() -> Iterator[Servicing]:
            now = open_state(state.storage)
            try:
                yield Servicing(
                    name,
                    now,
                    executor,
                    StorageCommitter(now.storage, now.config, settings),
                    StorageUpkeep(now.storage, now.config, settings),
                    settings,
                    progress,
                )
            finally:
                progress.close()

        told = tuple(run for run in Tending(name, opened, wanted).run() if _is_told(run))
    except Exception as error:
        log.warning("services after a write failed", exc_info=error, extra=facts(table=name))
        told = (ServiceRun(name, None, Outcome.FAILED, f"{type(error).__name__}: {error}"),)
    return replace(result, services=told)


def _is_told(run: ServiceRun) -> bool:
    return run.outcome not in (Outcome.NOT_DUE, Outcome.NOTHING)
