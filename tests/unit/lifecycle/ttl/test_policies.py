"""Policies in a table's properties: the specification's text, hands that write there, rivals."""

import json
import re
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.format.hudi.properties import (
    load_properties,
    parse_properties,
    render_properties,
    update_properties,
)
from lakewright.lifecycle.ttl.levels import Level, Levels
from lakewright.lifecycle.ttl.policies import (
    DEFAULT_FIELDS,
    DEFAULT_POLICY,
    DEFAULT_VALUE,
    KEYS,
    POLICIES,
    add_policy,
    drop_policy,
    levels_of,
    policy_properties,
    read_policies,
    shown_order,
    table_policies,
)
from lakewright.model.errors import Conflict, Corrupt, Invalid, NotFound
from lakewright.model.schema import LONG, STRING
from lakewright.model.ttl import TtlPolicy
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state

NUMBERS = count()
LEVELS = Levels((Level("user_id", LONG), Level("ts", STRING)))
DEEP = Levels((Level("a", LONG), Level("b", LONG), Level("c", LONG)))

#: The storage of the specification, byte by byte.
STORED = rb"""hoodie.partition.ttl.management.default.fields=user_id
hoodie.partition.ttl.management.default.policy=KEEP_BY_TIME
hoodie.partition.ttl.management.default.policy.value=30
hoodie.partition.ttl.policies=[{"partitionSpec"\:"user_id\=2/","policy"\:"KEEP_BY_SIZE","policyValue"\:107374182400},{"partitionSpec"\:"user_id\=1/","policy"\:"KEEP_BY_COUNT","policyValue"\:10},{"partitionSpec"\:"user_id\=3/","policy"\:"KEEP_BY_TIME","policyValue"\:7}]
"""
SHOWN = [
    "user_id=*/ KEEP_BY_TIME 30",
    "user_id=1/ KEEP_BY_COUNT 10",
    "user_id=2/ KEEP_BY_SIZE 107374182400",
    "user_id=3/ KEEP_BY_TIME 7",
]


def policy(spec: str, kind: str = "KEEP_BY_TIME", value: int = 30, **settings: str) -> TtlPolicy:
    return TtlPolicy.of(spec, kind, value, settings)


@pytest.fixture
def state() -> TableState:
    table = lw.create_table(
        f"memory://ttl-policies/t{next(NUMBERS)}",
        schema="id bigint, user_id bigint, ts string",
        key="id",
        partition_by=["user_id", "ts"],
    )
    return open_state(open_storage(table.path))


def stored(state: TableState) -> dict[str, str]:
    properties = load_properties(state.storage)
    return {key: properties[key] for key in KEYS if key in properties}


def specs(state: TableState) -> list[str]:
    return [one.spec for one in table_policies(state.refresh())]


def test_the_text_of_the_specification_comes_back_byte_by_byte() -> None:
    policies = read_policies(parse_properties(STORED), LEVELS)
    assert [str(one) for one in shown_order(policies, LEVELS)] == SHOWN
    again = {k: v for k, v in policy_properties(policies, LEVELS).items() if v is not None}
    assert render_properties(again) == STORED


def test_the_calls_of_the_specification_store_its_values(state: TableState) -> None:
    for line in SHOWN:
        spec, kind, value = line.split()
        add_policy(state, TtlPolicy.of(spec, kind, value))
    found = stored(state)
    assert found[DEFAULT_POLICY] == "KEEP_BY_TIME"
    assert found[DEFAULT_FIELDS] == "user_id"
    assert found[DEFAULT_VALUE] == "30"
    entries = json.loads(parse_properties(STORED)[POLICIES])
    assert sorted(json.loads(found[POLICIES]), key=str) == sorted(entries, key=str)
    assert all(type(entry["policyValue"]) is int for entry in json.loads(found[POLICIES]))
    assert [str(one) for one in shown_order(table_policies(state.refresh()), LEVELS)] == SHOWN


def test_properties_that_a_hand_wrote_are_obeyed(state: TableState) -> None:
    by_hand = '[ {"policyValue": "7", "policy": "keep_by_time", "partitionSpec": "user_id=3"} ]'
    update_properties(state.storage, {POLICIES: by_hand})
    assert table_policies(state.refresh()) == (policy("user_id=3/", value=7),)
    add_policy(state, policy("user_id=4/"))
    assert specs(state) == ["user_id=3/", "user_id=4/"]


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        (POLICIES, "nonsense", "no JSON"),
        (POLICIES, "{}", "no JSON array"),
        (POLICIES, "[3]", "3 is no policy"),
        (POLICIES, "[" * 100_000, "no JSON"),
        (POLICIES, '[{"partitionSpec":"user_id=1/","policy":"KEEP_BY_TIME"}]', '"user_id=1/"'),
        (
            POLICIES,
            '[{"partitionSpec":"user_id=1/","policy":"KEEP_BY_TIME","policyValue":0}]',
            "user_id=1/ KEEP_BY_TIME: 0 days",
        ),
        (
            POLICIES,
            '[{"partitionSpec":"user_id=1/","policy":"KEEP_ALL","policyValue":1}]',
            "no policy 'KEEP_ALL'",
        ),
        (
            POLICIES,
            '[{"partitionSpec":"name=1/","policy":"KEEP_BY_TIME","policyValue":1}]',
            "'name=1/' is no partition spec",
        ),
        (
            POLICIES,
            '[{"partitionSpec":"user_id=x/","policy":"KEEP_BY_TIME","policyValue":1}]',
            "'x' is no (long|bigint)",
        ),
        (
            POLICIES,
            '[{"partitionSpec":"user_id=1/","policy":"KEEP_BY_TIME","policyValue":1,'
            '"policyValue":2}]',
            "there twice",
        ),
        (
            POLICIES,
            '[{"partitionSpec":"user_id=1/","policy":"KEEP_BY_TIME","policyValue":1},'
            '{"partitionSpec":"user_id=01/","policy":"KEEP_BY_TIME","policyValue":2}]',
            "user_id=01/ has two policies",
        ),
        (
            POLICIES,
            '[{"partitionSpec":"user_id=1/","policy":"KEEP_BY_TIME","policyValue":1},'
            '{"partitionSpec":"user_id=*/ts=x/","policy":"KEEP_BY_TIME","policyValue":2}]',
            "neither is the more specific",
        ),
        (DEFAULT_POLICY, "KEEP_BY_TIME", "missing"),
        (DEFAULT_VALUE, "30", "missing"),
    ],
)
def test_a_bad_one_that_a_hand_wrote_is_named(
    state: TableState, key: str, text: str, named: str
) -> None:
    update_properties(state.storage, {key: text})
    with pytest.raises(Corrupt, match=named) as found:
        table_policies(state.refresh())
    assert ".hoodie/hoodie.properties: hoodie.partition.ttl." in str(found.value)


@pytest.mark.parametrize(
    ("fields", "value", "named"),
    [("ts", "30", "first partition columns"), ("user_id", "0", "0 days"), ("x", "1", "user_id")],
)
def test_a_bad_default_that_a_hand_wrote_is_named(
    state: TableState, fields: str, value: str, named: str
) -> None:
    changes = {DEFAULT_POLICY: "KEEP_BY_TIME", DEFAULT_FIELDS: fields, DEFAULT_VALUE: value}
    update_properties(state.storage, changes)
    with pytest.raises(Corrupt, match=named):
        table_policies(state.refresh())


def test_adding_a_spec_again_replaces_it_and_says_so(state: TableState) -> None:
    assert str(add_policy(state, policy("user_id=1/"))) == "added user_id=1/ KEEP_BY_TIME 30"
    add_policy(state, policy("user_id=2/"))
    again = add_policy(state, policy("user_id=01/", "KEEP_BY_COUNT", 4))
    assert again.replaced == policy("user_id=1/")
    assert "replaces user_id=1/ KEEP_BY_TIME 30" in str(again)
    assert [str(one) for one in again.policies] == [
        "user_id=01/ KEEP_BY_COUNT 4",
        "user_id=2/ KEEP_BY_TIME 30",
    ]
    add_policy(state, policy("user_id=*/"))
    default = add_policy(state, policy("user_id=*", "KEEP_BY_COUNT", 9))
    assert default.replaced == policy("user_id=*/")
    assert stored(state)[DEFAULT_VALUE] == "9"


def test_the_same_policy_again_writes_nothing(state: TableState) -> None:
    add_policy(state, policy("user_id=1/"))
    before = state.storage.read(".hoodie/hoodie.properties")
    assert "was there already" in str(add_policy(state, policy("user_id=1/")))
    assert state.storage.read(".hoodie/hoodie.properties") == before


def test_a_second_level_of_stars_is_kept_too(state: TableState) -> None:
    add_policy(state, policy("user_id=*/", value=30))
    add_policy(state, policy("user_id=*/ts=*/", value=20))
    add_policy(state, policy("/", value=10))
    assert specs(state) == ["user_id=*/", "user_id=*/ts=*/", "/"]
    assert stored(state)[DEFAULT_FIELDS] == "user_id"
    assert len(json.loads(stored(state)[POLICIES])) == 2
    drop_policy(state, "user_id=*/")
    assert specs(state) == ["user_id=*/ts=*/", "/"]
    assert stored(state)[DEFAULT_FIELDS] == "user_id,ts"
    drop_policy(state, "user_id=*/ts=*/")
    assert stored(state) == {
        DEFAULT_POLICY: "KEEP_BY_TIME",
        DEFAULT_FIELDS: "",
        DEFAULT_VALUE: "10",
    }
    assert specs(state) == ["/"]


def test_settings_lie_in_further_members(state: TableState) -> None:
    added = add_policy(state, policy("user_id=*/", "KEEP_BY_EVENT_TIME", 30, zone="Europe/Berlin"))
    assert added.policy.settings == {
        "format": "yyyy-MM-dd",
        "zone": "Europe/Berlin",
        "reference": "end",
        "segment": "1",
        "nulls": "keep",
    }
    (entry,) = json.loads(stored(state)[POLICIES])
    assert entry["policyValue"] == 30 and entry["reference"] == "end"
    assert DEFAULT_POLICY not in stored(state)
    assert table_policies(state.refresh()) == (added.policy,)


def test_dropping(state: TableState) -> None:
    add_policy(state, policy("user_id=1/"))
    add_policy(state, policy("user_id=*/"))
    with pytest.raises(NotFound, match=r"no TTL policy for user_id=2/.*user_id=\*/, user_id=1/"):
        drop_policy(state, "user_id=2/")
    assert drop_policy(state, "user_id=01/") == policy("user_id=1/")
    assert drop_policy(state, "user_id=*/") == policy("user_id=*/")
    assert stored(state) == {}


def test_what_meets_needs_a_third_that_stays(state: TableState) -> None:
    add_policy(state, policy("user_id=1/"))
    before = stored(state)
    with pytest.raises(Invalid, match="user_id=1/ts=x/ first") as refusal:
        add_policy(state, policy("user_id=*/ts=x/"))
    assert refusal.value.facts["specs"] and stored(state) == before
    add_policy(state, policy("user_id=1/ts=x/"))
    add_policy(state, policy("user_id=*/ts=x/"))
    with pytest.raises(Invalid, match="neither is the more specific"):
        drop_policy(state, "user_id=1/ts=x/")
    assert len(specs(state)) == 3


def test_what_a_hand_made_ambiguous_can_be_dropped(state: TableState) -> None:
    entries = [policy("user_id=1/").to_members(), policy("user_id=*/ts=x/").to_members()]
    update_properties(state.storage, {POLICIES: json.dumps(entries)})
    drop_policy(state, "user_id=1/")
    assert specs(state) == ["user_id=*/ts=x/"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (policy("user_id=1/ts=x/", "KEEP_BY_COUNT"), "names one partition"),
        (policy("user_id=1/ts=x/", "KEEP_BY_SIZE"), "names one partition"),
        (policy("user_id=one/"), "'one' is no"),
        (policy("ts=x/"), "user_id= is expected"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, format="dd.MM"), "format is 'dd.MM'"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, format="yy-MM-dd"), "format is"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, format="yyyy-dd"), "format is"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, format="yyyy-MM-dd-MM"), "format is"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, format="yyyy-ww"), "format is"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, format="yyyy/MM/dd"), "segment is '0'"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, segment="2"), "segment is '2'"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, segment="-1"), "segment is '-1'"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, zone="Mars/Olympus"), "zone is 'Mars/Olympus'"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, zone="../../etc"), "zone is"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, reference="middle"), "start or end"),
        (policy("/", "KEEP_BY_EVENT_TIME", 1, nulls="hide"), "keep or delete"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(
    state: TableState, wrong: TtlPolicy, named: str
) -> None:
    with pytest.raises(Invalid, match=re.escape(named)):
        add_policy(state, wrong)
    assert stored(state) == {}


def test_a_table_without_partitions_has_no_policies() -> None:
    path = f"memory://ttl-policies/t{next(NUMBERS)}"
    lw.create_table(path, schema="id bigint", key="id")
    with pytest.raises(Invalid, match="has no partitions"):
        add_policy(open_state(open_storage(path)), policy("/"))


ODD = ["a,b", "50%", "a=b", "ü😀", "*", "\\*", 'q"t', "a:b", "tab\there", "back\\slash", "#!"]


@pytest.mark.parametrize("value", ODD)
def test_odd_values_survive_the_properties(tmp_path: Path, value: str) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id bigint, p string", key="id", partition_by="p", hive_style=True
    )
    state = open_state(open_storage(table.path))
    levels = levels_of(state)
    spec = levels.spec_of(f"p={value}")
    assert spec is not None
    add_policy(state, policy(str(spec)))
    (found,) = table_policies(state.refresh())
    assert levels.parse(found.spec).levels[0].text == value
    raw = state.storage.read(".hoodie/hoodie.properties")
    assert raw.isascii()


def test_policies_added_at_once_all_stay(tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id bigint, p bigint, q bigint", key="id", partition_by=["p", "q"]
    )
    failures: list[BaseException] = []

    def work(numbers: Iterator[int]) -> None:
        try:
            for number in numbers:
                add_policy(open_state(open_storage(table.path)), policy(f"p={number}/"))
        except Conflict as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(iter(range(n, 24, 4)),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = table_policies(open_state(open_storage(table.path)))
    assert sorted(one.spec for one in found) == sorted(f"p={n}/" for n in range(24))


def test_other_properties_stay(state: TableState) -> None:
    before = load_properties(state.storage)
    add_policy(state, policy("user_id=1/"))
    update_properties(state.storage, {"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS"})
    add_policy(state, policy("user_id=2/"))
    after = load_properties(state.storage)
    assert before.items() <= after.items()
    assert after["hoodie.cleaner.policy"] == "KEEP_LATEST_COMMITS"


def test_the_order_in_which_policies_are_shown() -> None:
    given = ["a=10/", "a=9/b=1/", "a=9/", "a=*/b=2/", "/", "a=*/"]
    shown = shown_order([policy(spec) for spec in given], DEEP)
    assert [one.spec for one in shown] == ["/", "a=*/", "a=*/b=2/", "a=9/", "a=9/b=1/", "a=10/"]
