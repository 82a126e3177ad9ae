"""Creating an empty table: everything is checked before anything is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.actions.create_choices import check_options_agree, check_properties_agree
from lakewright.actions.create_index import index_properties, same_setting, take_rules
from lakewright.actions.create_keys import check_role, plan_keys
from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.actions.write.admission import check_config, check_names
from lakewright.format.hudi.avro_schema import table_avro_schema
from lakewright.format.hudi.change_records import CDC_ENABLED, CDC_MODE
from lakewright.format.hudi.config import (
    HIVE_STYLE,
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    URL_ENCODE,
    KeyGenerator,
    TableConfig,
)
from lakewright.format.hudi.config import key_generator as key_generator_of
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.format.hudi.merge_settings import MODE
from lakewright.format.hudi.properties import (
    CHECKSUM,
    PROPERTIES_PATH,
    render_properties,
    table_checksum,
)
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import BUCKETS, IndexKind
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.errors import AlreadyExists, Invalid, Unsupported
from lakewright.model.options import check_properties, parse_bool
from lakewright.model.schema import BINARY, META_COLUMNS, OPERATION, Fixed
from lakewright.model.table import MergeMode, TableDescriptor, TableId, TableType
from lakewright.storage.port import Storage
from lakewright.table.evolution import check_columns
from lakewright.timeline.locks.choose import open_lock

VERSIONS = (6, 9)
_PAYLOADS = {
    MergeMode.COMMIT_TIME_ORDERING: "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    MergeMode.EVENT_TIME_ORDERING: "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
_OWN_COLUMNS = (*META_COLUMNS, OPERATION)


@dataclass(frozen=True, slots=True)
class CreatePlan:
    """The properties file and the folders of a table that is about to exist.

    ``rules`` say how many buckets which partitions will have, where they differ.
    """

    properties: Mapping[str, str]
    folders: tuple[str, ...] = field(default=())
    rules: BucketRules | None = None


def plan_create(
    descriptor: TableDescriptor,
    *,
    version: int = 9,
    merge_mode: MergeMode | None = None,
    hive_style: bool | None = None,
    url_encode: bool | None = None,
    key_generator: KeyGenerator | None = None,
    index: IndexKind | None = None,
    buckets: BucketRules | int | None = None,
    hash_by: Sequence[str] = (),
) -> CreatePlan:
    """Check a descriptor and say what a table made of it looks like on storage.

    Without record key columns the table's keys are generated when rows are written. Partition
    columns may be written ``column:TIMESTAMP``: their values are formatted by the settings
    ``hoodie.keygen.timebased.*`` among the properties. What is None may stand among the properties
    under Hudi's name, and is Hudi's default otherwise; only folders are in Hive style by default.
    """
    if version not in VERSIONS:
        raise Invalid(f"table version {version} cannot be created.", next_step="Allowed: 6, 9.")
    _check_schema(descriptor)
    given = _own_properties(descriptor.properties)
    rules, number = take_rules(buckets, given)
    generator = key_generator or _given_generator(given)
    keys = plan_keys(
        descriptor.record_key, descriptor.partition_by, generator, given, descriptor.schema
    )
    mode = merge_mode or _given_mode(given) or _default_mode(descriptor.ordering)
    _check_mode(mode, descriptor.ordering)
    made = {
        **_identity(descriptor.table_id),
        "hoodie.table.type": descriptor.table_type.value,
        "hoodie.table.version": str(version),
        "hoodie.table.create.schema": table_avro_schema(
            descriptor.schema, descriptor.table_id.name
        ),
        HIVE_STYLE: _flag(hive_style, HIVE_STYLE, given, default=True),
        URL_ENCODE: _flag(url_encode, URL_ENCODE, given, default=False),
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.timeline.timezone": "UTC",
        **keys.properties(version),
        **(_version_6(descriptor, mode) if version == 6 else _version_9(descriptor, mode)),
        **_change_properties(given),
        **index_properties(descriptor.record_key, index, number, hash_by, given),
    }
    if rules is not None:
        del made[BUCKETS.key]
    _check_agreement(made, given)
    check_properties_agree(given, made)
    properties = {**given, **made}
    properties[CHECKSUM] = str(table_checksum(properties))
    check_config(TableConfig.of(properties))
    return CreatePlan(properties, _folders(version), rules)


def create_table(storage: Storage, plan: CreatePlan) -> None:
    """Make the table; the properties file is what makes it one, and only one creator wins.

    Bucket rules are written before it, under the table's lock: those that a creation which was
    cut off has left must not become the table's. ``InvalidOption`` where the options of the
    storage choose what the table is: they do not.
    """
    check_options_agree(storage.options, plan.properties)
    check_vacant(storage)
    for folder in plan.folders:
        storage.ensure_folder(folder)
    store = HashingStore(storage)
    if plan.rules is None and store.is_empty():
        _found(storage, plan)
        return
    with open_lock(storage, {**storage.options, **plan.properties}).acquire():
        if storage.stat(PROPERTIES_PATH) is not None:
            raise _taken(storage)
        store.clear()
        if plan.rules is not None:
            store.write_config(FIRST_INSTANT, plan.rules, {})
        try:
            _found(storage, plan)
        except AlreadyExists:
            store.clear()
            raise


def _found(storage: Storage, plan: CreatePlan) -> None:
    if not storage.create(PROPERTIES_PATH, render_properties(plan.properties)):
        raise _taken(storage)


def check_vacant(storage: Storage) -> None:
    """Refuse a place where no table can be made.

    A folder that holds files is none: whatever they are, readers would take them for the
    table's. What a creation that was cut off left behind is no hindrance.
    """
    if not storage.can_create_atomically:
        raise Unsupported(
            f"the storage of {storage.uri} cannot create a file only where there is none, so that "
            "two creators could overwrite each other.",
            next_step="Create the table on a local path or on s3://.",
        )
    if storage.stat(PROPERTIES_PATH) is not None:
        raise _taken(storage)
    for folder in storage.walk("", sizes=False, skip=frozenset({".hoodie"})):
        raise Invalid(
            f"{storage.uri} holds files, such as {folder.path or '.'}/{folder.names[0]}.",
            next_step="Choose an empty folder, or remove them.",
            path=storage.uri,
        )


def _taken(storage: Storage) -> AlreadyExists:
    return AlreadyExists(
        f"there is a table at {storage.uri} already.",
        next_step="Open it with lakewright.open_table, or choose another path.",
        path=storage.uri,
    )


def _check_schema(descriptor: TableDescriptor) -> None:
    schema = descriptor.schema
    if reserved := [n for n in schema.names if n in _OWN_COLUMNS]:
        raise Invalid(
            f"the schema names Hudi's own columns: {', '.join(reserved)}.",
            next_step="Leave them out; they are added by the writer.",
        )
    if not schema.fields:
        raise Invalid("the schema has no columns.", next_step="Name at least the key column.")
    check_columns(schema)
    check_names(schema)
    check_role("order_by", descriptor.ordering, schema)
    for name in descriptor.ordering:
        if (kind := schema.find(name)) == BINARY or isinstance(kind, Fixed):
            raise Invalid(
                f"order_by names {name!r}, which is a {kind}: Hudi cannot compare such values, and "
                "could not read the table.",
                next_step="Order by a number, a date, a time or a text.",
                column=name,
            )


def _flag(value: bool | None, key: str, given: Mapping[str, str], *, default: bool) -> str:
    if value is None and key in given:
        try:
            value = parse_bool(given[key])
        except ValueError as cause:
            raise Invalid(
                f"{key} is {given[key]!r}.", next_step="Allowed: true or false."
            ) from cause
    return str(default if value is None else value).lower()


def _given_generator(given: Mapping[str, str]) -> KeyGenerator | None:
    named = KEY_GENERATOR_TYPE in given or KEY_GENERATOR_CLASS in given
    return key_generator_of(given) if named else None


def _given_mode(given: Mapping[str, str]) -> MergeMode | None:
    text = given.get(MODE)
    if text is None:
        return None
    try:
        return MergeMode(text.upper())
    except ValueError as cause:
        raise Invalid(
            f"{MODE} is {text!r}.", next_step=f"Allowed: {', '.join(MergeMode)}."
        ) from cause


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
        **({"hoodie.table.ordering.fields": ordering} if ordering else {}),
    }


def _version_6(descriptor: TableDescriptor, mode: MergeMode) -> dict[str, str]:
    if len(descriptor.ordering) > 1:
        raise Invalid(
            "version 6 knows one ordering column.", next_step="Use version=9 or name one column."
        )
    merge_on_read = descriptor.table_type is TableType.MERGE_ON_READ
    return {
        "hoodie.timeline.layout.version": "1",
        "hoodie.archivelog.folder": "archived",
        **({"hoodie.compaction.payload.class": _PAYLOADS[mode]} if merge_on_read else {}),
        **({"hoodie.table.precombine.field": p} if (p := "".join(descriptor.ordering)) else {}),
    }


def _change_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return what a table that keeps changes says of them, as Hudi spells it."""
    mode = CDC_MODE.read(given)
    if not CDC_ENABLED.read(given):
        if CDC_MODE.given(given):
            raise Invalid(
                f"{CDC_MODE.key} is given for a table that keeps no changes.",
                next_step=f"Set {CDC_ENABLED.key} to true, or leave it out.",
                key=CDC_MODE.key,
            )
        return {}
    return {CDC_ENABLED.key: "true", CDC_MODE.key: mode.value}


def _own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's own properties; those that are options of ours must be valid."""
    for key, value in properties.items():
        if not isinstance(value, str):
            raise Invalid(f"property {key}: {value!r} is no text.", next_step="Give it in quotes.")
        if not key.startswith(("hoodie.", "lakewright.")):
            raise Invalid(
                f"unknown property {key}.",
                next_step="Names start with 'hoodie.' or 'lakewright.'.",
            )
    check_properties(properties)
    WriteSettings.of(properties)
    return dict(properties)


def _check_agreement(made: Mapping[str, str], given: Mapping[str, str]) -> None:
    for key, value in given.items():
        if key == CHECKSUM or (key in made and not same_setting(key, made[key], value)):
            raise Invalid(
                f"the property {key}={value} contradicts the rest of the request"
                + (f", which makes it {made[key]}." if key in made else "."),
                next_step="Leave it out, or change the argument that decides it.",
                key=key,
            )


def _folders(version: int) -> tuple[str, ...]:
    archive = ".hoodie/archived" if version == 6 else ".hoodie/timeline/history"
    bootstrap = ".hoodie/.aux/.bootstrap"
    return (archive, ".hoodie/.temp", f"{bootstrap}/.partitions", f"{bootstrap}/.fileids")
