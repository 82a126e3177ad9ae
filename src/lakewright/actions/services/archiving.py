"""Archiving: the oldest instants leave the active timeline, so that it stays short."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lakewright.actions.services.archive_choice import (
    Archivable,
    ArchiveSettings,
    Bound,
    choose_archivable,
)
from lakewright.actions.services.repairing import repaired
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.settings import check_settings
from lakewright.actions.write.admission import check_config
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.index.hashing_store import HashingStore
from lakewright.model.instant import Instant
from lakewright.model.logs import facts
from lakewright.model.services import Service
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.storage.paths import split
from lakewright.storage.port import Storage
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArchivePlan(Shown):
    """The instants that archiving would take off the active timeline, oldest first.

    ``bound`` is what holds back the writes after them, where something does.
    """

    table: str
    instants: tuple[Instant, ...]
    active: int
    bound: Bound | None = None

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines of text; ``limit`` instants, None for all."""
        if not self.instants:
            text = f"archiving of {self.table}: nothing of {self.active} instants"
        else:
            first, last = self.instants[0].requested, self.instants[-1].requested
            text = (
                f"archiving of {self.table}: {len(self.instants)} of {self.active} instants, "
                f"{first} to {last}"
            )
        if self.bound is not None:
            text += f"; {self.bound.instant or 'everything'} stays: {self.bound.why}"
        yield text
        yield from first_of((f"  {i}" for i in self.instants), len(self.instants), limit)

    def to_json(self) -> str:
        """Return the plan for programs."""
        value = {
            "table": self.table,
            "active": self.active,
            "instants": [str(instant) for instant in self.instants],
            "bound": None
            if self.bound is None
            else {"instant": self.bound.instant, "why": self.bound.why},
        }
        return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The instants that were archived, oldest first."""

    instants: tuple[Instant, ...]

    def __str__(self) -> str:
        if not self.instants:
            return "archiving: nothing to do"
        first, last = self.instants[0].requested, self.instants[-1].requested
        return f"archiving: {len(self.instants)} instants, {first} to {last}"


def archiving_due(timeline: TimelineView, options: Mapping[str, str]) -> str | None:
    """Say why archiving is due, None where it is not: the active timeline is too long."""
    most = ArchiveSettings.of(options).beside_cleaning(timeline, time.time()).most
    count = len(timeline.data())
    return f"{count} commits, more than {most}" if count > most else None


def plan_archive(work: Servicing) -> ArchivePlan:
    """Say what archiving would do; nothing is written."""
    view = work.state.refresh().timeline
    found = _chooser(work)(view)
    return ArchivePlan(work.name, found.instants, len(view.completed()), found.bound)


def archive(work: Servicing) -> ArchiveResult:
    """Move the oldest completed instants into the archived history, where there are too many."""
    check_config(work.state.config)
    choose = _chooser(work)
    repaired(work)
    work.progress.stage("archiving")
    moved = work.upkeep.archive(lambda view: choose(view).instants)
    # Old bucket rules follow the instants that needed them.
    HashingStore(work.state.storage).archive(work.state.refresh().timeline)
    work.progress.advance(len(moved))
    log.info("timeline archived", extra=facts(table=work.name, instants=len(moved)))
    return ArchiveResult(moved)


def _chooser(work: Servicing) -> Callable[[TimelineView], Archivable]:
    check_settings(Service.ARCHIVING, work.options)
    settings = ArchiveSettings.of(work.options)
    cleaned: dict[str, bool] = {}

    def choose(view: TimelineView) -> Archivable:
        def is_cleaned(instant: Instant) -> bool:
            # Files of replaced groups never come back, so that one look is enough.
            if instant.requested not in cleaned:
                cleaned[instant.requested] = _is_cleaned(work.state.storage, view, instant)
            return cleaned[instant.requested]

        return choose_archivable(view, settings, is_cleaned, time.time())

    return choose


def _is_cleaned(storage: Storage, view: TimelineView, instant: Instant) -> bool:
    """Say whether no file is left of the groups that a write replaced.

    Readers would count them among the live ones once the write is no longer on the timeline.
    """
    for partition, file_ids in view.commit_metadata(instant).replaced.items():
        gone = frozenset(file_ids)
        for file in storage.list(partition, stats=False) if gone else ():
            name = split(file.path)[1]
            found = base_file(partition, name) or log_file(partition, name)
            if found is not None and found.file_id in gone:
                return False
    return True
