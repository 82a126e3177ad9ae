"""Tables whose partitions go by plans and come back: shapes, verbs and what readers see."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakewright.api.table import Table
from lakewright.lifecycle.drops.dropping import DropKind
from lakewright.lifecycle.drops.planning import plan_drop
from lakewright.lifecycle.plans.apply import apply_plan, undo_plan
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import Applied, Undone
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from support.servicing import servicing
from support.write_scenarios import COLUMNS, prepare

KIND = DropKind()
#: How records are spread, with what makes a table so.
INDEXES: dict[str, dict[str, Any]] = {
    "plain": {"buckets": None},
    "buckets": {"buckets": 3},
    "rules": {"buckets": "p=x,4;p=y,2"},
    "global": {"buckets": None, "properties": {"hoodie.index.type": "GLOBAL_SIMPLE"}},
}
#: Kinds of tables on which everything is tried.
SHAPES: dict[str, dict[str, Any]] = {
    f"{'mor' if mor else 'cow'}-v{version}-{index}": {
        "mor": mor,
        "version": version,
        **INDEXES[index],
    }
    for mor, version, index in itertools.product((False, True), (9, 6), INDEXES)
}
#: One of each sort.
FEW = ("cow-v9-plain", "mor-v9-buckets", "mor-v6-plain", "cow-v6-rules", "mor-v9-global")
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key")
_NUMBERS = itertools.count()


def memory() -> MemoryStorage:
    """Return a place where no table is yet."""
    return MemoryStorage(f"memory://drop-{next(_NUMBERS)}/t", {})


def made_table(storage: Storage, shape: str) -> Table:
    """Create a table with rows in the partitions x and y, updated once."""
    return prepare(storage, **SHAPES[shape])


def planned(storage: Storage, *partitions: str, **given: Any) -> Plan:
    """Plan to drop partitions, and keep the plan."""
    reasons = dict.fromkeys(partitions or ("p=x",), "asked for")
    plan = plan_drop(servicing(storage), reasons, by="ann", **given)
    PlanStore(storage).save(plan)
    return plan


def applied(storage: Storage, plan: Plan | str, *, strict: bool = False, **options: str) -> Applied:
    """Apply a plan."""
    id = plan if isinstance(plan, str) else plan.id
    return apply_plan(servicing(storage, **options), KIND, id, strict=strict, by="ann")


def undone(storage: Storage, plan: Plan | str, **options: str) -> Undone:
    """Undo a plan."""
    id = plan if isinstance(plan, str) else plan.id
    return undo_plan(servicing(storage, **options), KIND, id, by="ann")


def seen(storage: Storage, *, meta: bool = True) -> Counter[tuple[Any, ...]]:
    """Return what our reader sees, with the columns of Hudi's that an undo must keep."""
    names = (*(META if meta else ()), *COLUMNS)
    found = Table(storage).scan(meta=meta).to_arrow().to_pylist()
    return Counter(tuple(row[name] for name in names) for row in found)


def by_hudi(path: str) -> Counter[tuple[Any, ...]]:
    """Return what the hudi package sees."""
    import hudi

    batches = hudi.HudiTableBuilder.from_base_uri(path).build().read()
    found = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
    return Counter(tuple(row[name] for name in COLUMNS) for row in found)


def of_partition(rows: Counter[tuple[Any, ...]], partition: str) -> Counter[tuple[Any, ...]]:
    """Return the rows of a partition, of what ``seen`` returned with or without Hudi's columns."""
    place = COLUMNS.index("p") - len(COLUMNS)
    return Counter({row: count for row, count in rows.items() if row[place] == partition})


def without(
    rows: Mapping[tuple[Any, ...], int], partitions: Sequence[str]
) -> Counter[tuple[Any, ...]]:
    """Return the rows of all other partitions."""
    place = COLUMNS.index("p") - len(COLUMNS)
    return Counter({row: count for row, count in rows.items() if row[place] not in partitions})
