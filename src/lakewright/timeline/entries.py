"""From the names in a timeline folder to instants: one entry per action at its furthest state."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from lakewright.format.hudi.instant_names import parse_instant_name
from lakewright.model.instant import Action, Instant, State


@dataclass(frozen=True, slots=True)
class Entry:
    """An instant with the names of its files by state.

    ``planned`` is the action under which it was requested: ``compaction`` for the commit that
    a compaction completes as. An archived entry has no files.
    """

    instant: Instant
    planned: Action
    files: Mapping[State, str]
    archived: bool = False


def gather(
    names: Iterable[str],
    layout: int,
    zone: dt.tzinfo,
    modified: Callable[[str], float | None],
) -> tuple[Entry, ...]:
    """Fold file names into entries, sorted by requested time.

    Names that are no instants are passed over. A completed file of layout 2 without a
    completion time was left by an upgrade: the time at which it was ``modified`` counts, as in
    Hudi, and is asked for. Of two completed files for one action the earlier completion counts;
    ``fsck`` reports the pair.
    """
    together: dict[str, list[str]] = {}
    for name in names:
        requested = name.partition(".")[0].partition("_")[0]
        together.setdefault(requested, []).append(name)
    entries: list[Entry] = []
    for same in together.values():
        same.sort()
        found = _entries(tuple(same), layout)
        if any(entry.instant.is_completed and not entry.instant.completed for entry in found):
            found = _folded(same, layout, lambda i, name: _moved(i, modified(name), zone))
        entries.extend(found)
    entries.sort(key=entry_order)
    return tuple(entries)


@lru_cache(maxsize=1 << 14)
def _entries(names: tuple[str, ...], layout: int) -> tuple[Entry, ...]:
    """Return the entries of the files that share a requested time.

    Listings are taken often and differ in a few names, so that the answers are remembered.
    """
    return _folded(names, layout, lambda instant, _: instant)


def _folded(
    names: Iterable[str], layout: int, complete: Callable[[Instant, str], Instant]
) -> tuple[Entry, ...]:
    found: dict[tuple[str, Action], Entry] = {}
    for name in names:
        instant = parse_instant_name(name, layout)
        if instant is None:
            continue
        if instant.is_completed and instant.completed is None:
            instant = complete(instant, name)
        key = (instant.requested, instant.action.completes_as)
        known = found.get(key)
        found[key] = _joined(known, instant, name) if known else _first(instant, name)
    return tuple(found.values())


def entry_order(entry: Entry) -> tuple[str, str]:
    """Sort by requested time; a savepoint follows the commit whose time it shares."""
    return entry.instant.requested, entry.instant.action


def _first(instant: Instant, name: str) -> Entry:
    return Entry(instant, instant.action, {instant.state: name})


def _joined(known: Entry, instant: Instant, name: str) -> Entry:
    # A completed compaction is named a commit; only its pending files tell what was planned.
    planned = instant.action if instant.action.completes_as is not instant.action else known.planned
    twin = known.files.get(instant.state)
    furthest = max(known.instant, instant, key=_progress)
    kept = name if twin is None or furthest == instant else twin
    return Entry(furthest, planned, {**known.files, instant.state: kept})


_STEPS = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


def _progress(instant: Instant) -> tuple[int, int]:
    # Among completed twins the earlier completion is the further one.
    return _STEPS[instant.state], -int(instant.completed or 0)


def _moved(instant: Instant, modified: float | None, zone: dt.tzinfo) -> Instant:
    if modified is None:
        return replace(instant, completed=instant.requested)
    moment = dt.datetime.fromtimestamp(modified, zone)
    text = moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"
    return replace(instant, completed=max(instant.requested, text))
