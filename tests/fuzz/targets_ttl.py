"""Fuzz targets: TTL policies that a hand wrote, their specs, and formats of times."""

import datetime as dt
from collections.abc import Callable

from lakewright.lifecycle.ttl.expiry import judge
from lakewright.lifecycle.ttl.levels import Level, Levels
from lakewright.lifecycle.ttl.partition_stat import PartitionStat
from lakewright.lifecycle.ttl.policies import POLICIES, policy_properties, read_policies
from lakewright.model.schema import DATE, LONG, STRING
from lakewright.model.ttl import TtlPolicy

LEVELS = Levels((Level("user_id", LONG), Level("name", STRING, slashed=True), Level("dt", DATE)))
NOW = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
PATHS = ("user_id=1/name=a/dt=2026-11-01", "user_id=x/name=a/b/dt=?", "user_id=2/name=%2A/dt=0", "")
STATS = [PartitionStat(path, "20261101000000000", 7) for path in PATHS]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def ttl_policies(data: bytes) -> None:
    policies = read_policies({POLICIES: _text(data)}, LEVELS)
    stored = {k: v for k, v in policy_properties(policies, LEVELS).items() if v is not None}
    assert set(read_policies(stored, LEVELS)) == set(policies)
    assert len(judge(STATS, policies, LEVELS, NOW)) == len(STATS)


def partition_spec(data: bytes) -> None:
    spec = LEVELS.parse(_text(data))
    assert LEVELS.parse(str(spec)) == spec


def event_format(data: bytes) -> None:
    settings = {"format": _text(data), "segment": "0"}
    judge(STATS, [TtlPolicy.of("/", "KEEP_BY_EVENT_TIME", 3, settings)], LEVELS, NOW)


def partition_levels(data: bytes) -> None:
    path = _text(data)
    for hive in (True, False):
        levels = Levels(LEVELS.levels, hive_style=hive)
        spec = levels.spec_of(path)
        assert (spec is None) == (levels.texts(path) is None)
        judge([PartitionStat(path, path, 1)], [], levels, NOW)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "ttl_policies": ttl_policies,
    "partition_spec": partition_spec,
    "event_format": event_format,
    "partition_levels": partition_levels,
}

SEEDS: dict[str, list[bytes]] = {
    "ttl_policies": [
        b'[{"partitionSpec":"user_id=2/","policy":"KEEP_BY_SIZE","policyValue":107374182400},'
        b'{"partitionSpec":"user_id=1/","policy":"KEEP_BY_COUNT","policyValue":10}]',
        b'[{"partitionSpec":"/","policy":"KEEP_BY_EVENT_TIME","policyValue":7,'
        b'"format":"yyyy-MM-dd","zone":"Europe/Berlin","reference":"end","segment":"2"}]',
        b'[{"partitionSpec":"user_id=*/name=*/dt=2026-11-01/","policy":"KEEP_BY_TIME",'
        b'"policyValue":"3"}]',
    ],
    "partition_spec": [b"user_id=1/", b"user_id=*/name=a/b/dt=2026-11-01/", b"/", rb"user_id=\*"],
    "event_format": [b"yyyy/MM/dd", b"yyyy-MM-dd'T'HH.mm.ss", b"yyyyMMdd'x''y'"],
    "partition_levels": [b"user_id=1/name=a/b/dt=2026-11-01", b"1/a/b/2026-11-01"],
}
