"""Hudi's own options of partition TTL, read as policies of one run."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.lifecycle.ttl.expiry import judge
from lakewright.lifecycle.ttl.levels import Level, Levels
from lakewright.lifecycle.ttl.options import INLINE, MAX_DELETED, requested_policies
from lakewright.model.errors import InvalidOption
from lakewright.model.schema import STRING
from lakewright.model.ttl import TtlPolicy

HIVE = Levels((Level("region", STRING), Level("dt", STRING)))
PLAIN = Levels(HIVE.levels, hive_style=False)
PREFIX = "hoodie.partition.ttl.strategy."
TYPE = "hoodie.partition.ttl.management.strategy.type"
DAYS = f"{PREFIX}days.retain"
CLASSES = "org.apache.hudi.table.action.ttl.strategy."
NOW = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Stat:
    path: str
    last_modified: str = "20261116000000000"
    bytes: int = 0


@pytest.mark.parametrize("options", [{}, {DAYS: "-1"}, {DAYS: "0"}, {TYPE: "KEEP_BY_TIME"}])
def test_without_days_nothing_is_asked(options: dict[str, str]) -> None:
    assert requested_policies(options, HIVE) == ()


def test_defaults_are_those_of_hudi() -> None:
    assert requested_policies({DAYS: "30"}, HIVE) == (TtlPolicy.of("/", "KEEP_BY_TIME", 30),)
    assert MAX_DELETED.read({}) == 1000
    assert INLINE.read({}) is False


def test_the_type_and_the_class_choose_the_kind() -> None:
    created = {TYPE: "keep_by_creation_time", DAYS: "5"}
    assert requested_policies(created, HIVE) == (TtlPolicy.of("/", "KEEP_BY_CREATION_TIME", 5),)
    both = {**created, f"{PREFIX}class": f"{CLASSES}KeepByTimeStrategy"}
    assert requested_policies(both, HIVE) == (TtlPolicy.of("/", "KEEP_BY_TIME", 5),)
    with pytest.raises(InvalidOption, match=r"com\.example\.Mine' is not allowed.*KeepByTimeS"):
        requested_policies({**created, f"{PREFIX}class": "com.example.Mine"}, HIVE)


def test_an_event_is_read_as_hudi_reads_it() -> None:
    options = {
        TYPE: "KEEP_BY_EVENT_TIME",
        DAYS: "1",
        f"{PREFIX}event.time.format": "yyyyMMdd",
        f"{PREFIX}event.time.segment.start.index": "1",
    }
    stats = [
        Stat("eu/20261114"),
        Stat("eu/20261115"),
        Stat(f"eu/{DEFAULT_PARTITION}"),
    ]
    for switch, expected in (("false", {"eu/20261114"}), ("true", {stats[0].path, stats[2].path})):
        given = {**options, f"{PREFIX}event.time.delete.hive.default.partition": switch}
        verdicts = judge(stats, requested_policies(given, PLAIN), PLAIN, NOW)
        assert {verdict.partition for verdict in verdicts if verdict.expired} == expected


def test_selected_partitions_are_exact_paths() -> None:
    chosen = {DAYS: "1", f"{PREFIX}partition.selected": "region=eu/dt=*, region=us/dt=b/"}
    policies = requested_policies(chosen, HIVE)
    assert [policy.spec for policy in policies] == ["region=eu/dt=\\*/", "region=us/dt=b/"]
    old = "20200101000000000"
    stats = [Stat(f"region={r}/dt={d}", old) for r in ("eu", "us") for d in ("*", "a", "b")]
    verdicts = judge(stats, policies, HIVE, NOW)
    gone = [verdict.partition for verdict in verdicts if verdict.expired]
    assert gone == ["region=eu/dt=*", "region=us/dt=b"]
    bare = {DAYS: "1", f"{PREFIX}partition.selected": "eu/a"}
    assert [policy.spec for policy in requested_policies(bare, PLAIN)] == ["region=eu/dt=a/"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (TYPE, "KEEP_BY_COUNT"),
        (TYPE, "KEEP_BY_MOOD"),
        (DAYS, "many"),
        (DAYS, str(10**30)),
        (f"{PREFIX}partition.selected", "region=eu"),
        (f"{PREFIX}event.time.segment.start.index", "-1"),
    ],
)
def test_a_bad_value_is_named(key: str, value: str) -> None:
    options = {DAYS: "1", TYPE: "KEEP_BY_EVENT_TIME", key: value}
    with pytest.raises(InvalidOption, match=key.replace(".", r"\.")):
        requested_policies(options, HIVE)


def test_a_table_without_partitions_is_left_alone() -> None:
    assert requested_policies({DAYS: "1"}, Levels(())) == ()


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({f"{PREFIX}class": "com.example.Mine"}, "Allowed: KeepByTimeStrategy"),
        ({TYPE: "NOPE"}, "Allowed: KEEP_BY_TIME"),
        ({TYPE: "KEEP_BY_SIZE"}, "Allowed: KEEP_BY_TIME"),
        ({TYPE: "KEEP_BY_CREATION_TIME"}, f"Give {DAYS} too"),
        ({f"{PREFIX}class": f"{CLASSES}KeepByTimeStrategy"}, f"Give {DAYS} too"),
        ({f"{PREFIX}partition.selected": "d=a"}, f"Give {DAYS} too"),
        ({f"{PREFIX}max.delete.partitions": "0"}, "Allowed: a whole number from 1"),
    ],
)
def test_a_call_asks_for_nothing_that_counts_for_nothing(
    asked: dict[str, str], told: str, stored: bool, tmp_path: Path
) -> None:
    made = lw.create_table(tmp_path, schema="id string, d string", key="id", partition_by=["d"])
    made.upsert([{"id": "1", "d": "a"}])
    if stored:
        made.ttl.add("/", "KEEP_BY_TIME", 3)
    for verb in (
        made.ttl.expired,
        made.ttl.preview,
        made.ttl.run,
        lambda options: made.ttl.explain("d=a", options=options),
    ):
        with pytest.raises(InvalidOption, match=told):
            verb(options=asked)


def test_what_stands_with_the_table_is_not_asked_by_a_call(tmp_path: Path) -> None:
    made = lw.create_table(
        tmp_path,
        schema="id string, d string",
        key="id",
        partition_by=["d"],
        properties={TYPE: "KEEP_BY_CREATION_TIME"},
    )
    made.upsert([{"id": "1", "d": "a"}])
    assert made.ttl.expired() == []
    made.ttl.add("/", "KEEP_BY_TIME", 3)
    assert made.ttl.expired(options={TYPE: "KEEP_BY_CREATION_TIME", DAYS: "3"}) == []
    assert made.ttl.expired(options={TYPE: "KEEP_BY_CREATION_TIME"}) == []
