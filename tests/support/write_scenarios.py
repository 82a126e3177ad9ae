"""Small writes, each on a table that has a past: what crashes and lost answers are tried on."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakewright.actions.create import create_table
from lakewright.api.creating import plan_table
from lakewright.api.table import Table
from lakewright.model.table import TableId
from lakewright.model.writing import WriteResult
from lakewright.storage.port import Storage

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
COLUMNS = SCHEMA.names
VERBS = ("insert", "upsert", "delete", "overwrite", "delete_partitions")


def rows(ids: str, p: str, ts: int) -> list[dict[str, Any]]:
    return [{"id": name, "p": p, "ts": ts, "n": ts * 100 + i} for i, name in enumerate(ids)]


def table_of(*batches: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([row for batch in batches for row in batch], schema=SCHEMA)


def prepare(
    storage: Storage,
    *,
    mor: bool,
    version: int,
    buckets: int | str | None,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """Create the table and give it two commits; ``buckets`` are a number or rules."""
    details: dict[str, Any] = {
        "partition_by": ["p"],
        "order_by": "ts",
        "type": "MERGE_ON_READ" if mor else "COPY_ON_WRITE",
        "version": version,
        "properties": properties or {},
    }
    if buckets is not None:
        details["buckets"] = buckets
    create_table(storage, plan_table(TableId("", "t"), SCHEMA, "id", details))
    table = Table(storage)
    table.upsert(table_of(rows("abcd", "x", 1), rows("efgh", "y", 1)))
    table.upsert(table_of(rows("be", "x", 2), rows("gi", "y", 2)))
    return table


def act(table: Table, verb: str) -> WriteResult:
    """Do one write that touches old and new partitions and file groups."""
    match verb:
        case "insert":
            return table.insert(table_of(rows("jkl", "x", 3), rows("m", "z", 3)))
        case "upsert":
            return table.upsert(table_of(rows("abn", "x", 3), rows("g", "y", 0), rows("o", "z", 3)))
        case "delete":
            return table.delete(table_of(rows("ac", "x", 0), rows("i", "y", 0)))
        case "overwrite":
            return table.insert_overwrite(table_of(rows("aq", "x", 3), rows("r", "z", 3)))
        case "delete_partitions":
            return table.delete_partitions(["p=x"])
    raise ValueError(verb)


def after(verb: str) -> Counter[tuple[Any, ...]]:
    """What the table holds when the write has been done; its past where ``verb`` is empty."""
    held = {(r["p"], r["id"]): r for r in (*rows("abcd", "x", 1), *rows("efgh", "y", 1))}
    held |= {(r["p"], r["id"]): r for r in (*rows("be", "x", 2), *rows("gi", "y", 2))}
    match verb:
        case "insert":
            new = [*rows("jkl", "x", 3), *rows("m", "z", 3)]
        case "upsert":
            new = [*rows("abn", "x", 3), *rows("o", "z", 3)]
        case "overwrite":
            held = {k: v for k, v in held.items() if k[0] != "x"}
            new = [*rows("aq", "x", 3), *rows("r", "z", 3)]
        case "delete":
            held = {k: v for k, v in held.items() if k[1] not in "aci"}
            new = []
        case "delete_partitions":
            held = {k: v for k, v in held.items() if k[0] != "x"}
            new = []
        case _:
            new = []
    held |= {(r["p"], r["id"]): r for r in new}
    return content(held.values())


def content(found: Any) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset of the table's own columns."""
    return Counter(tuple(row[name] for name in COLUMNS) for row in found)


def seen(storage: Storage) -> Counter[tuple[Any, ...]]:
    """What our reader sees."""
    return content(Table(storage).scan().to_arrow().to_pylist())


def go_on(storage: Storage, before: Counter[tuple[Any, ...]]) -> None:
    """The next write succeeds, and adds what it should to what was there."""
    late = int(dt.datetime(2030, 1, 1, tzinfo=dt.UTC).timestamp())
    new = [{"id": "next", "p": "x", "ts": late, "n": 1}]
    result = Table(storage).upsert(table_of(new))
    assert result.instant is not None
    assert seen(storage) == before + content(new)
