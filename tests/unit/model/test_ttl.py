"""Policies and partition specs as values: their texts, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.model.errors import Invalid
from lakewright.model.ttl import LARGEST, PartitionSpec, PolicyKind, SpecLevel, TtlPolicy

COLUMNS = ("user_id", "ts")


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("user_id=1/", [("user_id", "1")]),
        ("user_id=1", [("user_id", "1")]),
        ("  user_id=*/  ", [("user_id", None)]),
        ("user_id=*/ts=*/", [("user_id", None), ("ts", None)]),
        ("user_id=*/ts=2026-11-01/", [("user_id", None), ("ts", "2026-11-01")]),
        ("/", []),
        ("user_id=a=b,c%2F/ts= x /", [("user_id", "a=b,c%2F"), ("ts", " x ")]),
        ("user_id=\\*/", [("user_id", "*")]),
        ("user_id=\\\\*/", [("user_id", "\\*")]),
        ("user_id=\\x/", [("user_id", "\\x")]),
        ("user_id=**/", [("user_id", "**")]),
        ("user_id=ü😀/", [("user_id", "ü😀")]),
    ],
)
def test_a_spec_is_read(text: str, levels: list[tuple[str, str | None]]) -> None:
    assert PartitionSpec.parse(text, COLUMNS).levels == tuple(SpecLevel(*one) for one in levels)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("ts=1/", "user_id= is expected"),
        ("user_id=1/tz=2/", "ts= is expected at 'tz=2'"),
        ("1/2/", "user_id= is expected"),
        ("user_id=/", "user_id has no value"),
        ("user_id=1/ts=2/hour=3/", "beyond the last partition column"),
        ("USER_ID=1/", "user_id= is expected"),
    ],
)
def test_a_spec_that_is_none_is_refused_with_its_form(text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as refusal:
        PartitionSpec.parse(text, COLUMNS)
    assert "user_id=…/ts=…/" in str(refusal.value)


def test_a_table_without_partitions_has_no_specs() -> None:
    with pytest.raises(Invalid, match="has no partitions"):
        PartitionSpec.parse("/", ())


def test_a_value_with_slashes_goes_on_until_the_next_level_is_named() -> None:
    spec = PartitionSpec.parse("user_id=a/b=c/ts=2026/11/01/", COLUMNS, COLUMNS)
    assert [level.text for level in spec.levels] == ["a/b=c", "2026/11/01"]
    assert str(spec) == "user_id=a/b=c/ts=2026/11/01/"


VALUES = st.none() | st.text(st.characters(exclude_characters="/"), min_size=1)


@given(st.lists(VALUES, max_size=2))
def test_a_spec_survives_its_text(values: list[str | None]) -> None:
    spec = PartitionSpec(tuple(map(SpecLevel, COLUMNS, values)))
    assert PartitionSpec.parse(str(spec), COLUMNS) == spec
    assert spec.is_default == all(value is None for value in values)
    assert spec.columns == COLUMNS[: len(values)]


@pytest.mark.parametrize("value", [0, -1, -(10**18), LARGEST + 1, "0", "-3"])
def test_nothing_and_less_cannot_be_kept(value: int | str) -> None:
    with pytest.raises(Invalid, match="cannot be kept") as refusal:
        TtlPolicy.of("user_id=1/", "KEEP_BY_TIME", value)
    assert "user_id=1/" in str(refusal.value) and str(LARGEST) in str(refusal.value)


@pytest.mark.parametrize("value", ["", "ten", "1.5", "1e3", "٣", True])
def test_what_is_no_whole_number_is_refused(value: str) -> None:
    with pytest.raises(Invalid, match="is no whole number"):
        TtlPolicy.of("user_id=1/", "KEEP_BY_TIME", value)


def test_a_policy_of_what_a_call_gives() -> None:
    policy = TtlPolicy.of("user_id=2/", " keep_by_size ", " 107374182400 ")
    assert policy == TtlPolicy("user_id=2/", PolicyKind.KEEP_BY_SIZE, 107374182400)
    assert str(policy) == "user_id=2/ KEEP_BY_SIZE 107374182400"
    assert policy.kept == "107374182400 bytes"
    assert TtlPolicy.of("/", "KEEP_BY_TIME", 1).kept == "1 day"
    assert len({policy, TtlPolicy.of("user_id=2/", "KEEP_BY_SIZE", 107374182400)}) == 1


def test_an_unknown_kind_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(Invalid, match="no policy 'KEEP_BY_MOOD'") as refusal:
        TtlPolicy.of("user_id=1/", "KEEP_BY_MOOD", 1)
    assert all(kind in str(refusal.value) for kind in PolicyKind)


def test_settings_belong_to_their_kind() -> None:
    TtlPolicy.of("/", "KEEP_BY_EVENT_TIME", 1, {"zone": "UTC"})
    with pytest.raises(Invalid, match="has no setting 'zone'"):
        TtlPolicy.of("/", "KEEP_BY_TIME", 1, {"zone": "UTC"})
    with pytest.raises(Invalid, match=r"no setting 'zine'.*format, zone, reference"):
        TtlPolicy.of("/", "KEEP_BY_EVENT_TIME", 1, {"zine": "UTC"})


def test_members_are_those_of_the_specification() -> None:
    policy = TtlPolicy.of("user_id=1/", "KEEP_BY_COUNT", 10)
    members = {"partitionSpec": "user_id=1/", "policy": "KEEP_BY_COUNT", "policyValue": 10}
    assert policy.to_members() == members
    assert TtlPolicy.from_members(members) == policy
    assert TtlPolicy.from_members({**members, "policyValue": "10"}) == policy


@pytest.mark.parametrize(
    "text",
    [
        "3",
        "null",
        "[]",
        "{}",
        '{"partitionSpec":"a=1/","policy":"KEEP_BY_TIME"}',
        '{"partitionSpec":"a=1/","policyValue":1}',
        '{"partitionSpec":1,"policy":"KEEP_BY_TIME","policyValue":1}',
        '{"partitionSpec":"a=1/","policy":"KEEP_BY_TIME","policyValue":1.5}',
        '{"partitionSpec":"a=1/","policy":"KEEP_BY_TIME","policyValue":true}',
        '{"partitionSpec":"a=1/","policy":"KEEP_BY_TIME","policyValue":[1]}',
        '{"partitionSpec":"a=1/","policy":"KEEP_BY_TIME","policyValue":1,"policyVal":1}',
        '{"partitionSpec":"a=1/","policy":"KEEP_BY_EVENT_TIME","policyValue":1,"zone":{}}',
    ],
)
def test_members_that_are_no_policy_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        TtlPolicy.from_members(json.loads(text))
