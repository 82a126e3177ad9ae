"""Which version of a record wins, as Hudi infers it."""

import pytest

from lakewright.format.hudi.merge_settings import (
    COMMIT_TIME_ID,
    CUSTOM_ID,
    EVENT_TIME_ID,
    PAYLOAD_ID,
    infer_merge,
)
from lakewright.model.table import MergeMode

EVENT, COMMIT, CUSTOM = (
    MergeMode.EVENT_TIME_ORDERING,
    MergeMode.COMMIT_TIME_ORDERING,
    MergeMode.CUSTOM,
)
MODEL = "org.apache.hudi.common.model."
DEFAULT, LATEST = MODEL + "DefaultHoodieRecordPayload", MODEL + "OverwriteWithLatestAvroPayload"


def settings(
    payload: str | None = None, identity: str | None = None, mode: str | None = None
) -> dict[str, str]:
    given = {
        "hoodie.compaction.payload.class": payload,
        "hoodie.record.merge.strategy.id": identity,
        "hoodie.record.merge.mode": mode,
    }
    return {key: value for key, value in given.items() if value is not None}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_ordering_field_alone_means_event_time(version: int) -> None:
    assert infer_merge({}, version, ("ts",)).mode is EVENT
    assert infer_merge({}, version, ()).mode is COMMIT


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (settings(payload=DEFAULT), EVENT),
        (settings(payload=MODEL + "EventTimeAvroPayload"), EVENT),
        (settings(payload=LATEST), COMMIT),
        (settings(payload=MODEL + "PartialUpdateAvroPayload"), CUSTOM),
        (settings(payload="com.example.Mine"), CUSTOM),
        (settings(identity=EVENT_TIME_ID), EVENT),
        (settings(identity=COMMIT_TIME_ID), COMMIT),
        (settings(identity=CUSTOM_ID), CUSTOM),
        (settings(identity=PAYLOAD_ID), CUSTOM),
        (settings(identity="something-else"), CUSTOM),
        (settings(mode="EVENT_TIME_ORDERING"), EVENT),
        (settings(mode="commit_time_ordering"), COMMIT),
        (settings(mode="CUSTOM"), CUSTOM),
    ],
)
def test_each_setting_alone(version: int, properties: dict[str, str], expected: MergeMode) -> None:
    assert infer_merge(properties, version, ("ts",)).mode is expected


@pytest.mark.parametrize(
    ("version", "properties", "expected"),
    [
        (6, settings(payload=LATEST, identity=EVENT_TIME_ID), COMMIT),
        (6, settings(payload=DEFAULT, identity=COMMIT_TIME_ID), EVENT),
        (8, settings(payload=LATEST, identity=EVENT_TIME_ID), EVENT),
        (9, settings(payload=LATEST, identity=EVENT_TIME_ID), COMMIT),
        (6, settings(payload=LATEST, mode="EVENT_TIME_ORDERING"), COMMIT),
        (8, settings(payload=LATEST, mode="EVENT_TIME_ORDERING"), EVENT),
        (9, settings(payload=LATEST, mode="EVENT_TIME_ORDERING"), EVENT),
    ],
)
def test_versions_trust_different_settings(
    version: int, properties: dict[str, str], expected: MergeMode
) -> None:
    assert infer_merge(properties, version, ("ts",)).mode is expected


def test_the_old_name_of_the_strategy() -> None:
    found = infer_merge({"hoodie.compaction.record.merger.strategy": COMMIT_TIME_ID}, 6, ("ts",))
    assert found.mode is COMMIT
    assert found.strategy_id == COMMIT_TIME_ID


@pytest.mark.parametrize(
    "key", ["hoodie.table.legacy.payload.class", "hoodie.legacy.payload.class"]
)
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("PartialUpdateAvroPayload", EVENT),
        ("OverwriteNonDefaultsWithLatestAvroPayload", COMMIT),
        ("PostgresDebeziumAvroPayload", EVENT),
        ("AWSDmsAvroPayload", COMMIT),
        ("Mine", CUSTOM),
    ],
)
def test_what_an_upgrade_retired_still_says_the_mode(
    key: str, payload: str, expected: MergeMode
) -> None:
    found = infer_merge({key: MODEL + payload}, 9, ("ts",))
    assert found.mode is expected
    assert found.payload_class == MODEL + payload


def test_refinements() -> None:
    found = infer_merge(
        {
            "hoodie.table.partial.update.mode": "ignore_defaults",
            "hoodie.table.merge.properties": "a=1, b=x=y ,junk",
            "hoodie.record.merge.property.hoodie.payload.delete.field": "Op",
            "hoodie.record.merge.property.a": "2",
        },
        9,
        (),
    )
    assert found.partial_update_mode == "IGNORE_DEFAULTS"
    assert found.properties == {"a": "2", "b": "x=y", "hoodie.payload.delete.field": "Op"}
    assert (
        infer_merge({"hoodie.table.partial.update.mode": "NONE"}, 9, ()).partial_update_mode is None
    )
