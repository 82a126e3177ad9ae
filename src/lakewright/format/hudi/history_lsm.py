"""Layout 2's archive: sorted parquet files in levels, listed by numbered manifests.

The file ``_version_`` names the current manifest, and that alone says which files count:
files of older manifests lie beside them until nobody can be reading them.
"""

import heapq
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.format.hudi.archived_instant import ArchivedInstant
from lakewright.format.hudi.metadata.bare import body_in_container, plan_in_container
from lakewright.format.hudi.metadata.json_text import decode_json, encode_json
from lakewright.format.hudi.metadata.shapes import LONG, STRING, ListOf, Member, RecordOf
from lakewright.model.errors import Conflict, Corrupt, NotFound
from lakewright.model.instant import Action, Instant, State
from lakewright.model.options import declare
from lakewright.storage.port import Storage

_FILE = re.compile(r"([0-9]+)_([0-9]+)_([0-9])\.parquet", re.ASCII)
_MANIFEST = re.compile(r"manifest_([0-9]{1,9})", re.ASCII)
_VERSION = "_version_"
_LAST_LEVEL = 9
#: Files together larger than this are not merged, which bounds the memory of a merge.
_MAX_MERGE_BYTES = 256 << 20
_KEPT_MANIFESTS = 3
#: One row may hold the whole body of a commit of 100,000 files, so few are held at once.
_BATCH_ROWS = 16
_GROUP_BYTES = 16 << 20
_ACTIONS = {action.value: action for action in Action}


def _at_least_two(text: str) -> int:
    if int(text) < 2:
        raise ValueError(text)
    return int(text)


COMPACTION_BATCH = declare(
    "lakewright.archive.files-per-level",
    _at_least_two,
    10,
    doc="How many files of one level of the archived timeline are merged into the next.",
    since="0.1",
    allowed="a whole number from 2",
    old_keys=("hoodie.timeline.compaction.batch.size",),
)

_AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "HoodieLSMTimelineInstant",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [
            *(
                {
                    "name": name,
                    "type": ["null", {"type": "string", "avro.java.string": "String"}],
                    "default": None,
                }
                for name in ("instantTime", "completionTime", "action")
            ),
            {"name": "metadata", "type": ["null", "bytes"], "default": None},
            {"name": "plan", "type": ["null", "bytes"], "default": None},
            {"name": "version", "type": "int", "default": 1},
        ],
    },
    separators=(",", ":"),
)
_SCHEMA = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class LsmFile:
    """One data file: its level and size, and instant times between which those of its rows lie.

    The rows of one that is not ``in_order`` lie anywhere between ``first`` and ``last``.
    """

    name: str
    size: int
    first: str
    last: str
    level: int
    in_order: bool = True


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files that make up the archive at one version; version 0 is the empty archive."""

    version: int
    files: tuple[LsmFile, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class _Body:
    files: tuple[_Entry, ...]


_BODY = RecordOf(
    "manifest",
    _Body,
    (
        Member(
            "files",
            ListOf(RecordOf("file", _Entry, (Member("fileName", STRING), Member("fileLen", LONG)))),
        ),
    ),
)


def current_manifest(storage: Storage, folder: str) -> Manifest:
    """Return the manifest that ``_version_`` names, or the newest where that does not read."""
    named = _named_version(storage, folder)
    if named is not None:
        try:
            return _manifest(storage, folder, named)
        except NotFound:
            pass
    versions = _versions(storage, folder)
    return _manifest(storage, folder, max(versions)) if versions else Manifest(0, ())


def _named_version(storage: Storage, folder: str) -> int | None:
    try:
        text = storage.read(f"{folder}/{_VERSION}").strip()
    except NotFound:
        return None
    return int(text) if text.isdigit() and len(text) < 10 else None


def _versions(storage: Storage, folder: str) -> list[int]:
    names = (stat.path.rpartition("/")[2] for stat in storage.list(folder))
    return [int(match.group(1)) for match in map(_MANIFEST.fullmatch, names) if match]


def _manifest(storage: Storage, folder: str, version: int) -> Manifest:
    path = f"{folder}/manifest_{version}"
    body = decode_json(storage.read(path), path, _BODY)
    return Manifest(version, tuple(_lsm_file(entry, path) for entry in body.files))


def _lsm_file(entry: _Entry, path: str) -> LsmFile:
    match = _FILE.fullmatch(entry.name)
    if match is None:
        raise Corrupt(
            f"{path}: {entry.name[:100]!r} is no name of an archive file.",
            next_step="Expected <first>_<last>_<level>.parquet.",
            path=path,
        )
    first, last = match[1], match[2]
    if first <= last:
        return LsmFile(entry.name, entry.size, first, last, int(match[3]))
    # Hudi 1.0 moves the archive of version 6 here newest file first, and names what it writes by
    # the first and the last row. All that this tells is that the times of others lie beyond.
    return LsmFile(entry.name, entry.size, "0", "9" * len(first), int(match[3]), in_order=False)


def read_lsm(storage: Storage, folder: str, after: str | None = None) -> Iterator[ArchivedInstant]:
    """Stream the archived instants requested after ``after``, by requested time."""
    wanted = (file for file in current_manifest(storage, folder).files if (after or "") < file.last)
    yield from _without_repeats(
        _merged(storage, folder, sorted(wanted, key=_by_first), after or "")
    )


def _by_first(file: LsmFile) -> tuple[str, int, str]:
    return file.first, file.level, file.name


def _merged(
    storage: Storage, folder: str, files: Sequence[LsmFile], after: str
) -> Iterator[ArchivedInstant]:
    """Merge files by instant, opening each only when its first row is due."""
    waiting = list(reversed(files))
    heads: list[tuple[Instant, int, ArchivedInstant, Iterator[ArchivedInstant]]] = []
    while waiting or heads:
        while waiting and (not heads or waiting[-1].first <= heads[0][0].requested):
            rows = _sorted_rows(storage, folder, waiting.pop(), after)
            _push(heads, rows, len(waiting))
        if not heads:
            return
        _, order, entry, rows = heapq.heappop(heads)
        _push(heads, rows, order)
        yield entry


def _push(
    heads: list[tuple[Instant, int, ArchivedInstant, Iterator[ArchivedInstant]]],
    rows: Iterator[ArchivedInstant],
    order: int,
) -> None:
    entry = next(rows, None)
    if entry is not None:
        heapq.heappush(heads, (entry.instant, order, entry, rows))


def _sorted_rows(
    storage: Storage, folder: str, file: LsmFile, after: str
) -> Iterator[ArchivedInstant]:
    rows = _rows(storage, f"{folder}/{file.name}", after)
    return rows if file.in_order else iter(sorted(rows, key=lambda entry: entry.instant))


def _rows(
    storage: Storage, path: str, after: str, *, bodies: bool = True
) -> Iterator[ArchivedInstant]:
    columns = _SCHEMA.names[: 5 if bodies else 3]
    try:
        with storage.open(path) as file:
            for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=columns):
                if batch.schema.names != columns:
                    raise _unreadable(path, "columns are missing")
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    if row[0] is not None and row[0] > after:
                        yield _archived(row if bodies else (*row, None, None), path)
    except NotFound as cause:
        raise _unreadable(path, "the manifest names it, but it is gone") from cause
    except (pa.ArrowException, OSError, ValueError, TypeError) as cause:
        raise _unreadable(path, str(cause)) from cause


def _unreadable(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path}: the archived timeline cannot be read ({why}).",
        next_step="Read again if an archiver is at work; else restore the file from a copy.",
        path=path,
    )


def _archived(row: tuple[object, ...], path: str) -> ArchivedInstant:
    match row:
        case (str(time), str() | None as completed, str(name), bytes() | None as metadata, plan):
            action = _ACTIONS.get(name)
        case _:
            raise _unreadable(path, "a row without time or action")
    if action is None or not isinstance(plan, bytes | None):
        raise _unreadable(path, f"action {name[:40]!r}")
    done = action.completes_as
    instant = Instant(time, done, State.COMPLETED, completed or time)
    return ArchivedInstant(
        instant,
        body_in_container(metadata, done) if metadata else None,
        plan_in_container(plan, done) if plan else None,
    )


def append_lsm(
    storage: Storage,
    folder: str,
    entries: Sequence[ArchivedInstant],
    options: Mapping[str, str],
) -> None:
    """Add entries, sorted by instant, as one file of level 0; then merge levels that are full.

    What the archive holds already is not added again: an archiver may have died before it
    deleted the active files.
    """
    manifest = _adopted(storage, folder)
    known = _known(storage, folder, manifest, entries[0].instant.requested)
    entries = [entry for entry in entries if entry.instant not in known]
    if not entries:
        return
    first, last = entries[0].instant.requested, entries[-1].instant.requested
    manifest = _add(storage, folder, manifest, (), entries, _name(first, last, 0))
    merges = 0
    while (inputs := _full_level(manifest.files, COMPACTION_BATCH.read(options))) is not None:
        name = _name(*_bounds(storage, folder, inputs), inputs[0].level + 1)
        manifest = _add(storage, folder, manifest, inputs, (), name)
        merges += 1
    if merges:
        _forget(storage, folder, manifest.version - _KEPT_MANIFESTS - merges)


def _adopted(storage: Storage, folder: str) -> Manifest:
    """Return the newest manifest, and make it the current one.

    An archiver that died before it named its manifest has left all files of it behind.
    """
    current = current_manifest(storage, folder)
    newest = max(_versions(storage, folder), default=0)
    if newest <= current.version:
        return current
    _name_version(storage, folder, newest)
    return _manifest(storage, folder, newest)


def _known(storage: Storage, folder: str, manifest: Manifest, first: str) -> set[Instant]:
    """Return the instants of the files that reach to ``first`` or beyond; no bodies are read."""
    return {
        entry.instant
        for file in manifest.files
        if first <= file.last
        for entry in _rows(storage, f"{folder}/{file.name}", "", bodies=False)
    }


def _bounds(storage: Storage, folder: str, files: Sequence[LsmFile]) -> tuple[str, str]:
    """Return the times of the first and the last instant in these files."""
    times = [time for file in files if file.in_order for time in (file.first, file.last)]
    for file in files:
        if not file.in_order:
            rows = _rows(storage, f"{folder}/{file.name}", "", bodies=False)
            times.extend(entry.instant.requested for entry in rows)
    return min(times), max(times)


def _name(first: str, last: str, level: int) -> str:
    return f"{first}_{last}_{level}.parquet"


def _add(
    storage: Storage,
    folder: str,
    manifest: Manifest,
    inputs: Sequence[LsmFile],
    entries: Sequence[ArchivedInstant],
    name: str,
) -> Manifest:
    """Replace ``inputs`` by one file that holds their rows and ``entries``.

    A live file that happens to have the new name (a savepoint has the time of its commit) is
    taken in too, never overwritten.
    """
    gone = {*inputs, *(file for file in manifest.files if file.name == name)}
    stored = _merged(storage, folder, sorted(gone, key=_by_first), "")
    rows = heapq.merge(stored, entries, key=lambda entry: entry.instant)
    data = _parquet(_without_repeats(rows))
    storage.write(f"{folder}/{name}", data)
    added = _lsm_file(_Entry(name, len(data)), name)
    kept = (file for file in manifest.files if file not in gone)
    return _publish(storage, folder, (*kept, added), manifest.version + 1)


def _without_repeats(entries: Iterable[ArchivedInstant]) -> Iterator[ArchivedInstant]:
    # An archiver that died before it deleted the active files has its instants archived again.
    for _, same in itertools.groupby(entries, key=lambda entry: entry.instant):
        yield next(same)


def _parquet(entries: Iterable[ArchivedInstant]) -> bytes:
    out = io.BytesIO()
    with pq.ParquetWriter(out, _SCHEMA, compression="gzip", store_schema=False) as writer:
        writer.add_key_value_metadata(
            {"parquet.avro.schema": _AVRO_SCHEMA, "writer.model.name": "avro"}
        )
        for group in _groups(entries):
            writer.write_table(pa.Table.from_pylist([_row(entry) for entry in group], _SCHEMA))
    return out.getvalue()


def _groups(entries: Iterable[ArchivedInstant]) -> Iterator[list[ArchivedInstant]]:
    """Cut entries into row groups of bounded size."""
    group: list[ArchivedInstant] = []
    size = 0
    for entry in entries:
        group.append(entry)
        size += 200 + len(entry.metadata or b"") + len(entry.plan or b"")
        if size > _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _row(entry: ArchivedInstant) -> dict[str, object]:
    instant = entry.instant
    return {
        "instantTime": instant.requested,
        "completionTime": instant.completed,
        "action": instant.action.value,
        "metadata": entry.metadata,
        "plan": entry.plan,
        "version": 1,
    }


def _publish(storage: Storage, folder: str, files: Iterable[LsmFile], version: int) -> Manifest:
    ordered = tuple(sorted(files, key=_by_first))
    body = _Body(tuple(_Entry(file.name, file.size) for file in ordered))
    path = f"{folder}/manifest_{version}"
    if not storage.create(path, encode_json(body, _BODY)):
        raise Conflict(
            f"another archiver has written {path}.",
            next_step="Load the timeline again and repeat what is left to archive.",
            path=path,
        )
    _name_version(storage, folder, version)
    return Manifest(version, ordered)


def _name_version(storage: Storage, folder: str, version: int) -> None:
    storage.delete([f"{folder}/.{_VERSION}.crc"])
    storage.write(f"{folder}/{_VERSION}", str(version).encode())


def _full_level(files: Sequence[LsmFile], batch: int) -> list[LsmFile] | None:
    """Return the oldest files of the lowest level that has enough of them to merge."""
    for level in range(_LAST_LEVEL):
        inputs: list[LsmFile] = []
        for file in sorted((f for f in files if f.level == level), key=_by_first)[:batch]:
            if sum(f.size for f in inputs) + file.size <= _MAX_MERGE_BYTES:
                inputs.append(file)
        full = sum(file.level == level for file in files) >= batch
        if full and len(inputs) > 1:
            return inputs
    return None


def _forget(storage: Storage, folder: str, below: int) -> None:
    """Delete manifests older than ``below`` and the files that only they name."""
    versions = sorted(_versions(storage, folder))
    old = [version for version in versions if version < below]
    kept = {
        file.name
        for version in versions
        if version >= below
        for file in _manifest(storage, folder, version).files
    }
    names = {file.name for v in old for file in _manifest(storage, folder, v).files} - kept
    # The manifests go last: while they are there, whoever comes next knows what is left to do.
    storage.delete([f"{folder}/{name}" for name in names])
    storage.delete([f"{folder}/manifest_{version}" for version in old])
