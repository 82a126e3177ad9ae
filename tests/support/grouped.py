"""Tables with few rows in partitions a, b, …, for tests of services: how they are made and read."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa

import lakewright as lw
from lakewright.actions.services.servicing import Servicing
from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.servicing import servicing

#: Hudi's columns that services keep.
META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"]
PLAIN = "id string, p string, n bigint"
NESTED = f"{PLAIN}, s struct<x: int, y: array<string>>"

Rows = list[dict[str, object]]


def grouped_table(folder: Path, **details: Any) -> Table:
    """Make a table at ``t`` in a folder, partitioned by the first letter of its keys."""
    given = {"schema": NESTED, "order_by": "n", **details}
    return lw.create_table(folder / "t", key="id", partition_by=["p"], **given)


def put(table: Table, n: int, *ids: str, new: bool = False) -> str:
    """Upsert rows of these keys, or insert them into ``new`` groups; return the instant."""
    found: Rows = [{"id": i, "p": i[0], "n": n, "s": {"x": n, "y": [i]}} for i in ids]
    values = pa.Table.from_pylist(found, schema=table.schema)
    done = table.bulk_insert(values) if new else table.upsert(values)
    assert done.instant is not None
    return done.instant.requested


def deleted(table: Table, *ids: str) -> str:
    """Delete rows by their keys; return the instant."""
    done = table.delete(list(ids))
    assert done.instant is not None
    return done.instant.requested


def rows(table: Table, **how: str) -> Rows:
    """Return all rows, with what services keep of Hudi's columns."""
    return table.scan(columns=["*", *META], **how).to_arrow().sort_by("id").to_pylist()


def by_hudi(table: Table) -> Rows:
    """Return the same as Hudi's own reader finds it."""
    batches = hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    if not batches:
        return []
    names = [*table.schema.names, *META]
    return pa.Table.from_batches(batches).select(names).sort_by("id").to_pylist()


def crash_everywhere(
    folder: Path,
    table: Table,
    act: Callable[[Servicing], object],
    *,
    step: int,
    judge: Callable[[Table], None] = lambda found: None,
) -> None:
    """Let a service die at every so many-th storage call; the next run finishes, rows stay."""
    before = rows(table)

    def crash(name: str, *faults: Fault) -> int:
        place = folder / name
        shutil.copytree(table.path, place)
        storage = FaultyStorage(open_storage(str(place)), list(faults))
        with suppress(Crash):
            act(servicing(storage))
        assert rows(lw.open_table(place)) == before
        act(servicing(open_storage(str(place))))
        found = lw.open_table(place)
        assert rows(found) == before == by_hudi(found)
        assert found.timeline.pending() == ()
        assert found.fsck().ok
        judge(found)
        shutil.rmtree(place)
        return len(storage.calls)

    for number in range(0, crash("whole"), step):
        crash(f"at{number}", Fault(at=number, error=Crash))
