"""The file groups of a bucket table's partitions, each the only one of its bucket."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakewright.actions.services.servicing import Servicing
from lakewright.actions.write.admission import check_config
from lakewright.actions.write.bucket_admission import admit_index
from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.layout import IndexLayout
from lakewright.model.errors import Invalid, NotFound
from lakewright.model.files import FileSlice, LogFile
from lakewright.storage.streams import map_bounded
from lakewright.table.horizon import see_at
from lakewright.table.partitions import Tree, list_partitions, walk_partitions
from lakewright.table.pruning import Tally
from lakewright.table.slicing import Listing, latest_slices
from lakewright.table.state import TableState, table_schema
from lakewright.timeline.view import TimelineView

#: Logs that are looked into at the same time.
_LOGS = 16


@dataclass(frozen=True, slots=True)
class BucketTable:
    """A bucket table at one moment: its state, its numbers of buckets, its hash fields."""

    state: TableState
    layout: IndexLayout

    @staticmethod
    def of(work: Servicing) -> "BucketTable":
        """Take a new picture of a table; one without buckets of fixed numbers is refused."""
        state = work.state.refresh()
        check_config(state.config)
        layout = admit_index(state, work.options)
        if layout.buckets is None:
            raise Invalid(
                f"{work.name} is no bucket table: its index is {layout.kind}.",
                next_step="Create a table with buckets=, and copy the rows into it.",
                table=work.name,
            )
        return BucketTable(state, layout)

    @property
    def counts(self) -> BucketCounts:
        """How many buckets partitions have."""
        assert self.layout.buckets is not None
        return self.layout.buckets

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns of the record key that are hashed."""
        return self.layout.hash_fields or self.state.config.record_key


@dataclass(frozen=True, slots=True)
class Moving:
    """A partition that gets another number of buckets, with its slices."""

    partition: str
    before: int
    after: int
    slices: Sequence[FileSlice]


@dataclass(frozen=True, slots=True)
class Compared:
    """Partitions by two numbers of buckets: ``moving`` ones, and ``pins`` of those that stay.

    ``paths`` are all that were looked at. Partitions without rows need neither.
    """

    paths: tuple[str, ...]
    moving: tuple[Moving, ...]
    pins: Mapping[str, int]


def list_folders(
    state: TableState, named: Sequence[str] | None = None
) -> Iterator[tuple[str, Listing]]:
    """Stream partitions and their files, all of them or the named ones."""
    tree = Tree(state.storage, state.config, table_schema(state))
    folders = (
        walk_partitions(tree, (), Tally())
        if named is None
        else list_partitions(tree, named, (), Tally())
    )
    for descriptor, folder in folders:
        yield descriptor.path, Listing(folder.path, folder.names, folder.sizes)


def compare(
    table: BucketTable,
    wanted: BucketCounts,
    chosen: Collection[str] | None = None,
    *,
    others: bool = True,
) -> Compared:
    """Find the partitions whose number is another one by ``wanted``.

    Only ``chosen`` ones move, None for all; without ``others`` no others are looked at.
    ``Invalid`` where a chosen one is not there, or where the groups of one that moves are not
    those of its buckets.
    """
    visible = see_at(table.state, None)
    named = None if others or chosen is None else sorted(chosen)
    paths: list[str] = []
    moving: list[Moving] = []
    pins: dict[str, int] = {}
    for path, listing in list_folders(table.state, named):
        if not listing.names:
            continue
        paths.append(path)
        before, after = table.counts.number_of(path), wanted.number_of(path)
        if before == after:
            continue
        slices = latest_slices(listing, visible)
        if not slices:
            continue
        if chosen is None or path in chosen:
            moving.append(Moving(path, before, after, checked_slices(path, slices, before)))
        else:
            pins[path] = before
    if absent := sorted(set(chosen or ()) - set(paths)):
        some = ", ".join(repr(path) for path in sorted(paths)[:5])
        raise Invalid(
            f"there is no partition {absent[0]!r}.",
            next_step="Give paths of partitions as they lie in the table"
            + (f", like {some}." if some else "."),
            partition=absent[0],
        )
    moving.sort(key=lambda one: one.partition)
    return Compared(tuple(sorted(paths)), tuple(moving), pins)


def checked_slices(
    partition: str, slices: Sequence[FileSlice], buckets: int
) -> Sequence[FileSlice]:
    """Return the slices; ``Invalid`` unless each is the only one of one of so many buckets."""
    taken: dict[int, str] = {}
    for piece in slices:
        file_id = piece.group.file_id
        number = bucket_number(file_id)
        if number is None or number >= buckets:
            raise Invalid(
                f"the file group {piece.group} belongs to none of the {buckets} buckets of "
                f"partition {partition!r}.",
                next_step="Let buckets.check() look at the table, and buckets.repair() mend it.",
                partition=partition,
                group=file_id,
            )
        if number in taken:
            raise Invalid(
                f"bucket {number} of partition {partition!r} has two file groups, "
                f"{taken[number]} and {file_id}.",
                next_step="Let buckets.check() look at the table, and buckets.repair() mend it.",
                partition=partition,
                bucket=number,
            )
        taken[number] = file_id
    return slices


def finished_slices(state: TableState, slices: Sequence[FileSlice]) -> Sequence[FileSlice]:
    """Return the slices without the logs of writes that are under way.

    In layout 1 a log's name does not tell whose it is, and one that its writer made alone is
    deleted when that writer gives up. Nobody reads it before.
    """
    view = state.timeline
    if state.config.layout != 1 or not view.pending_writes:
        return slices

    def finished(piece: FileSlice) -> FileSlice:
        logs = tuple(log for log in piece.logs if not _is_unfinished(view, log))
        return piece if len(logs) == len(piece.logs) else replace(piece, logs=logs)

    found = map_bounded(finished, slices, threads=_LOGS)
    kept = [piece for piece in found if piece.base is not None or piece.logs]
    return sorted(kept, key=lambda piece: piece.group)


def _is_unfinished(view: TimelineView, log: LogFile) -> bool:
    """Whether only writes that did not complete have blocks in a log, or it is gone already."""
    try:
        with view.storage.open(log.path) as file:
            blocks = list(scan_blocks(file, log.size, log.path))
    except NotFound:
        return True
    writers = {block.instant for block in blocks if block.instant is not None}
    return bool(writers) and writers <= view.pending_writes
