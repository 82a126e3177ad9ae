"""The storage that fails on purpose does so exactly where it is told to."""

import pytest

from lakewright.model.errors import Unavailable
from lakewright.storage.memory import MemoryStorage
from support.faulty_storage import Call, Crash, Fault, FaultyStorage, every_call


@pytest.fixture
def inner(request) -> MemoryStorage:
    return MemoryStorage(f"memory://{request.node.name}")


def work(storage) -> None:
    storage.write("a", b"1")
    storage.create("b", b"2")
    storage.read("a")
    storage.delete(["a", "b"])


def test_it_lists_the_calls(inner):
    assert every_call(inner, work) == [
        Call("write", "a", 0),
        Call("create", "b", 0),
        Call("delete", "a", 0),
    ]
    counting = FaultyStorage(inner)
    work(counting)
    assert counting.counts == {"write": 1, "create": 1, "read": 1, "delete": 1}


@pytest.mark.parametrize("after", [False, True])
def test_it_fails_before_or_after_the_call(inner, after: bool):
    faulty = FaultyStorage(inner, [Fault("create", at=1, after=after)])
    assert faulty.create("x", b"")
    with pytest.raises(Unavailable):
        faulty.create("y", b"")
    assert (inner.stat("y") is not None) == after
    assert faulty.create("z", b"")


def test_it_fails_by_path_and_by_any_verb(inner):
    faulty = FaultyStorage(inner, [Fault(path=".commit"), Fault(at=3)])
    faulty.write("1", b"")
    with pytest.raises(Unavailable):
        faulty.create("1.commit", b"")
    faulty.create("1.commit", b"")
    with pytest.raises(Unavailable):
        faulty.read("1")


def test_nothing_works_after_a_crash(inner):
    faulty = FaultyStorage(inner, [Fault("write", error=Crash)])
    with pytest.raises(Crash):
        faulty.write("1", b"")
    with pytest.raises(Crash):
        faulty.stat("1")


@pytest.mark.parametrize("after", [False, True])
def test_streams_fail_before_or_after(inner, after: bool):
    faulty = FaultyStorage(inner, [Fault("writer", after=after)])
    with pytest.raises(Unavailable), faulty.writer("f") as file:
        file.write(b"x")
    assert (inner.stat("f") is not None) == after
