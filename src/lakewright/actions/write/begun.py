"""The two ends of every write: how it is begun on a table, and how it takes effect or not."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.actions.tasks.write_spec import WriteSpec
from lakewright.actions.write.admission import admit
from lakewright.actions.write.bucket_admission import settled_layout
from lakewright.actions.write.bucket_guard import BucketGuard
from lakewright.actions.write.guard import check_overtaken, guard_of, overtaken
from lakewright.actions.write.intake import write_options
from lakewright.actions.write.request import R, RivalCheck, WriteRequest
from lakewright.actions.write.result import (
    Outcome,
    commit_metadata,
    schema_entries,
    write_result,
)
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.properties import load_properties, update_properties
from lakewright.index.layout import BUCKETS, HASH_FIELDS, INDEX_TYPE, WRITERS_KEY, IndexLayout
from lakewright.model.errors import CommitStateUnknown, Conflict, SnapshotGone
from lakewright.model.instant import Action
from lakewright.model.schema import Struct
from lakewright.model.table import TableType
from lakewright.model.writing import WriteResult
from lakewright.table.evolution import stored_schema, written_schema
from lakewright.table.pinned import PinnedTable
from lakewright.table.state import TableState
from lakewright.timeline.committing import Committer, Rivals, Ticket
from lakewright.timeline.load import list_timeline
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class BegunWrite:
    """A write whose instant is on the timeline: what its tasks need, and what its end needs.

    It pickles, so that the process which ends a write need not be the one that began it.
    """

    ticket: Ticket
    spec: WriteSpec
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> TableState:
        """The table that the write builds on."""
        return self.spec.pinned.state


def begin_write(
    state: TableState,
    request: WriteRequest[R],
    schema: Struct,
    committer: Committer,
    *,
    detached: bool = False,
) -> BegunWrite:
    """Begin a write that leaves the table with ``schema``.

    The table is looked at anew once the instant is taken: what took effect before then is built
    on, and what takes effect later is found by the conflict check. A table that is not the one
    that was checked any more (another version, another schema) is a ``Conflict``. ``detached``
    is for a write whose end is another process's affair.
    """
    layout = admit(state, request.options)
    if not layout.stored and (layout.buckets is not None or INDEX_TYPE.given(request.options)):
        store_index(state, layout, write_options(state, request))
    ticket = committer.begin(
        _action(state, request),
        request.operation.value,
        instant=request.instant,
        detached=detached,
    )
    with abandoned_on_error(committer, ticket):
        fresh = _opened(state, committer, ticket)
        _check_unchanged(state, fresh, schema)
        layout = settled_layout(fresh, layout, request.options)
        if request.check is not None:
            request.check(fresh)
        spec = WriteSpec(
            uri=fresh.storage.uri,
            options=fresh.storage.options,
            config=fresh.config,
            schema=schema,
            instant=ticket.instant,
            operation=request.operation,
            layout=layout,
            settings=WriteSettings.of(write_options(fresh, request)),
            pinned=PinnedTable(fresh),
            drop_existing=request.dedupe,
            storage=fresh.storage,
        )
        return BegunWrite(ticket, spec, request.metadata)


def finish_write(
    begun: BegunWrite, outcome: Outcome, committer: Committer, guard: RivalCheck | None = None
) -> WriteResult:
    """Make a write take effect; one that made nothing is taken back, and no commit remains.

    After a ``Conflict`` nothing of the write is left either. ``guard`` is asked beside the
    write's own.
    """
    spec = begun.spec
    if outcome.is_empty:
        with abandoned_on_error(committer, begun.ticket):
            state = begun.state
            check_overtaken(spec, list_timeline(state.storage, state.config))
        committer.abandon(begun.ticket)
        return write_result(spec.operation, outcome, None)
    with abandoned_on_error(committer, begun.ticket):
        extra = {**begun.metadata, **schema_entries(begun.state, spec.schema)}
        metadata = commit_metadata(spec.operation, outcome, extra)
        own, buckets = guard_of(spec, outcome.files), BucketGuard(spec, metadata)

        def guards(rivals: Rivals, view: TimelineView) -> None:
            own(rivals)
            check_overtaken(spec, view)
            if guard is not None:
                guard(rivals)
            # It writes down what it settled, so that nobody may refuse after it.
            buckets(rivals, view)

        instant = committer.publish(begun.ticket, metadata, guards)
    return write_result(spec.operation, outcome, instant)


@contextmanager
def abandoned_on_error(committer: Committer, ticket: Ticket) -> Iterator[None]:
    """Take the write back when the block fails, unless nobody knows what became of it.

    Where what it builds on was taken away while it read, another was first: a ``Conflict``.
    """
    try:
        yield
    except CommitStateUnknown:
        raise
    except SnapshotGone as gone:
        committer.abandon(ticket)
        raise overtaken(gone) from gone
    except BaseException:
        committer.abandon(ticket)
        raise


def _opened(state: TableState, committer: Committer, ticket: Ticket) -> TableState:
    """Return the table as it was when the ticket was taken, or as it is a little later."""
    view = committer.view(ticket)
    if view is None:
        return state.refresh()
    return TableState(state.storage, TableConfig.of(load_properties(state.storage)), view)


def _action(state: TableState, request: WriteRequest[R]) -> Action:
    if request.operation.replaces:
        return Action.REPLACECOMMIT
    if state.config.table_type is TableType.MERGE_ON_READ:
        return Action.DELTACOMMIT
    return Action.COMMIT


def store_index(state: TableState, layout: IndexLayout, options: Mapping[str, str]) -> None:
    """Write the index that the caller gave into the table's properties.

    It is done before the write begins: a crash between the two leaves a table that says how it
    will be written and has nothing written so, and never the other way round.
    """
    changes: dict[str, str | None] = {INDEX_TYPE.key: layout.kind.value}
    if layout.buckets is not None:
        if layout.buckets.version is None:
            changes[BUCKETS.key] = str(layout.buckets.rules.default)
        if layout.hash_fields:
            changes[HASH_FIELDS.key] = ",".join(layout.hash_fields)
        changes[WRITERS_KEY] = ",".join(state.config.record_key)
    with open_lock(state.storage, options).acquire():
        update_properties(state.storage, changes)


def _check_unchanged(before: TableState, after: TableState, schema: Struct) -> None:
    if before.config.version != after.config.version:
        raise Conflict(
            f"the table became version {after.config.version} while the write began.",
            next_step="Open it again and repeat the write.",
        )
    latest = after.timeline.latest_data()
    if latest == before.timeline.latest_data():
        return
    stored = stored_schema(after)
    if stored is not None and written_schema(stored, schema, after.config) != schema:
        raise Conflict(
            f"{latest.requested if latest else 'another write'} changed the table's columns while "
            "this write began.",
            next_step="Write again, or pass retry=.",
        )
