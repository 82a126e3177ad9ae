"""Soft deletes in logs of ours carry ordering values that real Hudi compares with its rows'."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw

pytestmark = pytest.mark.interop

#: By the type of an ordering column: a value that rises with a small number.
VALUES: dict[str, Callable[[int], object]] = {
    "timestamp": lambda n: dt.datetime(2024, 1, n, tzinfo=dt.UTC),
    "date": lambda n: dt.date(2024, 1, n),
    "bigint": lambda n: n,
    "decimal(9,2)": Decimal,
    "string": lambda n: chr(ord("a") + n),
    "double": float,
}
CASES = [
    *(((kind,), version) for kind in VALUES for version in (9, 6)),
    (("timestamp", "bigint"), 9),
    (("bigint", "date"), 9),
    (("date", "timestamp", "string"), 9),
]


@pytest.mark.parametrize(("kinds", "version"), CASES, ids=str)
def test_soft_deletes_win_and_lose_by_their_ordering_values(
    hudi_spark: Any, tmp_path: Path, kinds: tuple[str, ...], version: int
) -> None:
    columns = {f"o{i}": kind for i, kind in enumerate(kinds)}
    described = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    table = lw.create_table(
        tmp_path / "t",
        schema=f"id string, {described}, _hoodie_is_deleted boolean",
        key="id",
        order_by=list(columns),
        type="MERGE_ON_READ",
        version=version,
    )

    def row(key: str, number: int, deletes: bool) -> dict[str, object]:
        ordering = {name: VALUES[kind](number) for name, kind in columns.items()}
        return {"id": key, **ordering, "_hoodie_is_deleted": deletes}

    def both(expected: list[str]) -> None:
        theirs = hudi_spark.read.format("hudi").load(table.path).select("id").collect()
        assert sorted(found["id"] for found in theirs) == expected
        assert sorted(table.scan().to_arrow().column("id").to_pylist()) == expected

    table.upsert([row(key, 5, False) for key in "abcde"])
    # Newer than the stored row, older, as old, and against a row in the logs.
    table.upsert([row("a", 6, True), row("b", 4, True), row("c", 5, True), row("d", 6, False)])
    table.upsert([row("d", 5, True)])
    both(["b", "d", "e"])
    if version == 9:
        table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"})
        both(["b", "d", "e"])
    table.compact()
    both(["b", "d", "e"])
