"""The end of the calendar: instants that leave no time for what follows, and the way back."""

from itertools import count

import pytest

import lakewright as lw

NUMBERS = count()
LAST = "99991231235959999"
BEFORE_LAST = "99991231235959998"
TABLES = pytest.mark.parametrize(
    ("version", "kind"),
    [(v, k) for v in (6, 9) for k in ("COPY_ON_WRITE", "MERGE_ON_READ")],
)


def create(version: int = 9, kind: str = "COPY_ON_WRITE") -> lw.Table:
    path = f"memory://last-times-{next(NUMBERS)}/t"
    table = lw.create_table(path, schema="k string, n int", key="k", version=version, type=kind)
    table.insert([{"k": "a", "n": 1}])
    return table


def barred(monkeypatch: pytest.MonkeyPatch, version: int, kind: str) -> tuple[lw.Table, str]:
    """Return a table whose newest time is the last there is, and the write that has it."""
    table = create(version, kind)
    taken = BEFORE_LAST if version == 9 else LAST
    with monkeypatch.context() as unchecked:
        unchecked.setattr("lakewright.timeline.clock._LAST_YEAR", "none")
        table.upsert([{"k": "a", "n": 2}], instant=taken)
    return table, taken


@pytest.mark.parametrize("instant", ["99990101000000000", BEFORE_LAST, LAST])
def test_an_instant_of_the_last_year_is_refused(instant: str) -> None:
    table = create()
    before = table.timeline.instants
    with pytest.raises(lw.Invalid, match=f"{instant} leaves no time for what follows"):
        table.upsert([{"k": "a", "n": 2}], instant=instant)
    assert lw.open_table(table.path).timeline.instants == before


def test_an_instant_in_the_future_is_followed() -> None:
    table = create()
    table.upsert([{"k": "a", "n": 2}], instant="99981231235959999")
    done = table.upsert([{"k": "a", "n": 3}])
    assert done.instant is not None
    assert done.instant.requested > "99981231235959999"


@TABLES
def test_a_write_at_the_end_of_time_can_be_rolled_back(
    version: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, taken = barred(monkeypatch, version, kind)
    with pytest.raises(lw.Corrupt, match=rf"holds {LAST}.*rollback\('{taken}'\)"):
        table.upsert([{"k": "a", "n": 3}])
    table.rollback(taken)
    assert table.scan().to_arrow().to_pylist() == [{"k": "a", "n": 1}]
    table.upsert([{"k": "a", "n": 3}])
    assert table.scan().to_arrow().to_pylist() == [{"k": "a", "n": 3}]


@TABLES
def test_a_write_at_the_end_of_time_can_be_restored_away(
    version: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = barred(monkeypatch, version, kind)
    table.restore(table.timeline.instants[0].requested)
    table.upsert([{"k": "a", "n": 3}])
    assert table.scan().to_arrow().to_pylist() == [{"k": "a", "n": 3}]


@pytest.mark.parametrize("room", [0, 1])
def test_without_a_write_to_roll_back_the_rows_must_go(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create()
    taken = str(int(LAST) - 3 - room)
    with monkeypatch.context() as unchecked:
        unchecked.setattr("lakewright.timeline.clock._LAST_YEAR", "none")
        table.upsert([{"k": "a", "n": 2}], instant=taken)
        table.rollback(taken)  # it takes the two times after the completion
    for _ in range(2):
        with pytest.raises(lw.Corrupt, match=f"holds {LAST}.* to a new table"):
            table.upsert([{"k": "a", "n": 3}])
    assert table.scan().to_arrow().to_pylist() == [{"k": "a", "n": 1}]
