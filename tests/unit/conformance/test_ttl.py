"""Partition TTL at work, and the page that maps the specification's names to ours."""

import datetime as dt
import json
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.lifecycle.ttl.expiry import judge
from lakewright.lifecycle.ttl.policies import add_policy, levels_of, shown_order, table_policies
from lakewright.lifecycle.ttl.statistics import gather
from lakewright.model.instant import instant_datetime
from lakewright.model.ttl import TtlPolicy
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state

PAGE = Path(__file__).parents[3] / "docs" / "conformance" / "ttl.md"
DAY = dt.timedelta(days=1)

#: Every name that the specification gives to something.
NAMES = [
    "HoodiePartitionTTLPolicy",
    "TTLPolicy",
    "partitionSpec",
    "policyValue",
    "KEEP_BY_TIME",
    "KEEP_BY_COUNT",
    "KEEP_BY_SIZE",
    "add_ttl_policy",
    "show_ttl_policies",
    "hoodie.partition.ttl.management.default.policy",
    "hoodie.partition.ttl.management.default.fields",
    "hoodie.partition.ttl.management.default.policy.value",
    "hoodie.partition.ttl.policies",
    "RelativePath",
    "LastModifiedTime",
    "PartitionTotalFileSize",
]
#: The policies of its example, with small numbers for large ones.
POLICIES = [
    ("user_id=*/", "KEEP_BY_TIME", "30"),
    ("user_id=1/", "KEEP_BY_COUNT", "10"),
    ("user_id=2/", "KEEP_BY_SIZE", "107374182400"),
    ("user_id=3/", "KEEP_BY_TIME", "7"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_leaves_no_name_out(name: str) -> None:
    firsts = [line.split(" | ")[0] for line in PAGE.read_text().splitlines() if line[:2] == "| "]
    assert any(f"`{name}`" in first for first in firsts)


@pytest.fixture
def state(tmp_path: Path) -> TableState:
    table = lw.create_table(
        tmp_path / "test",
        schema="id bigint, user_id bigint, ts int",
        key="id",
        partition_by=["user_id", "ts"],
    )
    rows = [(user, ts) for user, count in ((1, 12), (2, 3), (3, 1), (4, 1)) for ts in range(count)]
    table.upsert([{"id": n, "user_id": u, "ts": t} for n, (u, t) in enumerate(rows)])
    state = open_state(open_storage(table.path))
    for spec, kind, value in POLICIES:
        add_policy(state, TtlPolicy.of(spec, kind, value))
    return state.refresh()


def expired(state: TableState, after: dt.timedelta) -> set[str]:
    stats = gather(state)
    moments = {stat.last_modified for stat in stats.partitions.values()}
    (written,) = (instant_datetime(moment) for moment in moments)
    verdicts = judge(
        stats.partitions.values(), table_policies(state), levels_of(state), written + after
    )
    return {verdict.partition for verdict in verdicts if verdict.expired}


def test_the_policies_of_the_specification_on_a_table(state: TableState) -> None:
    shown = [str(one) for one in shown_order(table_policies(state), levels_of(state))]
    assert shown == [" ".join(policy) for policy in POLICIES]
    counted = {"user_id=1/ts=0", "user_id=1/ts=1"}
    assert expired(state, 0 * DAY) == expired(state, 7 * DAY) == counted
    second = dt.timedelta(seconds=1)
    assert expired(state, 7 * DAY + second) == counted | {"user_id=3/ts=0"}
    assert expired(state, 30 * DAY + second) == counted | {"user_id=3/ts=0", "user_id=4/ts=0"}
    add_policy(state, TtlPolicy.of("user_id=2/", "KEEP_BY_SIZE", 1))
    weighed = expired(state.refresh(), 0 * DAY) - counted
    assert weighed == {f"user_id=2/ts={ts}" for ts in range(3)}


def test_writes_leave_the_policies_alone(state: TableState) -> None:
    before = table_policies(state)
    table = lw.open_table(state.storage.uri)
    table.upsert([{"id": 99, "user_id": 9, "ts": 1}])
    after = state.refresh()
    assert table_policies(after) == before
    stored = json.loads(after.config.properties["hoodie.partition.ttl.policies"])
    assert [type(entry["policyValue"]) for entry in stored] == [int, int, int]
