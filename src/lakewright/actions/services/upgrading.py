"""Changing a table's version between 6, 8 and 9, up or down, in place.

What the new version needs is written beside what the old one has. Then the properties are
replaced in one step, which is the change, and what the old version had is removed. A change that
is cut off before that step leaves the table of the old version, after it the one of the new; run
again it goes on, or sweeps up.

Versions 8 and 9 differ in properties alone. Version 6 has another timeline, and logs with other
names: before the layout changes, all logs are compacted, as in Hudi.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakewright.actions.services.compaction import compact, schedule_compaction
from lakewright.actions.services.compaction_options import LEAST_LOG_BYTES, STRATEGY, Strategy
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.upgrade_logs import (
    RENAMED_PATH,
    copy_logs,
    drop_copied,
    plan_renames,
    take_back,
)
from lakewright.actions.services.upgrade_plan import UpgradePlan, UpgradeResult
from lakewright.actions.services.upgrade_survey import (
    check_version,
    index_definitions,
    needs_compaction,
    obstacles,
    plan_upgrade,
)
from lakewright.format.hudi.config import LAYOUTS, TableConfig
from lakewright.format.hudi.history import check_history_options, read_history
from lakewright.format.hudi.index_defs import INDEX_DEFS_PATH, encode_index_defs
from lakewright.format.hudi.properties import store_properties
from lakewright.format.hudi.version_properties import VersionedProperties, at_version
from lakewright.model.errors import Conflict, Corrupt, Unsupported
from lakewright.model.logs import facts
from lakewright.model.table import TableType
from lakewright.storage.port import Storage
from lakewright.table.state import TableState, open_state
from lakewright.timeline.access import TimelineAccess
from lakewright.timeline.locks.port import Lease
from lakewright.timeline.publication import Patience
from lakewright.timeline.relayout import Relayout, RenamedLog, instants_in, remove_layout
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.storage_upkeep import StorageUpkeep
from lakewright.timeline.view import TimelineView

__all__ = ["UpgradePlan", "UpgradeResult", "plan_upgrade", "upgrade"]

log = logging.getLogger(__name__)

#: Says that a change of version is under way, so that what lies beside the timeline is its own.
MARKER_PATH = ".hoodie/.lakewright/upgrade.json"
#: How often logs are compacted anew because writes came in meanwhile.
_ATTEMPTS = 5


def upgrade(work: Servicing, version: int) -> UpgradeResult:
    """Give the table another version, newer or older, and return what was done.

    ``Unsupported`` names everything that stands in the way. Writers that opened the table before
    meet a ``Conflict``. A table that has the version already is swept of what a change that was
    cut off left behind.
    """
    check_version(version)
    work = _fresh(work)
    before = work.state.config.version
    if before == version:
        return UpgradeResult(work.name, version, version, files_removed=_sweep(work))
    check_history_options(work.options)
    relaid = LAYOUTS[version] != work.state.config.layout
    compactions: tuple[str, ...] = ()
    logged = needs_compaction(work.state, relaid)
    _check(work, work.state, at_version(work.state.config, version), logged=logged)
    if before == 8 and logged:
        _Change(work, 9, {}).run()
        work = _fresh(work)
    merge_on_read = work.state.config.table_type is TableType.MERGE_ON_READ
    for _ in range(_ATTEMPTS):
        renamed: Mapping[str, RenamedLog] = {}
        if relaid and merge_on_read:
            if needs_compaction(work.state, relaid):
                compactions += _compact_all(work)
                work = _fresh(work)
            if needs_compaction(work.state, relaid):
                continue
            if version == 6 and work.state.timeline.instants:
                work.progress.stage("copying logs")
                renamed = plan_renames(work.state)
                copy_logs(work.state.storage, renamed)
        change = _Change(work, version, renamed, still=relaid and merge_on_read)
        done = change.run()
        if done is not None:
            return replace(done, from_version=before, compactions=compactions)
        work = _fresh(work)
    raise Conflict(
        f"{work.name} still has logs after {_ATTEMPTS} compactions: writes kept coming, or some "
        "logs cannot be merged, which the log tells.",
        next_step="Stop its writers, and run the same again.",
        table=work.name,
    )


@dataclass(slots=True)
class _Change:
    """The change itself, under the table's lock.

    With ``still`` nothing may have been written since the state was taken.
    """

    work: Servicing
    version: int
    renamed: Mapping[str, RenamedLog]
    still: bool = False

    def run(self) -> UpgradeResult | None:
        """Make the change; None where writes came in since the logs were compacted."""
        state = self.work.state
        storage, old = state.storage, state.config
        self.work.progress.stage("changing the version")
        access = TimelineAccess(storage, old, self.work.options)
        with access.repaired() as (view, lease):
            if self.still and _written(view) != _written(state.timeline):
                return None
            found = at_version(old, self.version)
            now = TableState(storage, old, view)
            new = TableConfig.of(found.values)
            _check(self.work, now, found, logged=False)
            relayout = Relayout(storage, old, new, self.renamed)
            if new.layout != old.layout:
                self._beside(relayout, view)
            self._switch(found, lease)
            removed = 0
            if new.layout != old.layout:
                removed = _remove_old(storage, relayout)
        told = facts(table=storage.uri, before=old.version, now=self.version)
        log.info("table version changed", extra=told)
        name, count = self.work.name, len(view.entries)
        return UpgradeResult(name, old.version, self.version, (), count, len(self.renamed), removed)

    def _beside(self, relayout: Relayout, view: TimelineView) -> None:
        """Write the timeline of the new layout beside the one that counts."""
        storage = relayout.storage
        if storage.stat(MARKER_PATH) is None:
            _check_place(relayout, view)
        body = {"from": relayout.old.version, "to": self.version}
        storage.write(MARKER_PATH, json.dumps(body).encode())
        storage.delete(relayout.leftovers())
        relayout.prepare(view)

    def _switch(self, found: VersionedProperties, lease: Lease) -> None:
        storage = self.work.state.storage
        known, wanted = index_definitions(storage, self.version)
        if wanted is not None and wanted != known:
            storage.write(INDEX_DEFS_PATH, encode_index_defs(wanted))
        # From here on the old names are gone; readers find the same blocks under the new ones.
        drop_copied(storage, self.renamed)
        lease.secure(3 * Patience.with_store(storage).call)
        store_properties(storage, found.values)


def _check(work: Servicing, state: TableState, found: VersionedProperties, *, logged: bool) -> None:
    in_the_way = list(obstacles(state, found, work.options, logged=logged))
    if in_the_way:
        first = in_the_way[0]
        more = "".join(f" Also: {one.what} {one.next_step}" for one in in_the_way[1:])
        raise Unsupported(
            f"The version of {state.config.name} cannot be changed: {first.what}",
            next_step=f"{first.next_step}{more}",
            obstacles=[one.what for one in in_the_way],
        )


def _check_place(relayout: Relayout, view: TimelineView) -> None:
    """Refuse to overwrite a timeline that holds what the table's own does not.

    Hudi moves instants one by one when it upgrades: where that was cut off, they lie here.
    """
    there = instants_in(relayout.storage, relayout.new)
    ours = {(i.requested, i.action.completes_as) for i in view.instants}
    unknown = there - ours
    if unknown:
        past = read_history(relayout.storage, relayout.old)
        unknown -= {(p.instant.requested, p.instant.action.completes_as) for p in past}
    if unknown:
        raise Corrupt(
            f"{relayout.new.timeline_folder} holds {len(unknown)} instants that the timeline of "
            f"the table does not have, the first is {min(unknown)[0]}.",
            next_step="A change of version by other software was cut off; finish it there.",
            path=relayout.new.timeline_folder,
        )


def _written(view: TimelineView) -> frozenset[tuple[str, bool]]:
    writes = (i for i in view.instants if i.action.completes_as.writes_data)
    return frozenset((i.requested, i.is_completed) for i in writes)


def _compact_all(work: Servicing) -> tuple[str, ...]:
    """Carry out the compactions that wait, then one of all slices that have logs."""
    everything = {STRATEGY.key: Strategy.UNBOUNDED.value, LEAST_LOG_BYTES.key: "0"}
    work = replace(work, options={**work.options, **everything})
    done = []
    for waiting in work.state.timeline.pending_compactions():
        result = compact(work, waiting)
        done += [result.instant.requested] if result.instant else []
    work = _fresh(work)
    made = schedule_compaction(work)
    if made is not None and made.instant is not None:
        result = compact(work, made.instant)
        done += [result.instant.requested] if result.instant else []
    return tuple(done)


def _fresh(work: Servicing) -> Servicing:
    """Return the same with the table as it stands now, and its properties of now."""
    old = work.state.config.properties
    state = open_state(work.state.storage)
    given = {key: value for key, value in work.options.items() if old.get(key) != value}
    options = {**state.config.properties, **given}
    return replace(
        work,
        state=state,
        options=options,
        committer=StorageCommitter(state.storage, state.config, options),
        upkeep=StorageUpkeep(state.storage, state.config, options),
    )


def _remove_old(storage: Storage, relayout: Relayout) -> int:
    removed = relayout.remove_old()
    storage.delete([MARKER_PATH, RENAMED_PATH])
    return removed


def _sweep(work: Servicing) -> int:
    """Remove what a change of version that was cut off after its step left behind."""
    storage, config = work.state.storage, work.state.config
    if storage.stat(MARKER_PATH) is None:
        return 0
    other = at_version(config, 9 if config.layout == 1 else 6)
    with TimelineAccess(storage, config, work.options).repaired():
        removed = remove_layout(storage, TableConfig.of(other.values))
        if config.layout == 2:
            removed += take_back(storage)
        storage.delete([MARKER_PATH, RENAMED_PATH])
    return removed
