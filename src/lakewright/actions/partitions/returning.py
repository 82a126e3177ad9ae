"""Rows of file groups that were replaced come back, in one commit, beside what was written since.

A key that was written since wins over the old row, also where it was deleted again. Every row that
comes back keeps what Hudi's own columns say of it. In bucket tables rows go into the buckets that
their partition has now, together with the rows that are there.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewright.actions.buckets.rescale_commit import OVERTAKEN, Replacing, replacing
from lakewright.actions.buckets.rescale_slices import checked_slices, finished_slices
from lakewright.actions.partitions.since import Since, written_after
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import list_slices, written_since
from lakewright.actions.tasks.rescale import RescaleWork, rescale_class, rescale_works
from lakewright.actions.tasks.returning import ReturnWork, return_slice
from lakewright.actions.write.bucket_admission import admit_index
from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.index.hashing_store import HashingStore, check_counts
from lakewright.index.layout import IndexLayout
from lakewright.model.errors import Conflict, Corrupt, HistoryGone, NotFound, Unsupported
from lakewright.model.files import FileSlice
from lakewright.model.instant import Instant
from lakewright.model.logs import facts
from lakewright.table.state import TableState
from lakewright.timeline.committing import Rivals
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gone:
    """The slices that a partition had; ``buckets`` is how many it had, None without buckets."""

    partition: str
    slices: tuple[FileSlice, ...]
    buckets: int | None = None


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """What came back: rows, and how many old ones stayed out because their keys are live.

    ``deleted`` rows stayed out because their keys were written since and then deleted. ``untold``
    writes since deleted rows whose keys no file tells any more: those came back.
    """

    instant: Instant
    rows: int
    kept_out: int
    files: int
    deleted: int = 0
    untold: int = 0


#: Looks at the table that a commit builds on, and at the one that it completes on; raises where
#: the rows must not come back.
CheckBack = Callable[[TimelineView], None]


def bring_back(
    work: Servicing, gone: Sequence[Gone], drop: str, extra: Mapping[str, str], check: CheckBack
) -> BroughtBack:
    """Bring the rows of partitions back, in one commit that carries ``extra``.

    ``drop`` is the instant by which they went. Commits that carry an entry of the same name as
    one of ``extra`` are taken for such as this one: they moved rows and deleted none.
    ``Conflict``, with ``OVERTAKEN`` among its facts, where the partitions are written meanwhile:
    nothing was changed, and it may be tried again. ``HistoryGone`` where files are gone.
    """
    state = work.state.refresh()
    check(state.timeline)
    layout = admit_index(state, work.options)
    back = _Back(work, state, layout, tuple(gone), drop, extra)
    groups = {one.partition: back.rewritten(one) for one in gone}
    with replacing(work, groups, state.timeline, extra) as begun:
        check(begun.state.timeline)
        back.check_alone(begun)
        try:
            found = back.write(begun)
        except NotFound as cause:
            back.check_later(cause)
            raise HistoryGone(
                f"a file of before went while rows came back: {cause.message}",
                next_step="Nothing was changed. What was cleaned away cannot come back.",
            ) from cause

        def guard(rivals: Rivals, view: TimelineView) -> None:
            check(view)
            back.guard(begun, found.stats, rivals, view)

        work.progress.stage("publishing")
        done = begun.publish(found.stats, guard, extra)
    told = facts(
        table=state.storage.uri,
        instant=done.requested,
        rows=found.rows,
        kept_out=found.kept_out,
        deleted=found.deleted,
        untold=back.untold,
    )
    log.info("rows brought back", extra=told)
    return BroughtBack(
        done, found.rows, found.kept_out, len(found.stats), found.deleted, back.untold
    )


def written_since_drop(
    state: TableState,
    options: Mapping[str, str],
    partitions: Sequence[str],
    drop: str,
    moving: Collection[str],
) -> Since:
    """Find what was written since partitions were dropped, wherever their keys may be now."""
    everywhere = _is_everywhere(admit_index(state, options))
    return written_after(state, drop, None if everywhere else partitions, moving)


def _is_everywhere(layout: IndexLayout) -> bool:
    """Whether the keys of a partition may have come to any other."""
    return layout.kind.is_global and layout.buckets is None


@dataclass(slots=True)
class _Found:
    """What tasks wrote: their stats, the rows that came back, and those that did not."""

    stats: list[WriteStat] = field(default_factory=list)
    rows: int = 0
    kept_out: int = 0
    deleted: int = 0


class _Back:
    """One attempt: the slices of before, and the live ones of the same partitions."""

    def __init__(
        self,
        work: Servicing,
        state: TableState,
        layout: IndexLayout,
        gone: tuple[Gone, ...],
        drop: str,
        extra: Mapping[str, str],
    ) -> None:
        self._work = work
        self._layout = layout
        self._gone = gone
        self._seen = state.timeline
        self._whole = layout.kind.is_global
        self._fields = layout.hash_fields or state.config.record_key
        named = [one.partition for one in gone]
        self._everywhere = _is_everywhere(layout)
        found = list_slices(state, None if self._everywhere else named)
        self._live = {path: tuple(finished_slices(state, slices)) for path, slices in found}
        self._since = written_after(state, drop, None if self._everywhere else named, extra)
        self.untold = self._since.untold
        for one in gone:
            self._check_gone(one)

    def _check_gone(self, one: Gone) -> None:
        live = {piece.group.file_id for piece in self._live.get(one.partition, ())}
        both = sorted(live & {piece.group.file_id for piece in one.slices})
        if both:
            raise Conflict(
                f"the file group {both[0]} of partition {one.partition!r} is live: what was "
                "dropped is back already.",
                next_step="Look at the timeline: somebody took the drop back.",
                partition=one.partition,
            )
        if (one.buckets is None) != (self._layout.buckets is None):
            raise Unsupported(
                f"partition {one.partition!r} was dropped while the table had another index.",
                next_step="Read the old rows with as_of=, and write them.",
                partition=one.partition,
            )
        if one.buckets is not None:
            checked_slices(one.partition, one.slices, one.buckets)

    def rewritten(self, one: Gone) -> tuple[FileSlice, ...]:
        """Return the live slices of a partition that are written anew with what comes back."""
        if one.buckets is None:
            return ()
        live = checked_slices(
            one.partition, self._live.get(one.partition, ()), self._number(one.partition)
        )
        step = math.gcd(one.buckets, self._number(one.partition))
        classes = {_bucket(piece) % step for piece in one.slices}
        return tuple(piece for piece in live if _bucket(piece) % step in classes)

    def check_alone(self, begun: Replacing) -> None:
        """Refuse where keys may have come to other partitions since the table was looked at."""
        if self._whole and written_since(self._seen, begun.state.timeline):
            raise _overtaken("the table was written while the rows began to come back")

    def check_later(self, gone: NotFound) -> None:
        """Look anew where the file that is gone is one of a later write: it was cleaned away."""
        path = str(gone.facts.get("path", ""))
        later = (piece for slices in self._since.slices.values() for piece in slices)
        if any(path.endswith(one) for piece in later for one in piece.paths):
            raise _overtaken(f"{path} was cleaned away while the rows came back") from gone

    def write(self, begun: Replacing) -> _Found:
        """Let tasks write the new groups."""
        if self._layout.buckets is None:
            return self._write_groups(begun)
        return self._write_buckets(begun)

    def _write_groups(self, begun: Replacing) -> _Found:
        since = self._since
        items = [
            ReturnWork(piece, self._near(one.partition), self._later(one.partition), since.instants)
            for one in self._gone
            for piece in one.slices
        ]
        self._work.progress.stage("bringing rows back", len(items))
        found = _Found()
        executor = self._work.executor
        for made in executor.map(return_slice, begun.spec, items, size=lambda item: item.size):
            rows = sum(stat.num_writes for stat in made.stats)
            self._work.progress.advance(rows=rows, files=len(made.stats))
            found.stats.extend(made.stats)
            found.rows += rows
            found.kept_out += made.kept_out
            found.deleted += made.deleted
        return found

    def _later(self, partition: str) -> tuple[FileSlice, ...]:
        """Return the slices with files of later writes in which keys of a partition may be."""
        if not self._everywhere:
            return self._since.slices.get(partition, ())
        return tuple(piece for slices in self._since.slices.values() for piece in slices)

    def _near(self, partition: str) -> tuple[FileSlice, ...]:
        """Return the live slices in which keys of a partition may be."""
        if not self._whole:
            return self._live.get(partition, ())
        return tuple(piece for slices in self._live.values() for piece in slices)

    def _write_buckets(self, begun: Replacing) -> _Found:
        items = [work for one in self._gone for work in self._bucket_works(one)]
        self._work.progress.stage("bringing rows back", len(items))
        found = _Found()
        read: Counter[str] = Counter()
        wrote: Counter[str] = Counter()
        over = 0
        executor = self._work.executor
        for made in executor.map(rescale_class, begun.spec, items, size=lambda item: item.size):
            rows = sum(stat.num_writes for stat in made.stats)
            self._work.progress.advance(rows=rows, files=len(made.stats))
            found.stats.extend(made.stats)
            wrote[made.partition] += rows
            if made.first:
                read[made.partition] += made.rows_read
                over += made.rows_over
                found.kept_out += made.kept_out
                found.deleted += made.deleted
        for partition, count in read.items():
            if wrote[partition] != count:
                raise Corrupt(
                    f"{count} rows of partition {partition!r} were read, and {wrote[partition]} "
                    "written.",
                    next_step="Nothing was changed; check the table with fsck.",
                    partition=partition,
                )
        found.rows = sum(read.values()) - over
        return found

    def _bucket_works(self, one: Gone) -> Iterator[RescaleWork]:
        assert one.buckets is not None
        after = self._number(one.partition)
        step = math.gcd(one.buckets, after)
        live = self._live.get(one.partition, ())
        for work in rescale_works(one.slices, self._fields, one.buckets, after, after):
            place = work.buckets.start % step
            over = tuple(piece for piece in live if _bucket(piece) % step == place)
            size = work.size + 2 * sum(max(piece.size, 0) for piece in over)
            since = self._later(one.partition)
            if one.partition not in self._since.rescaled:
                since = tuple(piece for piece in since if _bucket(piece) % step == place)
            yield replace(work, over=over, size=size, since=since, instants=self._since.instants)

    def guard(
        self, begun: Replacing, stats: Sequence[WriteStat], rivals: Rivals, view: TimelineView
    ) -> None:
        """Refuse where others wrote to the partitions, or changed their numbers of buckets."""
        mine = {one.partition for one in self._gone}
        for rival, body in rivals:
            touched = {*body.write_stats, *body.replaced}
            if touched and (self._whole or touched & mine):
                raise _overtaken(f"{rival.requested} wrote to the partitions that come back")
        counts = self._layout.buckets
        if counts is not None:
            store = HashingStore(begun.state.storage)
            written = sorted({stat.partition_path or "" for stat in stats})
            lacking = check_counts(store, view, counts, written)
            if lacking:
                store.write_meta(begun.ticket.instant, lacking, view)

    def _number(self, partition: str) -> int:
        assert self._layout.buckets is not None
        return self._layout.buckets.number_of(partition)


def _bucket(piece: FileSlice) -> int:
    number = bucket_number(piece.group.file_id)
    assert number is not None
    return number


def _overtaken(what: str) -> Conflict:
    return Conflict(f"{what}.", next_step="Nothing was changed; try again.", **{OVERTAKEN: True})
