"""Tables with a past of known days, and data files that no write of theirs made."""

import itertools
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lakewright.actions.create import create_table
from lakewright.api.creating import plan_table
from lakewright.api.table import Table
from lakewright.format.hudi.file_names import base_file_name, log_file_name
from lakewright.format.hudi.log.blocks import BlockKind, HeaderKey
from lakewright.format.hudi.log.write import frame
from lakewright.lifecycle.orphans.planning import plan_orphans
from lakewright.lifecycle.orphans.removing import OrphanKind
from lakewright.lifecycle.plans.apply import apply_plan, undo_plan
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import Applied, Undone
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.table import TableId
from lakewright.storage.port import Storage
from lakewright.timeline.store_clock import PATH as CLOCK
from support.retention import instant
from support.servicing import servicing
from support.write_scenarios import SCHEMA, rows, table_of

KIND = OrphanKind()
#: The days of the writes of a table; others lie between them.
DAYS = (0, 1, 4, 8)
#: An instant within the past of a table that it does not know.
UNKNOWN = instant(2)
#: Shapes of tables: kind and version.
SHAPES: dict[str, dict[str, Any]] = {
    f"{'mor' if mor else 'cow'}-v{version}": {"mor": mor, "version": version}
    for mor, version in itertools.product((False, True), (9, 6))
}
_IDS = itertools.count(1)


def old_table(
    storage: Storage, *, mor: bool = False, version: int = 9, days: Iterable[int] = DAYS
) -> Table:
    """Create a table by partitions x and y, written on some days of a January."""
    details: dict[str, Any] = {
        "partition_by": ["p"],
        "order_by": "ts",
        "type": "MERGE_ON_READ" if mor else "COPY_ON_WRITE",
        "version": version,
    }
    create_table(storage, plan_table(TableId("", "t"), SCHEMA, "id", details))
    table = Table(storage)
    for number in days:
        batch = table_of(rows("abc", "x", number), rows("efg", "y", number))
        table.upsert(batch, instant=instant(number))
    return table


def file_id() -> str:
    """Return the id of a file group that no table has."""
    return f"{UUID(int=next(_IDS) << 64)}-0"


def base_name(time: str = UNKNOWN, token: str = "0-1-2") -> str:
    """Return the name of a base file of a new group."""
    return base_file_name(file_id(), token, time)


def log_name(time: str = UNKNOWN, *, cdc: bool = False, token: str = "0-1-2") -> str:
    """Return the name of a log of a new group."""
    return log_file_name(file_id(), time, 1, token, cdc=cdc)


def block(*instants: str) -> bytes:
    """Return the bytes of a log with a block of each instant."""
    headers = ({HeaderKey.INSTANT_TIME: one, HeaderKey.SCHEMA: "{}"} for one in instants)
    return b"".join(frame(BlockKind.AVRO_DATA, header, b"nothing") for header in headers)


def strewn(storage: Storage, *, time: str = UNKNOWN) -> dict[str, bytes]:
    """Put one orphan of each sort into a table, and return them."""
    found = {
        f"p=x/{base_name(time)}": b"a base file that was never committed",
        f"p=x/{log_name(time)}": block(time),
        f"p=y/{log_name(time, cdc=True)}": block(time, time),
        f"p=y/{base_name(time)}": b"",
    }
    for path, data in found.items():
        storage.write(path, data)
    return found


def age(storage: Storage, path: str, days: float = 30) -> None:
    """Let a local file have been changed so many days ago."""
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(storage.locate(path), (then, then))


def later(days: float = 10) -> datetime:
    """Return a clock by which everything that is written now is old."""
    return datetime.now(UTC) + timedelta(days=days)


def looked_for(storage: Storage, *, now: datetime | None = None, **given: Any) -> Plan:
    """Plan, and keep nothing; options have ``__`` for dots."""
    options = {key: given.pop(key) for key in list(given) if key.startswith("lakewright__")}
    return plan_orphans(servicing(storage, **options), now=now, by="ann", **given)


def planned(storage: Storage, **given: Any) -> Plan:
    """Plan by a later clock, and keep the plan."""
    plan = looked_for(storage, now=later(), **given)
    PlanStore(storage).save(plan)
    return plan


def applied(storage: Storage, plan: Plan | str, *, strict: bool = False, **options: str) -> Applied:
    """Apply a plan."""
    id = plan if isinstance(plan, str) else plan.id
    return apply_plan(servicing(storage, **options), KIND, id, strict=strict, by="ann")


def undone(storage: Storage, plan: Plan | str) -> Undone:
    """Undo a plan."""
    id = plan if isinstance(plan, str) else plan.id
    return undo_plan(servicing(storage), KIND, id, by="ann")


def targets(plan: Plan) -> list[str]:
    """Return the files that a plan takes."""
    return [item.target for item in plan.items]


def tree(storage: Storage) -> dict[str, bytes]:
    """Return every file of a table but those of plans, their locks and their quarantine.

    The file by which a store's clock is asked is none of them either.
    """
    own = (".hoodie/.lakewright/", ".hoodie/.aux/lakewright/", CLOCK)
    found = (file.path for file in storage.list("", recursive=True))
    return {path: storage.read(path) for path in found if not path.startswith(own)}
