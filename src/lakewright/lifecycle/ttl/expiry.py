"""Which partitions have expired, by policies and a clock; nothing is read or changed here.

A partition whose age counts is kept for whole days of 24 hours (on the calendar of the policy's
zone where its path tells the time), and has expired once the clock stands *after* that moment: at
exactly N days it is kept. Of partitions that are counted or weighed below a parent, those with
smaller values go first, in the order of the columns' types; nulls are the smallest, and a text
that is no value of its column is the largest. Whatever cannot be read is kept, and says so.

What an undo brought back is kept for a whole term from then on: for the days of its policy, and for
the undo window where partitions are counted or weighed.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lakewright.lifecycle.ttl.bound import (
    BoundPolicy,
    Governance,
    bind,
    check_unambiguous,
)
from lakewright.lifecycle.ttl.event_time import EventTime, Unclear
from lakewright.lifecycle.ttl.levels import Key, Levels
from lakewright.lifecycle.ttl.uncollected import uncollected
from lakewright.model.errors import Invalid
from lakewright.model.instant import is_instant_time
from lakewright.model.ttl import PartitionSpec, PolicyKind, TtlPolicy

_STRAY = "its path does not have the levels of the table's partition columns"
_UNSURE = (
    "its path can be cut into the table's partition columns in more ways than one, since a value "
    "holds a / of its own"
)

_BACK = "brought back by an undo"

#: Gives the instant that made a partition, None where nobody knows it any more.
Created = Callable[[str], str | None]


class Stat(Protocol):
    """What is known of a partition: its path, the instant of its last change, its bytes."""

    @property
    def path(self) -> str:
        """The path below the table."""
        ...

    @property
    def last_modified(self) -> str:
        """The instant that last changed its rows."""
        ...

    @property
    def bytes(self) -> int:
        """The bytes of its latest file slices."""
        ...


class Verdict(NamedTuple):
    """Whether a partition has expired, by which policy and why.

    ``expires_at`` is the moment up to which the partition is kept where time decides; it goes
    once a clock stands after it.
    """

    partition: str
    policy: TtlPolicy | None
    expired: bool
    reason: str
    expires_at: dt.datetime | None = None

    def __str__(self) -> str:
        by = f" ({self.policy})" if self.policy is not None else ""
        return f"{self.partition}: {'expired' if self.expired else 'kept'}{by}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Effect:
    """What one policy does to a table now: how many partitions its spec matches, how many of
    them no other policy takes over, and how many of these have expired."""

    matches: int
    governs: int
    expires: int

    def __str__(self) -> str:
        text = f"matches {_counted(self.matches)}, would expire {self.expires} now"
        taken = self.matches - self.governs
        return f"{text} ({taken} have more specific policies)" if taken else text


@dataclass(frozen=True, slots=True)
class Restored:
    """What undoes brought back: partitions with moments, how often, and the undo window."""

    at: Mapping[str, dt.datetime] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    window: dt.timedelta = dt.timedelta(0)


_NOTHING = Restored()


class _Rank(NamedTuple):
    """A partition among those below its parent, with its place in the list of verdicts.

    They sort by their values, those of one value by their paths.
    """

    order: tuple[Key, ...]
    path: str
    bytes: int
    place: int


def judge(
    stats: Iterable[Stat],
    policies: Sequence[TtlPolicy],
    fields: Levels,
    now: dt.datetime,
    created: Created | None = None,
    restored: Restored = _NOTHING,
) -> list[Verdict]:
    """Return a verdict for every partition, in the order given.

    ``created`` is asked for partitions that a policy KEEP_BY_CREATION_TIME governs, and for no
    others.
    """
    return _Judge(policies, fields, _in_utc(now), created, restored).all(stats)


def effect(
    stats: Iterable[Stat],
    policies: Sequence[TtlPolicy],
    policy: TtlPolicy,
    fields: Levels,
    now: dt.datetime,
    created: Created | None = None,
    restored: Restored = _NOTHING,
) -> Effect:
    """Return what ``policy``, one of ``policies``, does to a table's partitions now."""
    judging = _Judge(policies, fields, _in_utc(now), created, restored)
    bound = bind(policy, fields)
    matches = governs = expires = 0
    for verdict in judging.all(stats):
        cut = fields.cut(verdict.partition)
        matches += cut is not None and bound.matches(fields.keys(cut, len(bound.keys)))
        if verdict.policy == bound.policy:
            governs += 1
            expires += verdict.expired
    return Effect(matches, governs, expires)


def supports(
    verdicts: Sequence[Verdict],
    chosen: Collection[str],
    policies: Sequence[TtlPolicy],
    fields: Levels,
) -> list[tuple[frozenset[str], tuple[Verdict, ...]]]:
    """Return what of other partitions makes chosen ones expire: those chosen, and the others.

    A partition that is one too many is that because of larger values below the same parent: those
    that are kept, and where bytes are weighed the largest that is not. Without them it stays.
    """
    if not any(policy.kind.ranks for policy in policies):
        return []
    if not any(v.policy and v.policy.kind.ranks and v.partition in chosen for v in verdicts):
        return []
    bounds = {bound.policy.spec: bound for bound in (bind(policy, fields) for policy in policies)}
    families: dict[tuple[str, tuple[Key, ...]], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.policy is None or not verdict.policy.kind.ranks:
            continue
        depth = bounds[verdict.policy.spec].parent
        cut = (fields.cut(verdict.partition) if depth else None) or ()
        families[verdict.policy.spec, fields.keys(cut, depth)].append(verdict)
    found = []
    for family in families.values():
        gone = frozenset(v.partition for v in family if v.partition in chosen)
        if gone:
            others = [v for v in family if not v.expired]
            if family[0].policy and family[0].policy.kind is PolicyKind.KEEP_BY_SIZE:
                expired = (v for v in family if v.expired)
                others.append(max(expired, key=lambda v: (fields.order(v.partition), v.partition)))
            found.append((gone, tuple(others)))
    return found


class _Judge:
    """One round: policies bound to the table, and what was told of instants already."""

    def __init__(
        self,
        policies: Sequence[TtlPolicy],
        levels: Levels,
        now: dt.datetime,
        created: Created | None,
        restored: Restored,
    ) -> None:
        self._levels = levels
        self._now = now
        self._created = created
        self._restored = restored
        bounds = [bind(policy, levels) for policy in policies]
        check_unambiguous(bounds)
        self._governance = Governance(bounds)
        self._moments: dict[str, dt.datetime | None] = {}
        self._since_known: dict[tuple[int, str], dict[str | None, Verdict]] = defaultdict(dict)

    @uncollected()
    def all(self, stats: Iterable[Stat]) -> list[Verdict]:
        verdicts: list[Verdict | None] = []
        families: dict[tuple[int, tuple[Key, ...]], list[_Rank]] = defaultdict(list)
        heads: dict[int, BoundPolicy] = {}
        levels, depth = self._levels, self._governance.depth
        everywhere = self._governance.of(()) if not depth else None
        for stat in stats:
            cut = levels.cut(stat.path)
            if cut is None:
                why = _UNSURE if levels.is_unsure(stat.path) else _STRAY
                verdicts.append(Verdict(stat.path, None, False, why))
                continue
            bound = self._governance.of(levels.keys(cut, depth)) if depth else everywhere
            if bound is None:
                verdicts.append(Verdict(stat.path, None, False, "no policy names it"))
            elif bound.policy.kind.ranks:
                order = levels.keys(cut, len(cut))
                heads[id(bound)] = bound
                family = families[id(bound), order[: bound.parent]]
                rank = _Rank(order[bound.parent :], stat.path, stat.bytes, len(verdicts))
                family.append(rank)
                verdicts.append(None)
            else:
                verdicts.append(self._renewed(self._aged(stat, cut, bound)))
        for (head, _), family in families.items():
            for place, verdict in self._ranked(heads[head], family):
                verdicts[place] = self._renewed(verdict)
        return [verdict for verdict in verdicts if verdict is not None]

    def _renewed(self, verdict: Verdict) -> Verdict:
        """Keep what an undo brought back for a whole term from then on."""
        at, policy = self._restored.at.get(verdict.partition), verdict.policy
        goes = verdict.expires_at
        if at is None or policy is None or (goes is None and not verdict.expired):
            return verdict
        if not policy.kind.ranks:
            later = self._term(verdict.partition, policy, _BACK, at)
            longer = goes is None or later.expires_at is None or later.expires_at > goes
            return later if longer else verdict
        until = at + self._restored.window
        if self._now > until:
            return verdict
        told = f"{_BACK} {_shown(at)}, stays until {_shown(until)}; otherwise {verdict.reason}"
        return Verdict(verdict.partition, policy, False, told, until)

    def _aged(self, stat: Stat, cut: list[str], bound: BoundPolicy) -> Verdict:
        if bound.event_time is not None:
            return self._by_event(stat.path, cut, bound.policy, bound.event_time)
        if bound.policy.kind is PolicyKind.KEEP_BY_TIME:
            return self._since(stat.path, bound.policy, "last changed", stat.last_modified)
        instant = self._created(stat.path) if self._created is not None else None
        return self._since(stat.path, bound.policy, "created", instant)

    def _since(self, path: str, policy: TtlPolicy, verb: str, instant: str | None) -> Verdict:
        """Judge by the time that passed since an instant; very many partitions share one."""
        known = self._since_known[id(policy), verb]
        same = known.get(instant)
        if same is None:
            same = known[instant] = self._judged_since(path, policy, verb, instant)
        return Verdict(path, policy, same.expired, same.reason, same.expires_at)

    def _judged_since(
        self, path: str, policy: TtlPolicy, verb: str, instant: str | None
    ) -> Verdict:
        start = None if instant is None else self._moment(instant)
        if start is None:
            what = "nobody knows when" if instant is None else f"{instant!r} is no time"
            return Verdict(path, policy, False, f"it is not known when it was {verb}: {what}")
        return self._term(path, policy, verb, start)

    def _term(self, path: str, policy: TtlPolicy, verb: str, start: dt.datetime) -> Verdict:
        try:
            goes = start + dt.timedelta(days=policy.value)
        except OverflowError:
            goes = None
        return self._timed(path, policy, f"{verb} {_shown(start)}", start, goes)

    def _by_event(self, path: str, cut: list[str], policy: TtlPolicy, event: EventTime) -> Verdict:
        try:
            text = event.text(cut)
        except Unclear as why:
            return Verdict(path, policy, False, str(why))
        if text is None:
            reason = "it stands for no time, and such partitions are "
            reason += "deleted" if event.delete_nulls else "kept"
            return Verdict(path, policy, event.delete_nulls, reason)
        period = event.period(text)
        if period is None:
            reason = f"{text!r} does not follow the format {event.pattern}"
            return Verdict(path, policy, False, reason)
        try:
            goes = event.goes(period, policy.value)
        except OverflowError:
            goes = None
        edge = period.end if event.ends else period.start
        told = f"its time {'ends' if event.ends else 'starts'} {str(edge)[:16]} {event.zone}"
        return self._timed(path, policy, told, edge, goes)

    def _timed(
        self,
        path: str,
        policy: TtlPolicy,
        told: str,
        start: dt.datetime,
        goes: dt.datetime | None,
    ) -> Verdict:
        if goes is None:
            return Verdict(path, policy, False, f"{told}; {policy.kept} later is beyond all dates")
        if self._now > goes:
            reason = f"{told}, kept for {policy.kept}, until {_shown(goes)}"
            return Verdict(path, policy, True, reason, goes)
        reason = f"{told}, kept for {policy.kept}: goes after {_shown(goes)}"
        if start > self._now:
            reason += f" (that start is in the future: the clock shows {_shown(self._now)})"
        return Verdict(path, policy, False, reason, goes)

    def _moment(self, instant: str) -> dt.datetime | None:
        """Read an instant in the table's zone; an old one of 14 digits means its last moment."""
        if instant not in self._moments:
            self._moments[instant] = _moment(instant, self._levels.zone)
        return self._moments[instant]

    def _ranked(self, bound: BoundPolicy, family: list[_Rank]) -> list[tuple[int, Verdict]]:
        """Judge the partitions below one parent: the largest are kept as far as the value goes."""
        family.sort()
        spec = self._levels.spec_of(family[0].path)
        levels = spec.levels[: bound.parent] if spec is not None else ()
        parent = f"below {PartitionSpec(levels)}" if levels else "of the table"
        policy = bound.policy
        weighs = policy.kind is PolicyKind.KEEP_BY_SIZE
        total = sum(rank.bytes for rank in family) if weighs else len(family)
        count = (
            f"the partitions {parent} hold {total} bytes"
            if weighs
            else (f"{_counted(len(family))} {parent}")
        )
        told = f"{count}, {policy.value} are kept, and smaller values go first: "
        found, held = [], 0
        for rank in reversed(family):
            held += rank.bytes if weighs else 1
            room = policy.value - held
            if room < 0:
                reason = f"{told}with this one and larger values there are {held}"
            elif weighs:
                reason = f"{told}it goes when more than {room} bytes come to it and larger values"
            else:
                more = "a larger value comes" if room == 0 else f"{room + 1} larger values come"
                reason = f"{told}it goes when {more}"
            found.append((rank.place, Verdict(rank.path, policy, room < 0, reason)))
        return found


def _moment(instant: str, zone: dt.tzinfo) -> dt.datetime | None:
    if not is_instant_time(instant):
        return None
    try:
        whole = dt.datetime.fromisoformat(f"{instant[:8]}T{instant[8:14]}")
    except ValueError:
        return None
    millis = int(instant[14:]) if len(instant) == 17 else 999
    exact = whole.replace(microsecond=millis * 1000, tzinfo=zone)
    # When clocks are put back an hour comes twice: of the two the later one counts.
    return max(exact.replace(fold=fold).astimezone(dt.UTC) for fold in (0, 1))


def _shown(moment: dt.datetime) -> str:
    return f"{str(moment)[:19]} UTC"


def _counted(number: int) -> str:
    return f"{number} partition{'' if number == 1 else 's'}"


def _in_utc(now: dt.datetime) -> dt.datetime:
    """Return a moment as one of UTC; what is none, and a clock without a zone, are refused."""
    step = "Give an aware datetime, e.g. datetime.now(timezone.utc)."
    if not isinstance(now, dt.datetime):
        raise Invalid(f"now={now!r} is no moment.", next_step=step, value=now)
    if now.tzinfo is None:
        raise Invalid(f"{now!r} has no time zone.", next_step=step, value=now)
    try:
        return now.astimezone(dt.UTC)
    except OverflowError as cause:
        raise Invalid(
            f"{now!r} lies beyond all times of UTC that can be told.", next_step=step, value=now
        ) from cause
