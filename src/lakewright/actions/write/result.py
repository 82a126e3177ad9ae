"""From the files of a write to its commit, and to what the user is told."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakewright.actions.tasks.write_spec import FileWritten
from lakewright.actions.write.request import SCHEMA
from lakewright.format.hudi.avro_schema import parse_avro_schema, table_avro_schema
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.model.instant import Instant
from lakewright.model.schema import Struct
from lakewright.model.writing import Operation, PartitionWritten, WriteResult
from lakewright.table.schemas import LATEST_SCHEMA
from lakewright.table.state import TableState

#: File ids that vanish, by partition.
Replaced = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write made, before it is published."""

    files: tuple[FileWritten, ...] = ()
    replaced: Replaced | None = None
    absent: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to publish."""
        return not self.files and not any((self.replaced or {}).values())


def commit_metadata(
    operation: Operation, outcome: Outcome, extra: Mapping[str, str]
) -> CommitMetadata:
    """Return the body of the commit that makes the files part of the table."""
    stats: defaultdict[str, list[WriteStat]] = defaultdict(list)
    for file in outcome.files:
        stats[file.partition].append(file.stat)
    return CommitMetadata(
        write_stats={partition: tuple(stats[partition]) for partition in sorted(stats)},
        extra=extra,
        operation=operation.value,
        replaced={p: tuple(ids) for p, ids in (outcome.replaced or {}).items() if ids},
    )


def write_result(operation: Operation, outcome: Outcome, instant: Instant | None) -> WriteResult:
    """Return what the user is told."""
    return WriteResult(
        operation=operation,
        instant=instant,
        partitions=_by_partition(outcome),
        exact=all(file.exact for file in outcome.files),
        absent=outcome.absent,
    )


def _by_partition(outcome: Outcome) -> dict[str, PartitionWritten]:
    parts: dict[str, PartitionWritten] = {}
    for file in outcome.files:
        part = parts.get(file.partition, PartitionWritten())
        parts[file.partition] = PartitionWritten(
            inserted=part.inserted + file.inserted,
            updated=part.updated + file.updated,
            deleted=part.deleted + file.deleted,
            files=part.files + 1,
            bytes=part.bytes + file.stat.total_write_bytes,
        )
    for partition, ids in (outcome.replaced or {}).items():
        part = parts.get(partition, PartitionWritten())
        if ids:
            parts[partition] = replace(part, replaced_groups=len(ids))
    return dict(sorted(parts.items()))


def schema_entries(state: TableState, schema: Struct) -> dict[str, str]:
    """Return the entries of a commit that tell the table's schema.

    Every commit carries one, because real Hudi takes it from the newest. Where nothing changed
    the text of the last write is repeated, which may say more than our types do. A schema with
    field ids, by which readers find renamed columns in old files, never changes here.
    """
    last = next(_with_schema(state), {})
    if LATEST_SCHEMA in last and has_ids(schema):
        return {key: last[key] for key in (SCHEMA, LATEST_SCHEMA)}
    if last and parse_avro_schema(last[SCHEMA], "commit") == schema:
        return {SCHEMA: last[SCHEMA]}
    return {SCHEMA: table_avro_schema(schema, state.config.name)}


def has_ids(schema: Struct) -> bool:
    """Whether the columns are numbered, as in tables that may rename them."""
    return any(field.id is not None for field in schema)


def _with_schema(state: TableState) -> Iterator[Mapping[str, str]]:
    """Stream the extra metadata of the writes that tell a schema, newest first."""
    for instant in reversed(state.timeline.data()):
        body = state.timeline.commit_metadata(instant)
        if body.schema:
            yield body.extra
