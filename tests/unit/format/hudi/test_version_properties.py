"""Properties at another version: as Hudi has them there, and back."""

import pytest

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.merge_settings import COMMIT_TIME_ID, EVENT_TIME_ID, PAYLOAD_ID
from lakewright.format.hudi.version_properties import at_version

MODEL = "org.apache.hudi.common.model."
LATEST = f"{MODEL}OverwriteWithLatestAvroPayload"
DEFAULT = f"{MODEL}DefaultHoodieRecordPayload"
PARTIAL = f"{MODEL}PartialUpdateAvroPayload"
MYSQL = f"{MODEL}debezium.MySqlDebeziumAvroPayload"
POSTGRES = f"{MODEL}debezium.PostgresDebeziumAvroPayload"
MERGING = "hoodie.record.merge.property."
SIX = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "p",
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.compaction.payload.class": DEFAULT,
    "hoodie.compaction.record.merger.strategy": EVENT_TIME_ID,
}


def config(version: int = 6, **changes: str | None) -> TableConfig:
    given = {key.replace("__", "."): value for key, value in changes.items()}
    values = {k: v for k, v in {**SIX, **given}.items() if v is not None}
    return TableConfig.of(at_version(TableConfig.of(values), version).values)


def test_version_8_says_modes_types_and_where_the_timeline_is() -> None:
    found = config(8).properties
    assert found == {
        **{k: v for k, v in SIX.items() if k != "hoodie.compaction.record.merger.strategy"},
        "hoodie.table.version": "8",
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.initial.version": "6",
        "hoodie.table.keygenerator.type": "SIMPLE",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.record.merge.strategy.id": EVENT_TIME_ID,
    }


def test_version_9_has_modes_alone_and_remembers_the_payload_class() -> None:
    found = config(9).properties
    assert found["hoodie.table.ordering.fields"] == "ts"
    assert found["hoodie.table.legacy.payload.class"] == DEFAULT
    assert found["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    gone = {
        "hoodie.table.precombine.field",
        "hoodie.compaction.payload.class",
        "hoodie.record.merge.strategy.id",
    }
    assert not gone & found.keys()


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("payload", [DEFAULT, LATEST, PARTIAL, MYSQL, POSTGRES])
def test_the_way_back_leads_to_the_same_table(version: int, payload: str) -> None:
    # A payload that ignores the ordering column is not kept beside one.
    ordering = {LATEST: None, MYSQL: "_event_seq", POSTGRES: "_event_lsn"}.get(payload, "ts")
    before = config(
        6,
        hoodie__compaction__payload__class=payload,
        hoodie__table__precombine__field=ordering,
        hoodie__compaction__record__merger__strategy=None,
    )
    there = TableConfig.of(at_version(before, version).values)
    back = at_version(there, 6)
    assert back.refused == []
    more = {"hoodie.timeline.path": "timeline", "hoodie.timeline.history.path": "history"}
    assert back.values == {**before.properties, **more}


def test_retired_payload_classes_become_modes_with_what_refines_them() -> None:
    partial = config(9, hoodie__compaction__payload__class=PARTIAL).properties
    assert partial["hoodie.table.partial.update.mode"] == "IGNORE_DEFAULTS"
    assert partial["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    mysql = config(9, hoodie__compaction__payload__class=MYSQL).properties
    assert mysql["hoodie.table.ordering.fields"] == "_event_bin_file,_event_pos"
    assert mysql[f"{MERGING}hoodie.payload.delete.field"] == "_change_operation_type"
    eight = config(8, hoodie__compaction__payload__class=PARTIAL).properties
    assert eight["hoodie.record.merge.mode"] == "CUSTOM"
    assert eight["hoodie.record.merge.strategy.id"] == PAYLOAD_ID


def test_an_ordering_column_that_was_ignored_is_heeded_and_that_is_told() -> None:
    before = TableConfig.of({**SIX, "hoodie.compaction.payload.class": LATEST})
    found = at_version(before, 9)
    assert found.values["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert "lower ts" in found.changed_meaning[0]
    plain = {**SIX, "hoodie.compaction.payload.class": LATEST}
    del plain["hoodie.table.precombine.field"]
    unordered = at_version(TableConfig.of(plain), 8)
    assert unordered.values["hoodie.record.merge.strategy.id"] == COMMIT_TIME_ID
    assert unordered.changed_meaning == []


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hoodie.table.ordering.fields", "a,b", "one column"),
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS", "only version 9"),
        (f"{MERGING}hoodie.payload.delete.field", "op", "only version 9"),
        ("hoodie.table.keygenerator.type", "USER_PROVIDED", "no class"),
    ],
)
def test_what_version_6_cannot_express_is_refused(key: str, value: str, told: str) -> None:
    nine = dict(config(9, hoodie__compaction__payload__class=None).properties)
    del nine["hoodie.table.legacy.payload.class"]
    if key == "hoodie.table.keygenerator.type":
        del nine["hoodie.table.keygenerator.class"]
    found = at_version(TableConfig.of({**nine, key: value}), 6)
    assert len(found.refused) == 1
    assert told in found.refused[0]


def test_kinds_of_partition_columns_are_marked_where_they_are_certain() -> None:
    custom = "org.apache.hudi.keygen.CustomKeyGenerator"
    kinds = {"hoodie__table__partition__fields": "p:SIMPLE,q:SIMPLE"}
    found = config(8, hoodie__table__keygenerator__class=custom, **kinds)
    assert found.properties["hoodie.table.partition.fields"] == "p:SIMPLE,q:SIMPLE"
    kinds = {"hoodie__table__partition__fields": "p,q"}
    unknown = config(8, hoodie__table__keygenerator__class=custom, **kinds)
    assert unknown.properties["hoodie.table.partition.fields"] == "p,q"
    back = at_version(found, 6)
    assert back.values["hoodie.table.partition.fields"] == "p,q"
    mixed = {**found.properties, "hoodie.table.partition.fields": "p:SIMPLE,q:TIMESTAMP"}
    assert "formatted times" in at_version(TableConfig.of(mixed), 6).refused[0]
