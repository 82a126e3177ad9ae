"""Procedures that take a table back and keep it able to: rollbacks, savepoints, restores."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakewright.interfaces.sql.procedures.registry import Arguments, Parameter, procedure
from lakewright.interfaces.sql.procedures.tables import (
    FLAG,
    INT,
    LIMIT,
    LONG,
    PATH,
    TABLE,
    TEXT,
    Row,
    limited,
    named_table,
    required,
    text_of,
)
from lakewright.model.errors import InstantNotFound
from lakewright.model.shown import Shown

if TYPE_CHECKING:
    from lakewright.actions.services.views import Rollback
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table

_TIMES = pa.timestamp("ms", "UTC")
INSTANT = Parameter(
    "instant_time", default=None, doc="The instant.", aliases=("commit_time", "instant")
)


def _plan_rollback(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    instant = required(arguments, "instant_time", "rollback_to_instant")
    yield named_table(lake, arguments).plan_rollback(instant)


@procedure(
    "rollback_to_instant",
    pa.schema([("rollback_result", FLAG), ("rollback_instant", TEXT)]),
    TABLE,
    INSTANT,
    PATH,
    aliases=("rollback_to_instant_time",),
    writes=True,
    plan=_plan_rollback,
)
def rollback_to_instant(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Take back the newest write, which the instant names, or a plan."""
    instant = required(arguments, "instant_time", "rollback_to_instant")
    done = named_table(lake, arguments).rollback(instant)
    yield {"rollback_result": True, "rollback_instant": done.requested}


def _saving(arguments: Arguments) -> dict[str, Any]:
    return {
        "instant": text_of(arguments, "commit_time"),
        "note": text_of(arguments, "comments") or "",
        "by": text_of(arguments, "user"),
    }


def _plan_savepoint(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    yield named_table(lake, arguments).plan_savepoint(**_saving(arguments))


@procedure(
    "create_savepoint",
    pa.schema([("create_savepoint_result", FLAG), ("savepoint_time", TEXT)]),
    TABLE,
    Parameter("commit_time", default="", doc="The write; the newest by default."),
    Parameter("user", default="", doc="Who makes it."),
    Parameter("comments", default="", doc="Why."),
    PATH,
    writes=True,
    plan=_plan_savepoint,
)
def create_savepoint(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Keep the files of a write, whatever is cleaned from now on."""
    done = named_table(lake, arguments).savepoint(**_saving(arguments))
    yield {"create_savepoint_result": True, "savepoint_time": done.requested}


def _kept(table: "Table", arguments: Arguments) -> str:
    """Return the savepoint that a call names, the newest one by default."""
    instant = text_of(arguments, "instant_time")
    known = [saved.instant.requested for saved in table.savepoints()]
    if instant is None and known:
        return known[0]
    if instant is None or instant not in known:
        raise InstantNotFound(
            f"there is no savepoint {instant or 'at all'}.",
            next_step=f"Savepoints: {', '.join(known) or 'none'}; CALL restore_to_instant goes "
            "back to any write whose files are there.",
            instant=instant,
        )
    return instant


def _plan_deletion(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    table = named_table(lake, arguments)
    yield table.plan_delete_savepoint(_kept(table, arguments))


@procedure(
    "delete_savepoint",
    pa.schema([("delete_savepoint_result", FLAG)]),
    TABLE,
    INSTANT,
    PATH,
    writes=True,
    plan=_plan_deletion,
)
def delete_savepoint(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Give the files of a savepoint free; without an instant, of the newest one."""
    table = named_table(lake, arguments)
    table.delete_savepoint(_kept(table, arguments))
    yield {"delete_savepoint_result": True}


def _plan_return(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    table = named_table(lake, arguments)
    yield table.plan_restore(_kept(table, arguments))


@procedure(
    "rollback_to_savepoint",
    pa.schema([("rollback_savepoint_result", FLAG), ("restore_instant", TEXT)]),
    TABLE,
    INSTANT,
    PATH,
    writes=True,
    plan=_plan_return,
)
def rollback_to_savepoint(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Restore the table to a savepoint, the newest one by default."""
    table = named_table(lake, arguments)
    done = table.restore(_kept(table, arguments))
    yield {
        "rollback_savepoint_result": True,
        "restore_instant": None if done is None else done.requested,
    }


def _plan_restore(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    instant = required(arguments, "instant_time", "restore_to_instant")
    yield named_table(lake, arguments).plan_restore(instant)


@procedure(
    "restore_to_instant",
    pa.schema([("restore_result", FLAG), ("restore_instant", TEXT)]),
    TABLE,
    INSTANT,
    PATH,
    writes=True,
    plan=_plan_restore,
)
def restore_to_instant(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Restore the table to any write whose files are all there."""
    instant = required(arguments, "instant_time", "restore_to_instant")
    done = named_table(lake, arguments).restore(instant)
    yield {"restore_result": True, "restore_instant": None if done is None else done.requested}


@procedure(
    "show_savepoints",
    pa.schema(
        [
            ("savepoint_time", TEXT),
            ("made_at", _TIMES),
            ("user", TEXT),
            ("comments", TEXT),
            ("partitions", INT),
            ("files", LONG),
        ]
    ),
    TABLE,
    PATH,
)
def show_savepoints(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the savepoints of a table."""
    for saved in named_table(lake, arguments).savepoints():
        yield {
            "savepoint_time": saved.instant.requested,
            "made_at": saved.at,
            "user": saved.by,
            "comments": saved.note,
            "partitions": saved.partitions,
            "files": saved.files,
        }


@procedure(
    "show_rollbacks",
    pa.schema(
        [
            ("instant", TEXT),
            ("rollback_instant", TEXT),
            ("total_files_deleted", INT),
            ("time_taken_in_millis", LONG),
            ("total_partitions", INT),
        ]
    ),
    TABLE,
    LIMIT,
    PATH,
)
def show_rollbacks(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the newest rollbacks: when, of what, and how many files went."""
    rollbacks = named_table(lake, arguments).rollbacks()
    each = ((one, commit) for one in rollbacks for commit in one.done.commits)
    for found, commit in limited(each, arguments):
        yield {
            "instant": found.instant.requested,
            "rollback_instant": commit,
            "total_files_deleted": found.done.total_deleted,
            "time_taken_in_millis": found.done.millis,
            "total_partitions": len(found.done.partitions),
        }


@procedure(
    "show_rollback_detail",
    pa.schema(
        [
            ("instant", TEXT),
            ("rollback_instant", TEXT),
            ("partition", TEXT),
            ("deleted_file", TEXT),
            ("succeeded", FLAG),
        ]
    ),
    TABLE,
    LIMIT,
    INSTANT,
    PATH,
)
def show_rollback_detail(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the files that one rollback deleted."""
    instant = required(arguments, "instant_time", "show_rollback_detail")
    known = list(named_table(lake, arguments).rollbacks(archived=True))
    wanted = [found for found in known if found.instant.requested == instant]
    if not wanted:
        newest = ", ".join(found.instant.requested for found in known[:3])
        raise InstantNotFound(
            f"there is no rollback {instant}.",
            next_step=f"The newest: {newest}; CALL show_rollbacks lists them."
            if known
            else "The table was never rolled back.",
            instant=instant,
        )
    return limited(_files(wanted), arguments)


def _files(rollbacks: Iterable["Rollback"]) -> Iterator[Row]:
    for found in rollbacks:
        for path, part in sorted(found.done.partitions.items()):
            for files, succeeded in ((part.deleted, True), (part.failed, False)):
                for file in files:
                    yield {
                        "instant": found.instant.requested,
                        "rollback_instant": f"[{', '.join(found.done.commits)}]",  # as Hudi does
                        "partition": path,
                        "deleted_file": file,
                        "succeeded": succeeded,
                    }
