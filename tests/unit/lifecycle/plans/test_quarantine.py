"""Files lie in quarantine for a while: they go back, or are purged, wherever it was cut off."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewright.lifecycle.plans.plan import new_plan_id
from lakewright.lifecycle.plans.quarantine import (
    QUARANTINE_FOLDER,
    held,
    list_quarantined,
    overdue,
    purge,
    put_aside,
    put_back,
)
from lakewright.model.errors import (
    AlreadyExists,
    Corrupt,
    HistoryGone,
    Invalid,
    LakewrightError,
    NotFound,
)
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.dropping import memory
from support.faulty_storage import Fault, FaultyStorage

NOW = datetime(2026, 11, 16, tzinfo=UTC)
PLAN = new_plan_id("orphans", NOW)
FILES = {"p=a/1.parquet": b"one", "p=a/.x.log": b"two", "p=ü b/c=%2F/3": b"three", "top": b"4"}
PATHS = (*list(FILES)[:3], "p=a/gone")


@pytest.fixture(params=["memory", "local"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    made = memory() if request.param == "memory" else open_storage(tmp_path / "t")
    return filled(made)


def filled(made: Storage) -> Storage:
    for path, data in FILES.items():
        made.write(path, data)
    return made


def content(storage: Storage) -> dict[str, bytes]:
    found = storage.list("", recursive=True)
    return {f.path: storage.read(f.path) for f in found if not f.path.startswith(".hoodie/")}


def aside(storage: Storage) -> list[str]:
    return [file.path for file in storage.list(QUARANTINE_FOLDER, recursive=True)]


def move_out(storage: Storage) -> None:
    put_aside(storage, PLAN, PATHS, until=NOW + timedelta(days=7), why="no commit names them")


def test_out_and_back(storage: Storage) -> None:
    move_out(storage)
    assert content(storage) == {"top": b"4"}
    (found,) = list_quarantined(storage)
    assert found == held(storage, PLAN)
    assert (found.bytes, len(found.files), found.why) == (11, 3, "no commit names them")
    assert put_back(storage, PLAN) == found
    assert content(storage) == FILES
    assert not aside(storage) and held(storage, PLAN) is None
    with pytest.raises(NotFound, match="no files in quarantine"):
        put_back(storage, PLAN)


def test_purge(storage: Storage) -> None:
    move_out(storage)
    purge(storage, PLAN)
    assert content(storage) == {"top": b"4"} and not aside(storage)
    with pytest.raises(NotFound):
        purge(storage, PLAN)


def test_what_has_lain_for_its_time_is_overdue() -> None:
    storage = filled(memory())
    move_out(storage)
    assert overdue(storage, NOW + timedelta(days=7, seconds=-1)) == ()
    assert [one.plan for one in overdue(storage, NOW + timedelta(days=7))] == [PLAN]


def test_places_that_others_took() -> None:
    storage = filled(memory())
    move_out(storage)
    # As large as the one that lay there.
    storage.write("p=a/1.parquet", b"eno")
    with pytest.raises(AlreadyExists, match=r"p=a/1\.parquet is another file"):
        put_back(storage, PLAN)
    assert content(storage) == {"top": b"4", "p=a/1.parquet": b"eno"}
    assert len(aside(storage)) == 4


def test_a_purge_leaves_what_others_put_there_since() -> None:
    storage = filled(memory())
    move_out(storage)
    storage.write("p=a/1.parquet", b"new")
    purge(storage, PLAN)
    assert content(storage) == {"top": b"4", "p=a/1.parquet": b"new"} and not aside(storage)


def test_files_that_were_purged_by_hand() -> None:
    storage = filled(memory())
    move_out(storage)
    storage.delete([f"{QUARANTINE_FOLDER}/{PLAN}/p=a/1.parquet"])
    with pytest.raises(HistoryGone, match=r"p=a/1\.parquet"):
        put_back(storage, PLAN)


def test_a_file_that_changed_in_quarantine_does_not_come_back() -> None:
    storage = filled(memory())
    move_out(storage)
    left = content(storage)
    storage.write(f"{QUARANTINE_FOLDER}/{PLAN}/p=a/1.parquet", b"one more")
    with pytest.raises(Corrupt, match="has 8 bytes, and had 3 when it was put aside"):
        put_back(storage, PLAN)
    assert content(storage) == left


def test_paths_out_of_the_table_are_refused() -> None:
    storage = memory()
    with pytest.raises(Invalid):
        put_aside(storage, PLAN, ["../x"], until=NOW, why="")
    with pytest.raises(Invalid):
        put_aside(storage, "../x", ["x"], until=NOW, why="")


def test_damaged_lists_are_named() -> None:
    storage = memory()
    storage.write(f"{QUARANTINE_FOLDER}/{PLAN}.json", b'{"plan": "x"}')
    with pytest.raises(Corrupt, match=PLAN):
        held(storage, PLAN)


def test_a_copy_that_was_cut_off_before_its_deletion() -> None:
    storage = filled(memory())
    storage.write(f"{QUARANTINE_FOLDER}/{PLAN}/p=a/1.parquet", b"one")
    move_out(storage)
    assert content(storage) == {"top": b"4"}
    storage.write("p=a/1.parquet", b"one")
    put_back(storage, PLAN)
    assert content(storage) == FILES and not aside(storage)


@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize("verb", ["out", "back", "purge"])
def test_wherever_it_is_cut_off(verb: str, lost: bool) -> None:
    acts = {"out": move_out, "back": lambda s: put_back(s, PLAN), "purge": lambda s: purge(s, PLAN)}
    number = failed = 0
    while True:
        storage = filled(memory())
        if verb != "out":
            move_out(storage)
        faulty = FaultyStorage(storage, [Fault(at=number, after=lost)])
        try:
            acts[verb](faulty)
        except LakewrightError:
            failed += 1
            if held(storage, PLAN) is not None or verb == "out":
                acts[verb](storage)
        if len(faulty.calls) <= number:
            break
        number += 1
        everything = FILES if verb == "back" else {"top": b"4"}
        assert content(storage) == everything, number
        assert bool(aside(storage)) == (verb == "out"), number
    assert failed >= 3
