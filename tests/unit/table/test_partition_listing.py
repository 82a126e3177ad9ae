"""Listing named partitions: in their order, by threads where folders keep one waiting."""

import threading
from collections.abc import Iterator
from time import sleep

import pytest

from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import FileStat
from lakewright.table import partitions
from lakewright.table.partitions import LISTINGS, Tree, list_partitions
from lakewright.table.pruning import Tally
from lakewright.table.state import open_state, table_schema
from support.tiny_tables import TinyTable

#: One that is asked for alone, and pairs after it.
PATHS = [f"dt={number:02d}" for number in reversed(range(1 + 2 * LISTINGS))]


class Counted(MemoryStorage):
    """Remembers which threads listed folders."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.threads: set[int] = set()

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        self.threads.add(threading.get_ident())
        return super().list(folder, recursive=recursive, stats=stats)


class Distant(Counted):
    """Lets the first who asks wait; all others are answered once two of them ask."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.asked = threading.Barrier(2)

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        if folder.startswith("dt="):
            if self.threads:
                self.asked.wait(timeout=30)
            else:
                sleep(0.05)
        return super().list(folder, recursive=recursive, stats=stats)


def listed(storage: Counted) -> list[tuple[str, list[str]]]:
    for path in PATHS:
        storage.write(f"{path}/of {path}", b"x")
    state = open_state(TinyTable(storage=storage).commit(1).storage)
    tree = Tree(storage, state.config, table_schema(state))
    storage.threads = set()
    found = list_partitions(tree, PATHS, (), Tally())
    return [(descriptor.path, list(folder.names)) for descriptor, folder in found]


def test_folders_that_answer_at_once_are_listed_by_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A machine with much to do keeps this thread waiting, too.
    monkeypatch.setattr(partitions, "PATIENCE", 60)
    storage = Counted("memory://near")
    assert listed(storage) == [(path, [f"of {path}"]) for path in PATHS]
    assert storage.threads == {threading.get_ident()}


def test_folders_that_keep_one_waiting_are_listed_several_at_once() -> None:
    storage = Distant("memory://far")
    assert listed(storage) == [(path, [f"of {path}"]) for path in PATHS]
    assert len(storage.threads) > 2
