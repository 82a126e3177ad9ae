"""Procedures that look at what commits wrote: as a whole, by partition and by file."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.interfaces.sql.procedures.registry import Arguments, Kind, Parameter, procedure
from lakewright.interfaces.sql.procedures.tables import (
    LIMIT,
    LONG,
    PATH,
    TABLE,
    TEXT,
    Row,
    bound_of,
    limited,
    named_table,
    required,
    text_of,
)
from lakewright.model.instant import Instant
from lakewright.timeline.view import TimelineView

if TYPE_CHECKING:
    from lakewright.api.lake import Lake

INSTANT = Parameter("instant_time", default=None, doc="The instant of the commit.")
START = Parameter("start_ts", default="", doc="After this instant.")
END = Parameter("end_ts", default="", doc="Before this instant.")

_COMMITS = pa.schema(
    [
        ("commit_time", TEXT),
        ("state_transition_time", TEXT),
        ("action", TEXT),
        ("total_bytes_written", LONG),
        ("total_files_added", LONG),
        ("total_files_updated", LONG),
        ("total_partitions_written", LONG),
        ("total_records_written", LONG),
        ("total_update_records_written", LONG),
        ("total_errors", LONG),
        ("operation", TEXT),
    ]
)
_FILES = pa.schema(
    [
        ("commit_time", TEXT),
        ("state_transition_time", TEXT),
        ("action", TEXT),
        ("partition", TEXT),
        ("file_id", TEXT),
        ("previous_commit", TEXT),
        ("num_writes", LONG),
        ("num_inserts", LONG),
        ("num_deletes", LONG),
        ("num_update_writes", LONG),
        ("total_errors", LONG),
        ("total_log_blocks", LONG),
        ("total_corrupt_log_blocks", LONG),
        ("total_rollback_blocks", LONG),
        ("total_log_records", LONG),
        ("total_updated_records_compacted", LONG),
        ("total_bytes_written", LONG),
    ]
)


@procedure("show_commits", _COMMITS, TABLE, LIMIT, PATH)
def show_commits(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the newest commits of a table, with what they wrote."""
    view = named_table(lake, arguments).timeline
    chosen = limited(reversed(view.data()), arguments)
    return (_commit_row(i, view.commit_metadata(i)) for i in chosen)


@procedure("show_commits_metadata", _FILES, TABLE, LIMIT, PATH)
def show_commits_metadata(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show what the newest commits of a table did to each file."""
    view = named_table(lake, arguments).timeline
    each = ((i, view.commit_metadata(i)) for i in reversed(view.data()))
    return limited(_file_rows(each), arguments)


@procedure("show_archived_commits", _COMMITS, TABLE, LIMIT, START, END, PATH)
def show_archived_commits(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the newest archived commits of a table, with what they wrote."""
    found = list(limited(_archived(named_table(lake, arguments).timeline, arguments), arguments))
    return (_commit_row(i, body) for i, body in found)


@procedure("show_archived_commits_metadata", _FILES, TABLE, LIMIT, START, END, PATH)
def show_archived_commits_metadata(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show what the newest archived commits of a table did to each file."""
    view = named_table(lake, arguments).timeline
    return limited(_file_rows(_archived(view, arguments)), arguments)


def _archived(view: TimelineView, arguments: Arguments) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Stream archived commits between two instants, newest first.

    The history is read once for all that are asked for: as many as the limit, the newest.
    """
    start, end = bound_of(arguments, "start_ts") or "", bound_of(arguments, "end_ts")
    past = view.with_history()
    found = [
        entry.instant
        for entry in past.entries
        if entry.archived
        and entry.instant.is_completed
        and entry.instant.action.writes_data
        and entry.instant.requested > start
        and (end is None or entry.instant.requested < end)
    ]
    chosen = list(limited(reversed(found), arguments))
    return iter(sorted(past.commits(chosen), reverse=True, key=lambda pair: pair[0]))


@procedure(
    "show_commit_files",
    pa.schema(
        [
            ("action", TEXT),
            ("partition_path", TEXT),
            ("file_id", TEXT),
            ("previous_commit", TEXT),
            ("total_records_updated", LONG),
            ("total_records_written", LONG),
            ("total_bytes_written", LONG),
            ("total_errors", LONG),
            ("file_size", LONG),
            ("file_name", TEXT),
        ]
    ),
    TABLE,
    LIMIT,
    INSTANT,
    PATH,
)
def show_commit_files(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the files that one commit wrote."""
    instant, body = _one(lake, arguments, "show_commit_files")
    stats = ((p, stat) for p, found in sorted(body.write_stats.items()) for stat in found)
    for partition, stat in limited(stats, arguments):
        yield {
            "action": instant.action.value,
            "partition_path": partition,
            "file_id": stat.file_id,
            "previous_commit": stat.prev_commit,
            "total_records_updated": stat.num_update_writes,
            "total_records_written": stat.num_writes,
            "total_bytes_written": stat.total_write_bytes,
            "total_errors": stat.total_write_errors,
            "file_size": stat.file_size_in_bytes,
            "file_name": (stat.path or "").rpartition("/")[2],
        }


@procedure(
    "show_commit_partitions",
    pa.schema(
        [
            ("action", TEXT),
            ("partition_path", TEXT),
            ("total_files_added", LONG),
            ("total_files_updated", LONG),
            ("total_records_inserted", LONG),
            ("total_records_updated", LONG),
            ("total_bytes_written", LONG),
            ("total_errors", LONG),
        ]
    ),
    TABLE,
    LIMIT,
    INSTANT,
    PATH,
)
def show_commit_partitions(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show what one commit wrote, partition by partition."""
    instant, body = _one(lake, arguments, "show_commit_partitions")
    for partition, stats in limited(sorted(body.write_stats.items()), arguments):
        yield {
            "action": instant.action.value,
            "partition_path": partition,
            "total_files_added": sum(_is_new(s) for s in stats),
            "total_files_updated": sum(not _is_new(s) for s in stats),
            "total_records_inserted": sum(s.num_inserts for s in stats),
            "total_records_updated": sum(s.num_update_writes for s in stats),
            "total_bytes_written": sum(s.total_write_bytes for s in stats),
            "total_errors": sum(s.total_write_errors for s in stats),
        }


@procedure(
    "show_commit_write_stats",
    pa.schema(
        [
            ("action", TEXT),
            ("total_bytes_written", LONG),
            ("total_records_written", LONG),
            ("avg_record_size", LONG),
        ]
    ),
    TABLE,
    LIMIT,
    INSTANT,
    PATH,
)
def show_commit_write_stats(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show how many bytes and rows one commit wrote."""
    instant, body = _one(lake, arguments, "show_commit_write_stats")
    stats = [stat for found in body.write_stats.values() for stat in found]
    size, rows = sum(s.total_write_bytes for s in stats), sum(s.num_writes for s in stats)
    yield {
        "action": instant.action.value,
        "total_bytes_written": size,
        "total_records_written": rows,
        "avg_record_size": -(-size // rows) if rows else 0,
    }


@procedure(
    "show_commit_extra_metadata",
    pa.schema(
        [
            ("instant_time", TEXT),
            ("action", TEXT),
            ("metadata_key", TEXT),
            ("metadata_value", TEXT),
        ]
    ),
    TABLE,
    Parameter("limit", Kind.WHOLE, 100, doc="At most so many rows.", least=0),
    Parameter("instant_time", default=None, doc="A commit; the newest by default."),
    Parameter("metadata_key", default=None, doc="One entry instead of all."),
    PATH,
)
def show_commit_extra_metadata(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the extra metadata of one commit: its schema, checkpoints, what its writer added."""
    view = named_table(lake, arguments).timeline
    wanted, key = text_of(arguments, "instant_time"), text_of(arguments, "metadata_key")
    instant = view.latest_data() if wanted is None else view.instant(wanted)
    if instant is None:
        return
    extra = view.commit_metadata(instant).extra
    found = ((k, v) for k, v in sorted(extra.items()) if key in (None, k))
    for name, value in limited(found, arguments):
        yield {
            "instant_time": instant.requested,
            "action": instant.action.value,
            "metadata_key": name,
            "metadata_value": value,
        }


def _one(lake: "Lake", arguments: Arguments, procedure: str) -> tuple[Instant, CommitMetadata]:
    view = named_table(lake, arguments).timeline.with_history()
    instant = view.instant(required(arguments, "instant_time", procedure))
    return instant, view.commit_metadata(instant)


def _is_new(stat: WriteStat) -> bool:
    return stat.prev_commit in (None, "null")


def _commit_row(instant: Instant, metadata: CommitMetadata) -> Row:
    stats = [stat for found in metadata.write_stats.values() for stat in found]
    return {
        "commit_time": instant.requested,
        "state_transition_time": instant.completed,
        "action": instant.action.value,
        "total_bytes_written": sum(s.total_write_bytes for s in stats),
        "total_files_added": sum(_is_new(s) for s in stats),
        "total_files_updated": sum(not _is_new(s) for s in stats),
        "total_partitions_written": len(metadata.write_stats),
        "total_records_written": sum(s.num_writes for s in stats),
        "total_update_records_written": sum(s.num_update_writes for s in stats),
        "total_errors": sum(s.total_write_errors for s in stats),
        "operation": metadata.operation,
    }


def _file_rows(commits: Iterable[tuple[Instant, CommitMetadata]]) -> Iterator[Row]:
    for instant, metadata in commits:
        for partition, stats in sorted(metadata.write_stats.items()):
            for stat in stats:
                yield {
                    "commit_time": instant.requested,
                    "state_transition_time": instant.completed,
                    "action": instant.action.value,
                    "partition": partition,
                    "file_id": stat.file_id,
                    "previous_commit": stat.prev_commit,
                    "num_writes": stat.num_writes,
                    "num_inserts": stat.num_inserts,
                    "num_deletes": stat.num_deletes,
                    "num_update_writes": stat.num_update_writes,
                    "total_errors": stat.total_write_errors,
                    "total_log_blocks": stat.total_log_blocks,
                    "total_corrupt_log_blocks": stat.total_corrupt_log_block,
                    "total_rollback_blocks": stat.total_rollback_blocks,
                    "total_log_records": stat.total_log_records,
                    "total_updated_records_compacted": stat.total_updated_records_compacted,
                    "total_bytes_written": stat.total_write_bytes,
                }
