"""Partition TTL of a table: ``Table.ttl``."""

import datetime as dt
import html
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lakewright.api.arguments import text_of
from lakewright.api.maintaining import Options
from lakewright.api.plans import Opened, Plannable, TablePlan, keep
from lakewright.api.services import user_name
from lakewright.lifecycle.letting_go import let_go
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.ttl.expiry import Effect, Verdict
from lakewright.lifecycle.ttl.looking import effect_of, look
from lakewright.lifecycle.ttl.partition_stat import PartitionStats
from lakewright.lifecycle.ttl.planning import plan_ttl
from lakewright.lifecycle.ttl.policies import (
    PolicyAdded,
    add_policy,
    drop_policy,
    levels_of,
    preview_policy,
    shown_order,
    table_policies,
)
from lakewright.lifecycle.ttl.running import TtlRun, run_ttl
from lakewright.lifecycle.ttl.statistics import gather, verify
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.model.ttl import PolicyKind, TtlPolicy


@dataclass(frozen=True, slots=True)
class PolicySet(Shown):
    """A policy that was added, what it replaced, and what it does to the table now.

    ``stored`` is false where nothing was added, and this is what would be.
    """

    added: PolicyAdded
    effect: Effect
    stored: bool = True

    @property
    def policy(self) -> TtlPolicy:
        """The policy as it is stored."""
        return self.added.policy

    @property
    def replaced(self) -> TtlPolicy | None:
        """The policy that the spec had before."""
        return self.added.replaced

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as one line."""
        yield f"{'' if self.stored else 'nothing is stored: '}{self.added}: {self.effect}"

    def to_json(self) -> str:
        """Return it for programs."""
        value = {
            "policy": self.policy.to_members(),
            "replaced": None if self.replaced is None else self.replaced.to_members(),
            "stored": self.stored,
            "matches": self.effect.matches,
            "governs": self.effect.governs,
            "expires": self.effect.expires,
        }
        return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Policies(Shown):
    """The policies of a table: those without values first, then by their values."""

    table: str
    policies: tuple[TtlPolicy, ...]

    def __iter__(self) -> Iterator[TtlPolicy]:
        return iter(self.policies)

    def __len__(self) -> int:
        return len(self.policies)

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream a line per policy: spec, policy, value, with tabs between."""
        told = (
            "\t".join((p.spec, str(p.kind), str(p.value), *(f"{k}={v}" for k, v in s)))
            for p, s in ((p, p.settings.items()) for p in self.policies)
        )
        yield from first_of(told, len(self.policies), limit)

    def to_json(self) -> str:
        """Return them for programs."""
        return json.dumps([p.to_members() for p in self.policies], ensure_ascii=False)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(p.spec)}</td><td>{p.kind}</td><td>{p.value}</td></tr>"
            for p in self.policies
        )
        head = "<tr><th>partition spec</th><th>policy</th><th>value</th></tr>"
        return f"<b>TTL policies of {html.escape(self.table)}</b><table>{head}{rows}</table>"


class Ttl:
    """How long the partitions of a table are kept.

    Every call looks at the table anew. ``options`` are settings of one call, over the table's;
    ``now`` is the clock by which partitions are judged, an aware datetime.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def add(
        self,
        spec: str,
        policy: str | PolicyKind,
        value: int | str,
        *,
        settings: Mapping[str, str] | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> PolicySet:
        """Set the policy of a partition spec, in the place of the one that it has.

        ``spec`` is ``user_id=1/``, ``user_id=*/`` for each of them, or ``/`` for the whole table;
        ``value`` counts days, partitions or bytes. ``settings`` are those of KEEP_BY_EVENT_TIME:
        format, zone, reference, segment, nulls. The answer says how many partitions the spec
        matches and how many of them would go now; it warns where it matches none. With
        ``dry_run`` it is the same answer, and nothing is stored.
        """
        wanted = TtlPolicy.of(spec, str(policy), value, settings)
        with self._opened(options) as work:
            added = (
                preview_policy(work.state, wanted)
                if dry_run
                else add_policy(work.state, wanted, options)
            )
            effect = effect_of(work, added.policy, added.policies)
        if not effect.matches:
            warnings.warn(
                f"{added.policy.spec} matches none of the partitions that there are",
                UserWarning,
                stacklevel=2,
            )
        return PolicySet(added, effect, stored=not dry_run)

    def show(self) -> Policies:
        """Return the policies, those without values first."""
        with self._opened(None) as work:
            found = shown_order(table_policies(work.state), levels_of(work.state))
            return Policies(work.name, tuple(found))

    def drop(
        self, spec: str, *, dry_run: bool = False, options: Options | None = None
    ) -> TtlPolicy:
        """Remove the policy of a spec and return it; ``NotFound`` names the specs with one."""
        with self._opened(options) as work:
            return drop_policy(work.state, text_of("spec", spec), options, dry_run=dry_run)

    def plan(self, now: dt.datetime | None = None, *, options: Options | None = None) -> TablePlan:
        """Plan to drop what has expired: look at it, ``apply()`` it, and ``undo()`` that.

        A plan with items is kept with the table, where ``Table.plans()`` lists it.
        """
        with self._opened(options) as work:
            plan = plan_ttl(work, now=now, by=user_name())
            return keep(self._opened, work, plan, options)

    def preview(self, now: dt.datetime | None = None, *, options: Options | None = None) -> Plan:
        """Return what ``plan`` would plan, as a value to look at; it is not kept."""
        with self._opened(options) as work:
            return plan_ttl(work, now=now, by=user_name())

    def run(
        self,
        now: dt.datetime | None = None,
        *,
        strict: bool = False,
        options: Options | None = None,
    ) -> TtlRun:
        """Plan, and apply the plan at once; then let go of what plans hold beyond their time.

        ``strict`` drops nothing where something would be skipped, as a partition on which a
        compaction is planned. What could not be let go of is told by ``notes``, not raised: the
        partitions are dropped by then.
        """
        with self._opened(options) as work:
            ran = run_ttl(work, now=now, by=user_name(), strict=strict)
            return replace(ran, notes=let_go(work))

    def explain(
        self, partition: str, now: dt.datetime | None = None, *, options: Options | None = None
    ) -> Verdict:
        """Say why a partition is kept or goes, by which policy, and when it will go."""
        with self._opened(options) as work:
            return look(work, now).of(text_of("partition", partition))

    def expired(
        self, now: dt.datetime | None = None, *, options: Options | None = None
    ) -> list[Verdict]:
        """Return the partitions that have expired, the longest overdue first."""
        with self._opened(options) as work:
            return look(work, now).expired

    def statistics(self, *, rebuild: bool = False) -> PartitionStats:
        """Return when each partition changed last, and its bytes.

        What is kept with the table is brought up to date; ``rebuild`` lists the table instead.
        """
        with self._opened(None) as work:
            return gather(work.state, rebuild=rebuild, progress=work.progress)

    def verify_statistics(self) -> tuple[str, ...]:
        """Compare the statistics with a listing of the table; a line for each difference."""
        with self._opened(None) as work:
            return verify(work.state)


class Retained(Plannable):
    """A table with ``ttl``."""

    @property
    def ttl(self) -> Ttl:
        """Partition TTL: policies, what has expired and why, plans, statistics."""
        return Ttl(self._servicing)
