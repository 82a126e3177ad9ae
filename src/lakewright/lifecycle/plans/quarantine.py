"""Quarantine: files that a plan removes lie aside for a while, and can go back where they were.

A list of what a plan moves is written before the first file moves, and goes after the last one is
back or purged. Whatever was cut off is taken up again from the list: where a file lies says how far
it came.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from lakewright.lifecycle.plans.plan import Json, check_plan_id, decode, moment_of
from lakewright.model.errors import AlreadyExists, Conflict, Corrupt, HistoryGone, NotFound
from lakewright.model.logs import facts
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.storage.paths import check_path
from lakewright.storage.port import Storage
from lakewright.storage.streams import map_bounded
from lakewright.timeline.store_clock import later_time

log = logging.getLogger(__name__)

QUARANTINE_FOLDER = ".hoodie/.lakewright/quarantine"

_NEEDED = "It tells where the files beside it belong: restore it from a copy."
#: Until when files stay of which nobody can tell that.
_UNKNOWN = datetime.max.replace(tzinfo=UTC)
#: Files that are moved at the same time.
_MOVES = 8
#: Bytes that are compared at a time.
_CHUNK = 4 << 20
#: How long moving files back may take; no purge comes between.
_LONGEST = timedelta(days=1)

#: Is told of each file that was moved.
Moved = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Quarantined(Shown):
    """What a plan put aside: paths as they were, with their sizes, and until when they stay.

    ``damage`` says that the list of them cannot be read, and what to do; nothing is purged then.
    """

    plan: str
    until: datetime
    why: str
    files: tuple[tuple[str, int], ...]
    damage: str | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size in self.files)

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text; ``limit`` files, None for all."""
        if self.damage is not None:
            yield f"plan {self.plan}: damaged: {self.damage}"
            return
        yield (
            f"plan {self.plan}: {len(self.files)} files of {self.bytes} bytes in quarantine until "
            f"{self.until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {self.why}"
        )
        told = (f"  {path}: {size} bytes" for path, size in self.files)
        yield from first_of(told, len(self.files), limit)

    def to_json(self) -> str:
        """Return it for programs; the list that is kept."""
        value = {
            "plan": self.plan,
            "until": self.until.isoformat(),
            "why": self.why,
            "files": [[path, size] for path, size in self.files],
        }
        return json.dumps(value, ensure_ascii=False)


def put_aside(
    storage: Storage,
    plan: str,
    paths: Iterable[str],
    *,
    until: datetime,
    why: str,
    moved: Moved | None = None,
) -> Quarantined:
    """Move files into quarantine until a moment, and return what was moved.

    Files that are not there are left out. A plan puts files aside once; called again after it was
    cut off, it goes on with the list of then, whatever ``paths`` are.
    """
    found = held(storage, plan)
    if found is None:
        wanted = dict.fromkeys(map(check_path, paths))
        stats = map_bounded(storage.stat, wanted, threads=_MOVES)
        sizes = zip(wanted, stats, strict=True)
        files = tuple((path, stat.size) for path, stat in sizes if stat is not None)
        found = Quarantined(plan, until, why, files)
        if not storage.create(_list_path(plan), found.to_json().encode()):
            raise Conflict(
                f"another process puts files of the plan {plan} aside.",
                next_step="Wait for it, and look what came of the plan.",
                plan=plan,
            )
    _move_all(storage, ((path, _aside(plan, path), size) for path, size in found.files), moved)
    told = facts(plan=plan, files=len(found.files), bytes=found.bytes)
    log.info("files put into quarantine", extra=told)
    return found


def go_on(
    storage: Storage,
    plan: str,
    why_not: Callable[[str], str | None],
    *,
    until: datetime,
    moved: Moved | None = None,
) -> tuple[Quarantined | None, dict[str, str]]:
    """Finish what ``put_aside`` was cut off at; return what is in quarantine, and what is not.

    ``why_not`` is asked of each file that still lies where it was, and says why it stays there;
    such files go off the list, and so do those that are gone. The list is None where nothing is
    left on it. All of them stay until ``until``, if that is later than what was said before.
    """
    found = _wanted(storage, plan)

    def judge(file: tuple[str, int]) -> str | None:
        path, size = file
        if not _lies_here(storage, path, _aside(plan, path), size):
            return None if storage.stat(_aside(plan, path)) is not None else "it is gone"
        return why_not(path)

    judged = zip(found.files, map_bounded(judge, found.files, threads=_MOVES), strict=True)
    out = {path: why for (path, _), why in judged if why is not None}
    files = tuple(one for one in found.files if one[0] not in out)
    found = replace(found, files=files, until=max(found.until, until))
    storage.delete([_aside(plan, path) for path in out])
    storage.write(_list_path(plan), found.to_json().encode())

    def move(file: tuple[str, int]) -> None:
        path, size = file
        if _lies_here(storage, path, _aside(plan, path), size):
            # What lies aside is a copy, or a part of one.
            storage.delete([_aside(plan, path)])
            _move(storage, path, _aside(plan, path), size)

    for _ in map_bounded(move, found.files, threads=_MOVES):
        if moved is not None:
            moved()
    if not found.files:
        storage.delete([_list_path(plan)])
        return None, out
    return found, out


def _lies_here(storage: Storage, path: str, aside: str, size: int) -> bool:
    """Whether a file that was to move has not moved yet, be it that it was copied already.

    A file that has come since, under the name of one that has moved, does not count.
    """
    there, copied = storage.stat(path), storage.stat(aside)
    if there is None:
        return False
    return copied is None or copied.size != size or _same(storage, path, aside, size)


def lying_aside(storage: Storage, plan: str) -> frozenset[str]:
    """Return the files of a plan that lie in quarantine, by where they were."""
    folder = _aside(plan, "")
    found = storage.list(folder.removesuffix("/"), recursive=True, stats=False)
    return frozenset(file.path.removeprefix(folder) for file in found)


def put_back(storage: Storage, plan: str, *, moved: Moved | None = None) -> Quarantined:
    """Move the files of a plan back where they were, and return them.

    ``NotFound`` where the plan has none in quarantine, ``HistoryGone`` where some were purged,
    ``Corrupt`` where one has another size than when it was put aside, ``AlreadyExists`` where
    other files have taken their places: then nothing was moved.
    """
    found = _wanted(storage, plan)
    _hold_on(storage, found)

    def check(file: tuple[str, int]) -> None:
        path, size = file
        aside, there = storage.stat(_aside(plan, path)), storage.stat(path)
        if aside is None and there is None:
            raise HistoryGone(
                f"{path} is in quarantine no more.",
                next_step="It was purged; restore it from a copy.",
                plan=plan,
                path=path,
            )
        if aside is not None and there is None and aside.size != size:
            raise Corrupt(
                f"{_aside(plan, path)} has {aside.size} bytes, and had {size} when it was put "
                "aside.",
                next_step="Nothing was moved; restore it from a copy.",
                plan=plan,
                path=path,
            )
        taken = aside is not None and there is not None
        if taken and not _same(storage, path, _aside(plan, path), size):
            raise AlreadyExists(
                f"{path} is another file now.",
                next_step="Move it away first; the old one stays in quarantine.",
                plan=plan,
                path=path,
            )

    for _ in map_bounded(check, found.files, threads=_MOVES):
        pass
    _move_all(storage, ((_aside(plan, path), path, size) for path, size in found.files), moved)
    storage.delete([_list_path(plan)])
    log.info("files back from quarantine", extra=facts(plan=plan, files=len(found.files)))
    return found


def _hold_on(storage: Storage, found: Quarantined) -> None:
    """Keep those away who purge what has lain its time, while files move back."""
    soon = datetime.fromtimestamp(later_time(storage), UTC) + _LONGEST
    if found.until < soon:
        storage.write(_list_path(found.plan), replace(found, until=soon).to_json().encode())


def purge(storage: Storage, plan: str) -> Quarantined:
    """Delete the files of a plan for good; what was not put aside yet stays where it lies."""
    found = _wanted(storage, plan)
    storage.delete([_aside(plan, path) for path, _ in found.files])
    storage.delete([_list_path(plan)])
    told = facts(plan=plan, files=len(found.files), bytes=found.bytes)
    log.info("files purged from quarantine", extra=told)
    return found


def overdue(storage: Storage, now: datetime) -> tuple[Quarantined, ...]:
    """Return what has lain in quarantine for its time."""
    listed = list_quarantined(storage)
    return tuple(one for one in listed if one.damage is None and one.until <= now)


def list_quarantined(storage: Storage) -> Iterator[Quarantined]:
    """Stream what lies in quarantine, by plan; one whose list cannot be read says why."""
    names = sorted(file.path for file in storage.list(QUARANTINE_FOLDER, stats=False))
    for path in names:
        if path.endswith(".json"):
            try:
                yield _decode(storage.read(path), path)
            except NotFound:
                continue  # purged since it was listed
            except Corrupt as error:
                plan = path.rpartition("/")[2].removesuffix(".json")
                yield Quarantined(plan, _UNKNOWN, "it is damaged", (), damage=str(error))


def held(storage: Storage, plan: str) -> Quarantined | None:
    """Return what a plan has in quarantine; None where it has nothing."""
    path = _list_path(plan)
    try:
        return _decode(storage.read(path), path)
    except NotFound:
        return None


def _wanted(storage: Storage, plan: str) -> Quarantined:
    found = held(storage, plan)
    if found is None:
        raise NotFound(
            f"the plan {plan} has no files in quarantine.",
            next_step="They are back, or were purged.",
            plan=plan,
        )
    return found


def _move_all(storage: Storage, moves: Iterable[tuple[str, str, int]], moved: Moved | None) -> None:
    def move(wanted: tuple[str, str, int]) -> None:
        source, target, size = wanted
        _move(storage, source, target, size)

    for _ in map_bounded(move, moves, threads=_MOVES):
        if moved is not None:
            moved()


def _move(storage: Storage, source: str, target: str, size: int) -> None:
    """Move a file; one that is there already, from a move that was cut off, is no error."""
    try:
        storage.move(source, target)
    except NotFound:
        if storage.stat(target) is None:
            raise
    except AlreadyExists:
        # A store that copies and deletes was cut off between the two.
        if not _same(storage, source, target, size):
            raise
        storage.delete([source])


def _same(storage: Storage, one: str, other: str, size: int) -> bool:
    """Whether two files hold the same bytes, of which there should be so many."""
    stats = storage.stat(one), storage.stat(other)
    if any(stat is None or stat.size != size for stat in stats):
        return False
    return all(
        storage.read_range(one, start, _CHUNK) == storage.read_range(other, start, _CHUNK)
        for start in range(0, size, _CHUNK)
    )


def _list_path(plan: str) -> str:
    check_plan_id(plan)
    return f"{QUARANTINE_FOLDER}/{plan}.json"


def _aside(plan: str, path: str) -> str:
    check_plan_id(plan)
    return f"{QUARANTINE_FOLDER}/{plan}/{check_path(path)}"


def _decode(data: bytes, path: str) -> Quarantined:
    return decode(data, path, _quarantined, _NEEDED)


def _quarantined(value: Json) -> Quarantined:
    check_plan_id(value["plan"])
    files = tuple((check_path(path), int(size)) for path, size in value["files"])
    return Quarantined(value["plan"], moment_of(value["until"]), str(value["why"]), files)
