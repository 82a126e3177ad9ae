"""From the file names of a partition to file slices; pure, for both timeline layouts.

Layout 1 (table version 6) writes the base instant of the slice into a log's name. Layout 2
(versions 8 and 9) writes the delta commit's own time, and a log belongs to the newest base
file that had been *requested* when the log *completed*. In both, a compaction that is planned
and not finished opens a slice without a base: what is read then is the slice before it with
the logs of both.

Two attempts of one task may leave two base files of one group and instant. The one that the
commit names counts; where no metadata is at hand, the one with the greatest write token. Log
files are kept all unless the commit names some and not others: a log that was written twice
merges to the same rows.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.model.files import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile
from lakewright.table.visibility import Visibility


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one partition: names, and sizes in the same order.

    ``read_log`` reads the name of a log file; who lists a partition often gives one that remembers.
    """

    partition: str
    names: Sequence[str]
    sizes: Sequence[int]
    read_log: Callable[[str, str, int], LogFile | None] = log_file


def latest_slices(listing: Listing, visible: Visibility) -> list[FileSlice]:
    """Return the newest visible slice of every live group, by file id."""
    found, log_names = _newest_bases(listing, visible)
    logs = _logs_by_group(listing, log_names)
    if logs:
        candidates = _bases_by_group(listing, visible, logs.keys())
        compactions = visible.compactions.get(listing.partition, {})
        for file_id, group_logs in logs.items():
            group = FileGroupId(listing.partition, file_id)
            compaction = compactions.get(file_id)
            bases = candidates.get(file_id, ())
            slices = _group_slices(group, bases, group_logs, compaction, visible)
            newest = _newest(slices, compaction, visible)
            if newest is not None:
                found[file_id] = newest
    return _live(listing, found, visible)


def latest_bases(listing: Listing, visible: Visibility) -> list[FileSlice]:
    """Return the newest visible base file of every live group: what is read without logs."""
    found, _ = _newest_bases(listing, visible)
    return _live(listing, found, visible)


@dataclass(frozen=True, slots=True)
class Measure:
    """The latest slices of a partition, summed up: bytes, and the instants in their names."""

    bytes: int
    instants: frozenset[str]


def measure(listing: Listing, visible: Visibility) -> Measure | None:
    """Sum up what ``latest_slices`` would return; None where that is nothing.

    Without logs no slice is made, which is most of the work for a table of very many files.
    """
    best, logs = _best_bases(listing, visible)
    if logs:
        slices = latest_slices(listing, visible)
        times = {log.instant for piece in slices for log in piece.logs}
        times.update(piece.base_instant for piece in slices)
        return Measure(sum(s.size for s in slices), frozenset(times)) if slices else None
    gone = visible.replaced.get(listing.partition, {})
    live = (
        [held for file_id, held in best.items() if file_id not in gone] if gone else best.values()
    )
    if not live:
        return None
    return Measure(
        sum([held[2] for held in live if held[2] > 0]), frozenset([held[0] for held in live])
    )


def file_groups(listing: Listing, visible: Visibility, *, changes: bool = False) -> list[FileGroup]:
    """Return every group with its committed slices, newest first; replaced groups included.

    The slice of an unfinished compaction stands for itself here, without the one before it. With
    ``changes`` the change files lie in the slices of the writes that made them.
    """
    named = [file for file in zip(listing.names, listing.sizes, strict=True) if ".log." in file[0]]
    logs = _logs_by_group(listing, named)
    recorded = _logs_by_group(listing, named, cdc=True) if changes else {}
    bases = _bases_by_group(listing, visible, None)
    compactions = visible.compactions.get(listing.partition, {})
    groups = []
    for file_id in sorted(bases.keys() | logs.keys() | recorded.keys()):
        group = FileGroupId(listing.partition, file_id)
        slices = _group_slices(
            group, bases.get(file_id, []), logs.get(file_id, []), compactions.get(file_id), visible
        )
        if file_id in recorded:
            slices = _with_changes(group, slices, recorded[file_id], visible)
        if slices:
            groups.append(FileGroup(group, tuple(reversed(slices))))
    return groups


# ------------------------------------------------------------------------- base files


#: Of the newest base file of a group: instant, name, size and write token.
_Best = tuple[str, str, int, str]


def _newest_bases(
    listing: Listing, visible: Visibility
) -> tuple[dict[str, FileSlice], list[tuple[str, int]]]:
    """Return the slice of the newest base file of each group, and the names that may be logs."""
    best, logs = _best_bases(listing, visible)
    partition = listing.partition
    return {
        file_id: FileSlice(
            FileGroupId(partition, file_id),
            instant,
            BaseFile(partition, name, file_id, token, instant, size),
        )
        for file_id, (instant, name, size, token) in best.items()
    }, logs


def _best_bases(
    listing: Listing, visible: Visibility
) -> tuple[dict[str, _Best], list[tuple[str, int]]]:
    """Choose the newest base file of each group, and set aside the names that may be logs.

    This loop runs once for every file of a table, so it does as little as it can.
    """
    instants = visible.shown_endings
    best: dict[str, _Best] = {}
    logs: list[tuple[str, int]] = []
    for name, size in zip(listing.names, listing.sizes, strict=True):
        if name[0] == ".":
            if ".log." in name:
                logs.append((name, size))
            continue
        parts = name.split("_")
        if len(parts) != 3:
            continue
        file_id, token, ending = parts
        instant = instants[ending]
        if not instant or not file_id:
            continue
        known = best.get(file_id)
        if known is not None and (
            instant < known[0]
            or (instant == known[0] and not _beats(listing.partition, name, known[1], visible))
        ):
            continue
        best[file_id] = (instant, name, size, token)
    return best, logs


def _bases_by_group(
    listing: Listing, visible: Visibility, wanted: Iterable[str] | None
) -> dict[str, list[BaseFile]]:
    """Collect the committed base files of some groups, oldest first, one per instant.

    At the end of a window a base file that had not completed must not draw logs away from the
    one before it. In time travel it does: a log that completed after a base file was requested
    had not completed at any time before that request.
    """
    chosen = None if wanted is None else frozenset(wanted)
    counted = visible.committed if visible.upto is None else visible.shown
    found: dict[str, dict[str, BaseFile]] = {}
    for name, size in zip(listing.names, listing.sizes, strict=True):
        if name[0] == "." or (chosen is not None and name.partition("_")[0] not in chosen):
            continue
        base = base_file(listing.partition, name, size)
        if base is None or not counted[base.instant]:
            continue
        group = found.setdefault(base.file_id, {})
        known = group.get(base.instant)
        if known is None or _beats(listing.partition, name, known.name, visible):
            group[base.instant] = base
    return {
        file_id: [group[instant] for instant in sorted(group)] for file_id, group in found.items()
    }


def _beats(partition: str, name: str, other: str, visible: Visibility) -> bool:
    """Whether the first of two base files of one group and instant is the one that counts."""
    prefix = f"{partition}/" if partition else ""
    named = visible.named_by(name.split("_")[2].partition(".")[0])
    mine, theirs = prefix + name in named, prefix + other in named
    return mine if mine != theirs else _attempt(name) > _attempt(other)


def _attempt(name: str) -> tuple[tuple[int, ...], str]:
    numbers = name.split("_")[1].split("-")
    return tuple(int(n) for n in numbers if n.isdigit()), name


# ------------------------------------------------------------------------------- logs


def _logs_by_group(
    listing: Listing, names: Iterable[tuple[str, int]], *, cdc: bool = False
) -> dict[str, list[LogFile]]:
    found: dict[str, list[LogFile]] = {}
    for name, size in names:
        log = listing.read_log(listing.partition, name, size)
        # Change files repeat rows that base files and logs hold; readers of changes ask the
        # commit metadata for them.
        if log is not None and log.cdc is cdc:
            found.setdefault(log.file_id, []).append(log)
    return found


def _group_slices(
    group: FileGroupId,
    bases: Sequence[BaseFile],
    logs: Sequence[LogFile],
    compaction: str | None,
    visible: Visibility,
) -> list[FileSlice]:
    """Return the committed slices of a group, oldest first."""
    by_instant = {base.instant: base for base in bases}
    keys = sorted({*by_instant, *((compaction,) if compaction else ())})
    if visible.layout == 1:
        assigned = _by_name(logs, compaction, visible)
    else:
        assigned = _by_completion(_first_attempts(logs, visible), keys, visible)
    return [
        FileSlice(group, key, by_instant.get(key), tuple(assigned.get(key, ())))
        for key in sorted({*keys, *assigned})
    ]


def _with_changes(
    group: FileGroupId, slices: Sequence[FileSlice], logs: Sequence[LogFile], visible: Visibility
) -> list[FileSlice]:
    """Add change files to slices: to the newest that was there when their write took effect."""
    found = {piece.base_instant: piece for piece in slices}
    keys = sorted(found)
    for log in logs:
        if visible.committed[log.instant]:
            place = bisect_right(keys, visible.completions.get(log.instant, log.instant))
            # Older than every slice: its own is gone.
            key = keys[place - 1] if place else log.instant
            piece = found.get(key) or FileSlice(group, key, None)
            found[key] = replace(piece, logs=(*piece.logs, log))
    return [found[instant] for instant in sorted(found)]


def _by_name(
    logs: Sequence[LogFile], compaction: str | None, visible: Visibility
) -> Mapping[str, list[LogFile]]:
    assigned: dict[str, list[LogFile]] = {}
    for log in sorted(logs, key=log_order):
        if visible.committed[log.instant] or log.instant == compaction:
            assigned.setdefault(log.instant, []).append(log)
    return assigned


def _by_completion(
    logs: Sequence[LogFile], bases: Sequence[str], visible: Visibility
) -> Mapping[str, list[LogFile]]:
    keys = list(bases)
    assigned: dict[str, list[LogFile]] = {}
    kept = [log for log in logs if visible.committed[log.instant]]
    if keys and kept and keys[-1] <= min(log.instant for log in kept):
        # No base was requested after any log was: all lie on the newest one.
        return {keys[-1]: sorted(kept, key=log_order)}
    for log in sorted(kept, key=log_order):
        place = bisect_right(keys, log.instant)
        if place < len(keys):
            # A base was requested after the log was: only the completion time can tell.
            place = bisect_right(keys, visible.completion_of(log.instant) or log.instant)
        if place == 0:
            keys.insert(bisect_right(keys, log.instant), log.instant)
            assigned[log.instant] = [log]
        else:
            assigned.setdefault(keys[place - 1], []).append(log)
    return assigned


def log_order(log: LogFile) -> tuple[str, int, str]:
    """Return what sorts the logs of a slice as they are merged.

    In layout 2 the later *requested* write wins, whichever took effect first: Hudi 1.1 and
    1.2, their compactions too, and hudi-rs merge so. In layout 1 logs of a slice carry one
    instant, and their versions decide.
    """
    return log.instant, log.version, log.write_token


def _first_attempts(logs: Sequence[LogFile], visible: Visibility) -> Sequence[LogFile]:
    """Drop the logs of failed attempts where the commit tells which attempt counted."""
    if len({(log.instant, log.version) for log in logs}) == len(logs):
        return logs
    twins: dict[tuple[str, int], list[LogFile]] = {}
    for log in logs:
        twins.setdefault((log.instant, log.version), []).append(log)
    kept = []
    for (instant, _), group in twins.items():
        named = visible.named_by(instant) if len(group) > 1 else frozenset()
        chosen = [log for log in group if log.path in named]
        kept.extend(chosen or group)
    return kept


# --------------------------------------------------------------------------- choosing


def _newest(
    slices: Sequence[FileSlice], compaction: str | None, visible: Visibility
) -> FileSlice | None:
    shown = _shown_slices(slices, compaction, visible)
    newest = next(shown, None)
    if newest is None or newest.base is not None:
        return newest
    # Its compaction is not finished, or passed the group over that was replaced meanwhile.
    before = next(shown, None)
    if before is None:
        return newest if newest.logs else None
    return FileSlice(before.group, before.base_instant, before.base, (*before.logs, *newest.logs))


def _shown_slices(
    slices: Sequence[FileSlice], compaction: str | None, visible: Visibility
) -> Iterator[FileSlice]:
    """Yield the slices that this reading sees, newest first, each with the logs it sees."""
    for piece in reversed(slices):
        if piece.base is not None:
            if not visible.shown[piece.base_instant]:
                continue
        elif piece.base_instant == compaction and not visible.within(compaction):
            continue
        logs = piece.logs
        if visible.layout != 1:
            logs = tuple(log for log in logs if visible.shown[log.instant])
        elif piece.base is None and piece.base_instant != compaction:
            logs = logs if visible.shown[piece.base_instant] else ()
        if piece.base is not None or logs or piece.base_instant == compaction:
            yield FileSlice(piece.group, piece.base_instant, piece.base, logs)


def _live(listing: Listing, found: Mapping[str, FileSlice], visible: Visibility) -> list[FileSlice]:
    gone = visible.replaced.get(listing.partition)
    if gone:
        return [found[file_id] for file_id in sorted(found) if file_id not in gone]
    return [found[file_id] for file_id in sorted(found)]
