"""Log files under the names of version 6: after the base file of their slice, numbered.

Later versions name a log after the write that made it, and read both kinds: what counts inside a
log are its blocks, and they say whose they are. So the logs of old slices are copied under their
new names first, while the table is still of the later version. Only then do the old ones go, and
the version changes after that.

A list of the copies is stored before the first is made, and whoever finds this cut off goes on
with the same names. Both names of each are noted for pins and plans, which know the old ones.
Where that happens after the old logs went, rows are read as ever, and changes
of the writes that made them are refused (``HistoryGone``) until it is run again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lakewright.actions.executor import Attempt
from lakewright.actions.threads import run_in_threads
from lakewright.format.hudi.file_names import log_file_name
from lakewright.model.errors import Corrupt, NotFound
from lakewright.model.files import FileSlice
from lakewright.storage.paths import join
from lakewright.storage.port import Storage
from lakewright.table.horizon import see_at
from lakewright.table.partitions import Tree, walk_partitions
from lakewright.table.pruning import Tally
from lakewright.table.renamed_logs import note_renames
from lakewright.table.slicing import Listing, file_groups
from lakewright.table.state import TableState, table_schema
from lakewright.timeline.relayout import RenamedLog

RENAMED_PATH = ".hoodie/.lakewright/upgrade-logs.jsonl"

_THREADS = 8
_CHUNK = 8 << 20


def plan_renames(state: TableState) -> dict[str, RenamedLog]:
    """Return the logs whose names must change, by path; those of a list that is stored too.

    Memory holds one of them for every log that is retained.
    """
    before = stored_renames(state.storage)
    copies = {found.new_path for found in before.values()}
    renamed = dict(before)
    visible = see_at(state, None)
    tree = Tree(state.storage, state.config, table_schema(state))
    for _, folder in walk_partitions(tree, (), Tally()):
        listing = Listing(folder.path, folder.names, folder.sizes)
        names = {*folder.names}
        for group in file_groups(listing, visible):
            for piece in group.slices:
                for found in _of_slice(piece, names, before, copies):
                    renamed[found.path] = found
    return renamed


def _of_slice(
    piece: FileSlice, names: set[str], before: Mapping[str, RenamedLog], copies: set[str]
) -> Iterator[RenamedLog]:
    number = 1
    for log in piece.logs:
        if log.path in copies:
            number = max(number, log.version + 1)
            continue
        if log.path in before:
            continue
        if log.instant == piece.base_instant and log.version >= number:
            number = log.version + 1
            continue
        while (name := _name(piece, number, log.write_token)) in names:
            number += 1
        names.add(name)
        number += 1
        base = "" if piece.base is None else piece.base.name
        yield RenamedLog(log.path, join(log.partition, name), piece.base_instant, base)


def _name(piece: FileSlice, number: int, token: str) -> str:
    return log_file_name(piece.group.file_id, piece.base_instant, number, token)


def copy_logs(storage: Storage, renamed: Mapping[str, RenamedLog]) -> None:
    """Store the list, then copy each log to its new name; those that are there are left."""
    if not renamed:
        return
    note_renames(storage, ((r.path, r.new_path) for r in renamed.values()))
    lines = (
        json.dumps([r.path, r.new_path, r.base_instant, r.base_file]) for r in renamed.values()
    )
    storage.write(RENAMED_PATH, ("\n".join(lines) + "\n").encode())
    for _ in run_in_threads(_copy, storage, list(renamed.values()), threads=_THREADS):
        pass


def _copy(storage: Storage, item: RenamedLog, attempt: Attempt) -> bool:
    source = storage.stat(item.path)
    target = storage.stat(item.new_path)
    if source is None or (target is not None and target.size == source.size):
        return False  # copied, and perhaps gone, the last time
    try:
        with storage.open(item.path) as old, storage.writer(item.new_path) as new:
            while chunk := old.read(_CHUNK):
                new.write(chunk)
    except NotFound:
        return False
    return True


def drop_copied(storage: Storage, renamed: Mapping[str, RenamedLog]) -> None:
    """Delete the logs under their old names; ``Corrupt`` where a copy is not whole."""
    for item in renamed.values():
        source = storage.stat(item.path)
        target = storage.stat(item.new_path)
        if source is not None and (target is None or target.size != source.size):
            raise Corrupt(
                f"{item.new_path} is not the copy of {item.path} that it should be.",
                next_step="Nothing was deleted. Run the same again.",
                path=item.new_path,
            )
    storage.delete(renamed)


def take_back(storage: Storage) -> int:
    """Give logs their old names again, where a change of version was given up; return how many."""
    renamed = stored_renames(storage)
    back = [replace(r, path=r.new_path, new_path=r.path) for r in renamed.values()]
    gone = [item for item in back if storage.stat(item.new_path) is None]
    for _ in run_in_threads(_copy, storage, gone, threads=_THREADS):
        pass
    storage.delete([item.path for item in back])
    return len(back)


def stored_renames(storage: Storage) -> dict[str, RenamedLog]:
    """Return the list that a change of version which was cut off left; empty without one."""
    try:
        lines = storage.read(RENAMED_PATH).decode().splitlines()
    except NotFound:
        return {}
    found = (RenamedLog(*_texts(json.loads(line))) for line in lines)
    return {item.path: item for item in found}


def _texts(value: object) -> Sequence[str]:
    if not (isinstance(value, list) and len(value) == 4 and all(isinstance(t, str) for t in value)):
        raise Corrupt(f"{RENAMED_PATH}: {value!r} is no line of it.", path=RENAMED_PATH)
    return value
