"""Tables whose partitions were written on known days, for tests of what is kept how long."""

import datetime as dt
from collections.abc import Iterable, Mapping
from pathlib import Path

import lakewright as lw

#: The first day of all; partitions of users are written one day after the other.
START = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def day(number: float) -> dt.datetime:
    """Return a moment so many days after the first one."""
    return START + dt.timedelta(days=number)


def instant(number: float) -> str:
    """Return the instant of that moment."""
    return f"{day(number):%Y%m%d%H%M%S}000"


def users_table(
    path: Path,
    days: Mapping[int, Iterable[int]],
    *,
    kind: str = "COPY_ON_WRITE",
    version: int = 9,
    properties: Mapping[str, str] | None = None,
) -> lw.Table:
    """Make a table by user and day; ``days`` are those on which each user wrote, a row each.

    The row of a day was written on that day.
    """
    made = lw.create_table(
        path,
        schema="id string, n int, user_id int, ts string",
        key="id",
        partition_by=["user_id", "ts"],
        type=kind,
        version=version,
        properties=dict(properties or {}),
    )
    for number in sorted({n for given in days.values() for n in given}):
        rows = [row(user, number) for user, given in days.items() if number in set(given)]
        made.upsert(rows, instant=instant(number))
    return made


def row(user: int, number: int, n: int = 0) -> dict[str, object]:
    """Return the row of a user's day."""
    return {"id": f"{user}-{number}", "n": n, "user_id": user, "ts": f"{day(number):%Y-%m-%d}"}


def partition(user: int, number: int) -> str:
    """Return the path of a user's day."""
    return f"user_id={user}/ts={day(number):%Y-%m-%d}"


def held(table: lw.Table) -> list[str]:
    """Return the partitions that hold rows, by what a reader sees."""
    rows = table.scan(columns=["user_id", "ts"]).to_arrow().to_pylist()
    return sorted({f"user_id={one['user_id']}/ts={one['ts']}" for one in rows})
