"""Whether a table can be written here, and how its records are spread."""

from collections.abc import Mapping

from lakewright.actions.disable_metadata import METADATA_IN_WORK
from lakewright.actions.tasks.write_spec import TAKEN_NAMES
from lakewright.actions.write.agreement import check_table_agrees
from lakewright.actions.write.bucket_admission import admit_index
from lakewright.format.hudi.change_records import CDC_ENABLED, CDC_MODE
from lakewright.format.hudi.config import (
    METADATA_PARTITIONS,
    KeyGenerator,
    TableConfig,
    kinds_are_known,
)
from lakewright.format.hudi.key_columns import PLAIN_SINGLE_KEY
from lakewright.format.hudi.time_partitions import why_not_formatted
from lakewright.index.layout import IndexLayout
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.options import check_options, parse_names
from lakewright.model.schema import Struct, Timestamp
from lakewright.model.table import MergeMode
from lakewright.table.evolution import stored_schema
from lakewright.table.merge.policy import Gap, MergePolicy
from lakewright.table.state import TableState

LOCK_PROVIDER = "hoodie.write.lock.provider"
_PARTITION = "hoodie.datasource.write.partitionpath.field"
_BOOTSTRAP = "hoodie.bootstrap.base.path"
_SEVERAL_FORMATS = "hoodie.table.multiple.base.file.formats.enable"


def admit(state: TableState, options: Mapping[str, str]) -> IndexLayout:
    """Return how the table's records are spread; a table that cannot be written is refused.

    The table's own properties decide. ``options`` may give what they lack (then ``stored`` is
    False, and the write stores it); what contradicts them is refused. Each refusal names the
    way out.
    """
    check_options(options, state.config.properties)
    check_config(state.config)
    check_table_agrees(state.config, options)
    _check_changes(state.config, options)
    _check_place(state, options)
    _check_kinds(state.config, options)
    _check_partitions(state)
    return admit_index(state, options)


def check_config(config: TableConfig) -> None:
    """Refuse a table whose properties ask for what is not written here."""
    _check_format(config)
    _check_keys(config)
    _check_merging(config)


def check_names(schema: Struct) -> None:
    """Refuse columns whose names the writer needs for what travels beside the rows."""
    taken = [name for name in schema.names if name.lower() in TAKEN_NAMES]
    if taken:
        raise Unsupported(
            f"the writer needs the column names {', '.join(taken)} for itself.",
            next_step="Use names that do not begin with _lakewright_.",
            columns=taken,
        )


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


def _check_kinds(config: TableConfig, options: Mapping[str, str]) -> None:
    """Refuse a table that does not say which partition columns are formatted as times.

    Its writers are told with every write, and may tell it here too.
    """
    if kinds_are_known(config):
        return
    given = {text.upper() for text in parse_names(options.get(_PARTITION, ""))}
    if given != {f"{field.name.upper()}:SIMPLE" for field in config.partition_fields}:
        names = ",".join(f"{field.name}:SIMPLE" for field in config.partition_fields)
        raise Unsupported(
            f"the table {config.name} has a custom key generator, and does not say which of its "
            "partition columns are formatted as times.",
            next_step=f"Give {_PARTITION}={names} as an option if none is; else write it with "
            "Hudi.",
            table=config.name,
        )


def _check_partitions(state: TableState) -> None:
    columns = stored_schema(state)
    for field in state.config.partition_fields:
        kind = None if columns is None else columns.find(field.name)
        if field.kind == "TIMESTAMP":
            why = why_not_formatted(kind, state.config.properties)
            if why is not None:
                raise _unsupported(state.config, f"it is partitioned by {field.name!r}, and {why}")
        elif isinstance(kind, Timestamp):
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


def _unsupported(config: TableConfig, why: str) -> Unsupported:
    return Unsupported(
        f"the table {config.name} cannot be written here: {why}.",
        next_step="Read it, and write it with Hudi.",
        table=config.name,
    )
