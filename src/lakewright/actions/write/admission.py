"""Whether a table can be written here, and how its records are spread."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from lakewright.actions.disable_metadata import METADATA_IN_WORK
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.change_records import CDC_ENABLED, CDC_MODE
from lakewright.format.hudi.config import METADATA_PARTITIONS, KeyGenerator, TableConfig
from lakewright.format.hudi.file_names import base_file
from lakewright.format.hudi.hashing_config import CONFIGS_FOLDER
from lakewright.format.hudi.key_columns import PLAIN_SINGLE_KEY
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.index.layout import BUCKETS, HASH_FIELDS, INDEX_TYPE, IndexKind, IndexLayout
from lakewright.model.errors import Invalid, NotFound, Unsupported
from lakewright.model.options import Option, check_options
from lakewright.model.schema import Timestamp
from lakewright.model.table import MergeMode
from lakewright.table.evolution import stored_schema
from lakewright.table.merge.policy import Gap, MergePolicy
from lakewright.table.state import TableState
from lakewright.timeline.view import TimelineView

BUCKET_ENGINE = "hoodie.index.bucket.engine"
LOCK_PROVIDER = "hoodie.write.lock.provider"
_BOOTSTRAP = "hoodie.bootstrap.base.path"
_SEVERAL_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
#: A random id begins with so small a number once in forty thousand times.
_MOST_BUCKETS = 100_000
#: So many files, and so many commits, are looked at to check what a caller says of buckets.
_LOOKED_AT = 20


def admit(state: TableState, options: Mapping[str, str]) -> IndexLayout:
    """Return how the table's records are spread; a table that cannot be written is refused.

    The table's own properties decide. ``options`` may give what they lack (then ``stored`` is
    False, and the write stores it); what contradicts them is refused. Each refusal names the
    way out.
    """
    check_options(options, state.config.properties)
    check_config(state.config)
    _check_changes(state.config, options)
    _check_place(state, options)
    _check_partitions(state)
    layout = _layout(state, options)
    if layout.kind is IndexKind.BUCKET:
        _check_buckets(state, options, layout)
        return replace(layout, stored=layout.stored and BUCKETS.given(state.config.properties))
    return layout


def check_config(config: TableConfig) -> None:
    """Refuse a table whose properties ask for what is not written here."""
    _check_format(config)
    _check_keys(config)
    _check_merging(config)


def _check_format(config: TableConfig) -> None:
    if config.version not in (6, 9):
        raise Unsupported(
            f"the table has version {config.version}, which is read but not written here.",
            next_step="Versions 6 and 9 are written. Run `lakewright table upgrade PATH --to 9 "
            "--apply`, or CALL upgrade_table(table => '…', to_version => 'NINE').",
            version=config.version,
        )
    if config.metadata_partitions or config.properties.get(METADATA_IN_WORK):
        raise Unsupported(
            f"the table has a metadata table ({METADATA_PARTITIONS}="
            f"{','.join(config.metadata_partitions)}), which a write from here would leave behind.",
            next_step="Run `lakewright table disable-metadata PATH --apply`, or write with Hudi, "
            "which makes the metadata table anew when it writes next.",
            partitions=list(config.metadata_partitions),
        )
    if (
        config.base_format != "PARQUET"
        or config.properties.get(_SEVERAL_FORMATS, "").lower() == "true"
    ):
        raise _unsupported(config, f"its base files are {config.base_format}, not only parquet")
    if config.properties.get(_BOOTSTRAP):
        raise _unsupported(config, "it was bootstrapped: some rows lie in files outside of it")
    if not config.populate_meta_fields:
        raise _unsupported(config, "it does not keep Hudi's own columns (virtual keys)")
    if config.drop_partition_columns:
        raise _unsupported(config, "its files leave out the partition columns")
    if config.cdc_enabled:
        CDC_MODE.read(config.properties)


def _check_changes(config: TableConfig, options: Mapping[str, str]) -> None:
    """Refuse a write that asks for other change files than the table has."""
    for option in (CDC_ENABLED, CDC_MODE):
        stored: object = option.read(config.properties)
        if option.given(options) and option.read(options) != stored:
            raise Invalid(
                f"{option.key} is {str(stored).lower()} in the table, but "
                f"{options[option.key]} was given.",
                next_step="It is fixed when a table is created: leave the option out.",
                key=option.key,
            )


def _check_keys(config: TableConfig) -> None:
    if config.key_generator in (KeyGenerator.USER_PROVIDED, KeyGenerator.METADATA):
        raise _unsupported(config, "its keys are made by a generator of its own")
    single = config.key_generator is KeyGenerator.COMPLEX and len(config.record_key) == 1
    if config.version == 6 and single and not PLAIN_SINGLE_KEY.given(config.properties):
        raise Unsupported(
            "the table has version 6, one key column and the complex key generator: releases of "
            "Hudi differ in how they write such keys.",
            next_step=f"Look at a value of _hoodie_record_key, and set {PLAIN_SINGLE_KEY.key} in "
            "the table's properties: false where it is 'name:value', true where it is the value.",
        )


def _check_merging(config: TableConfig) -> None:
    policy = MergePolicy.of(config)
    if policy.mode is MergeMode.CUSTOM:
        raise Unsupported(
            f"the table merges records in its own way (strategy {config.merge_strategy_id}, "
            f"payload {config.payload_class}).",
            next_step="COMMIT_TIME_ORDERING and EVENT_TIME_ORDERING tables are written here; "
            "write this one with the software that has its merger.",
        )
    if policy.gap is Gap.MARKER:
        raise _unsupported(config, f"it merges by column ({config.partial_update_mode})")


def _check_partitions(state: TableState) -> None:
    columns = stored_schema(state)
    for field in state.config.partition_fields:
        kind = None if columns is None else columns.find(field.name)
        if isinstance(kind, Timestamp) and field.kind != "TIMESTAMP":
            raise _unsupported(
                state.config,
                f"it is partitioned by the times in {field.name!r}, for which releases and "
                "operations of Hudi write different paths, and which do not come back from them",
            )


def _check_place(state: TableState, options: Mapping[str, str]) -> None:
    locked = LOCK_PROVIDER in options or LOCK_PROVIDER in state.config.properties
    if not state.storage.can_create_atomically and not locked:
        raise Unsupported(
            f"the storage of {state.storage.uri} cannot create a file only where there is none, "
            "so that two writers could overwrite each other.",
            next_step=f"Set {LOCK_PROVIDER}, or use a local path or s3://.",
        )


def _layout(state: TableState, options: Mapping[str, str]) -> IndexLayout:
    properties = state.config.properties
    for option in (INDEX_TYPE, BUCKETS, HASH_FIELDS):
        _check_agreement(option, properties, options)
    layout = IndexLayout.of(properties, options)
    if layout.stored:
        return layout
    sample = _newest_file(state.timeline)
    if sample is None:
        return layout
    bucket = _bucket(sample)
    if (bucket is not None) == (layout.kind is IndexKind.BUCKET):
        return layout
    given = INDEX_TYPE.given(options)
    if bucket is not None:
        raise Unsupported(
            f"the table is a bucket table by its file ids ({sample.file_id}), and "
            + (f"{INDEX_TYPE.key}={layout.kind} was given." if given else "does not say so."),
            next_step=f"Give {INDEX_TYPE.key}=BUCKET and {BUCKETS.key} (and {HASH_FIELDS.key}) as "
            "its other writers have them; they are stored with the table then.",
        )
    raise Unsupported(
        f"{INDEX_TYPE.key}=BUCKET was given, but the file ids of the table ({sample.file_id}) are "
        "not those of buckets.",
        next_step=f"Give {INDEX_TYPE.key}=SIMPLE or BLOOM, as its other writers have it.",
    )


def _check_agreement(
    option: Option[Any], properties: Mapping[str, str], options: Mapping[str, str]
) -> None:
    if not (option.given(properties) and option.given(options)):
        return
    stored, asked = option.read(properties), option.read(options)
    if stored != asked:
        raise Invalid(
            f"{option.key} is {_plain(stored)} in the table, but {_plain(asked)} was given.",
            next_step="Leave the option out: the table's own value counts.",
            key=option.key,
        )


def _plain(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _newest_file(timeline: TimelineView) -> WriteStat | None:
    """Return a file of the newest write that made any; each commit body is small or read anyway."""
    for instant in reversed(timeline.data()):
        for stats in timeline.commit_metadata(instant).write_stats.values():
            for stat in stats:
                if stat.file_id:
                    return stat
    return None


def _bucket(stat: WriteStat) -> int | None:
    number = bucket_number(stat.file_id or "")
    return number if number is not None and number < _MOST_BUCKETS else None


def _check_buckets(state: TableState, options: Mapping[str, str], layout: IndexLayout) -> None:
    config = state.config
    values = {**options, **config.properties}
    engine = values.get(BUCKET_ENGINE, "SIMPLE").upper()
    if engine != "SIMPLE":
        raise Unsupported(
            f"{BUCKET_ENGINE} is {engine}; buckets of a fixed number are written here.",
            next_step="Write the table with Hudi, or copy it into one with SIMPLE buckets.",
        )
    if not BUCKETS.given(values):
        raise Unsupported(
            f"the table is a bucket table that does not say how many: {BUCKETS.key} is missing.",
            next_step=f"Give {BUCKETS.key} (and {HASH_FIELDS.key}) as its other writers have "
            "them; a wrong number makes duplicates.",
        )
    if any(True for _ in state.storage.list(CONFIGS_FOLDER)):
        raise Unsupported(
            "the table has its own number of buckets for some partitions (partition-level bucket "
            "index), which is not written here.",
            next_step="Write it with Hudi 1.1 or newer.",
        )
    if not config.record_key:
        raise Invalid(
            "a table without key columns has no buckets.",
            next_step=f"Give {INDEX_TYPE.key}=SIMPLE.",
        )
    if strange := [name for name in layout.hash_fields if name not in config.record_key]:
        raise Invalid(
            f"{HASH_FIELDS.key} names {', '.join(strange)}, not of the record key.",
            next_step=f"Allowed: some of {', '.join(config.record_key)}.",
        )
    if not (INDEX_TYPE.given(config.properties) and BUCKETS.given(config.properties)):
        _check_against_files(state, layout)
    elif not HASH_FIELDS.given(config.properties) and (
        layout.hash_fields and set(layout.hash_fields) != set(config.record_key)
    ):
        raise Invalid(
            f"the table's buckets follow from its whole key ({', '.join(config.record_key)}), "
            f"but {HASH_FIELDS.key}={','.join(layout.hash_fields)} was given.",
            next_step="Leave the option out.",
            key=HASH_FIELDS.key,
        )


def _check_against_files(state: TableState, layout: IndexLayout) -> None:
    """Compare a number of buckets that the caller gave with where some stored keys lie."""
    if layout.buckets is None:
        return
    fields = layout.hash_fields or state.config.record_key
    for stat in islice(_newest_bases(state.timeline), _LOOKED_AT):
        try:
            keys = read_footer(state.storage, stat.path or "").key_range
        except NotFound:
            continue  # cleaned since
        if keys is None:
            continue
        found = bucket_of(pa.array(keys, pa.string()), fields, layout.buckets).tolist()
        for key, bucket in zip(keys, found, strict=True):
            if bucket != _bucket(stat):
                raise Invalid(
                    f"with {BUCKETS.key}={layout.buckets} and the hash fields "
                    f"{', '.join(fields)} the key {key!r} belongs to bucket {bucket}, but it lies "
                    f"in {stat.file_id}.",
                    next_step="Give the number and the fields that the table's writers have.",
                )


def _newest_bases(timeline: TimelineView) -> Iterator[WriteStat]:
    for instant in islice(reversed(timeline.data()), _LOOKED_AT):
        for stats in timeline.commit_metadata(instant).write_stats.values():
            for stat in stats:
                folder, _, name = (stat.path or "").rpartition("/")
                if base_file(folder, name) is not None:
                    yield stat


def _unsupported(config: TableConfig, why: str) -> Unsupported:
    return Unsupported(
        f"the table {config.name} cannot be written here: {why}.",
        next_step="Read it, and write it with Hudi.",
        table=config.name,
    )
