"""What undoes brought back, and when: a note for each, kept with the table.

A rollback leaves the partitions as they were before the drop, so that nothing on the timeline tells
when they came back, and commits are archived. Retention and older plans ask these notes. One is
written before an undo begins: should that come to nothing, it says no more than that somebody
wanted the partitions.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from lakewright.lifecycle.plans.plan import Json, decode, moment_of
from lakewright.model.errors import NotFound
from lakewright.model.instant import instant_time
from lakewright.storage.port import Storage

RESTORED_FOLDER = ".hoodie/.lakewright/restored"
_NEEDED = (
    "Restore it from a copy. Without it, what that undo brought back may expire at once: delete "
    "it only if that may be."
)


def note_restored(
    storage: Storage, plan: str, attempt: int, at: datetime, partitions: Iterable[str]
) -> None:
    """Write down that an undo is about to bring partitions back."""
    body = {"plan": plan, "at": at.isoformat(), "partitions": sorted(partitions)}
    text = json.dumps(body, ensure_ascii=False).encode()
    # One that is there was put there by this very attempt.
    storage.create(f"{RESTORED_FOLDER}/{plan}-{attempt}.json", text)


@dataclass(frozen=True, slots=True)
class Return:
    """That undoes brought a partition back: when for the last time, and how often.

    The moments are those of several clocks; what came after what is told by the number alone.
    """

    at: datetime
    times: int = 1


def restored_partitions(storage: Storage) -> dict[str, Return]:
    """Return the partitions that undoes brought back."""
    found: dict[str, Return] = {}
    for file in storage.list(RESTORED_FOLDER, stats=False):
        try:
            data = storage.read(file.path)
        except NotFound:
            continue
        at, partitions = decode(data, file.path, _read, _NEEDED)
        for partition in partitions:
            known = found.get(partition)
            found[partition] = (
                Return(at) if known is None else Return(max(known.at, at), known.times + 1)
            )
    return found


def restored_instant(at: datetime, zone: tzinfo) -> str:
    """Return the moment of an undo as an instant of a table whose times are those of a zone."""
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None
    return instant_time(at + offset)


def _read(value: Json) -> tuple[datetime, list[str]]:
    partitions = value["partitions"]
    if not isinstance(partitions, list) or not all(isinstance(one, str) for one in partitions):
        raise TypeError(f"{partitions!r} is no list of texts")
    return moment_of(value["at"]), partitions
