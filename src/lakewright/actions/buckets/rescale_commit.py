"""A replace commit that moves rows: begun with the slices it is going to rewrite, then published.

The requested file names the slices, as plans of clusterings do: until the commit is published or
taken back, writes to their groups are refused, cleanings spare their files, and no service is
planned on them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakewright.actions.services.clustering_choice import SliceGroup
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import written_since
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_settings import MAX_FILE
from lakewright.actions.write.admission import check_config
from lakewright.actions.write.begun import abandoned_on_error
from lakewright.actions.write.result import schema_entries
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.format.hudi.metadata.replace_plan import (
    ClusteringPlan,
    ReplacePlan,
    encode_replace_plan,
)
from lakewright.format.hudi.properties import load_properties
from lakewright.model.errors import Conflict, Invalid
from lakewright.model.files import FileSlice
from lakewright.model.instant import Action, Instant
from lakewright.model.writing import Operation
from lakewright.table.evolution import stored_schema
from lakewright.table.pinned import PinnedTable
from lakewright.table.state import TableState
from lakewright.timeline.committing import Committer, Guard, Ticket
from lakewright.timeline.conflicts import Touched
from lakewright.timeline.plans import names_groups
from lakewright.timeline.view import TimelineView

#: The fact of a conflict that finding the slices anew may settle.
OVERTAKEN = "overtaken"
#: What other software takes such a commit for: it replaces groups by others.
OPERATION = Operation.INSERT_OVERWRITE.value


@dataclass(frozen=True, slots=True)
class Replacing:
    """A commit that has begun: what its tasks need, and its end.

    ``state`` is the table that it builds on, ``replaced`` are the file ids that vanish by it.
    """

    ticket: Ticket
    state: TableState
    spec: ServiceSpec
    replaced: Mapping[str, tuple[str, ...]]
    committer: Committer = field(repr=False, compare=False)

    def publish(
        self,
        stats: Iterable[WriteStat],
        guard: Guard | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Instant:
        """Make the new files take the place of all the slices, and return the instant.

        ``guard`` is asked under the lock, beside the rules that hold for every write.
        """
        found: defaultdict[str, list[WriteStat]] = defaultdict(list)
        for stat in stats:
            found[stat.partition_path or ""].append(stat)
        metadata = CommitMetadata(
            write_stats={partition: tuple(found[partition]) for partition in sorted(found)},
            extra={**(extra or {}), **schema_entries(self.state, self.spec.schema)},
            operation=OPERATION,
            replaced={partition: ids for partition, ids in self.replaced.items() if ids},
        )
        return self.committer.publish(self.ticket, metadata, guard)


@contextmanager
def replacing(
    work: Servicing,
    groups: Mapping[str, Sequence[FileSlice]],
    seen: TimelineView,
    told: Mapping[str, str] | None = None,
) -> Iterator[Replacing]:
    """Begin a commit that rewrites these slices, by partition; an error takes it back.

    ``seen`` is the timeline on which the slices were found. ``told`` is said in the requested
    file, for others to know what is under way. ``Conflict`` where a service or another such
    commit is at work on one of them; with ``OVERTAKEN`` among its facts where their partitions
    were written since, or a dead write was taken back from them: find the slices anew.
    """
    check_config(work.state.config)
    body = encode_replace_plan(_plan(work, groups, told or {}))
    ticket = work.committer.begin(Action.REPLACECOMMIT, OPERATION, plan=body)
    with abandoned_on_error(work.committer, ticket):
        state = _opened(work, ticket)
        _check_unwritten(groups, seen, state.timeline)
        _check_unplanned(groups, ticket, state.timeline)
        schema = stored_schema(state)
        if schema is None:
            raise Invalid(
                f"the table {work.name} has no schema yet, so nothing of it can be rewritten.",
                next_step="Write rows first.",
            )
        storage = state.storage
        spec = ServiceSpec(
            uri=storage.uri,
            options=storage.options,
            config=state.config,
            schema=schema,
            instant=ticket.instant,
            pinned=PinnedTable(state),
            settings=work.options,
            storage=storage,
        )
        replaced = {
            partition: tuple(piece.group.file_id for piece in slices)
            for partition, slices in sorted(groups.items())
        }
        yield Replacing(ticket, state, spec, replaced, work.committer)


def _plan(
    work: Servicing, groups: Mapping[str, Sequence[FileSlice]], told: Mapping[str, str]
) -> ReplacePlan:
    locate = work.state.storage.locate
    new_base = MAX_FILE.read(work.options)
    planned = (
        SliceGroup(partition, tuple(slices), 1, new_base).planned(locate)
        for partition, slices in sorted(groups.items())
        if slices
    )
    clustering = ClusteringPlan(groups=tuple(planned))
    return ReplacePlan(operation=OPERATION, clustering=clustering, extra=told, version=1)


def _opened(work: Servicing, ticket: Ticket) -> TableState:
    view = work.committer.view(ticket)
    storage = work.state.storage
    if view is None:
        return work.state.refresh()
    return TableState(storage, TableConfig.of(load_properties(storage)), view)


def _check_unwritten(
    groups: Mapping[str, Sequence[FileSlice]], seen: TimelineView, now: TimelineView
) -> None:
    touched = sorted(written_since(seen, now) & groups.keys())
    if touched:
        raise Conflict(
            f"{len(touched)} of the partitions were written while the rewriting began, the first "
            f"is {touched[0]!r}.",
            next_step="Nothing was changed; try again.",
            partition=touched[0],
            **{OVERTAKEN: True},
        )


def _check_unplanned(
    groups: Mapping[str, Sequence[FileSlice]], ticket: Ticket, view: TimelineView
) -> None:
    """Refuse where others are going to rewrite some group of these partitions."""
    touched = Touched(buckets=False, layout=view.config.layout)
    for entry in view.entries:
        instant = entry.instant
        if instant.is_completed or instant.requested == ticket.instant:
            continue
        places = touched.planned(view.plan(instant)) if names_groups(view, entry) else ()
        both = sorted(place for place in places if place[0] in groups)
        if both:
            partition, group = both[0]
            raise Conflict(
                f"the {entry.planned} {instant.requested} is planned for, or at work on, "
                f"{len(both)} file groups of these partitions, the first is {group} of partition "
                f"{partition!r}.",
                next_step="Carry it out or roll it back first; one that somebody is at work on "
                "ends by itself.",
                instant=str(instant),
                partition=partition,
            )
