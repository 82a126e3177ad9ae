"""Procedures that look at cleanings: what they did, partition by partition, and their plans."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.interfaces.sql.procedures.registry import Arguments, procedure
from lakewright.interfaces.sql.procedures.tables import (
    ARCHIVED,
    FILTER,
    FLAG,
    INT,
    LIMIT,
    LONG,
    PATH,
    TABLE,
    TEXT,
    Row,
    filtered,
    limited,
    named_table,
)

if TYPE_CHECKING:
    from lakewright.actions.services.views import Cleaning
    from lakewright.api.lake import Lake

_CLEANS = pa.schema(
    [
        ("clean_time", TEXT),
        ("state_transition_time", TEXT),
        ("action", TEXT),
        ("start_clean_time", TEXT),
        ("time_taken_in_millis", LONG),
        ("total_files_deleted", INT),
        ("earliest_commit_to_retain", TEXT),
        ("last_completed_commit_timestamp", TEXT),
        ("version", INT),
    ]
)
_PARTITIONS = pa.schema(
    [
        ("clean_time", TEXT),
        ("state_transition_time", TEXT),
        ("action", TEXT),
        ("start_clean_time", TEXT),
        ("partition_path", TEXT),
        ("policy", TEXT),
        ("delete_path_patterns", INT),
        ("success_delete_files", INT),
        ("failed_delete_files", INT),
        ("is_partition_deleted", FLAG),
        ("time_taken_in_millis", LONG),
        ("total_files_deleted", INT),
    ]
)
_PLANS = pa.schema(
    [
        ("plan_time", TEXT),
        ("state", TEXT),
        ("action", TEXT),
        ("earliest_instant_to_retain", TEXT),
        ("last_completed_commit_timestamp", TEXT),
        ("policy", TEXT),
        ("version", INT),
        ("total_partitions_to_clean", INT),
        ("total_partitions_to_delete", INT),
        ("extra_metadata", TEXT),
    ]
)
_PARAMETERS = (TABLE, LIMIT, ARCHIVED, FILTER, PATH)


@procedure("show_cleans", _CLEANS, *_PARAMETERS)
def show_cleans(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show what the newest cleanings did."""
    return limited(filtered(_cleans(lake, arguments), _CLEANS, arguments), arguments)


def _cleans(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    for cleaned in _found(lake, arguments):
        if cleaned.done is not None:
            yield {
                **_times(cleaned),
                "start_clean_time": cleaned.done.start,
                "time_taken_in_millis": cleaned.done.millis,
                "total_files_deleted": cleaned.done.total_deleted,
                "earliest_commit_to_retain": cleaned.done.earliest_to_retain,
                "last_completed_commit_timestamp": cleaned.done.last_completed,
                "version": cleaned.done.version,
            }


@procedure("show_cleans_metadata", _PARTITIONS, *_PARAMETERS)
def show_cleans_metadata(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show what the newest cleanings did to each partition."""
    return limited(filtered(_partitions(lake, arguments), _PARTITIONS, arguments), arguments)


def _partitions(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    for cleaned in _found(lake, arguments):
        for path, part in sorted(cleaned.done.partitions.items()) if cleaned.done else ():
            yield {
                **_times(cleaned),
                "start_clean_time": cleaned.done.start if cleaned.done else None,
                "partition_path": path,
                "policy": part.policy,
                "delete_path_patterns": len(part.patterns),
                "success_delete_files": len(part.deleted),
                "failed_delete_files": len(part.failed),
                "is_partition_deleted": bool(part.is_partition_deleted),
                "time_taken_in_millis": cleaned.done.millis if cleaned.done else None,
                "total_files_deleted": cleaned.done.total_deleted if cleaned.done else None,
            }


@procedure("show_clean_plans", _PLANS, *_PARAMETERS)
def show_clean_plans(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the plans of the newest cleanings, carried out or not."""
    return limited(filtered(_plans(lake, arguments), _PLANS, arguments), arguments)


def _plans(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    for cleaned in _found(lake, arguments):
        plan = cleaned.plan
        if plan is None:
            continue
        earliest = plan.earliest_to_retain
        yield {
            "plan_time": cleaned.instant.requested,
            "state": cleaned.instant.state.value.upper(),
            "action": cleaned.instant.action.value,
            "earliest_instant_to_retain": None if earliest is None else earliest.timestamp,
            "last_completed_commit_timestamp": plan.last_completed,
            "policy": plan.policy,
            "version": plan.version,
            "total_partitions_to_clean": len(plan.files or plan.old_files),
            "total_partitions_to_delete": len(plan.partitions),
            "extra_metadata": json.dumps(dict(plan.extra)) if plan.extra else None,
        }


def _found(lake: "Lake", arguments: Arguments) -> Iterator["Cleaning"]:
    return named_table(lake, arguments).cleanings(archived=bool(arguments["showArchived"]))


def _times(cleaned: "Cleaning") -> Row:
    return {
        "clean_time": cleaned.instant.requested,
        "state_transition_time": cleaned.instant.completed,
        "action": cleaned.instant.action.value,
    }
