"""A look at all partitions of a table by its policies: who stays, who goes, why and when."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from operator import attrgetter

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.drops.restored import restored_partitions
from lakewright.lifecycle.plans.options import UNDO_WINDOW, check_wishes
from lakewright.lifecycle.ttl.bound import Governance, bind
from lakewright.lifecycle.ttl.creation import creation_times
from lakewright.lifecycle.ttl.expiry import Created, Effect, Restored, Verdict, effect, judge
from lakewright.lifecycle.ttl.levels import Levels
from lakewright.lifecycle.ttl.options import DAYS, check_used, requested_policies
from lakewright.lifecycle.ttl.partition_stat import PartitionStats
from lakewright.lifecycle.ttl.policies import levels_of, table_policies
from lakewright.lifecycle.ttl.statistics import gather
from lakewright.lifecycle.ttl.uncollected import uncollected
from lakewright.model.errors import Invalid, NotFound
from lakewright.model.ttl import PolicyKind, TtlPolicy
from lakewright.table.state import TableState


@dataclass(frozen=True, slots=True)
class Governing:
    """The policies of a run; ``stored`` says that they are the table's own."""

    policies: tuple[TtlPolicy, ...]
    levels: Levels
    stored: bool


@dataclass(frozen=True, slots=True)
class Look:
    """Every partition with the verdict on it, as of a clock."""

    governing: Governing
    stats: PartitionStats
    verdicts: Sequence[Verdict]
    now: dt.datetime
    restored: Restored

    @property
    def expired(self) -> list[Verdict]:
        """The partitions that go: those too many by their values, then the longest overdue."""
        gone = [verdict for verdict in self.verdicts if verdict.expired]
        order = self.governing.levels.order
        ranked = [verdict for verdict in gone if verdict.expires_at is None]
        with uncollected():
            ranked.sort(key=lambda verdict: order(verdict.partition))
        timed = [verdict for verdict in gone if verdict.expires_at is not None]
        timed.sort(key=attrgetter("partition"))
        timed.sort(key=attrgetter("expires_at"))
        return ranked + timed

    def of(self, partition: str) -> Verdict:
        """Return the verdict on one partition; ``NotFound`` names such as there are."""
        path = partition.strip("/")
        for verdict in self.verdicts:
            if verdict.partition == path:
                return verdict
        near = get_close_matches(path, self.stats.partitions, n=3, cutoff=0.6)
        raise NotFound(
            f"no partition {path!r} holds rows.",
            next_step=f"Nearest: {', '.join(near)}." if near else "partitions() lists them.",
            partition=path,
        )


def parse_clock(text: str) -> dt.datetime:
    """Read a clock that a person gave; ``Invalid`` where it is none, or has no time zone."""
    try:
        clock = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        clock = None
    if clock is None or clock.tzinfo is None:
        raise Invalid(
            f"{text!r} is no time with a time zone.",
            next_step="Write 2026-11-16T07:00:00Z, or 2026-11-16T07:00:00+01:00.",
            value=text,
        )
    return clock


def governing_policies(work: Servicing) -> Governing:
    """Return the policies of a run: what a call asks for by Hudi's options, else the table's.

    Days to retain that stand among the table's properties count where it has no policies.
    ``InvalidOption`` where a call asks for something that would count for nothing.
    """
    levels = levels_of(work.state)
    own = work.state.config.properties
    asked = {key: value for key, value in work.options.items() if own.get(key) != value}
    if DAYS.given(asked):
        return Governing(requested_policies(work.options, levels), levels, stored=False)
    stored = table_policies(work.state)
    if stored or not DAYS.given(work.options):
        check_used(asked)
    if stored:
        return Governing(stored, levels, stored=True)
    return Governing(requested_policies(work.options, levels), levels, stored=False)


def look(
    work: Servicing,
    now: dt.datetime | None = None,
    *,
    governing: Governing | None = None,
    rebuild: bool = False,
) -> Look:
    """Judge every partition by the policies of a run; ``rebuild`` lists the table anew first."""
    check_wishes(work.options, work.state.config.properties)
    found = governing or governing_policies(work)
    clock = dt.datetime.now(dt.UTC) if now is None else now
    stats = gather(work.state, rebuild=rebuild, progress=work.progress)
    created = creations(work.state, stats, found.policies, found.levels)
    back = restored(work)
    verdicts = judge(stats.partitions.values(), found.policies, found.levels, clock, created, back)
    return Look(found, stats, verdicts, clock, back)


def effect_of(work: Servicing, policy: TtlPolicy, policies: Sequence[TtlPolicy]) -> Effect:
    """Say what one of the table's policies does to its partitions now."""
    levels = levels_of(work.state)
    stats = gather(work.state, progress=work.progress)
    created = creations(work.state, stats, policies, levels)
    clock = dt.datetime.now(dt.UTC)
    return effect(
        stats.partitions.values(), policies, policy, levels, clock, created, restored(work)
    )


def restored(work: Servicing) -> Restored:
    """Return what undoes brought back."""
    found = restored_partitions(work.state.storage)
    if not found:
        return Restored()
    return Restored(
        {path: back.at for path, back in found.items()},
        {path: back.times for path, back in found.items()},
        UNDO_WINDOW.read(work.options),
    )


def creations(
    state: TableState, stats: PartitionStats, policies: Sequence[TtlPolicy], levels: Levels
) -> Created | None:
    """Return what tells when partitions were made, read for those alone of which it is asked."""
    if not any(policy.kind is PolicyKind.KEEP_BY_CREATION_TIME for policy in policies):
        return None
    governance = Governance([bind(policy, levels) for policy in policies])
    wanted = []
    for path in stats.partitions:
        order = levels.order(path)
        bound = governance.of(order) if order else None
        if bound is not None and bound.policy.kind is PolicyKind.KEEP_BY_CREATION_TIME:
            wanted.append(path)
    return creation_times(state, wanted).get
