"""The schema that readers of a table see, and where it is found."""

from collections.abc import Iterator
from dataclasses import replace

from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.config import KeyGenerator, TableConfig
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.internal_schema import parse_internal_schema
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.model.errors import Invalid, NotFound
from lakewright.model.instant import Instant
from lakewright.model.schema import META_COLUMNS, OPERATION, STRING, Field, Struct
from lakewright.storage.port import Storage
from lakewright.timeline.moments import whole_second
from lakewright.timeline.view import TimelineView

#: Maintenance repeats the schema it found, which may be older than the newest write's.
_MAINTENANCE = frozenset({"CLUSTER", "COMPACT", "INDEX", "LOG_COMPACT"})
#: Where a table with schema-on-read keeps its schema with field ids.
LATEST_SCHEMA = "latest_schema"
_OWN_COLUMNS = frozenset({*META_COLUMNS, OPERATION})


def resolve_schema(
    storage: Storage, config: TableConfig, timeline: TimelineView, as_of: str | None
) -> Struct:
    """Find the schema in the order that ``table_schema`` promises."""
    found = find_schema(storage, config, timeline, as_of)
    if found is None:
        raise Invalid(
            f"the table {config.name} has no schema yet.",
            next_step="Write to it once, or create it with a schema.",
            table=config.name,
        )
    return as_readers_see(found, config)


def find_schema(
    storage: Storage, config: TableConfig, timeline: TimelineView, as_of: str | None = None
) -> Struct | None:
    """Return the schema as it is stored, None where there is none at all."""
    found = _from_commits(timeline, as_of)
    if found is None and as_of is not None:
        found = _from_commits(timeline, None)  # before the first write: no rows, same columns
    if found is None:
        found = _from_files(storage, timeline, as_of)
    return _from_creation(config) if found is None else found


def as_readers_see(stored: Struct, config: TableConfig) -> Struct:
    """Turn a stored schema into the one that readers of the table see.

    Hudi's own columns are left out. Partition columns that files do not hold are added as
    text; those that a key generator formats as a time are text whatever files hold.
    """
    fields = list(stored.without(_OWN_COLUMNS))
    if config.drop_partition_columns:
        known = {field.name for field in fields}
        fields += [Field(p.name, STRING) for p in config.partition_fields if p.name not in known]
    # A custom key generator may format times too, and leaves the type of the column alone.
    by_time = config.key_generator is KeyGenerator.TIMESTAMP
    timed = {p.name for p in config.partition_fields if by_time and p.kind == "TIMESTAMP"}
    return Struct(tuple(replace(f, type=STRING) if f.name in timed else f for f in fields))


def _from_commits(timeline: TimelineView, as_of: str | None) -> Struct | None:
    from_maintenance: Struct | None = None
    for instant in _newest_first(timeline, as_of):
        body = timeline.commit_metadata(instant)
        maintains = body.operation in _MAINTENANCE
        if maintains and from_maintenance is not None:
            continue
        schema = _of_commit(body, str(instant))
        if schema is not None and not maintains:
            return schema
        from_maintenance = from_maintenance if schema is None else schema
    return from_maintenance


def _of_commit(body: CommitMetadata, where: str) -> Struct | None:
    """Return the schema of a commit; one with field ids, if it has that, is the truer one."""
    numbered = body.extra.get(LATEST_SCHEMA)
    if numbered:
        return parse_internal_schema(numbered, where).struct
    return parse_avro_schema(body.schema, where) if body.schema else None


def _newest_first(timeline: TimelineView, as_of: str | None) -> Iterator[Instant]:
    bound = None if as_of is None else whole_second(as_of)
    return (i for i in reversed(timeline.data()) if bound is None or i.requested <= bound)


def _from_files(storage: Storage, timeline: TimelineView, as_of: str | None) -> Struct | None:
    """Ask the files of the newest writes; where those have been cleaned, any committed file."""
    for instant in _newest_first(timeline, as_of):
        for stats in timeline.commit_metadata(instant).write_stats.values():
            for stat in stats:
                found = _of_file(storage, stat.path) if stat.path else None
                if found is not None:
                    return found
    for path in _committed_files(storage, timeline):
        found = _of_file(storage, path)
        if found is not None:
            return found
    return None


def _committed_files(storage: Storage, timeline: TimelineView) -> Iterator[str]:
    for folder in storage.walk("", sizes=False, skip=frozenset({".hoodie"})):
        for name in folder.names:
            file = base_file(folder.path, name) or log_file(folder.path, name)
            if file is not None and timeline.is_committed(file.instant):
                yield file.path


def _of_file(storage: Storage, path: str) -> Struct | None:
    partition, _, name = path.rpartition("/")
    if base_file(partition, name) is not None:
        return _of_base(storage, path)
    return _of_log(storage, path) if log_file(partition, name) is not None else None


def _of_base(storage: Storage, path: str) -> Struct | None:
    try:
        footer = read_footer(storage, path)
    except NotFound:
        return None
    if footer.avro_schema is not None:
        return parse_avro_schema(footer.avro_schema, path)
    return from_arrow_schema(footer.schema)


def _of_log(storage: Storage, path: str) -> Struct | None:
    stat = storage.stat(path)
    if stat is None:
        return None
    with storage.open(path) as file:
        for block in scan_blocks(file, stat.size, path):
            if block.schema_text and not block.is_partial:
                return parse_avro_schema(block.schema_text, path)
    return None


def _from_creation(config: TableConfig) -> Struct | None:
    return (
        parse_avro_schema(config.create_schema, "create schema") if config.create_schema else None
    )
