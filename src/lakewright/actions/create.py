"""Creating an empty table: everything is checked before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.properties import (
    CHECKSUM,
    PROPERTIES_PATH,
    render_properties,
    table_checksum,
)
from lakewright.model.errors import AlreadyExists, Invalid
from lakewright.model.schema import META_COLUMNS, List, Map, Schema, Struct
from lakewright.model.table import MergeMode, TableDescriptor, TableId, TableType
from lakewright.storage.port import Storage

VERSIONS = (6, 9)
_PAYLOADS = {
    MergeMode.COMMIT_TIME_ORDERING: "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    MergeMode.EVENT_TIME_ORDERING: "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}


@dataclass(frozen=True, slots=True)
class CreatePlan:
    """The properties file and the folders of a table that is about to exist."""

    properties: Mapping[str, str]
    folders: tuple[str, ...] = field(default=())


def plan_create(
    descriptor: TableDescriptor,
    *,
    version: int = 9,
    merge_mode: MergeMode | None = None,
    hive_style: bool = True,
    url_encode: bool = False,
) -> CreatePlan:
    """Check a descriptor and say what a table made of it looks like on storage."""
    if version not in VERSIONS:
        raise Invalid(f"table version {version} cannot be created.", next_step="Allowed: 6, 9.")
    _check_columns(descriptor)
    mode = merge_mode or _default_mode(descriptor.ordering)
    path = ",".join(descriptor.partition_by)
    _check_mode(mode, descriptor.ordering)
    properties = {
        **_identity(descriptor.table_id),
        "hoodie.table.type": descriptor.table_type.value,
        "hoodie.table.version": str(version),
        "hoodie.table.create.schema": _create_schema(descriptor.table_id.name, descriptor.schema),
        "hoodie.table.recordkey.fields": ",".join(descriptor.record_key),
        "hoodie.datasource.write.hive_style_partitioning": str(hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(url_encode).lower(),
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.timeline.timezone": "UTC",
        **({"hoodie.table.partition.fields": path} if path else {}),
        **(_version_6(descriptor, mode) if version == 6 else _version_9(descriptor, mode)),
        **_own_properties(descriptor.properties),
    }
    properties[CHECKSUM] = str(table_checksum(properties))
    return CreatePlan(properties, _folders(version))


def create_table(storage: Storage, plan: CreatePlan) -> None:
    """Make the table; the properties file is what makes it one, and only one creator wins."""
    if storage.stat(PROPERTIES_PATH) is not None:
        raise _taken(storage)
    for folder in plan.folders:
        storage.ensure_folder(folder)
    if not storage.create(PROPERTIES_PATH, render_properties(plan.properties)):
        raise _taken(storage)


def _taken(storage: Storage) -> AlreadyExists:
    return AlreadyExists(
        f"there is a table at {storage.uri} already.",
        next_step="Open it with lakewright.open_table, or choose another path.",
        path=storage.uri,
    )


def _check_columns(descriptor: TableDescriptor) -> None:
    schema = descriptor.schema
    if reserved := [n for n in schema.names if n in META_COLUMNS]:
        raise Invalid(
            f"the schema names Hudi's own columns: {', '.join(reserved)}.",
            next_step="Leave them out; they are added by the writer.",
        )
    if not descriptor.record_key:
        raise Invalid("a table needs a record key.", next_step="Give key='id' or several columns.")
    roles = {
        "key": descriptor.record_key,
        "partition_by": descriptor.partition_by,
        "order_by": descriptor.ordering,
    }
    for role, names in roles.items():
        for name in names:
            kind = schema.field(name).type
            if isinstance(kind, Struct | List | Map):
                raise Invalid(
                    f"{role} names {name!r}, which is a {kind}.",
                    next_step="Choose a column of a simple type.",
                    column=name,
                )
        if len(set(names)) != len(names):
            raise Invalid(f"{role} names a column twice: {', '.join(names)}.")


def _default_mode(ordering: tuple[str, ...]) -> MergeMode:
    return MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING


def _check_mode(mode: MergeMode, ordering: tuple[str, ...]) -> None:
    if mode is MergeMode.CUSTOM:
        raise Invalid(
            "tables with a custom merge mode cannot be created.",
            next_step="Allowed: COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING.",
        )
    if mode is MergeMode.EVENT_TIME_ORDERING and not ordering:
        raise Invalid("EVENT_TIME_ORDERING needs order_by.", next_step="Name the ordering column.")
    if mode is MergeMode.COMMIT_TIME_ORDERING and ordering:
        # Real Hudi turns such a table into an event-time one at its next write.
        raise Invalid(
            f"COMMIT_TIME_ORDERING does not go with order_by={', '.join(ordering)}.",
            next_step="Leave order_by out, or choose EVENT_TIME_ORDERING.",
        )


def _identity(table: TableId) -> dict[str, str]:
    database = {"hoodie.database.name": table.database} if table.database else {}
    return {"hoodie.table.name": table.name, **database}


def _create_schema(name: str, schema: Schema) -> str:
    return to_avro_schema(schema, f"{name}_record", f"hoodie.{name}")


def _key_generator(descriptor: TableDescriptor) -> str:
    if not descriptor.partition_by:
        return "NON_PARTITION"
    simple = len(descriptor.record_key) == 1 and len(descriptor.partition_by) == 1
    return "SIMPLE" if simple else "COMPLEX"


def _version_9(descriptor: TableDescriptor, mode: MergeMode) -> dict[str, str]:
    ordering = ",".join(descriptor.ordering)
    return {
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.initial.version": "9",
        "hoodie.table.format": "native",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.populate.meta.fields": "true",
        "hoodie.record.merge.mode": mode.value,
        "hoodie.table.keygenerator.type": _key_generator(descriptor),
        **({"hoodie.table.ordering.fields": ordering} if ordering else {}),
    }


_CLASSES = {"SIMPLE": "Simple", "COMPLEX": "Complex", "NON_PARTITION": "Nonpartitioned"}


def _version_6(descriptor: TableDescriptor, mode: MergeMode) -> dict[str, str]:
    if len(descriptor.ordering) > 1:
        raise Invalid(
            "version 6 knows one ordering column.", next_step="Use version=9 or name one column."
        )
    generator = f"org.apache.hudi.keygen.{_CLASSES[_key_generator(descriptor)]}KeyGenerator"
    merge_on_read = descriptor.table_type is TableType.MERGE_ON_READ
    return {
        "hoodie.timeline.layout.version": "1",
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.keygenerator.class": generator,
        **({"hoodie.compaction.payload.class": _PAYLOADS[mode]} if merge_on_read else {}),
        **({"hoodie.table.precombine.field": p} if (p := "".join(descriptor.ordering)) else {}),
    }


def _own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    if strange := [k for k in properties if not k.startswith(("hoodie.", "lakewright."))]:
        raise Invalid(
            f"unknown properties: {', '.join(sorted(strange))}.",
            next_step="Names start with 'hoodie.' or 'lakewright.'.",
        )
    return dict(properties)


def _folders(version: int) -> tuple[str, ...]:
    archive = ".hoodie/archived" if version == 6 else ".hoodie/timeline/history"
    bootstrap = ".hoodie/.aux/.bootstrap"
    return (archive, ".hoodie/.temp", f"{bootstrap}/.partitions", f"{bootstrap}/.fileids")
