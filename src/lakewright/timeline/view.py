"""What the history of a table says: its instants, and the bodies behind them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.history import read_history
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.model.errors import InstantNotFound
from lakewright.model.instant import (
    BEGINNING,
    Action,
    Instant,
    effective_time,
    parse_point_in_time,
)
from lakewright.model.lazy import lazy
from lakewright.storage.port import Storage
from lakewright.timeline.bodies import Bodies, Metadata, Plan
from lakewright.timeline.committed import Committed
from lakewright.timeline.entries import Entry, entry_order
from lakewright.timeline.html import timeline_html
from lakewright.timeline.moments import whole_second


@dataclass(frozen=True)
class TimelineView:
    """An immutable picture of a table's timeline, taken with one listing.

    ``entries`` are sorted by requested time. Bodies are read when asked for; a body that an
    archiver has moved away meanwhile is found in the archived history.
    """

    storage: Storage
    config: TableConfig
    entries: tuple[Entry, ...]
    bodies: Bodies = field(compare=False, repr=False)
    has_history: bool = False

    # ------------------------------------------------------------------ instants

    @lazy
    def instants(self) -> tuple[Instant, ...]:
        """One instant per action at its furthest state, by requested time."""
        return tuple(entry.instant for entry in self.entries)

    def completed(self) -> tuple[Instant, ...]:
        """The actions that took effect, by requested time."""
        return self._completed

    def pending(self) -> tuple[Instant, ...]:
        """The actions that are requested or in flight."""
        return self._pending

    def by_action(self, *actions: Action) -> tuple[Instant, ...]:
        """The instants of these actions, whatever their state.

        A completed compaction is a commit here, as on storage; ``planned_as`` tells it apart.
        """
        return tuple(i for i in self.instants if i.action in actions)

    def data(self) -> tuple[Instant, ...]:
        """The completed instants that wrote or replaced data, by requested time."""
        return self._data

    def data_since(self, moment: str) -> tuple[Instant, ...]:
        """The completed writes requested at ``moment`` or later, archived ones among them.

        The history is read from there on, and only where the active timeline begins later.
        """
        active = [i for i in self.data() if whole_second(i.requested) >= moment]
        if self.has_history or (self.start is not None and self.start < moment):
            return tuple(active)
        known = {i.requested for i in self.data()}
        # An old time of 14 digits sorts before the longer ones of its second.
        past = self.bodies.archived_writes(moment[:14])
        archived = (i for i in past if whole_second(i.requested) >= moment)
        return tuple(sorted((*(i for i in archived if i.requested not in known), *active)))

    def between(self, start: str | None, end: str | None) -> tuple[Instant, ...]:
        """The completed instants after ``start`` up to and including ``end``, in order of effect.

        Times are completion times in layout 2 and instant times in layout 1; None, and
        ``"000"`` as start, leave that side open.
        """
        after = "" if start is None or start == BEGINNING else self._time(start)
        upto = None if end is None else self._time(end)
        chosen = [
            i
            for i in self.instants
            if i.completed is not None
            and i.completed > after
            and (upto is None or i.completed <= upto)
        ]
        return tuple(sorted(chosen, key=lambda i: (i.completed or "", i.requested)))

    def _time(self, text: str) -> str:
        return whole_second(parse_point_in_time(text, self.config.timezone))

    def find_latest_completed_action_at(
        self, moment: Instant | str | datetime | date
    ) -> Instant | None:
        """The last instant that changed data and had completed at ``moment``, or None.

        An instant stands for the time at which it completed.
        """
        if isinstance(moment, Instant):
            bound = effective_time(moment)
        else:
            bound = parse_point_in_time(moment, self.config.timezone)
        found = self.between(None, bound)
        return next((i for i in reversed(found) if i.action.writes_data), None)

    def latest_data(self) -> Instant | None:
        """The completed instant that wrote data with the greatest requested time."""
        return next(
            (i for i in reversed(self.instants) if i.is_completed and i.action.writes_data), None
        )

    def latest_completion(self) -> str | None:
        """The greatest completion time of an instant that wrote data: where to go on from."""
        return max((i.completed for i in self.data() if i.completed), default=None)

    def instant(self, requested: str, action: Action | None = None) -> Instant:
        """The instant of this requested time; without an action one that is no savepoint."""
        for found in self.instants:
            if found.requested == requested and (
                found.action is action if action else found.action is not Action.SAVEPOINT
            ):
                return found
        raise InstantNotFound(
            f"the timeline has no instant {requested}{f' of {action}' if action else ''}.",
            next_step="See the timeline for those it has, or look into its archived history.",
            instant=requested,
        )

    def planned_as(self, instant: Instant) -> Action:
        """The action that was requested: a compaction completes as a commit, for example."""
        return self._entry(instant).planned

    # ---------------------------------------------------------------- visibility

    @lazy
    def start(self) -> str | None:
        """The first instant of the active timeline; files older than it count as committed.

        A savepoint keeps its commit on the timeline while later ones are archived, so that
        commits under a savepoint do not count, nor do cleanings and rollbacks, which are
        archived apart from commits.
        """
        for entry in self.entries:
            instant = entry.instant
            shapes = instant.is_completed and instant.action.writes_data
            if entry.archived or instant.requested in self._saved:
                continue
            if shapes or instant.action is Action.COMPACTION:
                return instant.requested
        return None

    @lazy
    def completions(self) -> Mapping[str, str]:
        """Completion times by requested time of the completed instants that wrote data."""
        return {i.requested: i.completed for i in self.data() if i.completed is not None}

    @lazy
    def pending_writes(self) -> frozenset[str]:
        """Requested times of unfinished actions that may have left data files."""
        return frozenset(i.requested for i in self.pending() if i.action.completes_as.writes_data)

    @lazy
    def committed_before(self) -> str | None:
        """The time before which all writes count as committed that are not under way.

        That is ``start``. Where no write is left by which to tell what is older, because all
        are under savepoints or were taken back, it lies just behind the newest archived write;
        None where there is no such write either.
        """
        if self.start is not None or not self.entries:
            return self.start
        newest = max(self.bodies.archived_since(BEGINNING), default=None)
        return None if newest is None else _just_after(newest)

    @lazy
    def committed(self) -> Committed:
        """What tells whether an instant is committed, as a value that travels to workers.

        It leaves some questions to the history: ``is_committed`` asks it.
        """
        return Committed.of(self.completions, self.committed_before, self.pending_writes)

    def is_committed(self, requested: str) -> bool:
        """Whether files of this instant are part of the table: completed, or archived.

        What is older than the timeline counts as archived. A time within it that it does not
        know was rolled back, or an archiver was at work while the timeline was listed: the
        history tells which.
        """
        return self.committed.holds(requested, self.bodies.is_archived)

    def completion_of(self, requested: str) -> str | None:
        """When the write took effect; None while it is pending or unknown.

        An archived write is looked up in the history; one that is not even there counts as
        completed when it was requested.
        """
        known = self.completions.get(requested)
        if known is not None or not self.is_committed(requested):
            return known
        return self.bodies.archived_since(requested).get(requested, requested)

    def pending_compactions(self) -> tuple[Instant, ...]:
        """Compactions that are planned and not finished; they still shape the groups they name."""
        return tuple(i for i in self.pending() if i.action is Action.COMPACTION)

    def is_archived(self, moment: str) -> bool:
        """Whether writes that took effect after ``moment`` may have been archived.

        Writes under savepoints stay on the timeline while those around them are archived.
        """
        active = (e.instant for e in self.entries if not e.archived)
        ends = (
            i.completed
            for i in active
            if i.completed and i.action.writes_data and i.requested not in self._saved
        )
        return moment < min(ends, default="9")

    # -------------------------------------------------------------------- bodies

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What a commit, delta commit or replace commit wrote and replaced."""
        return self.bodies.commit(self._entry(instant))

    def commits(self, instants: Iterable[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Stream the metadata of many instants that wrote data; the archived ones in one pass."""
        return self.bodies.commits([self._entry(i) for i in instants])

    def metadata(self, instant: Instant) -> Metadata:
        """The body of a completed instant of any action."""
        return self.bodies.completed(self._entry(instant))

    def plan(self, instant: Instant) -> Plan:
        """The plan with which an instant was requested; None where the action has none."""
        return self.bodies.plan(self._entry(instant))

    # ------------------------------------------------------------------- history

    def with_history(self) -> "TimelineView":
        """The same timeline continued into its archived past, read once."""
        return self if self.has_history else self._with_history

    @lazy
    def _with_history(self) -> "TimelineView":
        active = {(e.instant.requested, e.instant.action.completes_as) for e in self.entries}
        # What began after the listing and is archived already is no past of this picture.
        newest = max((e.instant.requested for e in self.entries), default=None)
        archived = [
            Entry(past.instant, past.instant.action, {}, archived=True)
            for past in read_history(self.storage, self.config)
            if past.instant.is_completed
            and (newest is None or past.instant.requested < newest)
            and (past.instant.requested, past.instant.action.completes_as) not in active
        ]
        entries = tuple(sorted([*archived, *self.entries], key=entry_order))
        return TimelineView(self.storage, self.config, entries, self.bodies, has_history=True)

    # ------------------------------------------------------------------- support

    # Asked many times by one write, and as long as the timeline.
    @lazy
    def _completed(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if i.is_completed)

    @lazy
    def _pending(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if not i.is_completed)

    @lazy
    def _data(self) -> tuple[Instant, ...]:
        return tuple(i for i in self._completed if i.action.writes_data)

    @lazy
    def _saved(self) -> frozenset[str]:
        return frozenset(i.requested for i in self.instants if i.action is Action.SAVEPOINT)

    @lazy
    def _index(self) -> Mapping[tuple[str, Action], Entry]:
        return {(e.instant.requested, e.instant.action.completes_as): e for e in self.entries}

    def _entry(self, instant: Instant) -> Entry:
        found = self._index.get((instant.requested, instant.action.completes_as))
        if found is None and not self.has_history:
            found = self.with_history()._index.get((instant.requested, instant.action.completes_as))
        if found is None:
            raise InstantNotFound(
                f"the timeline has no instant {instant}.",
                next_step="Open the table again: it may have been rolled back or archived.",
                instant=str(instant),
            )
        return found

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __repr__(self) -> str:
        pending = len(self.pending())
        last = self.latest_data()
        return (
            f"TimelineView({self.config.name}: {len(self.instants)} instants, "
            f"{pending} pending, latest {last.requested if last else 'none'})"
        )

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "table", self.config.name
        yield "instants", len(self.instants)
        yield "pending", len(self.pending())
        yield "latest", self.latest_data()

    def _repr_html_(self) -> str:
        return timeline_html(self.config.name, self.instants)


def _just_after(requested: str) -> str:
    return f"{int(requested) + 1:0{len(requested)}d}"
