"""Whoever cleans a table, what plans hold no more goes: nobody has to run partition TTL for it."""

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import lakewright as lw
from lakewright.storage.open import open_storage

NUMBERS = count()
CLEAN: dict[str, Any] = {"policy": "commits", "retain": 1}
SETTINGS = {"hoodie.clean.commits.retained": "1", "lakewright.clean.grace": "0s"}


def put(table: lw.Table, partition: str, **more: Any) -> None:
    table.upsert([{"id": "1", "d": partition}], **more)


def by_hand(table: lw.Table) -> None:
    table.clean(**CLEAN)


def by_plan(table: lw.Table) -> None:
    plan = table.schedule_cleaning(**CLEAN)
    assert plan is not None
    table.clean(plan)


def by_services(table: lw.Table) -> None:
    table.look_after(options=SETTINGS)


def by_a_write(table: lw.Table) -> None:
    put(table, "b", options={**SETTINGS, "hoodie.clean.automatic": "true"})


def files_of(table: lw.Table, partition: str) -> list[str]:
    return [file.path for file in open_storage(table.path).list(partition)]


def dropped(window: str) -> lw.Table:
    table = lw.create_table(
        f"memory://letting-go-{next(NUMBERS)}/t",
        schema="id string, d string",
        key="id",
        partition_by="d",
    )
    put(table, "a")
    options = {"lakewright.undo.window": window, "lakewright.undo.savepoint": "true"}
    table.plan_delete_partitions(["d=a"], options=options).apply()
    assert is_saved(table)
    for _ in range(4):
        put(table, "b")
    if window == "1s":
        time.sleep(1)
    return table


def is_saved(table: lw.Table) -> bool:
    return any(i.action == "savepoint" for i in table.timeline.instants)


@pytest.mark.parametrize("clean", [by_hand, by_plan, by_services, by_a_write])
def test_cleaning_takes_what_was_dropped_once_it_cannot_come_back(
    clean: Callable[[lw.Table], None],
) -> None:
    table = dropped("1s")
    assert files_of(table, "d=a")
    clean(table)
    assert [path for path in files_of(table, "d=a") if path.endswith((".parquet", ".log"))] == []
    assert not is_saved(table)
    assert table.scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("clean", [by_hand, by_plan, by_services, by_a_write])
def test_what_can_come_back_stays(clean: Callable[[lw.Table], None]) -> None:
    table = dropped("1d")
    before = files_of(table, "d=a")
    clean(table)
    assert files_of(table, "d=a") == before
    assert is_saved(table)


def test_a_preview_of_a_cleaning_lets_go_of_nothing() -> None:
    table = dropped("1s")
    table.schedule_cleaning(dry_run=True, **CLEAN)
    assert is_saved(table)
