"""Adding to layout 1's archive: one new log file per archival, an entry per instant and state."""

import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lakewright.format.hudi.archived_instant import ArchivedInstant
from lakewright.format.hudi.history_log import archive_files, archive_number, read_files
from lakewright.format.hudi.log.blocks import (
    CONTENT_VERSION,
    LOG_VERSION,
    MAGIC,
    BlockKind,
    HeaderKey,
)
from lakewright.format.hudi.metadata.archived import ARCHIVED_SCHEMA, ArchivedEntry, encode_entry
from lakewright.format.hudi.metadata.clean import decode_clean, decode_clean_plan
from lakewright.format.hudi.metadata.commit import decode_commit
from lakewright.format.hudi.metadata.compaction import decode_compaction_plan
from lakewright.format.hudi.metadata.indexing import decode_index_commit
from lakewright.format.hudi.metadata.replace_plan import decode_replace_plan
from lakewright.format.hudi.metadata.restore import decode_savepoint
from lakewright.format.hudi.metadata.rollback import decode_rollback
from lakewright.model.errors import Conflict
from lakewright.model.instant import Action, Instant
from lakewright.model.options import declare, parse_positive
from lakewright.storage.port import Storage

BLOCK_ENTRIES = declare(
    "lakewright.archive.entries-per-block",
    parse_positive,
    10,
    doc="How many entries one block of the archived timeline of version 6 tables holds.",
    since="0.1",
    allowed="a whole number from 1",
    old_keys=("hoodie.commits.archival.batch",),
)


def append_log(
    storage: Storage,
    folder: str,
    entries: Sequence[ArchivedInstant],
    options: Mapping[str, str],
) -> None:
    """Add entries, sorted by instant, as one new file after the newest.

    What the newest file holds already is not added again: an archiver may have died before it
    deleted the active files.
    """
    files = archive_files(storage, folder)
    known = {past.instant for past in read_files(storage, files[-1:])}
    entries = [entry for entry in entries if entry.instant not in known]
    if not entries:
        return
    states = itertools.chain.from_iterable(_states(entry) for entry in entries)
    size = BLOCK_ENTRIES.read(options)
    blocks = []
    while batch := list(itertools.islice(states, size)):
        blocks.append(_block([encode_entry(entry) for entry in batch]))
    number = max(map(archive_number, files), default=0) + 1
    path = f"{folder}/.commits_.archive.{number}_1-0-1"
    if not storage.create(path, b"".join(blocks)):
        raise Conflict(
            f"another archiver has written {path}.",
            next_step="Load the timeline again and repeat what is left to archive.",
            path=path,
        )


def _block(datums: Sequence[bytes]) -> bytes:
    """Frame entries as a block whose header holds their schema and nothing else."""
    content = struct.pack(">ii", CONTENT_VERSION, len(datums)) + b"".join(
        struct.pack(">i", len(datum)) + datum for datum in datums
    )
    schema = ARCHIVED_SCHEMA.encode()
    header = struct.pack(">iii", 1, HeaderKey.SCHEMA, len(schema)) + schema
    footer = struct.pack(">i", 0)
    body = b"".join(
        [
            struct.pack(">ii", LOG_VERSION, BlockKind.AVRO_DATA),
            header,
            struct.pack(">q", len(content)),
            content,
            footer,
        ]
    )
    length = len(body) + 8
    return MAGIC + struct.pack(">q", length) + body + struct.pack(">q", length + len(MAGIC))


def _states(archived: ArchivedInstant) -> Iterator[ArchivedEntry]:
    """Return the entries of one instant: requested with its plan, in flight, completed."""
    instant = archived.instant
    plan = _planned(archived)
    if instant.action is not Action.SAVEPOINT:
        yield replace(plan, state="REQUESTED")
    yield replace(plan if plan.clean_plan else _bare(instant), state="INFLIGHT")
    yield replace(_done(archived), state="COMPLETED")


def _bare(instant: Instant) -> ArchivedEntry:
    return ArchivedEntry(
        time=instant.requested, action=instant.action.value, transition_time=instant.completed
    )


def _planned(archived: ArchivedInstant) -> ArchivedEntry:
    entry, data = _bare(archived.instant), archived.plan
    if data is None:
        return entry
    path = str(archived.instant)
    match archived.instant.action:
        case Action.CLEAN:
            return replace(entry, clean_plan=decode_clean_plan(data, path))
        case Action.REPLACECOMMIT:
            return replace(entry, replace_plan=decode_replace_plan(data, path))
        case Action.COMMIT | Action.DELTACOMMIT:
            # Only compactions plan; they complete as commits.
            return replace(entry, compaction_plan=decode_compaction_plan(data, path))
        case _:
            return entry


def _done(archived: ArchivedInstant) -> ArchivedEntry:
    entry, data = _bare(archived.instant), archived.metadata
    if data is None:
        return entry
    path = str(archived.instant)
    match archived.instant.action:
        case Action.COMMIT | Action.DELTACOMMIT:
            return replace(entry, commit=decode_commit(data, path))
        case Action.REPLACECOMMIT:
            return replace(entry, replace_commit=decode_commit(data, path))
        case Action.CLEAN:
            return replace(entry, clean=decode_clean(data, path))
        case Action.ROLLBACK:
            return replace(entry, rollback=decode_rollback(data, path))
        case Action.SAVEPOINT:
            return replace(entry, savepoint=decode_savepoint(data, path))
        case Action.INDEXING:
            return replace(entry, index_commit=decode_index_commit(data, path))
        case _:
            return entry
