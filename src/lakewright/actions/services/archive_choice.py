"""Which instants may leave the active timeline: a decision on the timeline alone, by Hudi's rules.

Writes leave oldest first. What stays, stays with everything after it: the timeline of writes has
no holes, save those that savepoints make where archiving may go beyond them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from lakewright.actions.services.clean_options import CleanSettings
from lakewright.actions.services.clean_scope import kept_by_policy
from lakewright.actions.services.compaction_options import MAX_DELTA_COMMITS
from lakewright.format.hudi.metadata.clean import CleanPlan
from lakewright.model.errors import Invalid
from lakewright.model.instant import Action, Instant
from lakewright.model.options import declare, parse_bool, parse_positive
from lakewright.model.table import TableType
from lakewright.table.horizon import last_cleaning
from lakewright.timeline.view import TimelineView

LEAST = declare(
    "hoodie.keep.min.commits",
    parse_positive,
    20,
    doc="How many completed commits archiving leaves on the active timeline.",
    since="0.1",
    allowed="a whole number from 1, below hoodie.keep.max.commits",
)
MOST = declare(
    "hoodie.keep.max.commits",
    parse_positive,
    30,
    doc="From how many completed commits on the active timeline on the oldest are archived.",
    since="0.1",
    allowed="a whole number above hoodie.keep.min.commits",
)
BEYOND_SAVEPOINT = declare(
    "hoodie.archive.beyond.savepoint",
    parse_bool,
    False,
    doc="Archive commits after the first savepoint too, and leave those under savepoints alone.",
    since="0.1",
    allowed="true, false",
)

_APART = (Action.CLEAN, Action.ROLLBACK)
_UNDOING = (Action.ROLLBACK, Action.RESTORE)


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """How long the active timeline may be.

    ``deltas`` are what compactions still count, and ``cleaning`` says what has to stay readable.
    """

    least: int
    most: int
    beyond_savepoint: bool
    deltas: int
    cleaning: CleanSettings

    @staticmethod
    def of(options: Mapping[str, str]) -> "ArchiveSettings":
        """Read the settings; ``Invalid`` where they contradict each other."""
        least, most = LEAST.read(options), MOST.read(options)
        if least >= most:
            raise Invalid(
                f"{LEAST.key}={least} is not below {MOST.key}={most}.",
                next_step="Leave some room between them: archiving runs when it is used up.",
                least=least,
                most=most,
            )
        return ArchiveSettings(
            least,
            most,
            BEYOND_SAVEPOINT.read(options),
            MAX_DELTA_COMMITS.read(options),
            CleanSettings.of(options),
        )

    def beside_cleaning(self, view: TimelineView, now: float) -> "ArchiveSettings":
        """Return the settings with room for what cleaning is going to keep readable, as in Hudi.

        That is the earliest write that it keeps, all after it, and the one before it.
        """
        kept = kept_by_policy(view, self.cleaning, now)
        if kept is None:
            return self
        least = sum(i.requested > kept.requested for i in view.data()) + 2
        if least <= self.least:
            return self
        return replace(self, least=least, most=least + self.most - self.least)


@dataclass(frozen=True, slots=True)
class Bound:
    """The earliest instant that stays, and why."""

    instant: str
    why: str


@dataclass(frozen=True, slots=True)
class Archivable:
    """What may leave the timeline, oldest first, and what held back the rest (None: nothing)."""

    instants: tuple[Instant, ...] = ()
    bound: Bound | None = None


def choose_archivable(
    view: TimelineView,
    wanted: ArchiveSettings,
    is_cleaned: Callable[[Instant], bool],
    now: float,
) -> Archivable:
    """Choose what may leave; ``is_cleaned`` says that no file of a replaced group is left."""
    if any(i.action in _UNDOING for i in view.pending()):
        # Whatever is being taken back must be found on the timeline.
        return Archivable(bound=Bound("", "writes are being taken back"))
    writes = view.data()
    bound: Bound | None = None
    chosen: list[Instant] = []
    settings = wanted.beside_cleaning(view, now)
    if wanted.most < len(writes) <= settings.most:
        first = writes[max(0, len(writes) - settings.least)].requested
        bound = Bound(first, f"cleaning by {settings.cleaning} is going to keep it readable")
    if len(writes) > settings.most:
        limit = bound = min(_bounds(view, settings), key=lambda b: b.instant, default=None)
        saved = _savepoints(view) if settings.beyond_savepoint else frozenset()
        free = (
            i
            for i in writes
            if i.requested not in saved and (limit is None or i.requested < limit.instant)
        )
        leaving = len(writes) - settings.least
        for instant in islice(free, leaving):
            if instant.action is Action.REPLACECOMMIT and not is_cleaned(instant):
                bound = Bound(instant.requested, "files of groups that it replaced are left")
                break
            chosen.append(instant)
        if len(chosen) == leaving:
            bound = None
    others = _apart(view, wanted, chosen)
    return Archivable(tuple(sorted((*chosen, *others))), bound)


def _bounds(view: TimelineView, settings: ArchiveSettings) -> Iterator[Bound]:
    writes = view.data()
    pending = min(view.pending_writes, default=None)
    if pending is not None:
        # One completed write stays before it: what precedes the timeline counts as committed.
        before = [i.requested for i in writes if i.requested < pending]
        yield Bound(before[-1] if before else pending, f"{pending} is unfinished")
    if view.config.table_type is TableType.MERGE_ON_READ:
        counted = _counted_for_compaction(view, settings.deltas)
        if counted is not None:
            yield Bound(counted, "compactions count the delta commits since the last one")
    saved = _savepoints(view)
    if saved and not settings.beyond_savepoint:
        yield Bound(min(saved), "there is a savepoint")
    for earliest in _retained(view):
        yield Bound(earliest, "cleaning keeps it readable")


def _savepoints(view: TimelineView) -> frozenset[str]:
    return frozenset(i.requested for i in view.by_action(Action.SAVEPOINT) if i.is_completed)


def _retained(view: TimelineView) -> Iterator[str]:
    """Stream the earliest instants that the last cleaning and unfinished ones keep."""
    last = last_cleaning(view)
    if last is not None and last.earliest_to_retain:
        yield last.earliest_to_retain
    for instant in view.by_action(Action.CLEAN):
        if not instant.is_completed:
            plan = view.plan(instant)
            if isinstance(plan, CleanPlan) and plan.earliest_to_retain is not None:
                yield plan.earliest_to_retain.timestamp


def _counted_for_compaction(view: TimelineView, deltas: int) -> str | None:
    """Return the earliest instant that the trigger of compactions looks at, as Hudi does."""
    done = [
        e.instant.requested
        for e in view.entries
        if e.planned is Action.COMPACTION and e.instant.is_completed
    ]
    last = max(done, default="")
    since = [
        i.requested
        for i in view.data()
        if i.action is Action.DELTACOMMIT and (i.completed or i.requested) > last
    ]
    if len(since) < deltas:
        return last or (since[0] if since else None)
    return since[len(since) - deltas]


def _apart(
    view: TimelineView, settings: ArchiveSettings, writes: list[Instant]
) -> Iterator[Instant]:
    """Stream the cleanings and rollbacks that leave; the last cleaning tells readers what is gone.

    In layout 2 they leave with the writes around them, in layout 1 by their own number.
    """
    last_clean = max(
        (i.requested for i in view.by_action(Action.CLEAN) if i.is_completed), default=""
    )
    for action in _APART:
        done = [i for i in view.by_action(action) if i.is_completed]
        if view.config.layout == 1:
            leaving = done[: len(done) - settings.least] if len(done) > settings.most else []
        else:
            upto = writes[-1].requested if writes else ""
            leaving = [i for i in done if i.requested < upto]
        yield from (i for i in leaving if (i.action, i.requested) != (Action.CLEAN, last_clean))
