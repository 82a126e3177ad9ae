"""Layout 1's archive: log files of Avro blocks, one entry per instant and state."""

import itertools
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import IO

from lakewright.format.hudi.archived_instant import ArchivedInstant
from lakewright.format.hudi.log.blocks import CONTENT_VERSION, BlockKind, LogBlock
from lakewright.format.hudi.log.read import read_fully, scan_blocks
from lakewright.format.hudi.metadata.archived import ArchivedEntry, EntryDecoder
from lakewright.format.hudi.metadata.clean import encode_clean, encode_clean_plan
from lakewright.format.hudi.metadata.commit import encode_commit
from lakewright.format.hudi.metadata.compaction import encode_compaction_plan
from lakewright.format.hudi.metadata.indexing import encode_index_commit
from lakewright.format.hudi.metadata.replace_plan import encode_replace_plan
from lakewright.format.hudi.metadata.restore import encode_savepoint
from lakewright.format.hudi.metadata.rollback import encode_rollback
from lakewright.model.errors import Corrupt
from lakewright.model.instant import Action, Instant, State
from lakewright.storage.port import Storage

_NAME = re.compile(r"\.commits_\.archive\.([0-9]{1,9})(?:_[0-9-]+)?", re.ASCII)
_ACTIONS = {action.value: action for action in Action}
_AVRO = 2


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an entry lies: its file and bytes; and the schema that it was written with."""

    path: str
    offset: int
    length: int
    schema: str


@dataclass(frozen=True, slots=True)
class _Found:
    """Where the states of one instant lie."""

    completed: _Place | None = None
    plan: _Place | None = None


def read_log(storage: Storage, folder: str, after: str | None = None) -> Iterator[ArchivedInstant]:
    """Stream the archived instants requested after ``after``, by requested time.

    The files are read twice: once to learn where each instant lies, because several archivers
    need not have written in order, and once to return the bodies.
    """
    return read_files(storage, archive_files(storage, folder), after)


def read_files(
    storage: Storage, paths: Sequence[str], after: str | None = None
) -> Iterator[ArchivedInstant]:
    """Stream the instants of some of the archive's files: see ``read_log``."""
    with _Reader(storage) as reader:
        found = _index(reader, paths, after or "")
        for (time, action), places in sorted(found.items()):
            if places.completed is None:
                continue
            entry = reader.entry(places.completed)
            plan = reader.entry(places.plan) if places.plan else None
            instant = Instant(time, action, State.COMPLETED, time)
            yield ArchivedInstant(instant, _metadata(entry), _plan(plan) if plan else None)


def _index(reader: "_Reader", paths: Sequence[str], after: str) -> dict[tuple[str, Action], _Found]:
    found: dict[tuple[str, Action], _Found] = {}
    for place in itertools.chain.from_iterable(map(reader.places, paths)):
        entry = reader.entry(place)
        action = _ACTIONS.get(entry.action or "")
        if action is None or entry.time is None or entry.time <= after:
            continue
        key = (entry.time, action.completes_as)
        seen = found.get(key, _Found())
        if entry.state in (None, "COMPLETED"):
            found[key] = replace(seen, completed=place)
        elif entry.state == "REQUESTED" and _is_planned(entry):
            found[key] = replace(seen, plan=place)
    return found


def archive_files(storage: Storage, folder: str) -> list[str]:
    """Return the paths of the archive's files, oldest first."""
    paths = (stat.path for stat in storage.list(folder))
    return sorted((path for path in paths if archive_number(path)), key=archive_number)


def archive_number(path: str) -> int:
    """Return the number of an archive's file, from 1 on; 0 where it is none."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return int(match.group(1)) if match else 0


class _Reader:
    """Reads entries by place, keeping the last file open."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._stack = ExitStack()
        self._path: str | None = None
        self._file: IO[bytes] | None = None
        # Every block repeats the schema; one copy of each text is enough for all places.
        self._schemas: dict[str, str] = {}

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self, path: str) -> IO[bytes]:
        if self._file is None or self._path != path:
            self._stack.close()
            self._file = self._stack.enter_context(self._storage.open(path))
            self._path = path
        return self._file

    def places(self, path: str) -> Iterator[_Place]:
        """Find every entry of a file; damaged blocks are passed over, as in any log file."""
        stat = self._storage.stat(path)
        if stat is None:
            return
        for block in scan_blocks(self._open(path), stat.size, path):
            text = block.schema_text
            if block.kind is BlockKind.AVRO_DATA and text is not None:
                yield from self._entries(path, block, self._schemas.setdefault(text, text))

    def _entries(self, path: str, block: LogBlock, schema: str) -> Iterator[_Place]:
        offset, end = block.content_offset, block.content_offset + block.content_length
        version, count = struct.unpack(">ii", self._read(path, offset, 8, end))
        if version != CONTENT_VERSION:
            raise _damaged(path, offset, f"content version {version}")
        offset += 8
        for _ in range(count):
            (length,) = struct.unpack(">i", self._read(path, offset, 4, end))
            if not 0 <= length <= end - offset - 4:
                raise _damaged(path, offset, f"an entry of {length} bytes")
            yield _Place(path, offset + 4, length, schema)
            offset += 4 + length

    def _read(self, path: str, offset: int, length: int, end: int) -> bytes:
        file = self._open(path)
        file.seek(offset)
        data = read_fully(file, length)
        if len(data) < length or offset + length > end:
            raise _damaged(path, offset, "the block is cut off")
        return data

    def entry(self, place: _Place) -> ArchivedEntry:
        """Decode one entry."""
        end = place.offset + place.length
        datum = self._read(place.path, place.offset, place.length, end)
        return EntryDecoder(place.schema, place.path).decode(datum, place.offset)


def _damaged(path: str, offset: int, why: str) -> Corrupt:
    return Corrupt(
        f"{path}: the archive is damaged at byte {offset} ({why}).",
        next_step="Restore the file from a copy.",
        path=path,
        offset=offset,
    )


def _metadata(entry: ArchivedEntry) -> bytes | None:
    """Return the body of a completed instant in the form its decoder reads."""
    if entry.commit is not None:
        return encode_commit(entry.commit, _AVRO, replace=False)
    if entry.replace_commit is not None:
        return encode_commit(entry.replace_commit, _AVRO, replace=True)
    if entry.clean is not None:
        return encode_clean(entry.clean)
    if entry.rollback is not None:
        return encode_rollback(entry.rollback)
    if entry.savepoint is not None:
        return encode_savepoint(entry.savepoint)
    return None if entry.index_commit is None else encode_index_commit(entry.index_commit)


def _is_planned(entry: ArchivedEntry) -> bool:
    return any((entry.clean_plan, entry.compaction_plan, entry.replace_plan))


def _plan(entry: ArchivedEntry) -> bytes | None:
    """Return the body of a requested instant in the form its decoder reads."""
    if entry.clean_plan is not None:
        return encode_clean_plan(entry.clean_plan)
    if entry.compaction_plan is not None:
        return encode_compaction_plan(entry.compaction_plan)
    return None if entry.replace_plan is None else encode_replace_plan(entry.replace_plan)
