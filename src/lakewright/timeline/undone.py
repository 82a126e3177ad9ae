"""Which writes were taken back, by whatever software, as far as the active timeline tells."""

import logging
from collections.abc import Iterator

from lakewright.format.hudi.hashing_config import CONFIGS_FOLDER, parse_hashing_config_name
from lakewright.format.hudi.metadata.restore import RestoreMetadata, RestorePlan
from lakewright.format.hudi.metadata.rollback import InstantInfo, RollbackMetadata, RollbackPlan
from lakewright.format.hudi.simple_hash_meta import bucket_files_of
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.storage.port import Storage
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


def taken_back(view: TimelineView) -> frozenset[str]:
    """Return the instants that completed rollbacks and restores took back, and that stayed so.

    A service whose first attempt was rolled back may be pending again, or done.
    """
    found: set[str] = set()
    for undoing in view.by_action(Action.ROLLBACK, Action.RESTORE):
        if undoing.is_completed:
            found.update(info.time for info in undone_in(view, undoing))
    if not found:
        return frozenset()
    return frozenset(found) - view.completions.keys() - {i.requested for i in view.pending()}


def undone_in(view: TimelineView, undoing: Instant) -> Iterator[InstantInfo]:
    """Stream what a rollback or a restore takes back; old records name no actions."""
    told = view.metadata(undoing) if undoing.is_completed else view.plan(undoing)
    match told:
        case RollbackMetadata():
            yield from told.instants or (InstantInfo(c, Action.DELTACOMMIT) for c in told.commits)
        case RestoreMetadata():
            yield from told.infos or (InstantInfo(c, Action.DELTACOMMIT) for c in told.instants)
        case RollbackPlan() if told.instant is not None:
            yield told.instant
        case RestorePlan():
            yield from told.instants
        case _:
            return


def drop_bucket_files(storage: Storage, view: TimelineView) -> None:
    """Delete what writes that were taken back have said of buckets.

    Hudi's rollbacks and restores leave it, and its writers believe it: they would put keys into
    other buckets than those in which they lie.
    """
    if not view.by_action(Action.ROLLBACK, Action.RESTORE):
        return
    names = (split(file.path)[1] for file in storage.list(CONFIGS_FOLDER, stats=False))
    unknown = {parse_hashing_config_name(name) for name in names} - view.completions.keys()
    for instant in sorted(taken_back(view) & unknown if unknown else ()):
        believed, *others = bucket_files_of(instant)
        storage.delete([believed])
        storage.delete(others)
        log.info("what a write that was taken back said of buckets goes", extra=facts(by=instant))
