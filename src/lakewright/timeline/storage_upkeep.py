"""The upkeep port on storage: Hudi's timeline files under the table's lock."""

import logging
from collections.abc import Mapping

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.instant_names import instant_file_name
from lakewright.format.hudi.metadata.compaction import decode_compaction_plan
from lakewright.format.hudi.metadata.replace_plan import decode_replace_plan
from lakewright.model.errors import Conflict
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.timeline.access import TimelineAccess
from lakewright.timeline.clock import check_wanted, next_time
from lakewright.timeline.conflicts import Touched
from lakewright.timeline.locks.port import TableLock
from lakewright.timeline.plans import is_plan
from lakewright.timeline.publication import Patience, create_once
from lakewright.timeline.upkeep import MakePlan
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

_DECODE = {
    Action.COMPACTION: decode_compaction_plan,
    Action.LOGCOMPACTION: decode_compaction_plan,
    Action.CLUSTERING: decode_replace_plan,
    Action.REPLACECOMMIT: decode_replace_plan,
}


class StorageUpkeep:
    """Schedules and completes services of the table in ``storage``; see ``Upkeep``."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        options: Mapping[str, str],
        *,
        lock: TableLock | None = None,
    ) -> None:
        self._access = TimelineAccess(storage, config, options, lock)
        self._storage = storage
        self._config = config
        self._patience = Patience.with_store(storage)

    def schedule(
        self, action: Action, make: MakePlan, *, instant: str | None = None
    ) -> Instant | None:
        """Put a plan on the timeline: see ``Upkeep.schedule``."""
        if action is Action.CLUSTERING and self._config.layout == 1:
            action = Action.REPLACECOMMIT
        with self._access.repaired() as (view, lease):
            taken = next_time(view) if instant is None else check_wanted(instant, view)
            body = make(view, taken)
            if body is None:
                return None
            self._check_disjoint(view, action, body)
            planned = Instant(taken, action, State.REQUESTED)
            lease.secure(self._patience.request)
            self._create(planned, body)
        log.info("service planned", extra=facts(instant=taken, action=action))
        return planned

    def start(self, instant: Instant) -> None:
        """Say that the work on an instant has begun: see ``Upkeep.start``."""
        self._storage.create(self._path(instant, State.INFLIGHT), b"")

    def complete(self, instant: Instant, body: bytes) -> Instant:
        """Complete an instant that is no write: see ``Upkeep.complete``."""
        with self._access.loaded() as (view, lease):
            for found in view.by_action(instant.action):
                if found.requested == instant.requested and found.is_completed:
                    return found
            layout_2 = self._config.layout == 2
            completed = next_time(view, instant.requested) if layout_2 else instant.requested
            done = Instant(instant.requested, instant.action, State.COMPLETED, completed)
            lease.secure(self._patience.request)
            self._create(done, body)
        log.info("service completed", extra=facts(instant=str(done)))
        return done

    def _create(self, instant: Instant, body: bytes) -> None:
        path = self._path(instant, instant.state)
        if not create_once(self._storage, path, body):
            raise Conflict(
                f"{path} is there already, with another content.",
                next_step="Open the table again; use the same lock in all writers.",
                instant=str(instant),
            )

    def _path(self, instant: Instant, state: State) -> str:
        at = Instant(instant.requested, instant.action, state, instant.completed)
        return f"{self._config.timeline_folder}/{instant_file_name(at, self._config.layout)}"

    def _check_disjoint(self, view: TimelineView, action: Action, body: bytes) -> None:
        """Refuse a plan on a file group that another plan is going to rewrite."""
        decode = _DECODE.get(action)
        if decode is None:
            return
        touched = Touched(buckets=False, layout=self._config.layout)
        ours = touched.planned(decode(body, f"the plan of a {action}"))
        for entry in view.entries:
            if entry.instant.is_completed or not is_plan(view, entry):
                continue
            both = ours & touched.planned(view.plan(entry.instant))
            if both:
                partition, group = min(both)
                raise Conflict(
                    f"The {entry.planned} {entry.instant.requested} is planned for {len(both)} of "
                    f"the same file groups, the first is {group} of partition {partition!r}.",
                    next_step="Carry that plan out first, or schedule without those groups.",
                    instant=str(entry.instant),
                )
