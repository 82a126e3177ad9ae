"""Drafting a cleaning: which files go, worked out from one picture of the table.

Names are enough for that; sizes are asked for where a store does not tell them with the names,
and only for the files that go.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewright.actions.executor import Attempt
from lakewright.actions.services.clean_choice import Choice, Rule, Shield, Victim, choose
from lakewright.actions.services.clean_options import CleanPolicy, CleanSettings
from lakewright.actions.services.clean_scope import (
    FILTERED,
    PINS,
    PLANNED_BY,
    SAVEPOINTS,
    Scope,
    bounded,
    earliest_to_retain,
    restored_since,
    savepoints,
    scope_of,
    settling,
)
from lakewright.actions.services.clean_shield import shield_of
from lakewright.actions.services.plan import PlanItem
from lakewright.actions.threads import run_in_threads
from lakewright.actions.write.progress import Progress
from lakewright.format.hudi.metadata.clean import ActionInstant, CleanFile, CleanPlan
from lakewright.format.hudi.partition_metadata import PARTITION_METADATA_NAMES
from lakewright.model.instant import Instant
from lakewright.model.version import VERSION
from lakewright.storage.paths import split
from lakewright.storage.port import Storage
from lakewright.table.horizon import READABLE_FROM, last_cleaning, see_at
from lakewright.table.partitions import SKIPPED
from lakewright.table.slicing import Listing
from lakewright.table.state import TableState
from lakewright.timeline.view import TimelineView

#: Partitions that are listed at the same time, where single ones are looked at.
LISTERS = 16
_FILTERED = "partitions that the filter leaves out"
_UNDESCRIBED = "folders without Hudi's partition metadata"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a cleaning is going to do, and on which view of the timeline that rests."""

    body: CleanPlan
    items: Sequence[PlanItem]
    passed_over: tuple[tuple[str, int], ...]
    sizes: Mapping[str, int]
    scope: Scope
    pins: frozenset[str]


def draft_cleaning(
    state: TableState, settings: CleanSettings, progress: Progress, now: float
) -> Draft | None:
    """Return what is to be cleaned at ``now`` (seconds since the epoch); None where nothing is."""
    view = state.timeline
    settled = settling(view, settings.grace, now)
    shield = shield_of(state.storage, view, now)
    for earliest in bounded(view, settings, earliest_to_retain(view, settings, settled, now)):
        bound = None if earliest is None else earliest.requested
        rule = Rule(settings.policy, bound, settings.versions, settled)
        found = _drafted(state, settings, progress, earliest, shield, rule)
        if found is not None:
            return found
    return None


def _drafted(
    state: TableState,
    settings: CleanSettings,
    progress: Progress,
    earliest: Instant | None,
    shield: Shield,
    rule: Rule,
) -> Draft | None:
    view = state.timeline
    scope = scope_of(view, settings, earliest, shield.pins)
    if scope.partitions == ():
        return None
    collected = _Collected(state.storage)
    progress.stage("listing", None if scope.partitions is None else len(scope.partitions))
    visible = see_at(state, None)
    for listing in _listings(state, settings, scope, collected.passed_over):
        collected.add(choose(listing, visible, rule, shield))
        progress.advance()
    if not collected.files:
        return None
    if settings.filters:
        collected.leave(_left_out(state.storage, settings, visible.replaced))
    return Draft(
        body=_body(view, settings, earliest, shield, collected),
        items=sorted(collected.items, key=lambda item: (item.partition, item.group)),
        passed_over=tuple(sorted(collected.passed_over.items())),
        sizes=collected.sizes,
        scope=scope,
        pins=shield.pins.ids,
    )


class _Collected:
    """What was chosen so far."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.files: dict[str, tuple[CleanFile, ...]] = {}
        self.items: list[PlanItem] = []
        self.emptied: list[str] = []
        self.passed_over: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}
        self.newest = ""
        self.left: str | None = None

    def leave(self, replaced_by: Iterable[str]) -> None:
        """Note writes that replaced groups of which files stay."""
        known = () if self.left is None else (self.left,)
        self.left = min((*known, *replaced_by), default=None)

    def add(self, choice: Choice) -> None:
        self.passed_over.update(choice.passed_over)
        self.leave(() if choice.left is None else (choice.left,))
        if not choice.victims:
            return
        files: list[CleanFile] = []
        by_group: dict[str, list[Victim]] = {}
        for victim in choice.victims:
            by_group.setdefault(victim.piece.group.file_id, []).append(victim)
            self.newest = max(self.newest, victim.by)
        total = 0
        for file_id, victims in by_group.items():
            size = 0
            count = 0
            for victim in victims:
                for path, known in _sized(victim):
                    files.append(CleanFile(self._storage.locate(path)))
                    size += self._size(path, known)
                    count += 1
            total += size
            self.items.append(PlanItem(choice.partition, file_id, count, size, 0, _why(victims)))
        self.files[choice.partition] = tuple(files)
        self.sizes[choice.partition] = total
        # Hudi deletes such a partition with all that is below it.
        if choice.empties and not self._storage.folders(choice.partition):
            self.emptied.append(choice.partition)

    def _size(self, path: str, known: int) -> int:
        if known >= 0:
            return known
        found = self._storage.stat(path)
        return 0 if found is None else found.size


def _sized(victim: Victim) -> Iterator[tuple[str, int]]:
    base = victim.piece.base
    if base is not None:
        yield base.path, base.size
    yield from ((log.path, log.size) for log in victim.piece.logs)


def _why(victims: Sequence[Victim]) -> str:
    newest = max(victim.by for victim in victims)
    what = "the group was replaced by" if victims[0].replaced else "superseded up to"
    count = f"{len(victims)} slices" if len(victims) > 1 else "1 slice"
    return f"{count}, {what} {newest}"


def _body(
    view: TimelineView,
    settings: CleanSettings,
    earliest: Instant | None,
    shield: Shield,
    collected: _Collected,
) -> CleanPlan:
    writes = view.data()
    last = last_cleaning(view)
    if last is not None and restored_since(view, last.start):
        last = None
    extra = {
        PLANNED_BY: VERSION,
        SAVEPOINTS: ",".join(sorted(savepoints(view))),
        PINS: ",".join(sorted(shield.pins.ids)),
        FILTERED: "some" if settings.filters else "",
    }
    # What an earlier cleaning took does not come back when more is retained now.
    before = "" if last is None else max(last.earliest_to_retain, last.extra.get(READABLE_FROM, ""))
    retained = earliest
    if settings.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
        extra[READABLE_FROM] = max(before, collected.newest)
    elif earliest is not None and earliest.requested < before:
        retained = next((i for i in writes if i.requested == before), earliest)
        extra[READABLE_FROM] = before
    left = collected.left
    if left is not None and (retained is None or left < retained.requested):
        # Whoever archives, Hudi too, takes the groups that were replaced before the instant told
        # here for gone. Were their write archived, the files that stay would count as live again.
        told = "" if retained is None else retained.requested
        extra[READABLE_FROM] = max(told, extra.get(READABLE_FROM, ""))
        retained = next((i for i in writes if i.requested == left), retained)
    return CleanPlan(
        earliest_to_retain=None
        if retained is None
        else ActionInstant(retained.requested, retained.action.value, retained.state.value.upper()),
        last_completed=writes[-1].requested if writes else "",
        policy=settings.policy.value,
        files=dict(sorted(collected.files.items())),
        partitions=tuple(sorted(collected.emptied)),
        extra={key: value for key, value in extra.items() if value},
    )


# ---------------------------------------------------------------------------- listing


def _left_out(
    storage: Storage, settings: CleanSettings, replaced: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Stream the writes that replaced groups of which a filter leaves files where they are."""
    for partition, groups in replaced.items():
        if not settings.takes(partition):
            names = (split(file.path)[1] for file in storage.list(partition, stats=False))
            ids = {name.removeprefix(".").partition("_")[0] for name in names}
            yield from (by for file_id, by in groups.items() if file_id in ids)


def _listings(
    state: TableState, settings: CleanSettings, scope: Scope, passed_over: Counter[str]
) -> Iterator[Listing]:
    """Stream the files of each partition in scope, by their names."""
    storage = state.storage
    if not state.config.partition_fields:
        if settings.takes(""):
            yield _list(storage, "", Attempt())
    elif scope.partitions is not None:
        found = run_in_threads(_list, storage, scope.partitions, threads=LISTERS)
        yield from _described(found, passed_over) if settings.selected else found
    else:
        folders = storage.walk("", sizes=False, skip=SKIPPED)
        every = (Listing(folder.path, folder.names, folder.sizes) for folder in folders)
        for listing in _described(every, passed_over):
            if settings.takes(listing.partition):
                yield listing
            else:
                passed_over[_FILTERED] += 1


def _described(listings: Iterable[Listing], passed_over: Counter[str]) -> Iterator[Listing]:
    """Pass over what is no partition to Hudi, without its file: it may be anybody's."""
    for listing in listings:
        if PARTITION_METADATA_NAMES.isdisjoint(listing.names):
            passed_over[_UNDESCRIBED] += 1
        elif "/." not in f"/{listing.partition}":
            yield listing


def _list(storage: Storage, partition: str, attempt: Attempt) -> Listing:
    found = [(split(f.path)[1], f.size) for f in storage.list(partition, stats=False)]
    return Listing(partition, [name for name, _ in found], [size for _, size in found])
