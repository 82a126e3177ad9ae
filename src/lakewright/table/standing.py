"""Whether what a picture of a table shows still lies on storage: what a reading asks last.

A reading is pinned to the timeline that it began with, and lists folders later. A cleaning that
was quicker leaves no trace in such a listing: the files are not there, and fewer rows would be
the answer. So the timeline is listed once more when the folders have been, and what happened since
is looked at: a cleaning notes the files it takes before it takes the first of them, and a write
that is taken back leaves the timeline before its files go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lakewright.format.hudi.history import ArchivedInstant, read_history
from lakewright.format.hudi.metadata.clean import (
    CleanMetadata,
    CleanPlan,
    cleaned_names,
    decode_clean,
    decode_clean_plan,
    planned_names,
)
from lakewright.model.errors import NotFound, SnapshotGone
from lakewright.model.instant import Action, Instant, State
from lakewright.table.horizon import READABLE_FROM, last_cleaning, readable_from
from lakewright.table.partitions import Tree, list_partitions
from lakewright.table.pruning import Tally
from lakewright.table.slicing import Listing, latest_slices
from lakewright.table.state import TableState, table_schema
from lakewright.table.visibility import Visibility
from lakewright.timeline.load import list_timeline
from lakewright.timeline.view import TimelineView

#: The policy of cleanings that keep no instant readable, and tell none.
_BY_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from listings of a table.

    ``takes`` returns the paths that the reading takes from the files of a partition, ``enters``
    says whether it looks at a partition at all.
    """

    state: TableState
    visible: Visibility
    takes: Callable[[Listing], Iterable[str]]
    enters: Callable[[str], bool] = lambda partition: True


def reading_of(state: TableState, visible: Visibility) -> Reading:
    """Return the reading of everything that is visible."""

    def takes(listing: Listing) -> Iterator[str]:
        return (path for piece in latest_slices(listing, visible) for path in piece.paths)

    return Reading(state, visible, takes)


def check_standing(reading: Reading) -> None:
    """Raise ``SnapshotGone`` where what was listed before this call may not have been whole.

    The timeline is listed once. Nothing else is read where no cleaning took files, and no write
    left the timeline, since the picture was taken.
    """
    state = reading.state
    now = list_timeline(state.storage, state.config)
    if now.entries != state.timeline.entries:
        _check_taken_back(reading, now)
    check_cleaned(reading, now)


def check_cleaned(reading: Reading, now: TimelineView) -> None:
    """Raise ``SnapshotGone`` where a cleaning took a file that the reading needs.

    ``now`` is the timeline after the reading has listed what it needs.
    """
    cleanings = [c for c in _cleanings(reading, now) if not _spares(reading, c)]
    if not cleanings:
        return
    taken: dict[str, dict[str, str]] = {}
    for cleaning in cleanings:
        for partition, names in cleaning.names.items():
            if reading.enters(partition):
                taken.setdefault(partition, {}).update(dict.fromkeys(names, cleaning.instant))
    state = reading.state
    tree = Tree(state.storage, state.config, table_schema(state))
    # Listed again: what is left of these partitions tells which of the files that went were
    # still in use, and a listing of before would have to be kept for all partitions.
    for descriptor, folder in list_partitions(tree, sorted(taken), (), Tally()):
        there = frozenset(folder.names)
        gone = {n: by for n, by in taken[descriptor.path].items() if n not in there}
        whole = Listing(
            descriptor.path, (*folder.names, *gone), (*folder.sizes, *(-1 for _ in gone))
        )
        for path in reading.takes(whole) if gone else ():
            name = path.rpartition("/")[2]
            if name in gone:
                raise snapshot_gone(
                    f"the cleaning {gone[name]} took {path}, which the state of the table that is "
                    "read needs.",
                    instant=gone[name],
                    path=path,
                )


@contextmanager
def files_standing() -> Iterator[None]:
    """Tell of a file that was listed and is not there any more as what it is: ``SnapshotGone``."""
    try:
        yield
    except NotFound as missing:
        if type(missing) is not NotFound:
            raise
        path = missing.facts.get("path")
        raise snapshot_gone(f"{path} is gone since it was listed.", path=path) from missing


def snapshot_gone(why: str, **facts: object) -> SnapshotGone:
    """Return the error of a reading whose files went while it was at work."""
    return SnapshotGone(
        f"the answer would not be whole: {why}",
        next_step="Ask again for the table as it is now: make the scan anew. A cleaning that "
        "leaves readers more time (lakewright.clean.grace) does not overtake them.",
        **facts,
    )


# ------------------------------------------------------------------ writes that were taken back


def _check_taken_back(reading: Reading, now: TimelineView) -> None:
    there = now.completions
    missing = {
        i.requested
        for i in reading.state.timeline.data()
        if i.requested not in there and reading.visible.shown[i.requested]
    }
    if missing:
        state = reading.state
        first = min(missing)
        for past in read_history(state.storage, state.config, after=_just_before(first)):
            missing.discard(past.instant.requested)
    if missing:
        raise snapshot_gone(
            f"the write {min(missing)}, which it counts, has left the timeline since.",
            instant=min(missing),
        )


def _just_before(requested: str) -> str:
    return f"{int(requested) - 1:0{len(requested)}d}"


# ------------------------------------------------------------------------------------ cleanings


@dataclass(frozen=True, slots=True)
class _Cleaning:
    """What a cleaning took, or is about to take; ``first`` can still be read, "" where untold."""

    instant: str
    first: str
    names: Mapping[str, frozenset[str]]


def _cleanings(reading: Reading, now: TimelineView) -> Iterator[_Cleaning]:
    """Stream the cleanings that may have taken files after the picture was taken.

    A plan that nobody has begun to carry out has taken nothing. Those that were complete in the
    picture count for readings of the past, where they do not tell what can still be read.
    """
    timeline = reading.state.timeline
    before = [i.requested for i in timeline.by_action(Action.CLEAN) if i.is_completed]
    known = set(before)
    if before and _is_past(reading.visible) and _tells_nothing(timeline):
        moment = _moment(reading.visible)
        known = {requested for requested in known if requested < moment}
    begun = [i for i in now.by_action(Action.CLEAN) if i.state is not State.REQUESTED]
    fresh = [i for i in begun if i.requested not in known]
    for instant in fresh:
        yield _read(now, instant)
    on_timeline = {i.requested for i in begun}
    # Cleanings are archived oldest first, in layout 1 apart from writes.
    unbroken = bool(before) and before[-1] in on_timeline
    if _was_archived(timeline, now) or (fresh and not unbroken):
        yield from _archived(reading.state, known | on_timeline)


def _is_past(visible: Visibility) -> bool:
    return visible.as_of is not None or visible.upto is not None


def _tells_nothing(timeline: TimelineView) -> bool:
    last = last_cleaning(timeline)
    return last is not None and not readable_from(last)


def _was_archived(before: TimelineView, now: TimelineView) -> bool:
    """Whether writes have left the timeline; cleanings of the same time may have left with them."""
    return any(i.requested not in now.completions for i in before.data())


def _read(view: TimelineView, instant: Instant) -> _Cleaning:
    plan = view.plan(instant)
    if isinstance(plan, CleanPlan):
        return _planned(instant.requested, plan)
    body = view.metadata(instant)
    if isinstance(body, CleanMetadata):
        return _done(instant.requested, body)
    return _Cleaning(instant.requested, "", {})


def _archived(state: TableState, known: Iterable[str]) -> Iterator[_Cleaning]:
    """Stream the cleanings that took place since the picture and were archived since, too."""
    timeline = state.timeline
    open_then = [i.requested for i in timeline.by_action(Action.CLEAN) if not i.is_completed]
    newest = [i.requested for i in timeline.instants[-1:]]
    since = min((*open_then, *newest), default=None)
    after = None if since is None else _just_before(since)
    for past in read_history(state.storage, state.config, after=after):
        instant = past.instant
        if instant.action is Action.CLEAN and instant.requested not in known:
            yield _from_history(past)


def _from_history(past: ArchivedInstant) -> _Cleaning:
    requested, name = past.instant.requested, str(past.instant)
    if past.plan:
        return _planned(requested, decode_clean_plan(past.plan, name))
    if past.metadata:
        return _done(requested, decode_clean(past.metadata, name))
    return _Cleaning(requested, "", {})


def _planned(requested: str, plan: CleanPlan) -> _Cleaning:
    noted = plan.extra.get(READABLE_FROM, "")
    bound = plan.earliest_to_retain
    counts = bound is not None and plan.policy != _BY_VERSIONS
    first = max(noted, bound.timestamp) if bound is not None and counts else noted
    names = {partition: frozenset(some) for partition, some in planned_names(plan)}
    return _Cleaning(requested, first, names)


def _done(requested: str, body: CleanMetadata) -> _Cleaning:
    names = {partition: frozenset(some) for partition, some in cleaned_names(body)}
    return _Cleaning(requested, readable_from(body), names)


def _spares(reading: Reading, cleaning: _Cleaning) -> bool:
    """Whether the reading is of a moment that the cleaning keeps readable by its own bound.

    That is one by requested times. It says nothing about a reading which passes over a write of
    before its moment, because that took effect later.
    """
    visible, timeline = reading.visible, reading.state.timeline
    moment = _moment(visible)
    if not cleaning.first or cleaning.first > moment:
        return False
    passed_over = (i.requested for i in timeline.data() if not visible.shown[i.requested])
    return all(r > moment for r in (*passed_over, *timeline.pending_writes))


def _moment(visible: Visibility) -> str:
    """The newest write that the reading sees; what is archived is older than any cleaning."""
    return max((r for r in visible.completions if visible.shown[r]), default="")
