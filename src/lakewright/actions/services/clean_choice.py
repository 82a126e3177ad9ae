"""Which files of a partition a cleaning takes: a pure decision on the names of its files."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.actions.services.clean_options import CleanPolicy
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.partition_metadata import PARTITION_METADATA_NAMES
from lakewright.model.files import BaseFile, FileGroup, FileSlice, LogFile
from lakewright.table.pins import Pins
from lakewright.table.slicing import Listing, file_groups
from lakewright.table.visibility import Visibility

SAVED = "a savepoint holds them"
PINNED = "an undo may need them"
PLANNED = "an unfinished service needs them"
YOUNG = "readers may be at them (lakewright.clean.grace)"

_NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Shield:
    """Files that no cleaning takes, by partition.

    ``saved`` and ``planned`` are names of files under savepoints and in unfinished plans;
    ``merging`` are the groups of unfinished compactions with the instant of the slice from
    which on they are needed.
    """

    saved: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pins: Pins = field(default_factory=Pins)
    planned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    merging: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def names(self, partition: str) -> Mapping[str, str]:
        """Return the protected names of a partition, and why they are."""
        return {
            **dict.fromkeys(self.planned.get(partition, _NO_NAMES), PLANNED),
            **dict.fromkeys(self.pins.names(partition), PINNED),
            **dict.fromkeys(self.saved.get(partition, _NO_NAMES), SAVED),
        }


@dataclass(frozen=True, slots=True)
class Rule:
    """What is old enough to go.

    ``earliest`` bounds policies that count commits or hours: what a reading at it or later needs
    stays. ``versions`` bounds the other. ``settled`` says whether a write took effect longer ago
    than readers of what it replaced may need.
    """

    policy: CleanPolicy
    earliest: str | None
    versions: int
    settled: Callable[[str], bool]

    @property
    def by_versions(self) -> bool:
        """Whether versions count, and no commit bounds what is kept."""
        return self.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS


@dataclass(frozen=True, slots=True)
class Victim:
    """A slice that goes, because ``by`` took its place; with ``replaced`` that of its group."""

    piece: FileSlice
    by: str
    replaced: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """What goes from one partition.

    ``passed_over`` counts files that are old and stay, by the reason. ``empties`` says that
    nothing but the partition's own metadata is left. ``left`` is the first write that replaced a
    group of which files stay, though it is old and no savepoint holds them; None without one.
    """

    partition: str
    victims: Sequence[Victim]
    passed_over: Mapping[str, int]
    empties: bool
    left: str | None = None


def choose(listing: Listing, visible: Visibility, rule: Rule, shield: Shield) -> Choice:
    """Choose the slices of a partition that go.

    Most groups have one file, and nothing to give: only the others are looked at closely.
    """
    partition = listing.partition
    replaced = visible.replaced.get(partition, {})
    held = shield.names(partition)
    merging = shield.merging.get(partition, {})
    victims: list[Victim] = []
    kept: Counter[str] = Counter()
    left: str | None = None
    for group in file_groups(_suspects(listing, replaced), visible, changes=True):
        since = merging.get(group.id.file_id)
        for victim in _old(group, replaced.get(group.id.file_id), rule, since):
            why = _protected(victim, held, since, rule)
            if why is None:
                victims.append(victim)
            else:
                kept[why] += len(victim.piece.paths)
                if victim.replaced and why != SAVED:
                    left = victim.by if left is None else min(left, victim.by)
    empties = bool(victims) and _empties(listing, victims, replaced, rule)
    return Choice(partition, victims, kept, empties, left)


def _suspects(listing: Listing, replaced: Mapping[str, str]) -> Listing:
    """Leave out the files of groups that have one file alone and were not replaced."""
    ids = [name.removeprefix(".").partition("_")[0] for name in listing.names]
    files = Counter(ids)
    chosen = [n for n, file_id in enumerate(ids) if files[file_id] > 1 or file_id in replaced]
    names, sizes = listing.names, listing.sizes
    return Listing(
        listing.partition, [names[n] for n in chosen], [sizes[n] for n in chosen], listing.read_log
    )


def _old(group: FileGroup, replaced: str | None, rule: Rule, merging: str | None) -> list[Victim]:
    """Return the slices that the policy gives up."""
    if replaced is not None:
        if rule.by_versions or (rule.earliest is not None and replaced < rule.earliest):
            return [Victim(piece, replaced, True) for piece in group.slices]
        return []
    slices = group.slices
    newer = [piece.base_instant for piece in slices]
    if rule.by_versions:
        old = list(_beyond(slices, rule.versions, merging))
    else:
        old = list(_before(slices, rule.earliest))
    # Whatever the rule says: the newest base file, and all on top of it, are the group's rows.
    live = next((n for n, piece in enumerate(slices) if piece.base is not None), 0)
    return [Victim(slices[n], newer[n - 1], False) for n in old if n > live]


def _beyond(slices: Sequence[FileSlice], versions: int, merging: str | None) -> Iterator[int]:
    """Yield the places of slices beyond the newest ``versions``; those of a compaction are one."""
    left = versions - (merging is not None)
    for number, piece in enumerate(slices):
        if merging is not None and piece.base_instant >= merging:
            continue
        if left > 0:
            left -= 1
        else:
            yield number


def _before(slices: Sequence[FileSlice], earliest: str | None) -> Iterator[int]:
    """Yield the places of slices that no reading at ``earliest`` or later needs."""
    if earliest is None:
        return
    older = [n for n, piece in enumerate(slices) if piece.base_instant < earliest]
    # The newest slice before it is what a reading at it sees of the group, with those below it
    # while it has no base.
    seen = next((n for n, place in enumerate(older) if slices[place].base is not None), 0)
    yield from older[seen + 1 :]


def _protected(
    victim: Victim, held: Mapping[str, str], merging: str | None, rule: Rule
) -> str | None:
    piece = victim.piece
    if held:
        for file in _files(piece):
            if file.name in held:
                return held[file.name]
    if merging is not None and piece.base_instant >= merging:
        return PLANNED
    return None if rule.settled(victim.by) else YOUNG


def _files(piece: FileSlice) -> tuple[BaseFile | LogFile, ...]:
    return (*((piece.base,) if piece.base else ()), *piece.logs)


def _empties(
    listing: Listing, victims: Sequence[Victim], replaced: Mapping[str, str], rule: Rule
) -> bool:
    """Whether every file of the partition goes, and no reading that is kept looks for them."""
    if not listing.partition:
        return False
    gone = {file.name for victim in victims for file in _files(victim.piece)}
    left = (name for name in listing.names if name not in gone)
    if any(name not in PARTITION_METADATA_NAMES and not _is_checksum(name) for name in left):
        return False
    return rule.by_versions or all(by < (rule.earliest or "") for by in replaced.values())


def _is_checksum(name: str) -> bool:
    # Hadoop's local file system puts ".<name>.crc" beside each file.
    return name.startswith(".") and name.endswith(".crc")


def is_data_file(partition: str, name: str) -> bool:
    """Say whether a name is that of a base file, a log file or a change file."""
    return base_file(partition, name) is not None or log_file(partition, name) is not None
