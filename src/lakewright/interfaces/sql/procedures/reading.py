"""Procedures that look: history, files, partitions, properties, and the check of a table."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.api.opening import open_table
from lakewright.interfaces.sql.procedures.registry import (
    REGISTRY,
    Arguments,
    Kind,
    Parameter,
    procedure,
)
from lakewright.model.errors import Invalid
from lakewright.model.instant import Action, Instant, State

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table

Row = Mapping[str, object]

TEXT, LONG, FLAG = pa.string(), pa.int64(), pa.bool_()
TABLE = Parameter("table", default=None, doc="The table's name in the lake.")
PATH = Parameter("path", default=None, doc="Its path, instead of a name.")
LIMIT = Parameter("limit", Kind.WHOLE, 10, doc="At most so many rows.")


def named_table(lake: "Lake", arguments: Arguments) -> "Table":
    """Open the table that a call names, by its name or by its path."""
    table, path = arguments.get("table"), arguments.get("path")
    if (table is None) == (path is None):
        raise Invalid("give table or path, and one of them.", next_step="table => 'database.table'")
    return lake.table(str(table)) if table is not None else open_table(str(path))


@procedure(
    "show_commits",
    pa.schema(
        [
            ("commit_time", TEXT),
            ("completion_time", TEXT),
            ("action", TEXT),
            ("operation", TEXT),
            ("total_bytes_written", LONG),
            ("total_files_added", LONG),
            ("total_files_updated", LONG),
            ("total_partitions_written", LONG),
            ("total_records_written", LONG),
            ("total_update_records_written", LONG),
            ("total_errors", LONG),
        ]
    ),
    TABLE,
    LIMIT,
    PATH,
)
def show_commits(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the newest commits of a table, with what they wrote."""
    view = named_table(lake, arguments).timeline
    done = [i for i in view.instants if i.is_completed and i.action.writes_data]
    for instant in _newest(done, arguments):
        metadata = view.commit_metadata(instant)
        stats = [stat for found in metadata.write_stats.values() for stat in found]
        yield {
            "commit_time": instant.requested,
            "completion_time": instant.completed,
            "action": instant.action.value,
            "operation": metadata.operation,
            "total_bytes_written": sum(s.total_write_bytes for s in stats),
            "total_files_added": sum(s.prev_commit in (None, "null") for s in stats),
            "total_files_updated": sum(s.prev_commit not in (None, "null") for s in stats),
            "total_partitions_written": len(metadata.write_stats),
            "total_records_written": sum(s.num_writes for s in stats),
            "total_update_records_written": sum(s.num_update_writes for s in stats),
            "total_errors": sum(s.total_write_errors for s in stats),
        }


@procedure(
    "show_timeline",
    pa.schema(
        [("instant_time", TEXT), ("action", TEXT), ("state", TEXT), ("completed_time", TEXT)]
    ),
    TABLE,
    Parameter("limit", Kind.WHOLE, 20, doc="At most so many rows."),
    Parameter("archived", Kind.FLAG, False, doc="Go on into the archive.", aliases=("history",)),
    PATH,
)
def show_timeline(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the newest instants of a table, whatever they did and however far they got."""
    view = named_table(lake, arguments).timeline
    view = view.with_history() if arguments["archived"] else view
    for instant in _newest(view.instants, arguments):
        yield {
            "instant_time": instant.requested,
            "action": instant.action.value,
            "state": instant.state.value,
            "completed_time": instant.completed,
        }


def _newest(instants: "tuple[Instant, ...] | list[Instant]", arguments: Arguments) -> list[Instant]:
    limit = arguments["limit"]
    assert isinstance(limit, int)
    if limit < 0:
        raise Invalid(f"limit is {limit}.", next_step="Give 0 or more.")
    return list(islice(reversed(instants), limit))


@procedure("show_savepoints", pa.schema([("savepoint_time", TEXT)]), TABLE, PATH)
def show_savepoints(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the savepoints of a table."""
    return _of_action(lake, arguments, Action.SAVEPOINT, "savepoint_time")


@procedure("show_rollbacks", pa.schema([("rollback_time", TEXT)]), TABLE, PATH)
def show_rollbacks(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show when writes were rolled back."""
    return _of_action(lake, arguments, Action.ROLLBACK, "rollback_time")


def _of_action(lake: "Lake", arguments: Arguments, action: Action, name: str) -> Iterator[Row]:
    for instant in reversed(named_table(lake, arguments).timeline.instants):
        if instant.action is action and instant.state is State.COMPLETED:
            yield {name: instant.requested}


@procedure(
    "show_files",
    pa.schema(
        [
            ("partition", TEXT),
            ("file_id", TEXT),
            ("base_instant", TEXT),
            ("base_file", TEXT),
            ("log_files", LONG),
            ("total_bytes", LONG),
        ]
    ),
    TABLE,
    Parameter("limit", Kind.WHOLE, 100, doc="At most so many rows."),
    PATH,
    aliases=("show_fsview_latest",),
)
def show_files(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the live file slices of a table."""
    limit = arguments["limit"]
    assert isinstance(limit, int)
    snapshots = named_table(lake, arguments).get_latest_snapshot()
    slices = (piece for snapshot in snapshots for piece in snapshot.file_slices)
    for piece in islice(slices, max(limit, 0)):
        yield {
            "partition": piece.group.partition,
            "file_id": piece.group.file_id,
            "base_instant": piece.base_instant,
            "base_file": piece.base.name if piece.base else None,
            "log_files": len(piece.logs),
            "total_bytes": piece.size,
        }


@procedure("show_table_properties", pa.schema([("key", TEXT), ("value", TEXT)]), TABLE, PATH)
def show_table_properties(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show what is stored in the properties of a table."""
    stored = named_table(lake, arguments).definition.properties
    return ({"key": key, "value": value} for key, value in sorted(stored.items()))


@procedure(
    "show_tables",
    pa.schema([("database", TEXT), ("table", TEXT)]),
    Parameter("database", default=None, doc="One database instead of all."),
)
def show_tables(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the tables of the lake."""
    for name in lake.tables():
        database, _, table = name.rpartition(".")
        if arguments["database"] in (None, database):
            yield {"database": database, "table": table}


@procedure(
    "fsck",
    pa.schema([("code", TEXT), ("path", TEXT), ("message", TEXT)]),
    TABLE,
    Parameter("deep", Kind.FLAG, False, doc="Open every data file as well."),
    PATH,
)
def fsck(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Check every invariant of the format; a sound table gives no row."""
    report = named_table(lake, arguments).fsck(deep=bool(arguments["deep"]))
    for problem in report.problems:
        yield {"code": problem.code, "path": problem.path, "message": problem.message}


@procedure(
    "help",
    pa.schema([("procedure", TEXT), ("parameter", TEXT), ("type", TEXT), ("default", TEXT)]),
    Parameter("procedure", default=None, doc="One procedure instead of all.", aliases=("cmd",)),
)
def help_(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the parameters of procedures."""
    wanted = arguments["procedure"]
    for found in REGISTRY if wanted is None else (REGISTRY.find(str(wanted)),):
        for parameter in found.parameters:
            yield {
                "procedure": found.name,
                "parameter": parameter.name,
                "type": str(parameter.kind),
                "default": str(parameter.default),
            }
