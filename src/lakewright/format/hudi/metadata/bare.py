"""Archived bodies without a container around them.

Hudi 1.0 upgrades a table of version 6 by moving its archive into the history of version 8. The
bodies that it moves are bare Avro records, in the schemas of that release; whatever was archived
later is a container like the files of the timeline.
"""

import copy
import functools
import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

from lakewright.format.hudi.metadata.clean import CLEAN, CLEAN_PLAN
from lakewright.format.hudi.metadata.commit import COMMIT, REPLACE_COMMIT
from lakewright.format.hudi.metadata.compaction import COMPACTION_PLAN
from lakewright.format.hudi.metadata.container import UNREADABLE, contained, is_container
from lakewright.format.hudi.metadata.indexing import INDEX_COMMIT
from lakewright.format.hudi.metadata.replace_plan import REPLACE_PLAN
from lakewright.format.hudi.metadata.restore import SAVEPOINT
from lakewright.format.hudi.metadata.rollback import ROLLBACK
from lakewright.format.hudi.metadata.shapes import Raw, RecordOf, avro_schema
from lakewright.model.instant import Action

#: What archives of version 6 keep, by the action that the instant completed as.
_BODIES: Mapping[Action, RecordOf[Any]] = {
    Action.COMMIT: COMMIT,
    Action.DELTACOMMIT: COMMIT,
    Action.REPLACECOMMIT: REPLACE_COMMIT,
    Action.CLEAN: CLEAN,
    Action.ROLLBACK: ROLLBACK,
    Action.SAVEPOINT: SAVEPOINT,
    Action.INDEXING: INDEX_COMMIT,
}
_PLANS: Mapping[Action, RecordOf[Any]] = {
    Action.COMMIT: COMPACTION_PLAN,
    Action.DELTACOMMIT: COMPACTION_PLAN,
    Action.REPLACECOMMIT: REPLACE_PLAN,
    Action.CLEAN: CLEAN_PLAN,
}


def body_in_container(data: bytes, action: Action) -> bytes:
    """Return the body of a completed instant as its file on the timeline would have it."""
    return _in_container(data, _BODIES.get(action))


def plan_in_container(data: bytes, action: Action) -> bytes:
    """Return the plan of an instant as its file on the timeline would have it."""
    return _in_container(data, _PLANS.get(action))


def _in_container(data: bytes, shape: RecordOf[Any] | None) -> bytes:
    """Put a container around a bare record; anything else is left to whoever decodes it."""
    if shape is None or is_container(data) or data.startswith(b"{"):
        return data
    for text, schema in _schemas(shape):
        if _is_record(data, schema):
            return contained(data, text)
    return data


def _is_record(data: bytes, schema: Raw) -> bool:
    """Say whether the bytes are one record of this schema, to the last of them."""
    rest = io.BytesIO(data)
    try:
        fastavro.schemaless_reader(rest, schema, None)
    except UNREADABLE:
        return False
    return rest.tell() == len(data)


@functools.cache
def _schemas(shape: RecordOf[Any]) -> tuple[tuple[bytes, Raw], ...]:
    """Return the schemas that such records may have, the newest first."""
    schema = avro_schema(shape)
    # Releases put a version's null elsewhere, and those before 1.0.2 tell less of commits.
    turned = {**schema, "fields": [_turned(field) for field in schema["fields"]]}
    return tuple(
        (json.dumps(one, separators=(",", ":")).encode(), fastavro.parse_schema(one))
        for one in (schema, turned, _shortened(schema), _shortened(turned))
    )


def _shortened(schema: Raw) -> Raw:
    """Return a schema of commits without what 1.0.2 added to it."""
    fields = [field for field in schema["fields"] if field["name"] != "compacted"]
    if fields[0]["name"] != "partitionToWriteStats":
        return schema
    stats = copy.deepcopy(fields[0])
    record = stats["type"][1]["values"]["items"]
    names = [field["name"] for field in record["fields"]]
    del record["fields"][names.index("cdcStats") + 1 :]
    return {**schema, "fields": [stats, *fields[1:]]}


def _turned(field: dict[str, Any]) -> dict[str, Any]:
    if field["name"] != "version" or not isinstance(field["type"], list):
        return field
    return {"name": "version", "type": field["type"][::-1]}
