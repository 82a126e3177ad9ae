"""Services, each on a table that has work for it: what crashes and lost answers are tried on."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lakewright.api.table import Table
from lakewright.model.instant import Action
from lakewright.storage.port import Storage
from support import write_scenarios
from support.write_scenarios import content, prepare, rows, seen, table_of

#: Services, and those of them that only merge-on-read tables and those of version 9 have.
LOG_SERVICES = (
    "schedule_compaction",
    "compact",
    "carry_out_compaction",
    "roll_back_compaction",
    "log_compact",
)
SERVICES = (
    *LOG_SERVICES,
    "cluster",
    "carry_out_clustering",
    "schedule_cleaning",
    "clean",
    "carry_out_cleaning",
    "archive",
    "savepoint",
    "delete_savepoint",
    "restore",
    "rollback",
)
#: Groups that they wait for are not written.
CLUSTERING = ("cluster", "carry_out_clustering")
#: They take writes back, one after the other.
UNDOING = ("restore", "rollback")
#: The second log of a slice is enough.
EAGER = {"hoodie.log.compaction.blocks.threshold": "2"}
FEW = {"hoodie.clean.commits.retained": "1", "hoodie.compact.inline.max.delta.commits": "1"}


def has(service: str, *, mor: bool, version: int) -> bool:
    """Whether tables of this kind have the service."""
    return (mor or service not in LOG_SERVICES) and (version == 9 or service != "log_compact")


def prepare_for(
    service: str, storage: Storage, *, mor: bool, version: int, buckets: int | None
) -> Table:
    """Create a table with old files, logs and instants, and with what the service starts from."""
    table = prepare(storage, mor=mor, version=version, buckets=buckets, properties=FEW)
    table.upsert(table_of(rows("ac", "x", 3), rows("f", "y", 3)))
    if mor and service not in LOG_SERVICES:
        table.compact()
        table.upsert(table_of(rows("ad", "x", 4), rows("h", "y", 4)))
        table.compact()
    if service == "archive":
        table.clean()
    if service == "delete_savepoint":
        table.savepoint()
    table.upsert(table_of(rows("b", "x", 5), rows("e", "y", 5)))
    if service in CLUSTERING:
        # A second file in each partition, to be put together with the first.
        more = table_of(rows("st", "x", 4), rows("uv", "y", 4))
        table.insert(more, options={"hoodie.parquet.small.file.limit": "0"})
    if service in {"carry_out_compaction", "roll_back_compaction"}:
        table.schedule_compaction()
    if service == "carry_out_clustering":
        assert schedule(table, "clustering") is not None
    if service == "carry_out_cleaning":
        assert table.schedule_cleaning() is not None
    return table


def sorted_by(table: Table) -> Mapping[str, str]:
    """Buckets are clustered each by itself, which only sorting is a reason for."""
    buckets = "hoodie.bucket.index.num.buckets" in table.definition.properties
    return {"hoodie.clustering.plan.strategy.sort.columns": "n"} if buckets else {}


def schedule(table: Table, service: str) -> Any:
    match service:
        case "compaction":
            return table.schedule_compaction()
        case "log_compaction":
            return table.schedule_log_compaction(options=EAGER)
        case _:
            return table.schedule_clustering(options=sorted_by(table))


def carry_out(table: Table, service: str) -> Any:
    match service:
        case "compaction":
            return table.compact()
        case "log_compaction":
            return table.log_compact(options=EAGER)
        case _:
            return table.cluster(options=sorted_by(table))


def act(table: Table, name: str) -> Any:
    """Do one service, or one write."""
    match name:
        case "schedule_compaction":
            return table.schedule_compaction()
        case "compact" | "carry_out_compaction":
            return table.compact()
        case "roll_back_compaction":
            waiting = table.timeline.pending_compactions()
            return table.rollback(waiting[0].requested) if waiting else None
        case "log_compact":
            return carry_out(table, "log_compaction")
        case "cluster" | "carry_out_clustering":
            return carry_out(table, "clustering")
        case "schedule_cleaning":
            return table.schedule_cleaning()
        case "clean" | "carry_out_cleaning":
            return table.clean()
        case "archive":
            return table.archive(min_commits=1, max_commits=2)
        case "savepoint":
            # One that was cut off is made once more.
            begun = begun_savepoints(table)
            return table.savepoint(*begun, note="kept") if not saved(table) else None
        case "delete_savepoint":
            for instant in begun_savepoints(table):
                table.delete_savepoint(instant)
            return None
        case "restore":
            return table.restore(writes(table)[-2])
        case "rollback":
            return table.rollback(writes(table)[-1])
    return write_scenarios.act(table, name)


def begun_savepoints(table: Table) -> list[str]:
    return [i.requested for i in table.timeline.by_action(Action.SAVEPOINT)]


def saved(table: Table) -> list[str]:
    return [i.requested for i in table.timeline.by_action(Action.SAVEPOINT) if i.is_completed]


def writes(table: Table) -> list[str]:
    return [i.requested for i in table.timeline.data()]


def states(storage: Storage, service: str) -> list[Counter[tuple[Any, ...]]]:
    """What readers may see when the service has been cut off; the last when it has been done."""
    now = seen(storage)
    if service not in UNDOING:
        return [now]
    table = Table(storage)
    then = table.scan(as_of=writes(table)[-2]).to_arrow().to_pylist()
    return [now, content(then)]


def marks(table: Table) -> Mapping[str, int]:
    """How many completed and waiting instants of each action there are."""
    view = table.timeline
    found = Counter(f"{i.action} {i.is_completed}" for i in (*view.completed(), *view.pending()))
    return dict(found)
