"""The bucket index of a table: ``Table.buckets``."""

import hashlib
import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from lakewright.actions.buckets.advise import MOST, TARGET_BYTES, BucketAdvice, advise
from lakewright.actions.buckets.check import BucketReport, check_buckets
from lakewright.actions.buckets.looking import look_at
from lakewright.actions.buckets.repair import RepairPlan, RepairResult, plan_repair, repair
from lakewright.actions.buckets.rescale import RescaleResult, rescale
from lakewright.actions.buckets.rescale_plan import RescaleItem, RescalePlan, plan_rescale
from lakewright.actions.buckets.rescale_undo import UndoPlan, plan_undo, undo_rescale
from lakewright.actions.buckets.setting import RulesSet, set_rules
from lakewright.actions.buckets.showing import BucketsShown, show_buckets
from lakewright.api.maintaining import Options
from lakewright.api.upgrading import Upgradable
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import ConfigVersion, HashingStore
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import parse_rules
from lakewright.model.errors import Conflict, Invalid
from lakewright.model.shown import SHOWN, Shown

if TYPE_CHECKING:
    from lakewright.actions.services.servicing import Servicing

#: Rules: JSON as text or mapping, ``pattern,count;pattern,count``, or one number for all.
Rules: TypeAlias = str | int | Mapping[str, object] | BucketRules
Partitions: TypeAlias = Sequence[str]


class _Planned(Shown):
    """A plan that can be carried out: ``plan`` is its value."""

    __slots__ = ("_buckets", "_options", "plan")

    def __init__(
        self,
        buckets: "Buckets",
        plan: RescalePlan | RepairPlan | UndoPlan,
        options: Options | None,
    ) -> None:
        self.plan = plan
        self._buckets = buckets
        self._options = options

    @property
    def id(self) -> str:
        """A short text that differs where plans do."""
        return hashlib.sha256(self.plan.to_json().encode()).hexdigest()[:12]

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines; ``limit`` partitions, None for all."""
        return self.plan.lines(limit)

    def to_json(self) -> str:
        """Return the plan for programs."""
        return self.plan.to_json()

    def __repr__(self) -> str:
        return str(self.plan)

    def _repr_html_(self) -> str:
        if isinstance(self.plan, UndoPlan):
            return f"<pre>{html.escape(str(self.plan))}</pre>"
        return self.plan._repr_html_()


class RescalePlanned(_Planned):
    """A rescale that is planned: look at it, apply it, and undo it.

    ``plan`` is the plan as a value. ``apply`` refuses a plan that the table has outgrown; nothing
    is changed then. ``undo`` takes back what ``apply`` did, rows and rules together.
    """

    __slots__ = ("_result",)
    plan: RescalePlan

    def __init__(self, buckets: "Buckets", plan: RescalePlan, options: Options | None) -> None:
        super().__init__(buckets, plan, options)
        self._result: RescaleResult | None = None

    @property
    def items(self) -> Sequence[RescaleItem]:
        """The partitions that get another number of buckets."""
        return self.plan.items

    def explain(self, partition: str) -> str:
        """Say what the plan does with a partition, and why."""
        for item in self.plan.items:
            if item.partition == partition:
                return f"{partition}: {item.before} -> {item.after} buckets, {item.why}"
        number = self.plan.present.number_of(partition)
        return f"{partition}: stays at {number} buckets"

    def apply(self) -> RescaleResult:
        """Carry the plan out: rows move and rules change in one commit.

        ``Conflict`` where the table is not as planned any more.
        """
        with self._buckets._servicing(self._options) as work:
            self._result = rescale(work, self.plan)
        return self._result

    def undo(self) -> RescaleResult:
        """Take back what ``apply`` did; rows that were written since stay."""
        if self._result is None:
            raise Invalid("the plan was not applied here.", next_step="Call apply() first.")
        return self._buckets.undo(to=self.plan.version or FIRST_INSTANT, options=self._options)


class UndoPlanned(_Planned):
    """An undo that is planned: look at it, and apply it. ``plan`` is the plan as a value."""

    __slots__ = ("_version",)
    plan: UndoPlan

    def __init__(
        self, buckets: "Buckets", plan: UndoPlan, options: Options | None, version: str | None
    ) -> None:
        super().__init__(buckets, plan, options)
        self._version = version

    def apply(self) -> RescaleResult:
        """Go back, rows and rules together; ``Conflict`` where the rules changed since."""
        now = self._buckets.counts(options=self._options).version
        if now != self._version:
            raise Conflict(
                f"the rules are those of {now} now, and the undo was planned on {self._version}.",
                next_step="Nothing was changed; plan it again with buckets.plan_undo().",
                version=now,
            )
        return self._buckets.undo(to=self.plan.to, options=self._options)


class RepairPlanned(_Planned):
    """A repair that is planned: look at it, and apply it. ``plan`` is the plan as a value."""

    __slots__ = ()
    plan: RepairPlan

    def explain(self, partition: str) -> str:
        """Say what the plan does with a partition, and why."""
        for item in self.plan.items:
            if item.partition == partition:
                return f"{partition}: {item.mended} of {item.buckets} buckets anew, {item.why}"
        return f"{partition}: nothing is wrong with its buckets"

    def apply(self) -> RepairResult:
        """Mend what was found, in one commit; ``Conflict`` where the table changed since."""
        with self._buckets._servicing(self._options) as work:
            return repair(work, self.plan)


class Buckets:
    """How many buckets the partitions of a table have, and by which rules.

    Every call looks at the table anew. ``options`` are settings of one call, over the table's.
    """

    def __init__(
        self, servicing: "Callable[[Options | None], AbstractContextManager[Servicing]]"
    ) -> None:
        self._servicing = servicing

    def counts(self, *, options: Options | None = None) -> BucketCounts:
        """Return how many buckets partitions have: rules, pins, and their version.

        ``options`` say of a table of Hudi what it does not store: its index type, its number of
        buckets, its hash fields.
        """
        with self._servicing(options) as work:
            return look_at(work.name, work.state, work.options).counts

    @property
    def rules(self) -> BucketRules:
        """The rules that count; those of a table with one number have only that as default."""
        return self.counts().rules

    @property
    def version(self) -> str | None:
        """The instant of the rules that count; None in a table with one number for all."""
        return self.counts().version

    def versions(self) -> tuple[ConfigVersion, ...]:
        """Return all versions of the rules that are kept, archived ones too, newest first."""
        with self._servicing(None) as work:
            store = HashingStore(work.state.storage)
            return tuple(reversed(store.history(work.state.timeline)))

    def set(
        self, rules: Rules, *, default: int | None = None, options: Options | None = None
    ) -> RulesSet:
        """Make rules the table's; rows stay where they are.

        ``rules`` are JSON, as text or mapping, or Hudi's ``pattern,count;pattern,count`` with
        ``default`` for all other partitions, or a number for all of them. Partitions that are
        there keep their number until they are rescaled; new ones get what the rules say. Jobs
        that are under way go on with the rules they began with.
        """
        with self._servicing(options) as work:
            return set_rules(work.state, self._read(rules, default), options or {}, work.committer)

    def show(
        self, *, partitions: Partitions | None = None, options: Options | None = None
    ) -> BucketsShown:
        """Return the rules, their versions, and the number and sizes of every partition."""
        with self._servicing(options) as work:
            index = look_at(work.name, work.state, work.options)
            return show_buckets(
                work.name,
                work.state,
                index.counts,
                index.hash_fields,
                index.versions,
                partitions,
                meta=index.meta,
            )

    def plan_rescale(
        self,
        partitions: Partitions | None = None,
        *,
        rules: Rules | None = None,
        default: int | None = None,
        options: Options | None = None,
    ) -> RescalePlanned:
        """Plan to give partitions the number of buckets that the rules say.

        ``partitions`` are the only ones that move; without them, all whose number the rules
        would change. ``rules`` are new rules that are set by the same commit.
        """
        if isinstance(partitions, str):
            raise Invalid(
                f"partitions={partitions!r} is one text.", next_step=f"Give [{partitions!r}]."
            )
        wanted = None if rules is None else self._read(rules, default)
        with self._servicing(options) as work:
            plan = plan_rescale(work, partitions=partitions, rules=wanted)
        return RescalePlanned(self, plan, options)

    def plan_undo(
        self, *, steps: int = 1, to: str | None = None, options: Options | None = None
    ) -> UndoPlanned:
        """Say what ``undo`` would do; nothing is changed."""
        with self._servicing(options) as work:
            version = look_at(work.name, work.state, work.options).counts.version
            return UndoPlanned(self, plan_undo(work, steps=steps, to=to), options, version)

    def undo(
        self, *, steps: int = 1, to: str | None = None, options: Options | None = None
    ) -> RescaleResult:
        """Take back the newest rescale, or several ``steps``, or all since the rules ``to``.

        A rollback where nothing was written since; otherwise rows move back, and every later
        row stays. Rules and rows go back together.
        """
        with self._servicing(options) as work:
            return undo_rescale(work, steps=steps, to=to)

    def advise(
        self,
        *,
        partitions: Partitions | None = None,
        target_bytes: int | None = None,
        most: int | None = None,
        options: Options | None = None,
    ) -> BucketAdvice:
        """Say how many buckets partitions should have, and the rules that give them.

        ``target_bytes`` is about how large a bucket should be, ``most`` how many buckets a
        partition gets at most. Nothing is changed: hand the advice's ``rules`` to ``set``.
        """
        found = dict(options or {})
        if target_bytes is not None:
            found[TARGET_BYTES.key] = str(target_bytes)
        if most is not None:
            found[MOST.key] = str(most)
        with self._servicing(found) as work:
            index = look_at(work.name, work.state, work.options)
            return advise(work.name, work.state, index.counts, work.options, partitions)

    def check(
        self,
        *,
        partitions: Partitions | None = None,
        rows: bool = True,
        options: Options | None = None,
    ) -> BucketReport:
        """Find buckets with two file groups, rows in wrong buckets, metadata that disagrees.

        With ``rows=False`` files are judged by their names, and none is opened.
        """
        with self._servicing(options) as work:
            index = look_at(work.name, work.state, work.options)
            return check_buckets(
                work, index.counts, index.hash_fields, index.fixed, partitions, rows=rows
            )

    def repair(
        self, *, partitions: Partitions | None = None, options: Options | None = None
    ) -> RepairPlanned:
        """Check, and plan to mend what is wrong; ``apply()`` of the plan does it.

        Rows go to the buckets of their keys. Of several rows with one key the one stays that the
        table's merge mode prefers.
        """
        with self._servicing(options) as work:
            plan = plan_repair(work, partitions)
        return RepairPlanned(self, plan, options)

    @staticmethod
    def _read(rules: Rules, default: int | None) -> BucketRules:
        return rules if isinstance(rules, BucketRules) else parse_rules(rules, default)


class Bucketed(Upgradable):
    """A table with ``buckets``."""

    @property
    def buckets(self) -> Buckets:
        """The bucket index: rules, rescaling, advice, checks, repair."""
        return Buckets(self._servicing)
