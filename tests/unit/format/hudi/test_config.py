"""Table configuration: every spelling of every release, defaults, refusals."""

import datetime as dt
import pickle
from typing import Any

import pytest

from lakewright.format.hudi.config import KeyGenerator, LocalZone, PartitionField, TableConfig
from lakewright.model.errors import Corrupt, Unsupported
from lakewright.model.table import MergeMode, TableType

BARE = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
}
V6 = {**BARE, "hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}
PACKAGE = "org.apache.hudi.keygen."


def config(base: dict[str, str] = BARE, /, **changes: str) -> TableConfig:
    return TableConfig.of({**base, **{k.replace("__", "."): v for k, v in changes.items()}})


def table(**changes: str) -> dict[str, str]:
    return {f"hoodie.table.{k.replace('__', '.')}": v for k, v in changes.items()}


def test_defaults_of_version_9() -> None:
    found = config()
    assert found.table_type is TableType.COPY_ON_WRITE
    assert (found.version, found.layout) == (9, 2)
    assert found.timeline_folder == ".hoodie/timeline"
    assert found.history_folder == ".hoodie/timeline/history"
    assert found.populate_meta_fields
    assert not (found.hive_style or found.url_encode or found.cdc_enabled)
    assert not found.drop_partition_columns
    assert found.base_format == "PARQUET"
    assert found.key_generator is KeyGenerator.NON_PARTITION
    assert found.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert found.create_schema is None
    assert found.partial_update_mode is None
    assert found.database == ""


def test_version_6_keeps_its_timeline_in_the_root() -> None:
    assert config(V6).timeline_folder == ".hoodie"
    assert config(V6).history_folder == ".hoodie/archived"
    renamed = TableConfig.of(
        {**V6, "hoodie.archivelog.folder": "history", "hoodie.timeline.path": "timeline"}
    )
    assert renamed.timeline_folder == ".hoodie"
    assert renamed.history_folder == ".hoodie/history"


def test_folders_of_layout_2_can_be_named() -> None:
    named = TableConfig.of(
        {**BARE, "hoodie.timeline.path": "tl", "hoodie.timeline.history.path": "old"}
    )
    assert (named.timeline_folder, named.history_folder) == (".hoodie/tl", ".hoodie/tl/old")


@pytest.mark.parametrize("version", ["0", "5", "7", "10"])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(Unsupported, match=version):
        TableConfig.of({**BARE, "hoodie.table.version": version})


@pytest.mark.parametrize(
    "changes",
    [
        {"hoodie.table.version": "nine"},
        {"hoodie.table.version": "²"},
        {"hoodie.timeline.layout.version": "1"},
        {"hoodie.table.name": ""},
        {"hoodie.table.type": "BOTH"},
        {"hoodie.table.timeline.timezone": "Mars"},
        {"hoodie.populate.meta.fields": "maybe"},
        {"hoodie.record.merge.mode": "LUCK"},
    ],
)
def test_values_that_mean_nothing_are_corrupt(changes: dict[str, str]) -> None:
    with pytest.raises(Corrupt) as caught:
        TableConfig.of({**BARE, **changes})
    assert caught.value.facts["path"] == ".hoodie/hoodie.properties"


def test_a_missing_layout_follows_from_the_version() -> None:
    assert TableConfig.of({"hoodie.table.name": "t", "hoodie.table.version": "6"}).layout == 1


@pytest.mark.parametrize("base", [BARE, V6])
@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (table(precombine__field="ts"), ("ts",)),
        (table(ordering__fields="ts, seq"), ("ts", "seq")),
        (table(ordering__fields="a", precombine__field="b"), ("a",)),
        (table(ordering__fields="", precombine__field="b"), ("b",)),
        ({}, ()),
    ],
)
def test_both_names_of_the_ordering(
    base: dict[str, str], properties: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert TableConfig.of({**base, **properties}).ordering == expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (table(keygenerator__type="COMPLEX"), KeyGenerator.COMPLEX),
        (table(keygenerator__type="SIMPLE_AVRO"), KeyGenerator.SIMPLE),
        (table(keygenerator__class=PACKAGE + "SimpleKeyGenerator"), KeyGenerator.SIMPLE),
        (table(keygenerator__class=PACKAGE + "ComplexAvroKeyGenerator"), KeyGenerator.COMPLEX),
        (
            table(keygenerator__class=PACKAGE + "NonpartitionedKeyGenerator"),
            KeyGenerator.NON_PARTITION,
        ),
        (table(keygenerator__class=PACKAGE + "TimestampBasedKeyGenerator"), KeyGenerator.TIMESTAMP),
        (table(keygenerator__class=PACKAGE + "CustomKeyGenerator"), KeyGenerator.CUSTOM),
        (table(keygenerator__class="com.example.Mine"), KeyGenerator.USER_PROVIDED),
        (table(keygenerator__type="HOODIE_TABLE_METADATA"), KeyGenerator.METADATA),
        (table(keygenerator__type="SPARK_SQL", recordkey__fields="id"), KeyGenerator.NON_PARTITION),
        (table(recordkey__fields="id", partition__fields="p"), KeyGenerator.SIMPLE),
        (table(recordkey__fields="id,b", partition__fields="p"), KeyGenerator.COMPLEX),
        (table(recordkey__fields="id", partition__fields="p,q"), KeyGenerator.COMPLEX),
        (
            table(recordkey__fields="id", partition__fields="p:SIMPLE,q:TIMESTAMP"),
            KeyGenerator.CUSTOM,
        ),
        (table(recordkey__fields="id", partition__fields=""), KeyGenerator.NON_PARTITION),
    ],
)
def test_key_generators(properties: dict[str, str], expected: KeyGenerator) -> None:
    assert TableConfig.of({**BARE, **properties}).key_generator is expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (table(partition__fields="p, q"), (PartitionField("p"), PartitionField("q"))),
        (
            table(partition__fields="p:simple,q:timestamp"),
            (PartitionField("p"), PartitionField("q", "TIMESTAMP")),
        ),
        (
            table(partition__fields="p", keygenerator__type="TIMESTAMP"),
            (PartitionField("p", "TIMESTAMP"),),
        ),
        (
            {
                **table(partition__fields="p", keygenerator__class=PACKAGE + "CustomKeyGenerator"),
                "hoodie.keygen.timebased.output.dateformat": "yyyy",
            },
            (PartitionField("p", "TIMESTAMP"),),
        ),
        (
            table(partition__fields="p", keygenerator__type="CUSTOM"),
            (PartitionField("p", "UNKNOWN"),),
        ),
        ({}, ()),
    ],
)
def test_partition_fields(properties: dict[str, str], expected: tuple[PartitionField, ...]) -> None:
    assert TableConfig.of({**BARE, **properties}).partition_fields == expected


def test_the_rest_is_read_too() -> None:
    found = TableConfig.of(
        {
            **BARE,
            "hoodie.database.name": "db",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.recordkey.fields": "id,name",
            "hoodie.datasource.write.hive_style_partitioning": "TRUE",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.datasource.write.drop.partition.columns": "true",
            "hoodie.populate.meta.fields": "false",
            "hoodie.table.base.file.format": "lance",
            "hoodie.table.timeline.timezone": "utc",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": "op_key_only",
            "hoodie.table.metadata.partitions": "files,record_index",
            "hoodie.table.create.schema": "{}",
        }
    )
    assert found.database == "db"
    assert found.table_type is TableType.MERGE_ON_READ
    assert found.record_key == ("id", "name")
    assert found.hive_style
    assert found.url_encode
    assert found.drop_partition_columns
    assert not found.populate_meta_fields
    assert found.base_format == "LANCE"
    assert found.timezone is dt.UTC
    assert found.cdc_enabled
    assert found.metadata_partitions == ("files", "record_index")
    assert found.create_schema == "{}"
    assert found.properties["hoodie.database.name"] == "db"


def test_a_config_crosses_processes() -> None:
    found = config()
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Any:
    import time

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield LocalZone()
    monkeypatch.undo()
    time.tzset()


def test_the_default_zone_is_the_machines_with_its_summer_time(berlin: LocalZone) -> None:
    assert config().timezone == berlin
    winter = dt.datetime(2026, 1, 1, 12, tzinfo=berlin)
    summer = dt.datetime(2026, 7, 1, 12, tzinfo=berlin)
    assert winter.astimezone(dt.UTC).hour == 11
    assert summer.astimezone(dt.UTC).hour == 10
    assert summer.astimezone(dt.UTC).astimezone(berlin) == summer
    assert summer.astimezone(dt.UTC).astimezone(berlin).hour == 12
    assert hash(berlin) == hash(LocalZone())
    assert repr(berlin) == "LocalZone()"
    assert winter.tzname() == "LOCAL"
    assert winter.dst() is None
    assert berlin.utcoffset(None) in (dt.timedelta(hours=1), dt.timedelta(hours=2))
