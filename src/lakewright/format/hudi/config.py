"""A table's configuration, read from its properties whatever release wrote them.

Releases renamed properties, and a newer release writes the new names into tables of an old
version too; every name is therefore accepted for every version.
"""

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.format.hudi.merge_settings import MergeSettings, infer_merge
from lakewright.format.hudi.properties import DATABASE, NAME, PROPERTIES_PATH
from lakewright.model.errors import Corrupt, Unsupported
from lakewright.model.options import parse_bool, parse_names
from lakewright.model.table import MergeMode, TableType

TYPE = "hoodie.table.type"
VERSION = "hoodie.table.version"
LAYOUT = "hoodie.timeline.layout.version"
TIMELINE = "hoodie.timeline.path"
HISTORY = "hoodie.timeline.history.path"
ARCHIVE = "hoodie.archivelog.folder"
RECORD_KEY = "hoodie.table.recordkey.fields"
PARTITION = "hoodie.table.partition.fields"
KEY_GENERATOR_TYPE = "hoodie.table.keygenerator.type"
KEY_GENERATOR_CLASS = "hoodie.table.keygenerator.class"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
DROP_PARTITION_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
ORDERING = "hoodie.table.ordering.fields"
PRECOMBINE = "hoodie.table.precombine.field"
META_FIELDS = "hoodie.populate.meta.fields"
BASE_FORMAT = "hoodie.table.base.file.format"
TIMEZONE = "hoodie.table.timeline.timezone"
CDC = "hoodie.table.cdc.enabled"
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
CREATE_SCHEMA = "hoodie.table.create.schema"
TIME_BASED = "hoodie.keygen.timebased."

#: Table versions that are read, and the timeline layout each one has.
LAYOUTS: Mapping[int, int] = {6: 1, 8: 2, 9: 2}


class KeyGenerator(StrEnum):
    """How record keys and partition paths are made from the columns of a row."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    GLOBAL_DELETE = "GLOBAL_DELETE"
    METADATA = "HOODIE_TABLE_METADATA"
    USER_PROVIDED = "USER_PROVIDED"


_CLASSES = {
    "SimpleKeyGenerator": KeyGenerator.SIMPLE,
    "ComplexKeyGenerator": KeyGenerator.COMPLEX,
    "NonpartitionedKeyGenerator": KeyGenerator.NON_PARTITION,
    "TimestampBasedKeyGenerator": KeyGenerator.TIMESTAMP,
    "CustomKeyGenerator": KeyGenerator.CUSTOM,
    "GlobalDeleteKeyGenerator": KeyGenerator.GLOBAL_DELETE,
    "HoodieTableMetadataKeyGenerator": KeyGenerator.METADATA,
    "SimpleAvroKeyGenerator": KeyGenerator.SIMPLE,
    "ComplexAvroKeyGenerator": KeyGenerator.COMPLEX,
    "NonpartitionedAvroKeyGenerator": KeyGenerator.NON_PARTITION,
    "TimestampBasedAvroKeyGenerator": KeyGenerator.TIMESTAMP,
    "CustomAvroKeyGenerator": KeyGenerator.CUSTOM,
    "GlobalAvroDeleteKeyGenerator": KeyGenerator.GLOBAL_DELETE,
}
#: Generators of Spark SQL, which choose by the fields like a table that names none.
_BY_FIELDS = frozenset(
    {
        "SPARK_SQL",
        "SPARK_SQL_UUID",
        "SPARK_SQL_MERGE_INTO",
        "SqlKeyGenerator",
        "UuidKeyGenerator",
        "MergeIntoKeyGenerator",
    }
)


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A partition column; ``kind`` TIMESTAMP means that the path holds a formatted time.

    UNKNOWN means that it may: the table does not say.
    """

    name: str
    kind: str = "SIMPLE"


class LocalZone(dt.tzinfo):
    """The zone of this machine, summer time included."""

    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        """Return the offset that held, or will hold, here at that wall-clock time."""
        stamp = time.time() if when is None else when.replace(tzinfo=None).timestamp()
        return dt.timedelta(seconds=time.localtime(stamp).tm_gmtoff)

    def dst(self, when: dt.datetime | None) -> None:
        """Return None: the platform does not say which part of the offset is summer time."""

    def tzname(self, when: dt.datetime | None) -> str:
        """Return Hudi's word for this zone."""
        return "LOCAL"

    def fromutc(self, when: dt.datetime) -> dt.datetime:
        """Turn a time of UTC into one of this zone."""
        stamp = when.replace(tzinfo=dt.UTC).timestamp()
        return dt.datetime.fromtimestamp(stamp).replace(tzinfo=self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalZone)

    def __hash__(self) -> int:
        return hash(LocalZone)

    def __repr__(self) -> str:
        return "LocalZone()"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """What the properties of a table say, typed, with Hudi's defaults filled in.

    ``timeline_folder`` and ``history_folder`` are relative to the table. ``timezone`` is the
    zone of instant times: Hudi's default LOCAL means the zone of whichever machine wrote
    them, for which the zone of this machine is the only guess there is.
    """

    name: str
    database: str
    table_type: TableType
    version: int
    layout: int
    timeline_folder: str
    history_folder: str
    record_key: tuple[str, ...]
    partition_fields: tuple[PartitionField, ...]
    key_generator: KeyGenerator
    hive_style: bool
    url_encode: bool
    ordering: tuple[str, ...]
    merge_mode: MergeMode
    merge_strategy_id: str | None
    payload_class: str | None
    partial_update_mode: str | None
    merge_properties: Mapping[str, str]
    populate_meta_fields: bool
    base_format: str
    timezone: dt.tzinfo
    cdc_enabled: bool
    metadata_partitions: tuple[str, ...]
    create_schema: str | None
    drop_partition_columns: bool
    properties: Mapping[str, str]

    @staticmethod
    def of(properties: Mapping[str, str]) -> "TableConfig":
        """Read the properties; a table version that is not read here is ``Unsupported``."""
        version, layout = _version_and_layout(properties)
        timeline = _folder(properties, layout)
        ordering = parse_names(properties.get(ORDERING) or properties.get(PRECOMBINE) or "")
        merge: MergeSettings = infer_merge(properties, version, ordering)
        return TableConfig(
            name=_required(properties, NAME),
            database=properties.get(DATABASE, ""),
            table_type=_table_type(properties),
            version=version,
            layout=layout,
            timeline_folder=timeline,
            history_folder=_history(properties, layout, timeline),
            record_key=parse_names(properties.get(RECORD_KEY, "")),
            partition_fields=_partition_fields(properties),
            key_generator=key_generator(properties),
            hive_style=_flag(properties, HIVE_STYLE, default=False),
            url_encode=_flag(properties, URL_ENCODE, default=False),
            ordering=ordering,
            merge_mode=merge.mode,
            merge_strategy_id=merge.strategy_id,
            payload_class=merge.payload_class,
            partial_update_mode=merge.partial_update_mode,
            merge_properties=merge.properties,
            populate_meta_fields=_flag(properties, META_FIELDS, default=True),
            base_format=(properties.get(BASE_FORMAT) or "PARQUET").upper(),
            timezone=_zone(properties),
            cdc_enabled=_flag(properties, CDC, default=False),
            metadata_partitions=parse_names(properties.get(METADATA_PARTITIONS, "")),
            create_schema=properties.get(CREATE_SCHEMA) or None,
            drop_partition_columns=_flag(properties, DROP_PARTITION_COLUMNS, default=False),
            properties=dict(properties),
        )


def key_generator(properties: Mapping[str, str]) -> KeyGenerator:
    """Return the kind of key generator by its type, its class, or the fields it would serve."""
    given = properties.get(KEY_GENERATOR_TYPE) or ""
    if not given:
        given = (properties.get(KEY_GENERATOR_CLASS) or "").rpartition(".")[2]
    if given in _CLASSES:
        return _CLASSES[given]
    if given and given not in _BY_FIELDS:
        plain = given.upper().removesuffix("_AVRO")
        known = {kind.value: kind for kind in KeyGenerator}
        return known.get(plain, KeyGenerator.USER_PROVIDED)
    fields = parse_names(properties.get(PARTITION, ""))
    if not fields:
        return KeyGenerator.NON_PARTITION
    if any(":" in field for field in fields):
        return KeyGenerator.CUSTOM
    keys = parse_names(properties.get(RECORD_KEY, ""))
    return KeyGenerator.SIMPLE if len(fields) == len(keys) == 1 else KeyGenerator.COMPLEX


def kinds_are_known(config: TableConfig) -> bool:
    """Whether a table says which of its partition columns are formatted as times.

    Version 6 stores neither kinds nor formats for a custom generator: the writers know them.
    """
    named = parse_names(config.properties.get(PARTITION, ""))
    return (
        config.key_generator is not KeyGenerator.CUSTOM
        or all(":" in name for name in named)
        or any(key.startswith(TIME_BASED) for key in config.properties)
    )


def _partition_fields(properties: Mapping[str, str]) -> tuple[PartitionField, ...]:
    generator = key_generator(properties)
    # Before version 8 a custom generator did not store the kind of each field; a table that
    # carries time settings has at least one formatted time. To Hudi and here the columns of
    # such a table say more than its paths.
    timed = any(key.startswith(TIME_BASED) for key in properties)
    custom = generator is KeyGenerator.CUSTOM
    unmarked = "UNKNOWN" if custom else "SIMPLE"
    if generator is KeyGenerator.TIMESTAMP or (custom and timed):
        unmarked = "TIMESTAMP"
    fields = []
    for text in parse_names(properties.get(PARTITION, "")):
        name, _, kind = text.partition(":")
        fields.append(PartitionField(name, kind.upper() or unmarked))
    return tuple(fields)


def _version_and_layout(properties: Mapping[str, str]) -> tuple[int, int]:
    version = _integer(properties, VERSION, 0)
    if version not in LAYOUTS:
        raise Unsupported(
            f"the table has version {version}.",
            next_step="Versions 6, 8 and 9 are read (Hudi 0.14 and later); upgrade older tables "
            "with Hudi itself.",
            version=version,
        )
    layout = _integer(properties, LAYOUT, LAYOUTS[version])
    if layout != LAYOUTS[version]:
        raise Corrupt(
            f"{PROPERTIES_PATH}: {LAYOUT} is {layout}, but version {version} has layout "
            f"{LAYOUTS[version]}.",
            next_step="An upgrade may have been cut off; finish it with the release that began it.",
            path=PROPERTIES_PATH,
        )
    return version, layout


def _folder(properties: Mapping[str, str], layout: int) -> str:
    return ".hoodie" if layout == 1 else _below(".hoodie", properties.get(TIMELINE) or "timeline")


def _history(properties: Mapping[str, str], layout: int, timeline: str) -> str:
    if layout == 1:
        return _below(".hoodie", properties.get(ARCHIVE) or "archived")
    return _below(timeline, properties.get(HISTORY) or "history")


def _below(parent: str, name: str) -> str:
    return f"{parent}/{name.strip('/')}"


def _table_type(properties: Mapping[str, str]) -> TableType:
    text = properties.get(TYPE, TableType.COPY_ON_WRITE)
    try:
        return TableType(text)
    except ValueError as cause:
        raise _bad(TYPE, text, "COPY_ON_WRITE or MERGE_ON_READ") from cause


def _zone(properties: Mapping[str, str]) -> dt.tzinfo:
    text = (properties.get(TIMEZONE) or "LOCAL").upper()
    if text not in ("LOCAL", "UTC"):
        raise _bad(TIMEZONE, text, "LOCAL or UTC")
    return dt.UTC if text == "UTC" else LocalZone()


def _flag(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = properties.get(key) or str(default)
    try:
        return parse_bool(text)
    except ValueError as cause:
        raise _bad(key, text, "true or false") from cause


def _integer(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise _bad(key, text, "a small whole number")
    return int(text)


def _required(properties: Mapping[str, str], key: str) -> str:
    if not properties.get(key):
        raise Corrupt(f"{PROPERTIES_PATH}: {key} is missing.", path=PROPERTIES_PATH, key=key)
    return properties[key]


def _bad(key: str, value: str, allowed: str) -> Corrupt:
    return Corrupt(
        f"{PROPERTIES_PATH}: {key} is {value!r}.",
        next_step=f"Allowed: {allowed}.",
        path=PROPERTIES_PATH,
        key=key,
        value=value,
    )
