"""Which version of a record wins, inferred from a table's properties as Hudi infers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewright.format.hudi.properties import PROPERTIES_PATH
from lakewright.model.errors import Corrupt
from lakewright.model.table import MergeMode

MODE = "hoodie.record.merge.mode"
STRATEGY_ID = "hoodie.record.merge.strategy.id"
OLD_STRATEGY_ID = "hoodie.compaction.record.merger.strategy"
PAYLOAD_CLASS = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD_CLASSES = ("hoodie.table.legacy.payload.class", "hoodie.legacy.payload.class")
PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
MERGE_PROPERTY = "hoodie.record.merge.property."
MERGE_PROPERTIES = "hoodie.table.merge.properties"

EVENT_TIME_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_ID = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
CUSTOM_ID = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
PAYLOAD_ID = "00000000-0000-0000-0000-000000000000"

_EVENT, _COMMIT, _CUSTOM = (
    MergeMode.EVENT_TIME_ORDERING,
    MergeMode.COMMIT_TIME_ORDERING,
    MergeMode.CUSTOM,
)
_BY_PAYLOAD = {
    "DefaultHoodieRecordPayload": _EVENT,
    "EventTimeAvroPayload": _EVENT,
    "OverwriteWithLatestAvroPayload": _COMMIT,
}
#: What the upgrade to version 9 makes of the payload classes that it retires.
_BY_RETIRED_PAYLOAD = {
    **_BY_PAYLOAD,
    "AWSDmsAvroPayload": _COMMIT,
    "OverwriteNonDefaultsWithLatestAvroPayload": _COMMIT,
    "PartialUpdateAvroPayload": _EVENT,
    "MySqlDebeziumAvroPayload": _EVENT,
    "PostgresDebeziumAvroPayload": _EVENT,
}
_BY_ID = {EVENT_TIME_ID: _EVENT, COMMIT_TIME_ID: _COMMIT}


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """The merge mode of a table and what refines it.

    ``payload_class`` is the class named by the table, or the one that an upgrade retired.
    ``properties`` are the settings of the merger, without their prefix.
    """

    mode: MergeMode
    strategy_id: str | None
    payload_class: str | None
    partial_update_mode: str | None
    properties: Mapping[str, str]


def infer_merge(
    properties: Mapping[str, str], version: int, ordering: Sequence[str]
) -> MergeSettings:
    """Infer how records of a table are merged.

    Version 6 trusts the payload class before anything else. Later versions trust the mode
    they store; where it is missing, version 8 asks the strategy id first and version 9 the
    payload class.
    """
    payload = properties.get(PAYLOAD_CLASS) or None
    retired = next((properties[k] for k in LEGACY_PAYLOAD_CLASSES if properties.get(k)), None)
    strategy = properties.get(STRATEGY_ID) or properties.get(OLD_STRATEGY_ID) or None
    given = _given_mode(properties)
    by_payload = _mode_of(payload, _BY_PAYLOAD) or _mode_of(retired, _BY_RETIRED_PAYLOAD)
    by_id = None if strategy is None else _BY_ID.get(strategy, _CUSTOM)
    match version:
        case 6:
            order = (by_payload, by_id, given)
        case 8:
            order = (given, by_id, by_payload)
        case _:
            order = (given, by_payload, by_id)
    default = _EVENT if ordering else _COMMIT
    return MergeSettings(
        mode=next((mode for mode in order if mode is not None), default),
        strategy_id=strategy,
        payload_class=payload or retired,
        partial_update_mode=_partial_update_mode(properties),
        properties=_merger_properties(properties),
    )


def _given_mode(properties: Mapping[str, str]) -> MergeMode | None:
    text = properties.get(MODE)
    if not text:
        return None
    try:
        return MergeMode(text.upper())
    except ValueError as cause:
        raise Corrupt(
            f"{PROPERTIES_PATH}: {MODE} is {text!r}.",
            next_step=f"Allowed: {', '.join(MergeMode)}.",
            path=PROPERTIES_PATH,
        ) from cause


def _mode_of(class_name: str | None, known: Mapping[str, MergeMode]) -> MergeMode | None:
    if class_name is None:
        return None
    return known.get(class_name.rpartition(".")[2], _CUSTOM)


def _partial_update_mode(properties: Mapping[str, str]) -> str | None:
    mode = (properties.get(PARTIAL_UPDATE_MODE) or "NONE").upper()
    return None if mode == "NONE" else mode


def _merger_properties(properties: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in properties.get(MERGE_PROPERTIES, "").split(","):
        key, equals, value = pair.partition("=")
        if equals:
            found[key.strip()] = value.strip()
    for key, value in properties.items():
        if key.startswith(MERGE_PROPERTY):
            found[key.removeprefix(MERGE_PROPERTY)] = value
    return found
