"""Carrying out a plan that waits on the timeline: its beginning, and its end if it fails."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from lakewright.actions.services.servicing import Servicing
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.write.admission import check_config
from lakewright.actions.write.begun import abandoned_on_error
from lakewright.actions.write.result import schema_entries
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.format.hudi.properties import load_properties
from lakewright.model.errors import Conflict, Corrupt, Invalid
from lakewright.model.instant import Action, Instant
from lakewright.table.evolution import stored_schema
from lakewright.table.pinned import PinnedTable
from lakewright.table.state import TableState
from lakewright.timeline.bodies import Plan
from lakewright.timeline.committing import Ticket


@dataclass(frozen=True, slots=True)
class Taken:
    """A plan that is being carried out: what its tasks need, and what its end needs."""

    ticket: Ticket
    state: TableState
    spec: ServiceSpec
    plan: Plan

    def metadata(
        self, operation: str, stats: Iterable[WriteStat], *, compacted: bool
    ) -> CommitMetadata:
        """Return the body of the commit that makes these files part of the table."""
        found: defaultdict[str, list[WriteStat]] = defaultdict(list)
        for stat in stats:
            found[stat.partition_path or ""].append(stat)
        return CommitMetadata(
            write_stats={partition: tuple(found[partition]) for partition in sorted(found)},
            compacted=compacted,
            extra=schema_entries(self.state, self.spec.schema),
            operation=operation,
        )


@contextmanager
def taken(work: Servicing, plan: Instant, operation: str) -> Iterator[Taken]:
    """Take a plan; where the block fails, what was made of it is taken back and the plan waits on.

    ``Conflict`` where somebody is at work on it, or it was carried out already.
    """
    check_config(work.state.config)
    ticket = work.committer.take(plan, operation)
    with abandoned_on_error(work.committer, ticket):
        state = _opened(work, ticket)
        schema = stored_schema(state)
        if schema is None:
            raise Invalid(
                f"the table {work.name} has no schema yet, so nothing of it can be rewritten.",
                next_step="Write rows first.",
            )
        body = state.timeline.plan(plan)
        if body is None:
            raise Corrupt(f"the plan {plan.requested} is empty.", instant=plan.requested)
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
        yield Taken(ticket, state, spec, body)


def _opened(work: Servicing, ticket: Ticket) -> TableState:
    view = work.committer.view(ticket)
    storage = work.state.storage
    if view is None:
        return work.state.refresh()
    return TableState(storage, TableConfig.of(load_properties(storage)), view)


@contextmanager
def first_free(
    work: Servicing, action: Action, plan: Instant | None, operation: str
) -> Iterator[Taken | None]:
    """Take the given plan, else the oldest of this action that nobody works on; None if none is."""
    if plan is not None:
        with taken(work, plan, operation) as it:
            yield it
        return
    with ExitStack() as stack:
        for waiting in (i for i in work.state.timeline.pending() if i.action is action):
            try:
                it = stack.enter_context(taken(work, waiting, operation))
            except Conflict:
                continue  # somebody is at work on it, or has finished it meanwhile
            yield it
            return
        yield None
