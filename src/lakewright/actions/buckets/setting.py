"""Setting bucket rules: a new version of them, under which no row moves.

Partitions that exist keep their number: where the new rules give another, the version pins them
to the one they have. The version is a write on the timeline that brings no file. Its files are
written under the table's lock, just before it completes: whoever looks finds the old rules or the
new ones, whole, and a process that dies in between leaves a write that the next one takes back.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakewright.actions.write.admission import admit
from lakewright.actions.write.begun import abandoned_on_error, store_index
from lakewright.actions.write.result import schema_entries
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.hashing_config import FIRST_INSTANT, hashing_config_path
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.format.hudi.properties import update_properties
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import BUCKETS, IndexKind
from lakewright.model.bucket_rules.compiled import check_rules
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.errors import Conflict, Invalid, LakewrightError
from lakewright.model.instant import Action
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.storage.port import Storage
from lakewright.table.evolution import stored_schema
from lakewright.table.partitions import SKIPPED
from lakewright.table.state import TableState
from lakewright.timeline.committing import Committer, Rivals
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: In the extra metadata of a commit that set rules: how many partitions it pinned.
SET_RULES = "lakewright.buckets.set"
_OPERATION = "INSERT_OVERWRITE"


@dataclass(frozen=True, slots=True)
class RulesSet:
    """What became of rules that were set.

    ``instant`` names their version; ``changed`` is False where the table had these rules before,
    and nothing was written. ``pins`` are the partitions that keep another number than the rules
    give: those that a rescale would change.
    """

    instant: str
    rules: BucketRules
    pins: Mapping[str, int]
    warnings: tuple[str, ...] = ()
    changed: bool = True

    def __str__(self) -> str:
        text = f"bucket rules {self.instant}" + ("" if self.changed else " (as before)")
        if self.pins:
            text += (
                f": {len(self.pins)} partitions keep their number of buckets until they are "
                "rescaled"
            )
        return "\n".join([text, *(f"warning: {warning}" for warning in self.warnings)])


def set_rules(
    state: TableState,
    rules: BucketRules,
    options: Mapping[str, str],
    committer: Committer | None = None,
) -> RulesSet:
    """Make rules the table's from now on; rows stay where they are.

    Writes that are under way go on with the rules that they began with, and lose only where a
    partition that they bring has another number by then. ``Conflict`` while buckets are rescaled,
    or where others set rules at the same time.
    """
    layout = admit(state, options)
    if layout.kind is not IndexKind.BUCKET or layout.buckets is None:
        raise Invalid(
            f"the table {state.config.name} has the index {layout.kind}, and no buckets.",
            next_step="Rules are for bucket tables: create one with buckets=, and copy the rows.",
            index=str(layout.kind),
        )
    warnings = check_rules(rules)
    store = HashingStore(state.storage)
    now = store.newest(state.timeline)
    if now is not None and now.rules == rules:
        return RulesSet(now.instant, rules, now.pins, warnings, changed=False)
    values = {**state.storage.options, **state.config.properties, **options}
    if not layout.stored:
        store_index(state, layout, values)
    entries = _schema(state)
    committer = committer or StorageCommitter(state.storage, state.config, values)
    ticket = committer.begin(Action.REPLACECOMMIT, _OPERATION)
    with abandoned_on_error(committer, ticket):
        view = committer.view(ticket) or state.refresh().timeline
        # A rescale that died was taken back when this began; one that is left is under way.
        _check_free(store, view, ticket.instant)
        setting = _Setting(store, ticket.instant, rules, layout.buckets)
        setting.look(view)
        extra = {**entries, SET_RULES: ticket.instant}
        metadata = CommitMetadata(extra=extra, operation=_OPERATION)
        committer.publish(ticket, metadata, setting.write)
    log.info("bucket rules set", extra=facts(version=ticket.instant, pinned=len(setting.pins)))
    archive_versions(state)
    warnings = check_rules(rules, partitions=setting.there)
    return RulesSet(ticket.instant, rules, setting.pins, warnings)


def create_rules(storage: Storage, rules: BucketRules) -> None:
    """Write the first version of a table's rules; they count from its beginning.

    They must describe the partitions that are there: a table is being created, or had
    ``rules.default`` buckets in every partition. Where there is a first version, it stays.
    """
    if storage.stat(hashing_config_path(FIRST_INSTANT)) is None:
        HashingStore(storage).write_config(FIRST_INSTANT, rules, {})


def archive_versions(state: TableState) -> None:
    """Put aside what newer rules have overtaken: versions, and the number that properties name.

    No instant of the table needs such a version any more. A number in the properties means
    nothing beside rules, but Hudi refuses to change rules against it. What cannot be done now is
    left to the next one.
    """
    try:
        fresh = state.refresh()
        store = HashingStore(fresh.storage)
        store.archive(fresh.timeline)
        if BUCKETS.given(fresh.config.properties) and store.newest(fresh.timeline) is not None:
            options = {**fresh.storage.options, **fresh.config.properties}
            with open_lock(fresh.storage, options).acquire():
                update_properties(fresh.storage, {BUCKETS.key: None})
    except LakewrightError as error:
        log.warning("old bucket rules are not put aside yet", extra=facts(error=str(error)))


class _Setting:
    """One version of the rules on its way: the partitions that there are, then the files.

    ``plain`` are the counts of a table that had no rules yet.
    """

    def __init__(
        self, store: HashingStore, instant: str, rules: BucketRules, plain: BucketCounts
    ) -> None:
        self._store = store
        self._instant = instant
        self._rules = rules
        self._plain = plain
        self.there: set[str] = set()
        self.pins: Mapping[str, int] = {}

    def look(self, view: TimelineView) -> None:
        """Find the partitions that the table has, however many; nothing is locked meanwhile."""
        self.there.update(existing_partitions(self._store.storage, view))

    def write(self, rivals: Rivals, view: TimelineView) -> None:
        """Write the version's files, under the lock, after a last look at what changed."""
        store = self._store
        _check_free(store, view, self._instant)
        now = store.newest(view)
        if now is not None and now.instant >= self._instant:
            raise Conflict(
                f"The bucket rules were changed meanwhile, by {now.instant}.",
                next_step="Nothing took effect; look at the rules as they are now, and try again.",
                version=now.instant,
            )
        for _, body in rivals:
            self.there.update(partition for partition, stats in body.write_stats.items() if stats)
        counts = self._plain if now is None else now.counts()
        self.pins = _pins(sorted(self.there), counts, BucketCounts(self._rules))
        store.sweep(view)
        if now is None:
            # What this version is built on: taking it back must not leave an empty folder, which
            # other software takes for a table whose rules are lost.
            create_rules(store.storage, counts.rules)
        store.write_config(self._instant, self._rules, self.pins)


def existing_partitions(storage: Storage, view: TimelineView) -> Iterator[str]:
    """Stream the partitions that hold files of committed writes, replaced ones included.

    Files that a later write replaced can come back by a rollback, with the buckets they had.
    """
    if not view.config.partition_fields:
        names = (split(file.path)[1] for file in storage.list("", stats=False))
        if _is_written("", names, view):
            yield ""
        return
    for folder in storage.walk("", sizes=False, skip=SKIPPED):
        if "/." not in f"/{folder.path}" and _is_written(folder.path, folder.names, view):
            yield folder.path


def _is_written(folder: str, names: Iterable[str], view: TimelineView) -> bool:
    files = (base_file(folder, name) or log_file(folder, name) for name in names)
    return any(file is not None and view.is_committed(file.instant) for file in files)


def _pins(partitions: list[str], now: BucketCounts, then: BucketCounts) -> dict[str, int]:
    """Return the partitions whose number the new rules would change, with the one they have."""
    both = zip(partitions, now.numbers_of(partitions), then.numbers_of(partitions), strict=True)
    return {partition: has for partition, has, gets in both if has != gets}


def _check_free(store: HashingStore, view: TimelineView, own: str) -> None:
    """Refuse while somebody else rescales: the numbers on disk are about to change."""
    for instant in view.pending():
        replaces = instant.action.completes_as is Action.REPLACECOMMIT
        if not replaces or instant.requested == own:
            continue
        plan = view.plan(instant)
        moves = isinstance(plan, ReplacePlan) and plan.clustering is not None
        rescales = isinstance(plan, ReplacePlan) and moves and not plan.is_service
        if rescales or store.storage.stat(hashing_config_path(instant.requested)) is not None:
            raise Conflict(
                f"The rescale {instant.requested} has not finished.",
                next_step="Wait for it, and set the rules then.",
                instant=str(instant),
            )


def _schema(state: TableState) -> dict[str, str]:
    schema = stored_schema(state)
    if schema is None:
        raise Invalid(
            f"the table {state.config.name} has no schema yet.", next_step="Write rows first."
        )
    return schema_entries(state, schema)
