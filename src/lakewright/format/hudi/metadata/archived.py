"""The entries of layout 1's archive: one per instant and state, with the body it had."""

import io
import json
from dataclasses import dataclass
from typing import Any

import fastavro

from lakewright.format.hudi.metadata.clean import CLEAN, CLEAN_PLAN, CleanMetadata, CleanPlan
from lakewright.format.hudi.metadata.commit import COMMIT, REPLACE_COMMIT, CommitMetadata
from lakewright.format.hudi.metadata.compaction import COMPACTION_PLAN, CompactionPlan
from lakewright.format.hudi.metadata.container import UNREADABLE, parsed_schema
from lakewright.format.hudi.metadata.indexing import INDEX_COMMIT, IndexCommit
from lakewright.format.hudi.metadata.replace_plan import REPLACE_PLAN, ReplacePlan
from lakewright.format.hudi.metadata.restore import SAVEPOINT, SavepointMetadata
from lakewright.format.hudi.metadata.rollback import ROLLBACK, RollbackMetadata
from lakewright.format.hudi.metadata.shapes import (
    STRING,
    RecordOf,
    avro_schema,
    optional,
    reader,
    versioned,
    writer,
)
from lakewright.model.errors import Corrupt


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """One state of an archived instant; at most one of the bodies is filled."""

    commit: CommitMetadata | None = None
    clean: CleanMetadata | None = None
    rollback: RollbackMetadata | None = None
    savepoint: SavepointMetadata | None = None
    time: str | None = None
    action: str | None = None
    version: int | None = 1
    compaction_plan: CompactionPlan | None = None
    clean_plan: CleanPlan | None = None
    state: str | None = None
    replace_commit: CommitMetadata | None = None
    replace_plan: ReplacePlan | None = None
    inflight_replace: CommitMetadata | None = None
    index_commit: IndexCommit | None = None
    transition_time: str | None = None


ARCHIVED_ENTRY = RecordOf(
    "HoodieArchivedMetaEntry",
    ArchivedEntry,
    (
        optional("hoodieCommitMetadata", COMMIT),
        optional("hoodieCleanMetadata", CLEAN),
        optional("hoodieRollbackMetadata", ROLLBACK),
        optional("hoodieSavePointMetadata", SAVEPOINT),
        optional("commitTime", STRING),
        optional("actionType", STRING),
        versioned(),
        optional("hoodieCompactionPlan", COMPACTION_PLAN),
        optional("hoodieCleanerPlan", CLEAN_PLAN),
        optional("actionState", STRING),
        optional("hoodieReplaceCommitMetadata", REPLACE_COMMIT),
        optional("hoodieRequestedReplaceMetadata", REPLACE_PLAN),
        optional("HoodieInflightReplaceMetadata", COMMIT),
        optional("hoodieIndexCommitMetadata", INDEX_COMMIT),
        optional("stateTransitionTime", STRING),
    ),
)
ARCHIVED_SCHEMA = json.dumps(avro_schema(ARCHIVED_ENTRY), separators=(",", ":"))
_PARSED = fastavro.parse_schema(json.loads(ARCHIVED_SCHEMA))


class EntryDecoder:
    """Decodes entries of one block, whose header holds the schema they were written with."""

    def __init__(self, schema_text: str, path: str) -> None:
        self._schema: Any = parsed_schema(schema_text.encode(), ARCHIVED_ENTRY, path)
        self._path = path

    def decode(self, datum: bytes, offset: int) -> ArchivedEntry:
        """Return the entry in these bytes, which lie at ``offset`` of the file."""
        try:
            fields = fastavro.schemaless_reader(io.BytesIO(datum), self._schema, None)
        except UNREADABLE as cause:
            raise Corrupt(
                f"{self._path}: the entry at byte {offset} cannot be decoded ({cause}).",
                next_step="The archive is damaged; the history before and after it still reads.",
                path=self._path,
                offset=offset,
            ) from cause
        entry: ArchivedEntry = reader(ARCHIVED_ENTRY)(fields)
        return entry


def encode_entry(entry: ArchivedEntry) -> bytes:
    """Write an entry with ``ARCHIVED_SCHEMA``, without a container around it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _PARSED, writer(ARCHIVED_ENTRY)(entry))
    return out.getvalue()
