"""Removing the files of a plan: into quarantine, out of it again, or for good.

Each file is looked at again before it goes: it must be the file that was planned, and still claimed
by nobody. An attempt that was cut off is finished from the list of what it was about to move, and
what it had not moved yet is looked at once more, because that may be days later.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.orphans.claims import GONE, Claims
from lakewright.lifecycle.orphans.options import OLDER_THAN
from lakewright.lifecycle.orphans.planning import INSTANT, ORPHANS, facts_of
from lakewright.lifecycle.plans.apply import PURGES
from lakewright.lifecycle.plans.kinds import Run
from lakewright.lifecycle.plans.options import QUARANTINE
from lakewright.lifecycle.plans.plan import (
    Json,
    Plan,
    PlanItem,
    Skipped,
    fact_of,
    names_of_json,
    skipped_of,
)
from lakewright.lifecycle.plans.quarantine import (
    Quarantined,
    go_on,
    held,
    lying_aside,
    put_aside,
    put_back,
)
from lakewright.lifecycle.plans.records import HOW, Applied, Undone
from lakewright.model.errors import Conflict, HistoryGone, NotFound
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.storage.streams import map_bounded
from lakewright.table.state import TableState

log = logging.getLogger(__name__)

#: Files that are looked at at the same time.
_LOOKS = 16
#: Files that are deleted between two looks at how far it came.
_BATCH = 1000
_WHY = "no instant claims them"
_ASIDE = "files lie in quarantine"
_DELETED = "files are deleted"
_CLAIMED = "the table knows its instant now"
_CHANGED = "it is another file than when the plan was made"
_CUT_OFF = "it was cut off before this file"


class OrphanKind:
    """Plans that remove orphan files."""

    name = ORPHANS

    def changed(self, plan: Plan, state: TableState) -> tuple[str, ...]:
        """Nothing makes a plan stale as a whole: each file is looked at again by itself."""
        return ()

    def left_out(self, plan: Plan) -> tuple[Skipped, ...]:
        """Return nothing: what is no orphan yet was not asked for."""
        return ()

    def apply(self, plan: Plan, run: Run) -> Applied:
        """Put the files of the plan aside that are still orphans, or delete them."""
        again = _Again(plan, run.work.state.refresh())
        run.work.progress.stage("looking at orphan files again", len(plan.items))
        chosen, skipped = [], []
        looks = map_bounded(again.why_not, (i.target for i in plan.items), threads=_LOOKS)
        for item, why in zip(plan.items, looks, strict=True):
            run.work.progress.advance()
            if why is None:
                chosen.append(item.target)
            else:
                skipped.append(Skipped(item.target, why))
        _check_strict(plan, run, skipped)
        if not chosen:
            return _applied(plan, run, done=(), skipped=skipped)
        until = _until(plan, run)
        body: dict[str, Json] = {
            "until": until.isoformat(),
            "skipped": [{"target": one.target, "reason": one.reason} for one in skipped],
            "files": chosen,
        }
        run.store.prepare(plan.id, run.attempt, body)
        if plan.purge:
            return self._purged(plan, run, chosen, skipped)
        run.work.progress.stage("putting files aside", len(chosen))
        try:
            found: Quarantined | None = put_aside(
                run.work.state.storage,
                plan.id,
                chosen,
                until=until,
                why=_WHY,
                moved=_counted(run),
            )
        except NotFound:
            # Somebody else deleted one of the files in this moment.
            storage = run.work.state.storage
            found, out = go_on(storage, plan.id, again.why_not, until=until, moved=_counted(run))
            skipped += [Skipped(path, why) for path, why in out.items()]
        return _put_aside(plan, run, found, skipped)

    def finished(self, plan: Plan, run: Run) -> Applied | None:
        """Finish an attempt that was cut off while files went; None where none had gone."""
        prepared = _last_prepared(plan, run)
        if prepared is None:
            return None
        attempt, files, left = prepared
        run = replace(run, attempt=attempt)
        skipped = list(left)
        if plan.purge:
            return self._purged_on(plan, run, files, skipped)
        storage = run.work.state.storage
        found = held(storage, plan.id)
        if found is None:
            return None
        if run.undoing:
            return self._told(plan, run, found, skipped)
        again = _Again(plan, run.work.state.refresh())
        run.work.progress.stage("putting files aside", len(found.files))
        until = _until(plan, run)
        rest, out = go_on(storage, plan.id, again.why_not, until=until, moved=_counted(run))
        skipped += [Skipped(path, why) for path, why in out.items()]
        return replace(_put_aside(plan, run, rest, skipped), resumed=True)

    def _told(
        self, plan: Plan, run: Run, found: Quarantined, skipped: Sequence[Skipped]
    ) -> Applied | None:
        """Tell how far an attempt came that is about to be undone."""
        aside = lying_aside(run.work.state.storage, plan.id)
        if not aside:
            put_back(run.work.state.storage, plan.id)  # takes the list away
            return None
        rest = [Skipped(path, _CUT_OFF) for path, _ in found.files if path not in aside]
        moved = replace(found, files=tuple(one for one in found.files if one[0] in aside))
        return replace(_put_aside(plan, run, moved, [*skipped, *rest]), resumed=True)

    def _purged(
        self, plan: Plan, run: Run, chosen: Sequence[str], skipped: Sequence[Skipped]
    ) -> Applied:
        run.work.progress.stage("deleting files", len(chosen))
        _delete(run, chosen)
        told = facts(plan=plan.id, files=len(chosen))
        log.info("orphan files deleted", extra=told)
        return _applied(plan, run, done=chosen, skipped=skipped)

    def _purged_on(
        self, plan: Plan, run: Run, chosen: Sequence[str], skipped: list[Skipped]
    ) -> Applied | None:
        storage = run.work.state.storage
        stats = zip(chosen, map_bounded(storage.stat, chosen, threads=_LOOKS), strict=True)
        left = [path for path, stat in stats if stat is not None]
        if len(left) == len(chosen):
            return None
        again = None if run.undoing else _Again(plan, run.work.state.refresh())
        stays = {path: _CUT_OFF if again is None else again.why_not(path) for path in left}
        # One that is gone in this very moment is as good as deleted.
        out = {path: why for path, why in stays.items() if why is not None and why != GONE}
        _delete(run, [path for path in left if path not in out])
        skipped = [*skipped, *(Skipped(path, why) for path, why in out.items())]
        done = [path for path in chosen if path not in out]
        return replace(_applied(plan, run, done=done, skipped=skipped), resumed=True)

    def undoable(self, plan: Plan, applied: Applied, state: TableState) -> str | None:
        """Say which files cannot come back, and why."""
        if plan.purge:
            return PURGES
        found = held(state.storage, plan.id)
        if found is None:
            until = applied.undo_until
            ended = until is not None and until <= datetime.now(UTC)
            when = f", where they lay until {_moment(until)}" if ended and until else ""
            return f"its files were purged from quarantine{when}"
        aside = lying_aside(state.storage, plan.id)
        lost = [
            path
            for path, _ in found.files
            if path not in aside and state.storage.stat(path) is None
        ]
        if lost:
            return (
                f"{len(lost)} of its {len(found.files)} files were purged, the first is {lost[0]}"
            )
        return _why_alive(plan, [path for path, _ in found.files], state)

    def undo_notes(self, plan: Plan, applied: Applied, work: Servicing) -> tuple[str, ...]:
        """Say nothing: files come back as they were."""
        return ()

    def undo(self, plan: Plan, applied: Applied, run: Run) -> Undone:
        """Put the files back where they were."""
        storage = run.work.state.storage
        found = held(storage, plan.id)
        if found is None:
            # An undo that was cut off after its last file, or a purge of all.
            stats = map_bounded(storage.stat, applied.done, threads=_LOOKS)
            if any(stat is None for stat in stats):
                raise _gone(plan, "its files were purged from quarantine")
        else:
            why = _why_alive(plan, [path for path, _ in found.files], run.work.state)
            if why is not None:
                raise _gone(plan, why)
            run.work.progress.stage("putting files back", len(found.files))
            put_back(storage, plan.id, moved=_counted(run))
        return Undone(
            plan=plan.id,
            table=plan.table,
            at=run.now,
            by=run.by,
            instant=None,
            how="out of quarantine",
            restored=applied.done,
        )


class _Again:
    """Looks at files of a plan once more, by the table as it stands."""

    def __init__(self, plan: Plan, state: TableState) -> None:
        # By the clock of the plan: whatever has stirred since is younger, and stays.
        self._claims = Claims(state, plan.created_at, OLDER_THAN.read(plan.options))
        self._items: Mapping[str, PlanItem] = {item.target: item for item in plan.items}

    def why_not(self, path: str) -> str | None:
        """Say why a file stays; None where it is the orphan that was planned."""
        file = self._claims.candidate(*split(path))
        if file is None:
            return _CLAIMED
        found = self._claims.look(file)
        if isinstance(found, str):
            return found
        item = self._items.get(path)
        same = item is not None and found.size == item.bytes and facts_of(found) == dict(item.facts)
        return None if same else _CHANGED


def _why_alive(plan: Plan, paths: Iterable[str], state: TableState) -> str | None:
    """Say why files must not come back that readers would take for the table's.

    Once the timeline begins after an instant, all its files count as committed.
    """
    instants = {item.target: fact_of(plan, item, INSTANT) for item in plan.items}
    view = state.timeline
    alive = [path for path in paths if view.is_committed(instants.get(path, ""))]
    if not alive:
        return None
    return (
        f"the timeline has moved past the instants of {len(alive)} of its files, so that readers "
        f"would take their rows for committed; the first is {alive[0]}"
    )


def _check_strict(plan: Plan, run: Run, skipped: Sequence[Skipped]) -> None:
    if run.strict and skipped:
        first = skipped[0]
        raise Conflict(
            f"{len(skipped)} of {len(plan.items)} files would be skipped, the first is "
            f"{first.target!r}: {first.reason}.",
            next_step="Nothing was changed; apply it without strict, or plan again.",
            plan=plan.id,
            path=first.target,
        )


def _until(plan: Plan, run: Run) -> datetime:
    """Return how long files stay in quarantine that are put there now."""
    return run.term(QUARANTINE.read({**run.work.options, **plan.options}))


def _last_prepared(plan: Plan, run: Run) -> tuple[int, tuple[str, ...], tuple[Skipped, ...]] | None:
    """Return what the last attempt wrote down that came so far: its number, files, and the rest."""
    for number in reversed(run.store.standing(plan.id).attempts("applying")):
        try:
            files, skipped = run.store.prepared(plan.id, number, _prepared)
            return number, files, skipped
        except NotFound:
            continue
    return None


def _prepared(value: Json) -> tuple[tuple[str, ...], tuple[Skipped, ...]]:
    return names_of_json(value["files"]), skipped_of(value["skipped"])


def _delete(run: Run, paths: Sequence[str]) -> None:
    for start in range(0, len(paths), _BATCH):
        batch = paths[start : start + _BATCH]
        run.work.state.storage.delete(batch)
        run.work.progress.advance(len(batch), files=len(batch))


def _counted(run: Run) -> Callable[[], None]:
    return lambda: run.work.progress.advance(files=1)


def _put_aside(
    plan: Plan, run: Run, found: Quarantined | None, skipped: Sequence[Skipped]
) -> Applied:
    done = () if found is None else tuple(path for path, _ in found.files)
    until = None if found is None else found.until
    return _applied(plan, run, done=done, skipped=skipped, until=until)


def _applied(
    plan: Plan,
    run: Run,
    *,
    done: Sequence[str],
    skipped: Sequence[Skipped],
    until: datetime | None = None,
) -> Applied:
    sizes = {item.target: item.bytes for item in plan.items}
    how = _DELETED if plan.purge else _ASIDE
    told = {HOW: how, "bytes": str(sum(sizes[path] for path in done))} if done else {}
    return Applied(
        plan=plan.id,
        table=plan.table,
        at=run.now,
        by=run.by,
        instant=None,
        done=tuple(done),
        skipped=tuple(skipped),
        undo_until=until,
        attempt=run.attempt,
        facts=told,
    )


def _gone(plan: Plan, why: str) -> HistoryGone:
    return HistoryGone(
        f"the plan {plan.id} cannot be undone: {why}.",
        next_step="Nothing was moved. What was purged comes back from a copy alone.",
        plan=plan.id,
    )


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
