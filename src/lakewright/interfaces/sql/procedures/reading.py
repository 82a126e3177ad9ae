"""Procedures that look: history, files, partitions, properties, and the check of a table."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.format.hudi.metadata.rollback import RollbackMetadata
from lakewright.interfaces.sql.procedures.registry import (
    REGISTRY,
    Arguments,
    Kind,
    Parameter,
    procedure,
)
from lakewright.interfaces.sql.procedures.tables import (
    ARCHIVED,
    FILTER,
    LONG,
    PATH,
    TABLE,
    TEXT,
    Row,
    bound_of,
    filtered,
    limited,
    named_table,
    text_of,
)
from lakewright.model.files import FileSlice
from lakewright.model.instant import Action
from lakewright.timeline.view import TimelineView

if TYPE_CHECKING:
    from lakewright.api.lake import Lake

_TIMELINE = pa.schema(
    [
        ("instant_time", TEXT),
        ("action", TEXT),
        ("state", TEXT),
        ("requested_time", TEXT),
        ("inflight_time", TEXT),
        ("completed_time", TEXT),
        ("timeline_type", TEXT),
        ("rollback_info", TEXT),
    ]
)


@procedure(
    "show_timeline",
    _TIMELINE,
    TABLE,
    PATH,
    Parameter("limit", Kind.WHOLE, 20, doc="At most so many rows.", least=0),
    ARCHIVED,
    FILTER,
    Parameter("startTime", default="", doc="From this instant on."),
    Parameter("endTime", default="", doc="Up to this instant."),
)
def show_timeline(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the newest instants of a table, whatever they did and however far they got."""
    view = named_table(lake, arguments).timeline
    view = view.with_history() if arguments["showArchived"] else view
    return limited(filtered(_timeline(view, arguments), _TIMELINE, arguments), arguments)


def _timeline(view: TimelineView, arguments: Arguments) -> Iterator[Row]:
    start, end = bound_of(arguments, "startTime") or "", bound_of(arguments, "endTime")
    for entry in reversed(view.entries):
        instant = entry.instant
        if instant.requested < start or (end is not None and instant.requested > end):
            continue
        undone = None
        if instant.action is Action.ROLLBACK and instant.is_completed:
            body = view.metadata(instant)
            undone = ",".join(body.commits) if isinstance(body, RollbackMetadata) else None
        yield {
            "instant_time": instant.requested,
            "action": instant.action.value,
            "state": instant.state.value.upper(),
            "requested_time": instant.requested,
            "completed_time": instant.completed,
            "timeline_type": "ARCHIVED" if entry.archived else "ACTIVE",
            "rollback_info": None if undone is None else f"Rolled back: {undone}",
        }


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
    Parameter("limit", Kind.WHOLE, 100, doc="At most so many rows.", least=0),
    PATH,
)
def show_files(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the live file slices of a table."""
    snapshots = named_table(lake, arguments).get_latest_snapshot()
    slices = (piece for snapshot in snapshots for piece in snapshot.file_slices)
    for piece in limited(slices, arguments):
        yield {
            "partition": piece.group.partition,
            "file_id": piece.group.file_id,
            "base_instant": piece.base_instant,
            "base_file": piece.base.name if piece.base else None,
            "log_files": len(piece.logs),
            "total_bytes": piece.size,
        }


_FSVIEW = pa.schema(
    [
        ("partition", TEXT),
        ("file_id", TEXT),
        ("base_instant", TEXT),
        ("data_file", TEXT),
        ("data_file_size", LONG),
        ("num_delta_files", LONG),
        ("total_delta_file_size", LONG),
        ("delta_files", TEXT),
    ]
)


@procedure(
    "show_fsview_latest",
    _FSVIEW,
    TABLE,
    PATH,
    Parameter("max_instant", default="", doc="As of this instant."),
    Parameter("limit", Kind.WHOLE, 10, doc="At most so many rows.", least=0),
    FILTER,
)
def show_fsview_latest(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the latest file slice of each file group, with its base file and its logs."""
    snapshots = named_table(lake, arguments).get_snapshot(text_of(arguments, "max_instant"))
    slices = chain.from_iterable(snapshot.file_slices for snapshot in snapshots)
    return limited(filtered(map(_slice_row, slices), _FSVIEW, arguments), arguments)


@procedure(
    "show_fsview_all",
    _FSVIEW,
    TABLE,
    PATH,
    Parameter("limit", Kind.WHOLE, 10, doc="At most so many rows.", least=0),
    FILTER,
)
def show_fsview_all(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show all file slices that are there, those that later ones replaced too."""
    groups = named_table(lake, arguments).files.file_groups()
    slices = chain.from_iterable(group.slices for group in groups)
    return limited(filtered(map(_slice_row, slices), _FSVIEW, arguments), arguments)


def _slice_row(piece: FileSlice) -> Row:
    return {
        "partition": piece.group.partition,
        "file_id": piece.group.file_id,
        "base_instant": piece.base_instant,
        "data_file": piece.base.name if piece.base else None,
        "data_file_size": piece.base.size if piece.base else None,
        "num_delta_files": len(piece.logs),
        "total_delta_file_size": sum(max(log.size, 0) for log in piece.logs),
        "delta_files": ",".join(log.name for log in piece.logs),
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
