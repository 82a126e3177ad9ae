"""A small merge-on-read table with logs, for tests of what is done for tables."""

from collections.abc import Mapping
from itertools import count

import lakewright as lw

_NUMBERS = count()


def place() -> str:
    """Return a path where no table is yet."""
    return f"memory://served/t{next(_NUMBERS)}"


def served_table(
    path: str | None = None,
    *,
    commits: int = 3,
    properties: Mapping[str, str] | None = None,
    **details: object,
) -> lw.Table:
    """Make a table of two partitions that was written ``commits`` times, all but once to logs."""
    given = {"type": "MERGE_ON_READ", "properties": properties or {}, **details}
    table = lw.create_table(
        path or place(),
        schema="id string, p string, n long, ts long",
        key="id",
        order_by="ts",
        partition_by=["p"],
        **given,
    )
    for number in range(commits):
        table.upsert(rows(number))
    return table


def small_files(path: str | None = None, **details: object) -> lw.Table:
    """Make a table with three small files in each partition."""
    options = {"hoodie.parquet.small.file.limit": "0"}
    table = served_table(path, commits=0, properties=options, type="COPY_ON_WRITE", **details)
    for number in range(3):
        table.bulk_insert([{**row, "id": f"{row['id']}-{number}"} for row in rows(number)])
    return table


def rows(number: int) -> list[dict[str, object]]:
    """Return the rows of a commit: always the same keys."""
    return [
        {"id": f"{p}{key}", "p": p, "n": number * 100 + key, "ts": number}
        for p in ("x", "y")
        for key in range(3)
    ]


def contents(table: lw.Table) -> list[tuple[object, ...]]:
    """Return the rows of a table, sorted."""
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
