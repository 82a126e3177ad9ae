"""Plans that drop what has expired: chosen by statistics, and read again before they are made.

Statistics alone drop nothing: each partition of a plan is listed again, and so are those others
because of which it is one too many; where these are very many, once the plan is applied. Where
files tell another story than the statistics do, these are gathered anew, and what is still in
doubt stays.
"""

import datetime as dt
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.drops.dropping import DropKind
from lakewright.lifecycle.drops.held import planned_services, slices_of
from lakewright.lifecycle.drops.planning import DUE, plan_drop
from lakewright.lifecycle.plans.options import SAVEPOINT, UNDO_WINDOW
from lakewright.lifecycle.plans.plan import Plan, PlanItem, Skipped, checksum, fact_of, lacking
from lakewright.lifecycle.ttl.expiry import Verdict, judge, supports
from lakewright.lifecycle.ttl.last_changes import last_changes
from lakewright.lifecycle.ttl.looking import Governing, Look, creations, look
from lakewright.lifecycle.ttl.options import MAX_DELETED
from lakewright.lifecycle.ttl.partition_stat import PartitionStat, PartitionStats
from lakewright.lifecycle.ttl.policies import levels_of, table_policies
from lakewright.lifecycle.ttl.statistics import bytes_of, gather
from lakewright.model.files import FileSlice
from lakewright.model.logs import facts
from lakewright.model.ttl import PolicyKind, TtlPolicy
from lakewright.table.state import TableState

log = logging.getLogger(__name__)

#: The kind of plans that drop what has expired.
TTL = "ttl"
#: Facts of an item: by which policy it goes, and when its rows changed last.
POLICY, KIND, CHANGED = "policy", "kind", "last changed"

#: Partitions that stay, and are listed for a plan all the same; more are when it is applied.
OTHERS_LISTED = 1000

_DOUBT = "its files and the statistics do not agree, though these were gathered anew"


def plan_ttl(work: Servicing, *, now: dt.datetime | None = None, by: str = "") -> Plan:
    """Plan to drop the partitions that have expired; nothing is changed, and nothing kept yet.

    At most ``hoodie.partition.ttl.strategy.max.delete.partitions`` of them: first those that are
    too many, then the longest overdue. Those on which a service is planned are left to a later run.
    """
    work = replace(work, state=work.state.refresh())
    seen = look(work, now)
    chosen = _Choice(work, seen)
    if chosen.doubtful:
        log.warning(
            "partition statistics do not agree with the files, and are gathered anew",
            extra=facts(partition=chosen.doubtful[0], partitions=len(chosen.doubtful)),
        )
        seen = look(work, seen.now, governing=seen.governing, rebuild=True)
        chosen = _Choice(work, seen)
    return chosen.plan(by)


def ttl_kind() -> DropKind:
    """Return the kind of these plans: stale where policies, or what is counted, have changed."""
    return DropKind(TTL, what_changed)


def what_changed(plan: Plan, state: TableState) -> tuple[str, ...]:
    """Say what has changed since a plan was made, so that it must be made anew.

    Beside the policies it is the other partitions below a parent: where some of them went since,
    a partition that was one too many may be none any more.
    """
    if not plan.base.checksum:
        return ()  # the policies of a run alone, which the plan has carried out to the end
    policies = table_policies(state)
    if checksum(map(str, policies)) != plan.base.checksum:
        return ("its TTL policies are others now",)
    ranked = {item.target for item in plan.items if _kind_of(plan, item).ranks}
    if not ranked:
        return ()
    levels = levels_of(state)
    # What is counted or weighed does not depend on the clock.
    clock = dt.datetime.now(dt.UTC)
    for rebuild in (False, True):
        stats = gather(state, rebuild=rebuild)
        created = creations(state, stats, policies, levels)
        verdicts = judge(stats.partitions.values(), policies, levels, clock, created)
        kept = [v for v in verdicts if v.partition in ranked and not v.expired]
        if kept:
            return tuple(f"{v.partition} is kept now: {v.reason}" for v in kept[:3])
        doubtful = _unsupported(state, stats, verdicts, ranked, Governing(policies, levels, True))
        if not doubtful:
            return ()
    return tuple(f"{path}: {_DOUBT}" for path in sorted(doubtful)[:3])


def _kind_of(plan: Plan, item: PlanItem) -> PolicyKind:
    name = fact_of(plan, item, KIND)
    try:
        return PolicyKind(name)
    except ValueError as cause:
        known = ", ".join(PolicyKind)
        raise lacking(plan, f"{name!r} is none of the policies {known}") from cause


def _unsupported(
    state: TableState,
    stats: PartitionStats,
    verdicts: Sequence[Verdict],
    chosen: Collection[str],
    governing: Governing,
    most: int | None = None,
) -> set[str]:
    """Return the chosen partitions that are one too many by statistics which files do not confirm.

    The others below their parent are listed, where one of it is going to go: they must be there,
    and hold as many bytes as the statistics say, or more. None is looked at where there are more
    of them than ``most``.
    """
    found = supports(verdicts, chosen, governing.policies, governing.levels)
    wanted = {v.partition for _, others in found for v in others}
    if most is not None and len(wanted) > most:
        return set()
    held = bytes_of(state, stats, wanted) if wanted else {}
    doubtful: set[str] = set()
    for gone, others in found:
        for verdict in others:
            known = stats.partitions[verdict.partition].bytes
            weighed = verdict.policy is not None and verdict.policy.kind is PolicyKind.KEEP_BY_SIZE
            if held.get(verdict.partition, -1) < (known if weighed else 0):
                doubtful |= gone
                break
    return doubtful


class _Choice:
    """What a run drops of all that has expired, with the files that it holds."""

    def __init__(self, work: Servicing, seen: Look) -> None:
        self._work = work
        self._seen = seen
        state = work.state
        busy = planned_services(state)
        expired = seen.expired
        self._busy = [v for v in expired if v.partition in busy]
        self._why_busy = busy
        free = [v for v in expired if v.partition not in busy]
        self._most = MAX_DELETED.read(work.options)
        self._rest = len(free) - self._most
        self._free = free[: self._most]
        self._held = slices_of(state, [v.partition for v in self._free])
        self.doubtful = tuple(self._in_doubt())

    def plan(self, by: str) -> Plan:
        """Make the plan."""
        governing = self._seen.governing
        doubtful = frozenset(self.doubtful)
        chosen = [v for v in self._free if v.partition not in doubtful]
        left = [Skipped(v.partition, self._why_busy[v.partition]) for v in self._busy]
        left += [Skipped(partition, _DOUBT) for partition in self.doubtful]
        if self._rest > 0:
            left.append(
                Skipped(
                    "*",
                    f"{self._rest} more have expired, and a run drops {self._most} at most "
                    f"({MAX_DELETED.key}); the next run takes them",
                    rest=True,
                )
            )
        return plan_drop(
            self._work,
            {v.partition: v.reason for v in chosen},
            kind=TTL,
            by=by,
            options=_kept_options(self._work),
            looked_at=map(str, governing.policies) if governing.stored else (),
            skipped=left,
            facts={v.partition: self._facts(v) for v in chosen},
            held=self._held,
            returned=self._seen.restored.times,
        )

    def _facts(self, verdict: Verdict) -> Mapping[str, str]:
        assert verdict.policy is not None
        stat = self._seen.stats.partitions[verdict.partition]
        found = {
            POLICY: str(verdict.policy),
            KIND: str(verdict.policy.kind),
            CHANGED: stat.last_modified,
        }
        if verdict.expires_at is not None:
            found[DUE] = verdict.expires_at.isoformat()
        return found

    def _in_doubt(self) -> list[str]:
        """Return the partitions whose files tell another story than the statistics."""
        found: list[str] = []
        newer: dict[str, str] = {}
        for verdict in self._free:
            stat = self._seen.stats.partitions[verdict.partition]
            slices = self._held.get(verdict.partition, ())
            if sum(max(piece.size, 0) for piece in slices) != stat.bytes:
                found.append(stat.path)
            elif self._may_be_newer(stat, slices, verdict.policy):
                newer[stat.path] = stat.last_modified
        if newer:
            known = last_changes(self._work.state, newer).known
            found += [path for path, time in newer.items() if known[path] != time]
        seen, chosen = self._seen, frozenset(v.partition for v in self._free)
        others = _unsupported(
            self._work.state, seen.stats, seen.verdicts, chosen, seen.governing, OTHERS_LISTED
        )
        return [*found, *sorted(others.difference(found))]

    def _may_be_newer(
        self, stat: PartitionStat, slices: Sequence[FileSlice], policy: TtlPolicy | None
    ) -> bool:
        """Whether names of files leave it open that rows changed after the time that is known."""
        if policy is None or policy.kind is not PolicyKind.KEEP_BY_TIME:
            return False
        if self._work.state.config.layout == 1 and any(piece.logs for piece in slices):
            return True  # names of such logs do not tell when they were written
        return any(_newest(piece) > stat.last_modified for piece in slices)


def _newest(piece: FileSlice) -> str:
    return max((piece.base_instant, *(log.instant for log in piece.logs)))


def _kept_options(work: Servicing) -> dict[str, str]:
    """Return the options of a run that hold when its plan is applied, too."""
    own = work.state.config.properties
    keys = (UNDO_WINDOW.key, SAVEPOINT.key)
    return {
        key: work.options[key]
        for key in keys
        if key in work.options and own.get(key) != work.options[key]
    }
