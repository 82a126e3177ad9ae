"""Partition statistics: gathered by listing once, then kept up to date from the timeline.

The first gathering lists the whole table. A later one opens the instants that completed since,
and lists the partitions that they touched:

- writes, replacements, compaction, clustering, rescaling: the partitions they name. All change
  sizes; those that changed rows are a modification, too.
- a rollback: the partitions it cleared. Where the write had been counted, the last modification
  is looked up again.
- the rollback by which partitions of a plan came back: a modification, as notes of it tell.
- a restore, and the rollback of a replacement, which brings groups back that it does not name:
  everything is gathered anew.
- cleaning, savepoints, indexing: nothing, since they leave the latest slices as they are.

Which groups of a touched partition are replaced is told by the replace commits on the timeline, so
that those are opened as every reader opens them. Where instants may have come and been archived
since, everything is gathered anew. Each such reason is said in the log.

In merge-on-read tables of layout 1 the name of a log does not tell its write: one that is being
written counts from the moment it is there.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewright.actions.write.progress import Progress, Silence
from lakewright.format.hudi.metadata.commit import UNDO_ENTRY
from lakewright.format.hudi.metadata.rollback import RollbackMetadata, RollbackPlan
from lakewright.lifecycle.drops.restored import restored_instant, restored_partitions
from lakewright.lifecycle.ttl.last_changes import changes_rows, last_changes, written_partitions
from lakewright.lifecycle.ttl.partition_stat import Gathered, PartitionStat, PartitionStats
from lakewright.lifecycle.ttl.statistics_store import StatisticsStore
from lakewright.model.errors import Denied
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.schema import Struct
from lakewright.model.table import TableType
from lakewright.storage.port import Folder
from lakewright.table.horizon import see_at
from lakewright.table.partitions import SKIPPED, Tree, list_partitions
from lakewright.table.pruning import Tally
from lakewright.table.slicing import Listing, Measure, measure
from lakewright.table.state import TableState

__all__ = ["PartitionStat", "PartitionStats", "bytes_of", "gather", "verify"]

log = logging.getLogger(__name__)

#: The instant of a table to which nothing has been written.
NEVER = "0" * 17
#: Besides writes, what completes and may change the statistics or what is known of the archive.
_TAKING_BACK = frozenset({Action.ROLLBACK, Action.RESTORE})
_NOTED = _TAKING_BACK | {Action.SAVEPOINT}


def gather(
    state: TableState, *, rebuild: bool = False, progress: Progress | None = None
) -> PartitionStats:
    """Return the statistics of a table as of ``state``, and keep them with it.

    What is kept is brought up to date; with ``rebuild``, or where nothing usable is kept, the
    table is listed. Partitions without a live file are not among them. Who may not write to the
    table gets them all the same, and they are not kept.
    """
    store = StatisticsStore(state.storage)
    now = _Now.of(state)
    if not now.writes:
        return PartitionStats(NEVER, {})
    told = Silence() if progress is None else progress
    kept = None if rebuild else _continued(state, now, store, told)
    found = _listed(state, now, told) if kept is None else kept.gathered
    if kept is None or kept.changed or store.damaged:
        try:
            store.save(found)
        except Denied as refused:
            log.info("partition statistics are not kept", extra=facts(why=str(refused)))
    return found.stats


def bytes_of(state: TableState, stats: PartitionStats, wanted: Collection[str]) -> dict[str, int]:
    """List partitions; return the bytes of their latest slices, for those that hold live files.

    ``stats`` tell how many partitions there are: of one half and more of them the whole table is
    listed, which costs less then. So no question costs more than gathering everything anew.
    """
    if 2 * len(wanted) < len(stats.partitions):
        found = _relisted(state, wanted, Silence())
    else:
        found = _measured(state, _folders(state), Silence())
    return {path: held.bytes for path, held in found if path in wanted}


def verify(state: TableState) -> tuple[str, ...]:
    """Compare what is kept, brought up to date, with a listing of the table; nothing is changed.

    One line per difference; none where nothing is kept.
    """
    store = StatisticsStore(state.storage)
    now = _Now.of(state)
    kept = _continued(state, now, store, Silence()) if now.writes else None
    lines = [f"{path} cannot be read" for path in store.damaged]
    if kept is not None:
        listed = _listed(state, now, Silence())
        lines += _differences(kept.gathered.stats.partitions, listed.stats.partitions)
    return tuple(lines)


def _differences(
    kept: Mapping[str, PartitionStat], listed: Mapping[str, PartitionStat]
) -> Iterator[str]:
    for path in sorted(kept.keys() | listed.keys()):
        mine, true = kept.get(path), listed.get(path)
        if mine is None:
            yield f"{path!r} holds files and is not in the statistics"
        elif true is None:
            yield f"{path!r} is in the statistics and holds no files"
        else:
            if mine.bytes != true.bytes:
                yield f"{path!r} has {true.bytes} bytes, the statistics say {mine.bytes}"
            if mine.last_modified != true.last_modified:
                yield (
                    f"{path!r} was modified by {true.last_modified}, "
                    f"the statistics say {mine.last_modified}"
                )


# ------------------------------------------------------------------------- the timeline


@dataclass(frozen=True, slots=True)
class _Now:
    """The timeline as the statistics see it; instants by the names under which they are kept."""

    writes: Mapping[str, Instant]
    others: Mapping[str, Instant]
    pending: frozenset[str]

    @staticmethod
    def of(state: TableState) -> "_Now":
        timeline = state.timeline
        return _Now(
            {_name(i): i for i in timeline.data()},
            {_name(i): i for i in timeline.completed() if i.action in _NOTED},
            frozenset(_name(i) for i in timeline.pending() if i.action.completes_as.writes_data),
        )

    @property
    def seen(self) -> frozenset[str]:
        return frozenset((*self.writes, *self.others))

    def new(self, seen: frozenset[str]) -> list[Instant]:
        """The completed instants that are not among those seen, savepoints left out."""
        found = (*self.writes.items(), *self.others.items())
        fresh = (i for name, i in found if name not in seen)
        return [i for i in fresh if i.action is not Action.SAVEPOINT]

    def with_stats(self, partitions: Mapping[str, PartitionStat]) -> Gathered:
        completed = (*self.writes.values(), *self.others.values())
        newest = max(i.requested for i in completed if i.action is not Action.SAVEPOINT)
        return Gathered(PartitionStats(newest, partitions), self.seen, self.pending)


def _name(instant: Instant) -> str:
    done = f"_{instant.completed}" if instant.completed else ""
    return f"{instant.requested}{done}.{instant.action.completes_as}"


def _requested(name: str) -> str:
    return name.partition(".")[0].partition("_")[0]


def _action(name: str) -> str:
    return name.rpartition(".")[2]


# ------------------------------------------------------------------------- refreshing


@dataclass(frozen=True, slots=True)
class _Refreshed:
    gathered: Gathered
    changed: bool


@dataclass(frozen=True, slots=True)
class _News:
    """What happened since statistics were gathered: writes, and what was taken back."""

    writes: tuple[Instant, ...]
    undone: frozenset[str]
    cleared: frozenset[str]


def _continued(
    state: TableState, now: _Now, store: StatisticsStore, progress: Progress
) -> _Refreshed | None:
    """Bring the newest usable statistics up to date; None where there are none."""
    for kept in store.load():
        news = _news(state, now, kept)
        if isinstance(news, _News):
            return _refreshed(state, now, kept, news, progress)
        log.info(
            "partition statistics cannot be continued",
            extra=facts(instant=kept.stats.instant, why=news),
        )
    return None


def _news(state: TableState, now: _Now, kept: Gathered) -> _News | str:
    """Find out what happened since; a text says why that cannot be told any more."""
    fresh = now.new(kept.seen)
    if any(i.action is Action.RESTORE for i in fresh):
        return "the table was restored"
    undone: set[str] = set()
    cleared: set[str] = set()
    for instant in fresh:
        if instant.action is Action.ROLLBACK:
            times, partitions = _taken_back(state, instant)
            undone |= times
            cleared |= partitions
    lost = _lost(state, now, kept, undone)
    if lost is not None:
        return lost
    writes = tuple(i for i in fresh if i.action.writes_data)
    return _News(writes, frozenset(undone), frozenset(cleared))


def _taken_back(state: TableState, rollback: Instant) -> tuple[set[str], set[str]]:
    """Return the requested times that a rollback undid, and the partitions that it cleared."""
    times: set[str] = set()
    partitions: set[str] = set()
    body, plan = state.timeline.metadata(rollback), state.timeline.plan(rollback)
    if isinstance(body, RollbackMetadata):
        times.update(body.commits, (info.time for info in body.instants))
        partitions.update(body.partitions)
    if isinstance(plan, RollbackPlan):
        # A rollback that was cut off and finished by another records the second half.
        times.update(() if plan.instant is None else (plan.instant.time,))
        partitions.update(request.partition for request in plan.requests)
    return times, partitions


def _lost(state: TableState, now: _Now, kept: Gathered, undone: set[str]) -> str | None:
    """Say why an instant may have come or gone without a trace; None where none can have.

    Archiving takes the oldest first, savepoints aside. As long as one write that was seen is
    still on the timeline, none that came after it has been archived.
    """
    saved = {
        _requested(name) for name in (*kept.seen, *now.others) if _action(name) == Action.SAVEPOINT
    }
    oldest = min((_requested(n) for n in now.writes if _requested(n) not in saved), default="9")
    written = {name for name in kept.seen if Action(_action(name)).writes_data}
    if not any(name in now.writes and _requested(name) not in saved for name in written):
        return "instants may have been archived since"
    for name in written - now.writes.keys():
        requested = _requested(name)
        if requested in undone:
            if _action(name) == Action.REPLACECOMMIT:
                return f"the replacement {requested} was rolled back"
        elif requested > oldest:
            return f"{requested} has left the timeline"
    shared_logs = state.config.layout == 1 and state.config.table_type is TableType.MERGE_ON_READ
    there = {_requested(name) for name in (*now.writes, *now.pending)}
    for name in kept.pending:
        requested = _requested(name)
        if requested in there or requested in undone:
            continue
        if requested < oldest or shared_logs:
            return f"the write {requested}, which was under way, has left the timeline"
    return None


def _refreshed(
    state: TableState, now: _Now, kept: Gathered, news: _News, progress: Progress
) -> _Refreshed:
    if now.seen <= kept.seen:
        return _Refreshed(kept, changed=False)
    partitions = dict(kept.stats.partitions)
    touched = set(news.cleared)
    changed: dict[str, str] = {}
    moved: set[str] = set()
    progress.stage("reading what completed since", len(news.writes))
    undoes = bool(news.undone)
    for instant, body in state.timeline.commits(news.writes):
        undoes |= UNDO_ENTRY in body.extra
        touched.update(body.write_stats, body.replaced)
        if changes_rows(body):
            for path in written_partitions(body):
                changed[path] = max(changed.get(path, ""), instant.requested)
        else:
            moved.add(instant.requested)
        progress.advance()
    if news.undone:
        touched.update(p for p, stat in partitions.items() if stat.last_modified in news.undone)
    measured = dict(_relisted(state, touched, progress)) if touched else {}
    sought: dict[str, str] = {}
    for path in touched:
        before = partitions.pop(path, None)
        if path not in measured:
            continue
        if before is None or before.last_modified in news.undone:
            # Of what was known nothing holds, and what is new need not have the latest time.
            sought[path] = changed.get(path, "")
        else:
            changed[path] = max(changed.get(path, ""), before.last_modified)
    if sought:
        search = last_changes(state, sought, [i.requested for i in news.writes])
        changed.update(search.known)
        moved |= search.moved
    for path, found in measured.items():
        time = changed.get(path) or _named_time(found, moved)
        partitions[path] = PartitionStat(path, time, found.bytes)
    log.info(
        "partition statistics were brought up to date",
        extra=facts(
            since=kept.stats.instant,
            instants=len(news.writes),
            listed=len(touched),
            partitions=len(partitions),
        ),
    )
    if undoes:
        _count_undoes(state, partitions)
    return _Refreshed(now.with_stats(partitions), changed=True)


# ---------------------------------------------------------------------------- listing


def _named_time(found: Measure, moved: set[str]) -> str:
    """Return the newest time in the names of files, of a write that changed rows where one did.

    Asked where no history tells of the partition any more.
    """
    return max((t for t in found.instants if t not in moved), default=max(found.instants))


def _listed(state: TableState, now: _Now, progress: Progress) -> Gathered:
    """List the whole table."""
    progress.stage("listing the partitions")
    found = dict(_measured(state, _folders(state), progress))
    progress.stage("reading the timeline")
    changes = last_changes(state, dict.fromkeys(found, ""))
    partitions = {
        path: PartitionStat(
            path, changes.known[path] or _named_time(held, changes.moved), held.bytes
        )
        for path, held in found.items()
    }
    _count_undoes(state, partitions)
    log.info("partition statistics were gathered", extra=facts(partitions=len(partitions)))
    return now.with_stats(partitions)


def _count_undoes(state: TableState, partitions: dict[str, PartitionStat]) -> None:
    """Put in the time at which an undo brought partitions back, where that is the latest.

    A rollback leaves a note alone, and so does a commit in partitions where all rows stayed out.
    """
    for path, back in restored_partitions(state.storage).items():
        stat = partitions.get(path)
        if stat is not None:
            time = max(stat.last_modified, restored_instant(back.at, state.config.timezone))
            partitions[path] = stat._replace(last_modified=time)


def _folders(state: TableState) -> Iterator[Folder]:
    if not state.config.partition_fields:
        yield from _named(state, ("",))
        return
    for folder in state.storage.walk("", skip=SKIPPED):
        if "/." not in f"/{folder.path}":
            yield folder


def _relisted(
    state: TableState, paths: Iterable[str], progress: Progress
) -> Iterator[tuple[str, Measure]]:
    named = sorted(paths)
    progress.stage("listing the partitions", len(named))
    return _measured(state, _named(state, named), progress)


def _named(state: TableState, paths: Sequence[str]) -> Iterator[Folder]:
    # What the values of a partition are is of no interest here, so that no schema is needed.
    tree = Tree(state.storage, state.config, Struct(()))
    return (folder for _, folder in list_partitions(tree, paths, (), Tally()))


def _measured(
    state: TableState, folders: Iterable[Folder], progress: Progress
) -> Iterator[tuple[str, Measure]]:
    """Stream the partitions that hold live files."""
    visible = see_at(state, None)
    # Very many partitions have the same few times in their names.
    shared: dict[frozenset[str], frozenset[str]] = {}
    for folder in folders:
        found = measure(Listing(folder.path, folder.names, folder.sizes), visible)
        progress.advance(files=len(folder.names))
        if found is not None:
            times = shared.setdefault(found.instants, found.instants)
            yield folder.path, Measure(found.bytes, times)
