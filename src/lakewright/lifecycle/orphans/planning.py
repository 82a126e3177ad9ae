"""Plans that remove orphan files: the whole table is walked, and what nobody claims is chosen."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.orphans.claims import Claims, Orphan
from lakewright.lifecycle.orphans.options import LEAST_AGE, MAX_FILES, OLDER_THAN
from lakewright.lifecycle.plans.options import FOR_EVER, QUARANTINE, check_wishes, span_text
from lakewright.lifecycle.plans.plan import Plan, PlanBase, PlanItem, Skipped, new_plan_id
from lakewright.model.errors import Invalid
from lakewright.model.files import BaseFile, LogFile
from lakewright.model.logs import facts
from lakewright.storage.streams import map_bounded
from lakewright.table.partitions import SKIPPED

log = logging.getLogger(__name__)

#: The kind of plans that remove orphan files.
ORPHANS = "orphans"
#: Facts of an item: the instant that nobody claims, and what storage said of the file.
INSTANT, MODIFIED, VERSION = "instant", "modified", "version"

#: Files that are looked at at the same time.
_LOOKS = 16
#: Files that are kept are named for each reason up to so many; the others are counted.
_NAMED = 20


def plan_orphans(
    work: Servicing,
    *,
    older_than: timedelta | None = None,
    purge: bool = False,
    now: datetime | None = None,
    by: str = "",
) -> Plan:
    """Plan to remove the data files that nobody claims; nothing is changed, and nothing kept yet.

    Those that are older than ``older_than``, by default ``lakewright.orphans.older-than``, and at
    most ``lakewright.orphans.max-files`` of them. With ``purge`` the plan deletes them at once,
    and cannot be undone.
    """
    check_wishes(work.options, work.state.config.properties)
    age = OLDER_THAN.read(work.options) if older_than is None else min(older_than, FOR_EVER)
    if age < LEAST_AGE:
        raise Invalid(
            f"files that are {span_text(age)} old may belong to a write that has just begun.",
            next_step=f"Give {span_text(LEAST_AGE)} or more; {span_text(OLDER_THAN.default)} is "
            "the default.",
            older_than=span_text(age),
        )
    clock = now or datetime.now(UTC)
    # The timeline is looked at before the files: what is written meanwhile is too young.
    state = work.state.refresh()
    claims = Claims(state, clock, age)
    chosen = _Chosen(MAX_FILES.read(work.options), clock)
    work.progress.stage("looking for orphan files")
    for found in map_bounded(
        lambda file: (file.path, claims.look(file)), _candidates(work, claims), threads=_LOOKS
    ):
        chosen.add(*found)
    told = facts(orphans=len(chosen.items), more=chosen.more, kept=chosen.kept.total())
    log.info("orphan files looked for", extra=told)
    return Plan(
        id=new_plan_id(ORPHANS, clock),
        table=work.name,
        kind=ORPHANS,
        base=PlanBase.of(state.timeline),
        items=tuple(sorted(chosen.items, key=lambda item: item.target)),
        created_by=by,
        created_at=clock,
        options=_kept_options(work, age),
        skipped=tuple(chosen.left()),
        purge=purge,
    )


def _candidates(work: Servicing, claims: Claims) -> Iterator[BaseFile | LogFile]:
    """Stream the data files of the table whose instants it does not know."""
    for folder in work.state.storage.walk("", sizes=False, skip=SKIPPED):
        work.progress.advance()
        if "/." in f"/{folder.path}":
            continue
        found = (claims.candidate(folder.path, name) for name in folder.names)
        yield from (file for file in found if file is not None)


class _Chosen:
    """What a plan takes, and what it leaves out; as much of it as a plan may name."""

    def __init__(self, most: int, now: datetime) -> None:
        self._most = most
        self._now = now
        self.items: list[PlanItem] = []
        self.more = 0
        self.kept: Counter[str] = Counter()
        self._named: list[Skipped] = []

    def add(self, path: str, found: Orphan | str) -> None:
        """Take a file, or count it."""
        if isinstance(found, str):
            self.kept[found] += 1
            if self.kept[found] <= _NAMED:
                self._named.append(Skipped(path, found))
        elif len(self.items) < self._most:
            self.items.append(_item(found, self._now))
        else:
            self.more += 1

    def left(self) -> Iterator[Skipped]:
        """Stream what is left out."""
        yield from sorted(self._named, key=lambda one: (one.reason, one.target))
        for reason, count in sorted(self.kept.items()):
            if count > _NAMED:
                yield Skipped("*", f"{count - _NAMED} more files are kept: {reason}")
        if self.more:
            yield Skipped(
                "*",
                f"{self.more} more files are orphans, and a plan takes {self._most} at most "
                f"({MAX_FILES.key}); the next plan takes them",
            )


def facts_of(orphan: Orphan) -> dict[str, str]:
    """Return the facts by which a file is known again when its plan is applied."""
    version = {} if orphan.version is None else {VERSION: orphan.version}
    return {INSTANT: orphan.instant, MODIFIED: orphan.modified.isoformat(), **version}


def _item(orphan: Orphan, now: datetime) -> PlanItem:
    reason = (
        f"no instant {orphan.instant} claims it: of {_days(now - orphan.begun)} ago, and changed "
        f"{_days(now - orphan.modified)} ago"
    )
    return PlanItem(orphan.path, reason, files=1, bytes=orphan.size, facts=facts_of(orphan))


def _days(age: timedelta) -> str:
    """Write an age in whole days, or in whole hours below two days."""
    return f"{age.days} days" if age.days >= 2 else f"{age // timedelta(hours=1)} hours"


def _kept_options(work: Servicing, age: timedelta) -> Mapping[str, str]:
    """Return the options with which a plan was made, and that hold when it is applied, too."""
    own = work.state.config.properties
    given = work.options.get(QUARANTINE.key)
    kept = {OLDER_THAN.key: span_text(age)}
    if given is not None and own.get(QUARANTINE.key) != given:
        kept[QUARANTINE.key] = given
    return kept
