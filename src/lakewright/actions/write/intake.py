"""What comes in, checked before anything is begun: columns, types, keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa

from lakewright.actions.executor import Executor
from lakewright.actions.tasks.write_ordering import check_ordering
from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.actions.tasks.write_spec import ROUTE_COLUMNS, KeysToDelete
from lakewright.actions.write.admission import check_names
from lakewright.actions.write.locate import locate
from lakewright.actions.write.request import R, WriteRequest
from lakewright.actions.write.result import has_ids
from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import from_arrow_schema, to_arrow_schema
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.expression.build import col
from lakewright.model.expression.nodes import Expression
from lakewright.model.schema import META_COLUMNS, PARTITION_PATH, RECORD_KEY, Struct
from lakewright.model.writing import Operation
from lakewright.table.evolution import stored_schema, written_schema
from lakewright.table.state import TableState

#: Keys that are put into a condition, so that files can be pruned by it.
_NAMED_KEYS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class UnplacedKeys:
    """Keys to delete whose partition is not known; ``where`` holds for their rows, and prunes."""

    keys: pa.Array
    where: Expression | None

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True, eq=False)
class Intake(Generic[R]):
    """The input of a write: few rows in memory, or many that the engine keeps.

    ``schema`` is that of the table once the write is done. ``deletes`` are keys to delete.
    """

    schema: Struct
    few: pa.Table | None = None
    many: R | None = None
    deletes: KeysToDelete | UnplacedKeys | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, as far as that is known."""
        return self.many is None and not self.few and not self.deletes

    def placed(self, executor: Executor[R], state: TableState) -> KeysToDelete | None:
        """Return the keys to delete with the partitions in which ``state`` holds them."""
        if isinstance(self.deletes, UnplacedKeys):
            return locate(executor, state, self.deletes.keys, self.deletes.where)
        return self.deletes


def write_options(state: TableState, request: WriteRequest[R]) -> Mapping[str, str]:
    """Return all settings of a write: the caller's, then the table's, then the storage's."""
    return {**state.storage.options, **state.config.properties, **request.options}


def take_in(
    state: TableState,
    executor: Executor[R],
    rows: R | None,
    deletes: KeysToDelete | None,
    request: WriteRequest[R],
) -> Intake[R]:
    """Check rows and keys against the table; ``Invalid`` where they do not fit."""
    stored = stored_schema(state)
    if rows is None:
        return Intake(_known(state, stored), deletes=deletes)
    columns = executor.schema(rows).without(frozenset({*META_COLUMNS, *ROUTE_COLUMNS}))
    limit = WriteSettings.of(write_options(state, request)).driver_bytes
    if request.operation is Operation.DELETE:
        schema = _known(state, stored)
        # Prepared rows carry the record key and the partition path that are stored.
        if not request.prepared:
            _require_key(state, columns)
        few = executor.few(rows, limit)
        if few is not None:
            return Intake(schema, deletes=_keys_of(state, few, schema, request))
        if not request.prepared:
            _require_partition(state, columns)
        return Intake(schema, many=rows)
    if not request.prepared:
        _require_columns(state, columns)
        _require_findable(state, request)
    schema = written_schema(stored, columns, state.config)
    check_names(schema)
    _refuse_renumbering(state, stored, schema)
    # Deletes beside the rows travel with them: such a change fits the driver, or marks its rows.
    few = executor.few(rows, limit if deletes is None else 1 << 62)
    if few is None:
        return Intake(schema, many=rows)
    return Intake(schema, few=_prepared(state, few, schema, request), deletes=deletes)


def _prepared(
    state: TableState, rows: pa.Table, schema: Struct, request: WriteRequest[R]
) -> pa.Table:
    """Return the rows in the table's types, with their keys and partitions beside them."""
    kept = [name for name in ROUTE_COLUMNS if name in rows.column_names]
    made = conform(rows, to_arrow_schema(schema))
    for name in kept:
        made = made.append_column(name, rows.column(name))
    check_ordering(made, state.config)
    if request.prepared:
        for name in (RECORD_KEY, PARTITION_PATH):
            made = made.append_column(name, rows.column(name))
        return made
    maker = KeyMaker.of(state.config, schema)
    if not maker.generated:
        made = made.append_column(RECORD_KEY, maker.keys(made))
    return made.append_column(PARTITION_PATH, maker.partitions(made).cast(pa.string()))


def _keys_of(
    state: TableState, rows: pa.Table, schema: Struct, request: WriteRequest[R]
) -> KeysToDelete | UnplacedKeys:
    if request.prepared:
        columns = (rows.column(RECORD_KEY), rows.column(PARTITION_PATH))
        return KeysToDelete(*(column.combine_chunks() for column in columns))
    maker = KeyMaker.of(state.config, schema)
    keys = maker.keys(rows)
    if not _missing_partition(state, from_arrow_schema(rows.schema)):
        return KeysToDelete(keys, maker.partitions(rows).cast(pa.string()))
    return UnplacedKeys(keys, _condition(state, rows))


def _condition(state: TableState, rows: pa.Table) -> Expression | None:
    """Return a condition that holds for all rows with these keys, None if it would be long."""
    whole: Expression | None = None
    for name in state.config.record_key:
        if name not in rows.column_names:
            continue
        values = rows.column(name).unique().to_pylist()
        if len(values) > _NAMED_KEYS or None in values:
            continue
        part = col(f"`{name.replace('`', '``')}`").is_in(values)
        whole = part if whole is None else whole & part
    return whole


def _known(state: TableState, stored: Struct | None) -> Struct:
    if stored is None:
        raise Invalid(
            f"the table {state.config.name} has no schema yet, so nothing to delete.",
            next_step="Write rows first.",
        )
    return stored


def _require_key(state: TableState, columns: Struct) -> None:
    names = state.config.record_key
    if not names:
        raise Invalid(
            f"the table {state.config.name} makes its keys itself, so that rows cannot name them.",
            next_step="Delete by a condition: delete(where=…).",
        )
    if missing := [name for name in names if not _has(columns, name)]:
        raise Invalid(
            f"the rows to delete have no column {', '.join(missing)}.",
            next_step=f"Give the key columns: {', '.join(names)}.",
            columns=missing,
        )


def _refuse_renumbering(state: TableState, stored: Struct | None, schema: Struct) -> None:
    if stored is not None and has_ids(stored) and schema != stored:
        changed = [new.name for new in schema if new not in stored.fields]
        raise Unsupported(
            f"the table {state.config.name} numbers its columns (schema on read), and the rows "
            f"would change {', '.join(changed)}.",
            next_step="Change its columns with ALTER TABLE in Hudi first, or give rows of the "
            "table's own columns and types.",
            columns=changed,
        )


def _require_columns(state: TableState, columns: Struct) -> None:
    """Refuse rows that say nothing of where they belong, rather than take it for null."""
    partition = _missing_partition(state, columns)
    keys = (name for name in state.config.record_key if not _has(columns, name))
    if missing := [*keys, *partition]:
        raise Invalid(
            f"the rows have no column {', '.join(missing)}, which the table's keys or partitions "
            "are made of.",
            next_step=f"The rows have {', '.join(columns.names) or 'no columns'}.",
            columns=missing,
        )


def _require_findable(state: TableState, request: WriteRequest[R]) -> None:
    if request.looks_up and not state.config.record_key:
        raise Invalid(
            f"the table {state.config.name} makes its keys itself: no row is ever the same again.",
            next_step="Use insert(), or change rows by a condition: update(), merge(), delete().",
        )


def _require_partition(state: TableState, columns: Struct) -> None:
    if missing := _missing_partition(state, columns):
        raise Invalid(
            f"so many keys cannot be looked for without their partition: {', '.join(missing)}.",
            next_step="Give the partition columns beside the key columns, or a Spark DataFrame, "
            "which Spark joins with the stored keys.",
            columns=missing,
        )


def _missing_partition(state: TableState, columns: Struct) -> list[str]:
    names = (field.name for field in state.config.partition_fields)
    return [name for name in names if not _has(columns, name)]


def _has(columns: Struct, name: str) -> bool:
    return name in columns or name.partition(".")[0] in columns
