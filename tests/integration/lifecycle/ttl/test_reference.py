"""Random tables, policies and clocks: what expires is what a reference of a few lines says.

The reference knows rows of values, and nothing of paths, types of texts, specs or properties.
"""

import datetime as dt
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.partition_paths import partition_path
from lakewright.lifecycle.ttl.expiry import judge
from lakewright.lifecycle.ttl.levels import Levels
from lakewright.lifecycle.ttl.policies import policy_properties, read_policies
from lakewright.model.errors import Corrupt, Invalid
from lakewright.model.instant import instant_time
from lakewright.model.schema import DATE, INT, STRING, Field, Struct
from lakewright.model.ttl import PartitionSpec, PolicyKind, SpecLevel, TtlPolicy

SCHEMA = Struct((Field("user", INT), Field("name", STRING), Field("day", DATE)))
COLUMNS = ("user", "name", "day")
DAY = dt.timedelta(days=1)
EPOCH = dt.datetime(2026, 3, 20, tzinfo=dt.UTC)
ANY: Any = object()
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Row:
    """A partition: its values, when it was changed and made, its bytes."""

    values: Values
    changed: dt.datetime
    made: dt.datetime
    bytes: int


@dataclass(frozen=True)
class Rule:
    """A policy as the reference knows it."""

    values: Values
    kind: PolicyKind
    keep: int
    zone: str = "UTC"
    ends: bool = True


# --- the reference ---------------------------------------------------------------------------


def takes(rule: Rule, values: Values) -> bool:
    return all(mine is ANY or mine == its for mine, its in zip(rule.values, values, strict=False))


def reference(rows: list[Row], rules: list[Rule], now: dt.datetime) -> set[Row]:
    gone = set()
    for rule in rules:
        taken = [row for row in rows if governing(rules, row.values) is rule]
        depth = min(len(rule.values), len(COLUMNS) - 1)
        taken.sort(key=lambda row: [(value is not None, value) for value in row.values])
        for _, family in groupby(taken, key=lambda row: row.values[:depth]):
            left = list(family)
            while left and weight(rule.kind, left) > rule.keep:
                gone.add(left.pop(0))
        gone |= {row for row in taken if since(rule, row) and now > since(rule, row)}
    return gone


def governing(rules: list[Rule], values: Values) -> Rule | None:
    found = [rule for rule in rules if takes(rule, values)]
    return max(
        found, key=lambda r: (sum(v is not ANY for v in r.values), len(r.values)), default=None
    )


def weight(kind: PolicyKind, rows: list[Row]) -> int:
    weights = {"KEEP_BY_COUNT": len(rows), "KEEP_BY_SIZE": sum(row.bytes for row in rows)}
    return weights.get(kind, 0)


def since(rule: Rule, row: Row) -> Any:
    day = row.values[-1]
    if rule.kind == "KEEP_BY_EVENT_TIME" and day is not None:
        midnight = dt.datetime.combine(day + (rule.keep + rule.ends) * DAY, dt.time())
        return midnight.replace(tzinfo=ZoneInfo(rule.zone))
    start = {"KEEP_BY_TIME": row.changed, "KEEP_BY_CREATION_TIME": row.made}.get(rule.kind)
    return start and start + rule.keep * DAY


# --- tables, policies, clocks ----------------------------------------------------------------

USERS = st.integers(-2, 11) | st.none()
NAMES = st.sampled_from(["a", "a,b", "a=b", "50%", "x/y", "*", "ü😀", "\\*", "Z", "10", "9", None])
DAYS = st.dates(dt.date(2026, 3, 22), dt.date(2026, 4, 2)) | st.none()
DOMAIN = (USERS, NAMES, DAYS)
MOMENTS = st.integers(0, 20 * 86_400_000).map(lambda n: EPOCH + dt.timedelta(milliseconds=n))
# Whole days are likely, so that boundaries are met.
CLOCKS = MOMENTS | st.integers(0, 40).map(lambda n: EPOCH + n * DAY)


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    values = draw(st.lists(st.tuples(*DOMAIN), unique=True, max_size=25))
    return [Row(one, draw(CLOCKS), draw(CLOCKS), draw(st.integers(0, 9))) for one in values]


@st.composite
def rules(draw: st.DrawFn) -> list[Rule]:
    found: dict[tuple[int, str], Rule] = {}
    for _ in range(draw(st.integers(0, 5))):
        depth = draw(st.integers(0, 3))
        values = tuple(draw(st.just(ANY) | DOMAIN[level]) for level in range(depth))
        kind = draw(st.sampled_from(PolicyKind))
        if kind.ranks and depth == len(COLUMNS):
            values = (*values[:-1], ANY)
        most = 40 if kind is PolicyKind.KEEP_BY_SIZE else 12
        zone = draw(st.sampled_from(["UTC", "Europe/Berlin", "Asia/Tokyo"]))
        rule = Rule(values, kind, draw(st.integers(1, most)), zone, draw(st.booleans()))
        found[depth, repr([None if v is ANY else (v,) for v in values])] = rule
    return list(found.values())


def path_of(values: Values, config: TableConfig) -> str:
    return partition_path(dict(zip(COLUMNS, values, strict=True)), config, SCHEMA)


def policy_of(rule: Rule, config: TableConfig, levels: Levels) -> TtlPolicy:
    known = [None if value is ANY else value for value in rule.values]
    whole = [*known, *[None] * (len(COLUMNS) - len(known))]
    spec = levels.spec_of(path_of(tuple(whole), config))
    assert spec is not None
    texts = [
        SpecLevel(level.column, None if value is ANY else level.text)
        for level, value in zip(spec.levels, rule.values, strict=False)
    ]
    settings = {}
    if rule.kind is PolicyKind.KEEP_BY_EVENT_TIME:
        reference = "end" if rule.ends else "start"
        settings = {"zone": rule.zone, "reference": reference, "segment": "2"}
    return TtlPolicy(str(PartitionSpec(tuple(texts))), rule.kind, rule.keep, settings)


def config_of(hive: bool) -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.table.partition.fields": ",".join(COLUMNS),
            "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.table.timeline.timezone": "UTC",
        }
    )


@dataclass(frozen=True)
class Stat:
    path: str
    last_modified: str
    bytes: int


def clear(found: list[Rule]) -> bool:
    """Whether in each cell of the values one rule is within all others, by brute force."""
    seen = [
        {rule.values[i] for rule in found if i < len(rule.values)} | {ANY, "other"}
        for i in range(len(COLUMNS))
    ]
    cells = list(product(*seen))
    covered = [{cell for cell in cells if takes(rule, cell)} for rule in found]
    return all(
        any(one <= other for one in here for other in [set.intersection(*here)])
        for cell in cells
        if (here := [cover for cover in covered if cell in cover])
    )


@settings(max_examples=400, deadline=None)
@given(rows=tables(), found=rules(), now=CLOCKS, hive=st.booleans())
@example(
    rows=[Row((1, "a", dt.date(2026, 3, 28)), EPOCH, EPOCH, 1)],
    found=[Rule((), PolicyKind.KEEP_BY_TIME, 3)],
    now=EPOCH + 3 * DAY,
    hive=True,
)
def test_what_expires_is_what_the_reference_says(
    rows: list[Row], found: list[Rule], now: dt.datetime, hive: bool
) -> None:
    config = config_of(hive)
    levels = Levels.of(config, SCHEMA)
    by_path = {path_of(row.values, config): row for row in rows}
    assert len(by_path) == len(rows)
    policies = [policy_of(rule, config, levels) for rule in found]
    assume(clear(found))
    stored = {k: v for k, v in policy_properties(policies, levels).items() if v is not None}
    policies = list(read_policies(stored, levels))
    stats = [Stat(path, instant_time(row.changed), row.bytes) for path, row in by_path.items()]
    verdicts = judge(stats, policies, levels, now, lambda path: instant_time(by_path[path].made))
    gone = {by_path[verdict.partition] for verdict in verdicts if verdict.expired}
    assert gone == reference(rows, found, now)
    assert [verdict.partition for verdict in verdicts] == list(by_path)
    event(f"expired: {min(len(gone), 3)}")
    for verdict in verdicts:
        if verdict.expires_at is not None:
            assert verdict.expired == (now > verdict.expires_at)


@settings(max_examples=400, deadline=None)
@given(found=rules())
def test_policies_are_ambiguous_where_no_one_is_within_all_others(found: list[Rule]) -> None:
    config = config_of(hive=True)
    levels = Levels.of(config, SCHEMA)
    policies = [policy_of(rule, config, levels) for rule in found]
    try:
        judge([], policies, levels, EPOCH)
        accepted = True
    except Invalid:
        accepted = False
    assert accepted == clear(found)
    stored = {k: v for k, v in policy_properties(policies, levels).items() if v is not None}
    try:
        assert sorted(one.spec for one in read_policies(stored, levels)) == sorted(
            one.spec for one in policies
        )
    except Corrupt:
        assert not accepted
