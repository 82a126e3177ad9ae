"""The slices that a service may take: listed outside the lock, brought up to date under it."""

from collections.abc import Iterator, Mapping, Sequence

from lakewright.format.hudi.metadata.rollback import RollbackMetadata
from lakewright.model.errors import Conflict
from lakewright.model.files import FileSlice
from lakewright.model.instant import Action, Instant
from lakewright.table.horizon import see_at
from lakewright.table.partitions import Tree, list_partitions, walk_partitions
from lakewright.table.pruning import Tally
from lakewright.table.slicing import Listing, latest_slices
from lakewright.table.state import TableState, table_schema
from lakewright.timeline.conflicts import Place, Touched
from lakewright.timeline.plans import names_groups
from lakewright.timeline.view import TimelineView


def list_slices(
    state: TableState, partitions: Sequence[str] | None = None
) -> Iterator[tuple[str, Sequence[FileSlice]]]:
    """Stream the latest slices of partitions, all of them or the named ones, with their sizes."""
    visible = see_at(state, None)
    tree = Tree(state.storage, state.config, table_schema(state))
    if partitions is None:
        found = walk_partitions(tree, (), Tally())
    else:
        found = list_partitions(tree, list(dict.fromkeys(partitions)), (), Tally())
    for descriptor, folder in found:
        listing = Listing(folder.path, folder.names, folder.sizes)
        yield descriptor.path, latest_slices(listing, visible)


def planned_groups(view: TimelineView) -> Mapping[Place, Action]:
    """Return the file groups of unfinished plans, and what is planned for each."""
    touched = Touched(buckets=False, layout=view.config.layout)
    found: dict[Place, Action] = {}
    for entry in view.entries:
        if not entry.instant.is_completed and names_groups(view, entry):
            groups = touched.planned(view.plan(entry.instant))
            found.update(dict.fromkeys(groups, entry.planned))
    return found


def written_since(before: TimelineView, now: TimelineView) -> frozenset[str]:
    """Return the partitions that writes changed between two looks at a timeline.

    ``Conflict`` where a write that was there is gone: what was planned on it must be planned anew.
    """
    known = {i.requested for i in before.data()}
    there = {i.requested for i in now.data()}
    start = now.start or ""
    lost = [i for i in known - there if i >= start]
    if lost:
        raise Conflict(
            f"The write {min(lost)} was taken back while a service was being planned.",
            next_step="Plan again.",
            instant=min(lost),
        )
    fresh = [i for i in now.data() if i.requested not in known]
    return partitions_of(now, fresh) | _taken_back_since(before, now)


def _taken_back_since(before: TimelineView, now: TimelineView) -> frozenset[str]:
    """Return the partitions from which files of failed writes were deleted.

    In layout 1 the logs of a write under way lie among those of others. One that its own writer
    took back leaves no word of where they were: ``Conflict``.
    """
    known = {i.requested for i in before.by_action(Action.ROLLBACK) if i.is_completed}
    found: set[str] = set()
    told: set[str] = set()
    for instant in now.by_action(Action.ROLLBACK):
        if instant.is_completed and instant.requested not in known:
            body = now.metadata(instant)
            if isinstance(body, RollbackMetadata):
                found.update(body.partitions)
                told.update(body.commits)
    there = {i.requested for i in now.instants}
    gone = before.pending_writes - there - told
    if gone and now.config.layout == 1:
        raise Conflict(
            f"The write {min(gone)} was taken back by its writer while a service was being "
            "planned.",
            next_step="Plan again.",
            instant=min(gone),
        )
    return frozenset(found)


def partitions_of(view: TimelineView, instants: Sequence[Instant]) -> frozenset[str]:
    """Return the partitions that some completed writes changed."""
    return frozenset(
        partition
        for _, body in view.commits(instants)
        for partition in (*body.write_stats, *body.replaced)
    )
