"""Undo pins: stored, read together, ended by time, and never guessed at."""

import pytest

from lakewright.model.errors import AlreadyExists, Corrupt, Invalid
from lakewright.storage.memory import MemoryStorage
from lakewright.table.pins import PINS_FOLDER, Pin, add_pin, drop_pins, list_pins, load_pins


def pin(id: str, until: float, *names: str, partition: str = "dt=1") -> Pin:
    return Pin(id, until, "because", {partition: frozenset(names)})


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("memory://pins/t", {})


def test_pins_hold_files_until_their_end(storage: MemoryStorage) -> None:
    assert load_pins(storage, 0).ids == frozenset()
    first, second = pin("a-1", 100.0, "x", "y"), pin("b.2", 200.5, "y", "z")
    add_pin(storage, first)
    add_pin(storage, second)
    assert {p.id: p for p in list_pins(storage)} == {"a-1": first, "b.2": second}
    both = load_pins(storage, 99.9)
    assert both.ids == {"a-1", "b.2"}
    assert both.names("dt=1") == {"x", "y", "z"}
    assert both.names("dt=2") == frozenset()
    assert load_pins(storage, 100.0).names("dt=1") == {"y", "z"}
    drop_pins(storage, "b.2", "never-there")
    assert load_pins(storage, 0).ids == {"a-1"}


def test_an_id_is_taken_once_and_is_no_path(storage: MemoryStorage) -> None:
    add_pin(storage, pin("a", 1.0, "x"))
    with pytest.raises(AlreadyExists, match="pin a"):
        add_pin(storage, pin("a", 2.0, "x"))
    for bad in ("", "../a", "a/b", ".a", "a" * 101):
        with pytest.raises(Invalid, match="no id of a pin"):
            add_pin(storage, pin(bad, 1.0, "x"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"id": "a", "until": "soon", "why": "", "files": {}}',
        b'{"id": "a", "until": NaN, "why": "", "files": {}}',
        b'{"id": "a", "until": 1' + b"0" * 400 + b', "why": "", "files": {}}',
        b"[" * 100_000,
        b'{"id": "a", "until": 1, "why": "", "files": {"p": "x"}}',
        b'{"id": "a", "until": 1, "why": "", "files": {"p": [1]}}',
    ],
)
def test_a_pin_that_cannot_be_read_stops_whoever_asks(storage: MemoryStorage, body: bytes) -> None:
    storage.write(f"{PINS_FOLDER}/a.json", body)
    with pytest.raises(Corrupt, match="pin cannot be read"):
        load_pins(storage, 1e12)
