"""Change records: what a copy-on-write table keeps of each change, and their Avro form."""

import json
from enum import StrEnum
from functools import lru_cache
from typing import Any

from lakewright.format.hudi.config import CDC
from lakewright.model.options import declare, parse_bool


class ChangeMode(StrEnum):
    """How much a change file holds; the names are Hudi's."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    """The operation and the record's key."""

    DATA_BEFORE = "DATA_BEFORE"
    """Beside those the record as it was."""

    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"
    """The operation, its time, and the record as it was and as it became."""


CDC_ENABLED = declare(
    CDC,
    parse_bool,
    False,
    doc="Whether writes keep change files, from which the changes of a copy-on-write table are "
    "read without comparing base files. Fixed when a table is created.",
    since="0.1",
    allowed="true or false",
)
CDC_MODE = declare(
    "hoodie.table.cdc.supplemental.logging.mode",
    lambda text: ChangeMode(text.strip().upper()),
    ChangeMode.DATA_BEFORE_AFTER,
    doc="What change files hold: operation and key; the record before as well; or the record "
    "before and after. Images that they leave out are read from base files. Fixed when a table "
    "is created.",
    since="0.1",
    allowed=", ".join(ChangeMode),
)

OP, TIME, KEY, BEFORE, AFTER = "op", "ts_ms", "record_key", "before", "after"


@lru_cache(maxsize=64)
def change_schema_text(mode: ChangeMode, record_text: str) -> str:
    """Return the Avro schema of change records; ``record_text`` is that of the table's rows."""
    if mode is ChangeMode.OP_KEY_ONLY:
        fields = [{"name": name, "type": ["string", "null"]} for name in (OP, KEY)]
        return _text({"type": "record", "name": "Record", "fields": fields})
    record = json.loads(record_text)
    # The record takes its namespace from the one around it, and is then known by its name.
    space = record.pop("namespace", "")
    made = [_field(OP, "string")]
    made.append(_field(TIME if mode is ChangeMode.DATA_BEFORE_AFTER else KEY, "string"))
    made.append(_field(BEFORE, record))
    if mode is ChangeMode.DATA_BEFORE_AFTER:
        made.append(_field(AFTER, record["name"]))
    head = {"type": "record", "name": "CDC", "namespace": space, "doc": ""}
    return _text({**head, "fields": made})


def _field(name: str, kind: object) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "doc": "", "default": None}


def _text(schema: object) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
