"""Short histories that are broken off at every storage call, and what must hold afterwards."""

from collections.abc import Callable, Mapping

from lakewright.model.instant import Action
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from support.commits import Write, committed_files, completed, data_files, leftovers
from support.tiny_tables import TinyTable

History = Callable[[Storage], object]
#: Histories of merge-on-read tables.
LOGGED = ("mends logs", "abandon logs")


def prepared(storage: Storage, version: int, history: str) -> Storage:
    """Make the table that a history starts from: two writes, and what the history needs."""
    TinyTable(version, storage=storage, mor=history in LOGGED)
    action = Action.DELTACOMMIT if history in LOGGED else Action.COMMIT
    Write.begin(storage, action=action).base("a").publish()
    Write.begin(storage, action=action).base("b").publish()
    if history in ("mends", "mends rollback"):
        Write.begin(storage).base("d").base("e", "dt=2").die()
    if history == "mends logs":
        base = completed(storage)[0] if version == 6 else None
        Write.begin(storage, action=action).log("a", base).base("d").die()
    return storage


def _insert(storage: Storage) -> object:
    return Write.begin(storage).base("c").base("c", counts=False).publish()


def _overwrite(storage: Storage) -> object:
    write = Write.begin(storage, action=Action.REPLACECOMMIT, operation="INSERT_OVERWRITE")
    return write.base("c").replacing("a").publish()


def _abandon(storage: Storage) -> None:
    Write.begin(storage).base("c").base("d", "dt=2").abandon()


def _abandon_logs(storage: Storage) -> None:
    view = open_state(storage).timeline
    bases = completed(storage) if view.config.layout == 1 else [None, None]
    write = Write.begin(storage, action=Action.DELTACOMMIT)
    write.log("a", bases[0]).log("b", bases[1]).base("d", "dt=2").abandon()


def _mend(storage: Storage) -> object:
    return Write.begin(storage).base("c").publish()


def _mend_logs(storage: Storage) -> object:
    return Write.begin(storage, action=Action.DELTACOMMIT).base("c").publish()


HISTORIES: Mapping[str, History] = {
    "insert": _insert,
    "overwrite": _overwrite,
    "abandon": _abandon,
    "abandon logs": _abandon_logs,
    "mends": _mend,
    "mends logs": _mend_logs,
}


def check(storage: Storage, history: str, *, answered: bool | None) -> None:
    """Look at the table after a history was broken off, then write to it again.

    ``answered`` is whether the writer was told of success (None: it cannot have been told).
    """
    before = completed(storage)
    assert len(before) in (2, 3), before
    assert committed_files(storage) <= data_files(storage), "a committed file is missing"
    if history.startswith("abandon"):
        assert len(before) == 2
    elif answered:
        assert len(before) == 3, "the writer was told of success"
    action = Action.DELTACOMMIT if history in LOGGED else Action.COMMIT
    done = Write.begin(storage, action=action).base("z").publish()
    view = open_state(storage).timeline
    assert completed(storage) == [*before, done.requested]
    assert not leftovers(storage), leftovers(storage)
    times = [i.completed for i in view.between(None, None)]
    assert len(times) == len(set(times))
