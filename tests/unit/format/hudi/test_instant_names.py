"""Names of timeline files: every action and state of both layouts, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.instant_names import instant_file_name, parse_instant_name
from lakewright.model.errors import Invalid
from lakewright.model.instant import Action, Instant, State

T, C = "20261115103314041", "20261115103315000"
TIMES = st.one_of(
    st.from_regex(r"[0-9]{17}", fullmatch=True), st.from_regex(r"[0-9]{14}", fullmatch=True)
)
PENDING = [
    (action, state)
    for action in Action
    for state in (State.REQUESTED, State.INFLIGHT)
    if (action, state) != (Action.SAVEPOINT, State.REQUESTED)
]
COMPLETED = [action for action in Action if action.completes_as is action]


@st.composite
def instants(draw: st.DrawFn, layout: int) -> Instant:
    time = draw(TIMES)
    if draw(st.booleans()):
        action, state = draw(st.sampled_from(PENDING))
        return Instant(time, action, state)
    done = time if layout == 1 else draw(st.none() | TIMES)
    return Instant(time, draw(st.sampled_from(COMPLETED)), State.COMPLETED, done)


@given(instants(1))
def test_an_instant_survives_its_name_in_layout_1(instant: Instant) -> None:
    assert parse_instant_name(instant_file_name(instant, 1), 1) == instant


@given(instants(2))
def test_an_instant_survives_its_name_in_layout_2(instant: Instant) -> None:
    assert parse_instant_name(instant_file_name(instant, 2), 2) == instant


@pytest.mark.parametrize(
    ("name", "layout", "expected"),
    [
        (f"{T}.commit.requested", 1, Instant(T, Action.COMMIT, State.REQUESTED)),
        (f"{T}.inflight", 1, Instant(T, Action.COMMIT, State.INFLIGHT)),
        (f"{T}.inflight", 2, Instant(T, Action.COMMIT, State.INFLIGHT)),
        (f"{T}.commit", 1, Instant(T, Action.COMMIT, State.COMPLETED, T)),
        (f"{T}_{C}.commit", 2, Instant(T, Action.COMMIT, State.COMPLETED, C)),
        (f"{T}.commit", 2, Instant(T, Action.COMMIT, State.COMPLETED, None)),
        (f"{T}.compaction.requested", 2, Instant(T, Action.COMPACTION, State.REQUESTED)),
        (f"{T}.logcompaction.inflight", 2, Instant(T, Action.LOGCOMPACTION, State.INFLIGHT)),
        (f"{T}.clustering.requested", 2, Instant(T, Action.CLUSTERING, State.REQUESTED)),
        (f"{T}.savepoint.inflight", 1, Instant(T, Action.SAVEPOINT, State.INFLIGHT)),
        (f"{T}_{C}.schemacommit", 2, Instant(T, Action.SCHEMACOMMIT, State.COMPLETED, C)),
        (
            "20240101000000.clean",
            1,
            Instant("20240101000000", Action.CLEAN, State.COMPLETED, "20240101000000"),
        ),
        (
            "00000000000000000_00000000000000001.deltacommit",
            2,
            Instant("0" * 17, Action.DELTACOMMIT, State.COMPLETED, "0" * 16 + "1"),
        ),
        (
            "20240418173232416001.commit",
            1,
            Instant("20240418173232416001", Action.COMMIT, State.COMPLETED, "20240418173232416001"),
        ),
        (
            "20249999999999999.commit",
            1,
            Instant("20249999999999999", Action.COMMIT, State.COMPLETED, "20249999999999999"),
        ),
    ],
)
def test_real_names(name: str, layout: int, expected: Instant) -> None:
    assert parse_instant_name(name, layout) == expected
    assert instant_file_name(expected, layout) == name


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        f".{T}.commit.crc",
        f"{T}.commit.inflight",
        f"{T}.savepoint.requested",
        f"{T}.compaction",
        f"{T}.clustering",
        f"{T}.unknown",
        f"{T}",
        f"{T}.",
        "x.commit",
        "٢٠٢٤.commit",
        f"{T}_{C}.commit.requested",
        f"{T}_{C}.inflight",
        f"{T}_.commit",
        f"_{T}.commit",
        f"{T}.commit\n",
        "",
    ],
)
def test_other_names_are_none(name: str) -> None:
    assert parse_instant_name(name, 1) is None
    assert parse_instant_name(name, 2) is None


def test_layout_1_has_no_completion_times() -> None:
    assert parse_instant_name(f"{T}_{C}.commit", 1) is None


@pytest.mark.parametrize(
    ("action", "ending"),
    [
        (Action.COMPACTION, "commit"),
        (Action.LOGCOMPACTION, "deltacommit"),
        (Action.CLUSTERING, "replacecommit"),
    ],
)
def test_services_complete_under_another_name(action: Action, ending: str) -> None:
    assert instant_file_name(Instant(T, action, State.COMPLETED, C), 2) == f"{T}_{C}.{ending}"


def test_a_savepoint_is_never_requested() -> None:
    with pytest.raises(Invalid):
        instant_file_name(Instant(T, Action.SAVEPOINT, State.REQUESTED), 2)


@given(st.text())
def test_any_text_is_a_name_or_none(text: str) -> None:
    for layout in (1, 2):
        instant = parse_instant_name(text, layout)
        assert instant is None or instant_file_name(instant, layout) == text
