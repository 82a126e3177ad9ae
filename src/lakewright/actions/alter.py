"""Altering a table: new columns, wider types, settings.

A change of columns is an empty commit that carries the new schema, as in real Hudi: readers take
the columns from the newest commit, and files written before show null in those they lack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.actions.write.admission import admit
from lakewright.actions.write.result import schema_entries
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.format.hudi.properties import update_properties
from lakewright.index.layout import BUCKETS, PARTITION_RULES
from lakewright.model.errors import AlreadyExists, Conflict, Invalid, Unsupported
from lakewright.model.instant import Action, Instant
from lakewright.model.options import check_properties
from lakewright.model.schema import DataType, Field, Struct
from lakewright.model.table import TableType
from lakewright.table.evolution import stored_schema, written_schema
from lakewright.table.schemas import LATEST_SCHEMA
from lakewright.table.state import TableState, open_state
from lakewright.timeline.committing import Committer
from lakewright.timeline.locks.port import TableLock

#: The operation under which real Hudi commits such changes.
ALTER_SCHEMA = "ALTER_SCHEMA"
#: Settings that files and history depend on; they are fixed when a table is created.
FIXED = (
    "hoodie.table.",
    "hoodie.database.",
    "hoodie.timeline.",
    "hoodie.archivelog.",
    "hoodie.datasource.write.",
    "hoodie.keygen.",
    "hoodie.record.merge.",
    "hoodie.compaction.payload.",
    "hoodie.index.",
    "hoodie.bucket.",
    "hoodie.populate.",
    "hoodie.bootstrap.",
    "hoodie.partition.metafile.",
)


def widened(state: TableState, name: str, kind: DataType) -> Struct:
    """Return the table's columns with one of another type; ``Invalid`` where values would go."""
    stored = _stored(state)
    old = stored.field(name)
    wanted = Struct(tuple(replace(f, type=kind) if f == old else f for f in stored))
    found = written_schema(stored, wanted, state.config, rounds=True)
    if found.field(old.name).type != kind:
        raise Invalid(
            f"column {old.name} of type {old.type} cannot become {kind}: values would be lost.",
            next_step="A type can only be widened, such as int to bigint or float to double.",
            column=old.name,
        )
    return found


def extended(state: TableState, columns: Sequence[Field]) -> Struct:
    """Return the table's columns and new ones behind them."""
    stored = _stored(state)
    known = {name.lower() for name in stored.names}
    for column in columns:
        if column.name.lower() in known:
            raise AlreadyExists(
                f"the table {state.config.name} has a column {column.name} already.",
                next_step="Choose another name.",
                column=column.name,
            )
        known.add(column.name.lower())
    added = tuple(replace(column, nullable=True) for column in columns)
    return written_schema(stored, Struct((*stored.fields, *added)), state.config)


def commit_schema(state: TableState, schema: Struct, committer: Committer) -> Instant:
    """Make a schema the table's; ``Conflict`` where another one came first."""
    admit(state, {})
    entries = schema_entries(state, schema)
    if LATEST_SCHEMA in schema_entries(state, _stored(state)):
        raise Unsupported(
            "the table's columns have ids (Hudi's schema on read), which must change with them.",
            next_step="Alter it with Hudi, or write rows that have the new columns.",
        )
    merge_on_read = state.config.table_type is TableType.MERGE_ON_READ
    ticket = committer.begin(Action.DELTACOMMIT if merge_on_read else Action.COMMIT, ALTER_SCHEMA)
    try:
        if stored_schema(open_state(state.storage)) != stored_schema(state):
            raise Conflict(
                "another writer changed the columns meanwhile.", next_step="Look, and try again."
            )
        metadata = CommitMetadata(extra=entries, operation=ALTER_SCHEMA)
        return committer.publish(ticket, metadata)
    except Conflict:
        committer.abandon(ticket)
        raise


def set_properties(
    state: TableState, changes: Mapping[str, str | None], lock: TableLock, *, if_exists: bool = True
) -> None:
    """Change settings of a table, under its lock; None removes one."""
    for key in changes:
        if key in (PARTITION_RULES.key, BUCKETS.key):
            raise Unsupported(
                f"{key} is no property: the rules of a table have versions.",
                next_step="Use table.buckets.set(rules), where a number is a rule for all, and "
                "rescale; in SQL, ALTER TABLE … SET "
                f"('{PARTITION_RULES.key}' = '…').",
                key=key,
            )
        if key.startswith(FIXED):
            raise Unsupported(
                f"{key} is fixed when a table is created: its files depend on it.",
                next_step="Create a new table with CREATE TABLE … AS SELECT.",
                key=key,
            )
        if not key.startswith(("hoodie.", "lakewright.")):
            raise Invalid(
                f"unknown property {key}.",
                next_step="Names start with 'hoodie.' or 'lakewright.'.",
                key=key,
            )
    check_properties(k for k, v in changes.items() if v is not None)
    WriteSettings.of({k: v for k, v in changes.items() if v is not None})
    missing = [k for k, v in changes.items() if v is None and k not in state.config.properties]
    if missing and not if_exists:
        raise Invalid(
            f"the table has no property {', '.join(missing)}.",
            next_step="Write UNSET TBLPROPERTIES IF EXISTS to let that be.",
        )
    with lock.acquire():
        update_properties(state.storage, changes)


def _stored(state: TableState) -> Struct:
    found = stored_schema(state)
    if found is None:
        raise Invalid(
            f"the table {state.config.name} has no schema yet.", next_step="Write rows first."
        )
    return found
