"""What a reading may see: from the timeline to a ``Visibility``, and where history ends."""

from bisect import bisect_left
from collections.abc import Callable, Iterator

from lakewright.format.hudi.metadata.clean import CleanMetadata, CleanPlan
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.restore import RestorePlan
from lakewright.model.errors import HistoryGone, InstantNotFound
from lakewright.model.instant import BEGINNING, Action, Instant, State
from lakewright.model.table import TableType
from lakewright.table.state import TableState
from lakewright.table.visibility import Visibility
from lakewright.timeline.moments import whole_second
from lakewright.timeline.view import TimelineView


def see_at(state: TableState, as_of: str | None) -> Visibility:
    """See the table as of a requested time; None for all that has completed.

    An instant counts from the time it was requested, as in Hudi's time travel: a commit that
    began before ``as_of`` and ended after it is seen.
    """
    if as_of is None:
        return _visibility(state, None, None)
    check_retained(state.timeline, as_of)
    return _visibility(state, whole_second(as_of), None)


def see_until(state: TableState, end: str | None) -> Visibility:
    """See the table as it was when everything up to ``end`` had taken effect.

    ``end`` is a completion time in layout 2 and an instant time in layout 1.
    """
    if end is None:
        return _visibility(state, None, None)
    bound = whole_second(end)
    # The state at the end may be one of the archived past, and its files may be gone all the same.
    writes = timeline_from(state, bound).data()
    seen = [i for i in writes if i.completed is not None and i.completed <= bound]
    if seen and len(seen) < len(writes):
        check_retained(state.timeline, max(i.requested for i in seen))
    if state.config.layout == 1:
        return _visibility(state, bound, None)
    return _visibility(state, None, bound)


def window(state: TableState, start: str | None, end: str | None) -> tuple[Instant, ...]:
    """The completed writes after ``start`` up to ``end``, in order of effect.

    Times are as in ``TimelineView.between``. The archived history is read where the window
    begins before the active timeline.
    """
    timeline = timeline_from(state, start)
    return tuple(i for i in timeline.between(start, end) if i.action.writes_data)


def timeline_from(state: TableState, moment: str | None) -> TimelineView:
    """The timeline with all writes that took effect after ``moment``, archived ones among them."""
    timeline = state.timeline
    if moment is None or moment == BEGINNING or timeline.is_archived(moment):
        return timeline.with_history()
    return timeline


#: Where a cleaning that counts versions notes the first instant that can still be read: Hudi's
#: record of it tells none.
READABLE_FROM = "lakewright.readable-from"


def earliest_retained(timeline: TimelineView) -> str | None:
    """The first instant whose files the last cleaning kept; None where nothing bounds it.

    A cleaning that is under way counts: it may have deleted already. Whoever takes writes back
    after a cleaning makes sure that the files of the earlier state are there.
    """
    body = last_cleaning(timeline)
    kept = [_kept_by_unfinished(timeline)]
    if body is not None:
        first = readable_from(body)
        if first:
            first = _standing(timeline, first)
            kept.append(min((first, *_restored_since(timeline, body.start))))
    return max(kept) or None


def readable_from(body: CleanMetadata) -> str:
    """The first instant that can be read after a cleaning, as its record says; "" where untold."""
    return max(body.earliest_to_retain, body.extra.get(READABLE_FROM, ""))


def _kept_by_unfinished(timeline: TimelineView) -> str:
    first = ""
    for instant in timeline.by_action(Action.CLEAN):
        plan = timeline.plan(instant) if instant.state is State.INFLIGHT else None
        if isinstance(plan, CleanPlan):
            bound = plan.earliest_to_retain
            kept = "" if bound is None else bound.timestamp
            first = max(first, kept, plan.extra.get(READABLE_FROM, ""))
    return first


def _standing(timeline: TimelineView, first: str) -> str:
    """Return the write before one that has been rolled back: it is the first that stands."""
    times = [i.requested for i in timeline.data()]
    place = bisect_left(times, first)
    return first if first in times[place : place + 1] or not place else times[place - 1]


def last_cleaning(timeline: TimelineView) -> CleanMetadata | None:
    """The record of the last completed cleaning on the timeline, if there is one."""
    for instant in reversed(timeline.by_action(Action.CLEAN)):
        if instant.is_completed:
            body = timeline.metadata(instant)
            return body if isinstance(body, CleanMetadata) else None
    return None


def _restored_since(timeline: TimelineView, cleaning: str) -> Iterator[str]:
    for instant in timeline.by_action(Action.RESTORE):
        if instant.is_completed and instant.requested > cleaning:
            plan = timeline.plan(instant)
            if isinstance(plan, RestorePlan) and plan.savepoint:
                yield plan.savepoint


def check_retained(timeline: TimelineView, as_of: str) -> None:
    """Refuse a time whose files may have been cleaned away; those of a savepoint are kept."""
    first, moment = earliest_retained(timeline), whole_second(as_of)
    if first is None or moment >= first or _is_saved(timeline, moment):
        return
    raise HistoryGone(
        f"the files of {as_of} were cleaned away: the last cleaning kept {first} and later.",
        next_step=f"Read as of {first} or later, or retain more commits when cleaning.",
        as_of=as_of,
        earliest=first,
    )


def _is_saved(timeline: TimelineView, moment: str) -> bool:
    saved = timeline.by_action(Action.SAVEPOINT)
    return any(i.is_completed and i.requested == moment for i in saved)


def _visibility(state: TableState, as_of: str | None, upto: str | None) -> Visibility:
    timeline = state.timeline
    cut = Visibility(
        layout=state.config.layout,
        completions=timeline.completions,
        start=timeline.committed_before,
        pending=timeline.pending_writes,
        as_of=as_of,
        upto=upto,
    )
    return Visibility(
        layout=cut.layout,
        completions=cut.completions,
        start=cut.start,
        pending=cut.pending,
        as_of=as_of,
        upto=upto,
        replaced=_replaced(timeline, cut),
        compactions=_compactions(state),
        completion_of=timeline.completion_of,
        is_archived=timeline.bodies.is_archived,
        named_by=_named_by(timeline),
    )


def _replaced(timeline: TimelineView, cut: Visibility) -> dict[str, dict[str, str]]:
    """Collect the groups that completed replacements within the cut have taken away."""
    chosen = [
        i
        for i in timeline.by_action(Action.REPLACECOMMIT)
        if i.is_completed and cut.shown[i.requested]
    ]
    gone: dict[str, dict[str, str]] = {}
    for instant, body in timeline.commits(chosen):
        for partition, file_ids in body.replaced.items():
            gone.setdefault(partition, {}).update(dict.fromkeys(file_ids, instant.requested))
    return gone


def _compactions(state: TableState) -> dict[str, dict[str, str]]:
    planned: dict[str, dict[str, str]] = {}
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return planned
    for instant in state.timeline.pending_compactions():
        plan = state.timeline.plan(instant)
        if not isinstance(plan, CompactionPlan):
            continue
        for operation in plan.operations:
            group = planned.setdefault(operation.partition, {})
            group[operation.file_id] = instant.requested
    return planned


def _named_by(timeline: TimelineView) -> Callable[[str], frozenset[str]]:
    """Return a lookup of the paths that a write on the active timeline lists."""
    known: dict[str, frozenset[str]] = {}

    def named(requested: str) -> frozenset[str]:
        if requested not in known:
            known[requested] = _paths_of(timeline, requested)
        return known[requested]

    return named


def _paths_of(timeline: TimelineView, requested: str) -> frozenset[str]:
    if requested not in timeline.completions:
        return frozenset()
    try:
        instant = next(i for i in timeline.data() if i.requested == requested)
        body = timeline.commit_metadata(instant)
    except InstantNotFound:
        return frozenset()
    return frozenset(
        stat.path for stats in body.write_stats.values() for stat in stats if stat.path
    )
