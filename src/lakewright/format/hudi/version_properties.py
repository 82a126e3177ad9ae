"""What the properties of a table become when its version changes, as Hudi changes them.

Versions 6 and 8 name one ordering column and a payload class; version 9 names merge modes, and
keeps the payload class that a table had under another name, so that the way back is open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.config import HISTORY as HISTORY_PATH
from lakewright.format.hudi.config import (
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    LAYOUT,
    LAYOUTS,
    ORDERING,
    PARTITION,
    PRECOMBINE,
    TIMELINE,
    VERSION,
    KeyGenerator,
    TableConfig,
    kinds_are_known,
)
from lakewright.format.hudi.merge_settings import (
    COMMIT_TIME_ID,
    EVENT_TIME_ID,
    LEGACY_PAYLOAD_CLASSES,
    MERGE_PROPERTIES,
    MERGE_PROPERTY,
    MODE,
    OLD_STRATEGY_ID,
    PARTIAL_UPDATE_MODE,
    PAYLOAD_CLASS,
    PAYLOAD_ID,
    STRATEGY_ID,
)
from lakewright.model.options import parse_names
from lakewright.model.table import MergeMode, TableType

INITIAL_VERSION = "hoodie.table.initial.version"
_LEGACY = LEGACY_PAYLOAD_CLASSES[0]
_PACKAGE = "org.apache.hudi.common.model."
_LATEST = f"{_PACKAGE}OverwriteWithLatestAvroPayload"
_DEFAULT = f"{_PACKAGE}DefaultHoodieRecordPayload"
_BY_EVENT = f"{_PACKAGE}EventTimeAvroPayload"
_PLAIN = (_LATEST, _DEFAULT, _BY_EVENT)
_MYSQL = f"{_PACKAGE}debezium.MySqlDebeziumAvroPayload"
_POSTGRES = f"{_PACKAGE}debezium.PostgresDebeziumAvroPayload"
_DMS = f"{_PACKAGE}AWSDmsAvroPayload"
_NON_DEFAULTS = f"{_PACKAGE}OverwriteNonDefaultsWithLatestAvroPayload"
_PARTIAL = f"{_PACKAGE}PartialUpdateAvroPayload"

_EVENT, _COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
#: The payload classes that version 9 retires, with the mode that takes their place.
_RETIRED = {
    _LATEST: None,
    _DEFAULT: None,
    _BY_EVENT: _EVENT,
    _DMS: _COMMIT,
    _NON_DEFAULTS: _COMMIT,
    _MYSQL: _EVENT,
    _PARTIAL: _EVENT,
    _POSTGRES: _EVENT,
}
_DELETE_FIELD = f"{MERGE_PROPERTY}hoodie.payload.delete.field"
_DELETE_MARKER = f"{MERGE_PROPERTY}hoodie.payload.delete.marker"
_UNAVAILABLE = f"{MERGE_PROPERTY}hoodie.write.partial.update.unavailable.value"
_DEBEZIUM_DELETES = {_DELETE_FIELD: "_change_operation_type", _DELETE_MARKER: "d"}
#: What version 9 stores for a retired class besides its mode.
_REFINED: Mapping[str, Mapping[str, str]] = {
    _NON_DEFAULTS: {PARTIAL_UPDATE_MODE: "IGNORE_DEFAULTS"},
    _PARTIAL: {PARTIAL_UPDATE_MODE: "IGNORE_DEFAULTS"},
    _DMS: {_DELETE_FIELD: "Op", _DELETE_MARKER: "D"},
    _MYSQL: {**_DEBEZIUM_DELETES, ORDERING: "_event_bin_file,_event_pos"},
    _POSTGRES: {
        **_DEBEZIUM_DELETES,
        PARTIAL_UPDATE_MODE: "FILL_UNAVAILABLE",
        _UNAVAILABLE: "__debezium_unavailable_value",
        ORDERING: "_event_lsn",
    },
}
#: The one column by which versions before 9 order the rows of a retired class.
_OLD_ORDERING = {_MYSQL: "_event_seq"}
_PAYLOADS = {_EVENT: _DEFAULT, _COMMIT: _LATEST}
_IDS = {_EVENT: EVENT_TIME_ID, _COMMIT: COMMIT_TIME_ID}

_KEYGEN = "org.apache.hudi.keygen."
_SQL = "org.apache.spark.sql.hudi.command."
#: Key generators as properties name them: by type since version 8, by class before.
_GENERATORS = {
    "SIMPLE": f"{_KEYGEN}SimpleKeyGenerator",
    "SIMPLE_AVRO": f"{_KEYGEN}SimpleAvroKeyGenerator",
    "COMPLEX": f"{_KEYGEN}ComplexKeyGenerator",
    "COMPLEX_AVRO": f"{_KEYGEN}ComplexAvroKeyGenerator",
    "TIMESTAMP": f"{_KEYGEN}TimestampBasedKeyGenerator",
    "TIMESTAMP_AVRO": f"{_KEYGEN}TimestampBasedAvroKeyGenerator",
    "CUSTOM": f"{_KEYGEN}CustomKeyGenerator",
    "CUSTOM_AVRO": f"{_KEYGEN}CustomAvroKeyGenerator",
    "NON_PARTITION": f"{_KEYGEN}NonpartitionedKeyGenerator",
    "NON_PARTITION_AVRO": f"{_KEYGEN}NonpartitionedAvroKeyGenerator",
    "GLOBAL_DELETE": f"{_KEYGEN}GlobalDeleteKeyGenerator",
    "GLOBAL_DELETE_AVRO": f"{_KEYGEN}GlobalAvroDeleteKeyGenerator",
    "SPARK_SQL": f"{_SQL}SqlKeyGenerator",
    "SPARK_SQL_UUID": f"{_SQL}UuidKeyGenerator",
    "SPARK_SQL_MERGE_INTO": f"{_SQL}MergeIntoKeyGenerator",
}
_TYPES = {name: kind for kind, name in _GENERATORS.items()}


@dataclass(slots=True)
class VersionedProperties:
    """The properties of a table at another version.

    ``refused`` says what that version cannot express, and ``changed_meaning`` what future writes
    will do otherwise than before.
    """

    values: dict[str, str]
    refused: list[str] = field(default_factory=list)
    changed_meaning: list[str] = field(default_factory=list)

    def changes(self, before: Mapping[str, str]) -> dict[str, str | None]:
        """What is set anew, and what is removed (None), compared with the values before."""
        new = {k: v for k, v in self.values.items() if before.get(k) != v}
        return {**new, **{key: None for key in before if key not in self.values}}


def at_version(config: TableConfig, version: int) -> VersionedProperties:
    """Return the table's properties at another version, step by step as Hudi gets there."""
    found = VersionedProperties(dict(config.properties))
    steps = {
        (6, 8): (_six_to_eight,),
        (6, 9): (_six_to_eight, _eight_to_nine),
        (8, 9): (_eight_to_nine,),
        (9, 8): (_nine_to_eight,),
        (9, 6): (_nine_to_eight, _eight_to_six),
        (8, 6): (_one_ordering, _eight_to_six),
    }
    for step in steps.get((config.version, version), ()):
        step(config, found)
    found.values[VERSION] = str(version)
    found.values[LAYOUT] = str(LAYOUTS[version])
    return found


def _six_to_eight(config: TableConfig, found: VersionedProperties) -> None:
    values = found.values
    values[TIMELINE] = "timeline"
    values[HISTORY_PATH] = "history"
    values.setdefault(INITIAL_VERSION, str(config.version))
    payload = values.get(PAYLOAD_CLASS) or None
    values.pop(OLD_STRATEGY_ID, None)
    if payload is not None and payload not in _PLAIN:
        values[MODE], values[STRATEGY_ID] = MergeMode.CUSTOM.value, PAYLOAD_ID
    else:
        mode = config.merge_mode
        if config.table_type is TableType.MERGE_ON_READ and config.ordering and mode is _COMMIT:
            mode = _EVENT
            found.changed_meaning.append(
                f"rows with a lower {config.ordering[0]} no longer take the place of others, in "
                "earlier states too: later versions heed an ordering column wherever there is one"
            )
        _set_mode(values, mode)
    _name_generator(values)
    if config.key_generator is KeyGenerator.CUSTOM:
        _mark_kinds(config, values)


def _set_mode(values: dict[str, str], mode: MergeMode) -> None:
    values[MODE] = mode.value
    if mode in _PAYLOADS:
        values[STRATEGY_ID] = _IDS[mode]
        values[PAYLOAD_CLASS] = _PAYLOADS[mode]


def _name_generator(values: dict[str, str]) -> None:
    named = values.get(KEY_GENERATOR_CLASS)
    if named and not values.get(KEY_GENERATOR_TYPE):
        values[KEY_GENERATOR_TYPE] = _TYPES.get(named, KeyGenerator.USER_PROVIDED.value)


def _mark_kinds(config: TableConfig, values: dict[str, str]) -> None:
    """Write the kind of each partition column, where it is certain."""
    kinds = {f.kind for f in config.partition_fields}
    single = len(config.partition_fields) == 1 or kinds == {"SIMPLE"}
    if single and kinds_are_known(config):
        values[PARTITION] = ",".join(f"{f.name}:{f.kind}" for f in config.partition_fields)


def _eight_to_nine(config: TableConfig, found: VersionedProperties) -> None:
    values = found.values
    payload = values.get(PAYLOAD_CLASS) or ""
    if values.get(MODE) != MergeMode.CUSTOM:
        if not values.get(MODE):
            values[MODE] = config.merge_mode.value
        values.pop(STRATEGY_ID, None)
    ordering = values.pop(PRECOMBINE, None) or values.get(ORDERING)
    if ordering:
        values[ORDERING] = ordering
    if payload in _RETIRED:
        values.pop(PAYLOAD_CLASS)
        values[_LEGACY] = payload
        mode = _RETIRED[payload]
        if mode is not None:
            values[MODE], values[STRATEGY_ID] = mode.value, _IDS[mode]
        values.update(_REFINED.get(payload, {}))


def _nine_to_eight(config: TableConfig, found: VersionedProperties) -> None:
    values = found.values
    retired = next((values[k] for k in LEGACY_PAYLOAD_CLASSES if values.get(k)), None)
    refined = _REFINED.get(retired or "", {})
    for key in (*LEGACY_PAYLOAD_CLASSES, *refined):
        if key != ORDERING:
            values.pop(key, None)
    if retired is not None:
        values[PAYLOAD_CLASS] = retired
    if retired is not None and retired not in _PLAIN:
        values[MODE], values[STRATEGY_ID] = MergeMode.CUSTOM.value, PAYLOAD_ID
    elif config.merge_mode is not MergeMode.CUSTOM:
        _set_mode(values, config.merge_mode)
    if values.pop(PARTIAL_UPDATE_MODE, "NONE").upper() != "NONE":
        found.refused.append(
            f"{PARTIAL_UPDATE_MODE}={config.partial_update_mode}: only version 9 fills columns "
            "from the row before without a payload class"
        )
    left = [k for k in values if k.startswith(MERGE_PROPERTY) or k == MERGE_PROPERTIES]
    if left:
        found.refused.append(f"{', '.join(left)}: only version 9 keeps settings of its mergers")
    one = _OLD_ORDERING.get(retired or "")
    if one is not None:
        values[ORDERING] = one
    _one_ordering(config, found)


def _one_ordering(config: TableConfig, found: VersionedProperties) -> None:
    values = found.values
    ordering = values.pop(ORDERING, None) or values.get(PRECOMBINE)
    if not ordering:
        return
    values[PRECOMBINE] = ordering
    if len(parse_names(ordering)) > 1:
        found.refused.append(
            f"{ORDERING}={ordering}: versions before 9 order rows by one column alone"
        )


def _eight_to_six(config: TableConfig, found: VersionedProperties) -> None:
    values = found.values
    values.pop(INITIAL_VERSION, None)
    values.pop(MODE, None)
    values.pop(STRATEGY_ID, None)
    if not values.get(PAYLOAD_CLASS):
        if config.merge_mode is MergeMode.CUSTOM:
            found.refused.append(
                f"a merger of its own (strategy {config.merge_strategy_id}): version 6 merges by "
                "payload classes alone"
            )
        else:
            values[PAYLOAD_CLASS] = _PAYLOADS[config.merge_mode]
    kind = values.pop(KEY_GENERATOR_TYPE, "").upper()
    if kind in _GENERATORS:
        values[KEY_GENERATOR_CLASS] = _GENERATORS[kind]
    elif kind and not values.get(KEY_GENERATOR_CLASS):
        found.refused.append(f"{KEY_GENERATOR_TYPE}={kind}: it has no class that version 6 knows")
    if config.key_generator is KeyGenerator.CUSTOM:
        _drop_kinds(config, found)


def _drop_kinds(config: TableConfig, found: VersionedProperties) -> None:
    if len({field.kind for field in config.partition_fields}) > 1:
        found.refused.append(
            f"{PARTITION}={found.values.get(PARTITION)}: version 6 does not store which partition "
            "columns are formatted times"
        )
    names = (field.name for field in config.partition_fields)
    found.values[PARTITION] = ",".join(names)
