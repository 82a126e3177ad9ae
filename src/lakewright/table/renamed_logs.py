"""Log files that got other names when the version of a table changed.

Undo pins, and what plans wrote down for their undo, name files as they were called at the time.
Names are noted before the first log gets another one, and a note never says which of the two
counts: a change of version may be cut off, or given up, and then either name, or both, are there.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from lakewright.model.errors import Corrupt, NotFound
from lakewright.storage.port import Storage

RENAMED_FOLDER = ".hoodie/.lakewright/renamed-logs"


def note_renames(storage: Storage, renamed: Iterable[tuple[str, str]]) -> None:
    """Note pairs of names, paths below the table, before the files get the second ones."""
    body = "".join(f"{json.dumps(pair, ensure_ascii=False)}\n" for pair in sorted(renamed)).encode()
    if body:
        name = hashlib.blake2b(body, digest_size=12).hexdigest()
        # One that is there says the same: its name is made of what it says.
        storage.create(f"{RENAMED_FOLDER}/{name}.jsonl", body)


def other_names(storage: Storage) -> dict[str, frozenset[str]]:
    """Return, for each log that got another name, all names it had; ``Corrupt`` fails closed."""
    found: dict[str, frozenset[str]] = {}
    for file in storage.list(RENAMED_FOLDER, stats=False):
        try:
            data = storage.read(file.path)
        except NotFound:
            continue  # forgotten since it was listed
        for old, new in _pairs(data, file.path):
            names = found.get(old, frozenset({old})) | found.get(new, frozenset({new}))
            found.update(dict.fromkeys(names, names))
    return found


def forget_renames(storage: Storage) -> None:
    """Forget all names of before; for when no pin and no plan names a file any more."""
    storage.delete([file.path for file in storage.list(RENAMED_FOLDER, stats=False)])


def with_other_names(
    files: Mapping[str, frozenset[str]], others: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return names of files by partition, each with the other names that its file had."""
    return {
        partition: names.union(
            *(
                (path.rpartition("/")[2] for path in others.get(_path(partition, name), ()))
                for name in names
            )
        )
        for partition, names in files.items()
    }


def _path(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def _pairs(data: bytes, path: str) -> list[tuple[str, str]]:
    try:
        lines = [json.loads(line) for line in data.decode().splitlines()]
    except (ValueError, RecursionError) as cause:
        raise _damaged(path, str(cause)) from cause
    pairs = []
    for line in lines:
        match line:
            case [str(old), str(new)]:
                pairs.append((old, new))
            case _:
                raise _damaged(path, f"{line!r} is no pair of names")
    return pairs


def _damaged(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path}: names that logs had before cannot be read ({why}).",
        next_step="Restore it from a copy. Nothing is cleaned while it lies there so; delete it if "
        "no undo of a plan from before the change of version is needed.",
        path=path,
    )
