"""Finding records that are to be deleted: by a condition, or by keys without their partition."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.executor import Attempt, Executor
from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan
from lakewright.actions.tasks.read import ReadSpec, Task, run_task
from lakewright.actions.tasks.write_spec import KeysToDelete
from lakewright.actions.write.request import Change, ChangeMaker, R
from lakewright.model.expression.nodes import Expression
from lakewright.model.schema import PARTITION_PATH, RECORD_KEY
from lakewright.table.state import TableState

_PLACES = (RECORD_KEY, PARTITION_PATH)


@dataclass(frozen=True, slots=True, eq=False)
class KeySearch:
    """What the tasks of a search share: how to read, and the keys that are looked for.

    Without ``keys`` every row that is read is wanted.
    """

    read: ReadSpec
    keys: pa.Array | None = None


def find_keys(search: KeySearch, task: Task, attempt: Attempt) -> pa.Table:
    """Return record keys and partitions of the wanted rows of one slice."""
    found = []
    for batch in run_task(search.read, task):
        wanted = batch
        if search.keys is not None:
            wanted = batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=search.keys))
        if wanted.num_rows:
            found.append(wanted)
    return pa.Table.from_batches(found, schema=_schema())


def deletes_where(executor: Executor[R], where: Expression | str) -> ChangeMaker[R]:
    """Return the change that deletes every row for which a condition is true."""

    def change(state: TableState) -> Change[R]:
        plan = plan_scan(state, ScanRequest(where=where, columns=_PLACES))
        return Change(deletes=_found(executor, plan, None))

    return change


def locate(
    executor: Executor[R], state: TableState, keys: pa.Array, where: Expression | None
) -> KeysToDelete:
    """Find out in which partitions keys lie; ``where`` is true for their rows, and prunes."""
    plan = plan_scan(state, ScanRequest(where=where, columns=_PLACES))
    return _found(executor, plan, keys)


def _found(executor: Executor[R], plan: ScanPlan, keys: pa.Array | None) -> KeysToDelete:
    tables = list(_search(executor, plan, keys))
    rows = pa.concat_tables(tables) if tables else _schema().empty_table()
    return KeysToDelete(
        rows.column(RECORD_KEY).combine_chunks(), rows.column(PARTITION_PATH).combine_chunks()
    )


def _search(executor: Executor[R], plan: ScanPlan, keys: pa.Array | None) -> Iterator[pa.Table]:
    search = KeySearch(plan.spec, keys)
    return executor.map(find_keys, search, plan.tasks, size=lambda task: task.size)


def _schema() -> pa.Schema:
    return pa.schema([pa.field(name, pa.string()) for name in _PLACES])
