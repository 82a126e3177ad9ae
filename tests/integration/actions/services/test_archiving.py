"""Archiving: what may leave the timeline, that nobody misses it, and that it can be cut off."""

import contextlib
import datetime as dt
from collections.abc import Iterator

import pytest

from lakewright.actions.services.archiving import archive, archiving_due, plan_archive
from lakewright.actions.services.cleaning import clean, schedule_cleaning
from lakewright.format.hudi.history import read_history
from lakewright.format.hudi.metadata.clean import CleanMetadata, encode_clean
from lakewright.format.hudi.metadata.rollback import (
    InstantInfo,
    RollbackPlan,
    encode_rollback_plan,
)
from lakewright.model.errors import HistoryGone, Invalid, Unavailable
from lakewright.model.instant import Action
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import open_state
from support.commits import Write
from support.faulty_storage import Crash, Fault, FaultyStorage, every_call
from support.servicing import servicing
from support.tiny_tables import TinyTable, at, base_name, log_name

KEEP = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "5",
    "hoodie.clean.commits.retained": "1",
}


@pytest.fixture(params=[9, 6], ids=["v9", "v6"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def written(table: TinyTable, *minutes: int, partition: str = "dt=1") -> TinyTable:
    for minute in minutes:
        table.commit(minute, {partition: {base_name("a", minute): b"x"}})
    return table


def active(storage: Storage, *actions: Action) -> list[str]:
    found = open_state(storage).timeline.by_action(*(actions or (Action.COMMIT,)))
    return [instant.requested for instant in found if instant.is_completed]


def past(storage: Storage) -> list[str]:
    state = open_state(storage)
    return [
        f"{p.instant.requested} {p.instant.action}" for p in read_history(storage, state.config)
    ]


def minutes(*values: int) -> list[str]:
    return [at(value) for value in values]


def run(storage: Storage, **options: str) -> None:
    archive(servicing(storage, **{**KEEP, **options}))


def test_the_oldest_leave_when_there_are_too_many(version: int) -> None:
    table = written(TinyTable(version), *range(1, 6))
    assert archiving_due(open_state(table.storage).timeline, KEEP) is None
    assert archive(servicing(table.storage, **KEEP)).instants == ()
    written(table, 6)
    assert archiving_due(open_state(table.storage).timeline, KEEP) == "6 commits, more than 5"
    planned = plan_archive(servicing(table.storage, **KEEP))
    assert [i.requested for i in planned.instants] == minutes(1, 2, 3)
    assert str(planned).splitlines()[0] == (f"archiving of t: 3 of 6 instants, {at(1)} to {at(3)}")
    before = open_state(table.storage).timeline
    done = archive(servicing(table.storage, **KEEP))
    assert done.instants == planned.instants
    assert active(table.storage) == minutes(4, 5, 6)
    after = open_state(table.storage).timeline
    assert after.with_history().completed() == before.completed()
    for instant in before.data():
        assert after.commit_metadata(instant) == before.commit_metadata(instant)
    assert not any(at(1) in file.path for file in table.storage.list(table.timeline))
    [seen] = FileIndex(open_state(table.storage)).list_files_at(at(2))
    assert seen.file_slices[0].base_instant == at(2)


def test_nothing_leaves_past_an_unfinished_write(version: int) -> None:
    table = written(TinyTable(version), 1, 2, 3)
    stuck = Write.begin(table.storage, instant=at(4))
    written(table, 5, 6, 7, 8)
    planned = plan_archive(servicing(table.storage, **KEEP))
    assert [i.requested for i in planned.instants] == minutes(1, 2)
    assert planned.bound is not None
    assert str(planned).splitlines()[0].endswith(f"{at(3)} stays: {at(4)} is unfinished")
    run(table.storage)
    assert active(table.storage)[0] == at(3)
    stuck.by.abandon(stuck.ticket)


def test_nothing_leaves_past_a_savepoint_unless_it_may(version: int) -> None:
    table = written(TinyTable(version), *range(1, 9))
    stem = at(2) if version == 6 else f"{at(2)}_{at(59)}"
    table.storage.write(f"{table.timeline}/{at(2)}.savepoint.inflight", b"")
    table.storage.write(f"{table.timeline}/{stem}.savepoint", b"")
    run(table.storage)
    assert active(table.storage) == minutes(*range(2, 9))
    run(table.storage, **{"hoodie.archive.beyond.savepoint": "true"})
    assert active(table.storage) == minutes(2, 7, 8)
    [seen] = FileIndex(open_state(table.storage)).list_files_at()
    assert seen.file_slices[0].base_instant == at(8)


def test_what_cleaning_keeps_readable_stays(version: int) -> None:
    table = written(TinyTable(version), *range(1, 9))
    clean(servicing(table.storage, **{"hoodie.clean.commits.retained": "6"}))
    run(table.storage)
    assert active(table.storage) == minutes(*range(3, 9))
    written(table, *range(9, 15))
    planned = schedule_cleaning(servicing(table.storage, **{"hoodie.clean.commits.retained": "9"}))
    assert planned is not None
    run(table.storage)
    assert active(table.storage)[0] == at(3)


def test_a_replacement_stays_while_files_of_its_groups_are_left(version: int) -> None:
    table = written(TinyTable(version), 1)
    table.commit(2, {"dt=1": {base_name("b", 2): b""}}, replaced={"dt=1": ["a"]})
    for minute in range(3, 9):
        table.commit(minute, {"dt=1": {base_name("b", minute): b""}})
    planned = plan_archive(servicing(table.storage, **KEEP))
    assert [i.requested for i in planned.instants] == minutes(1)
    assert (
        str(planned)
        .splitlines()[0]
        .endswith(f"{at(2)} stays: files of groups that it replaced are left")
    )
    run(table.storage)
    table.storage.delete([f"dt=1/{base_name('a', 1)}"])
    run(table.storage)
    assert active(table.storage) == minutes(6, 7, 8)
    groups = {str(g.id) for g in FileIndex(open_state(table.storage)).file_groups()}
    assert groups == {"dt=1/b"}


def test_cleanings_and_rollbacks_leave_and_the_last_cleaning_stays(version: int) -> None:
    table = TinyTable(version)
    for minute in range(1, 24, 2):
        written(table, minute)
        body = encode_clean(CleanMetadata(at(minute + 1), 1, 0, at(minute), at(minute)))
        table.instant(minute + 1, None, "clean", body)
    run(table.storage)
    assert len(active(table.storage)) == 3
    cleanings = active(table.storage, Action.CLEAN)
    assert cleanings[-1] == at(24)
    assert len(cleanings) == (3 if version == 6 else 4)
    assert len(past(table.storage)) == 24 - 3 - len(cleanings)
    # Long after the last cleaning it still tells what cannot be read.
    written(table, *range(30, 40))
    table.cleaned(29, 23)
    written(table, *range(41, 45))
    run(table.storage)
    assert active(table.storage, Action.CLEAN)[-1] == at(29)
    with pytest.raises(HistoryGone):
        list(FileIndex(open_state(table.storage)).list_files_at(at(21)))


def test_delta_commits_that_a_compaction_counts_stay(version: int) -> None:
    table = TinyTable(version, mor=True)
    table.commit(1, {"dt=1": {base_name("a", 1): b""}})
    for minute in range(2, 12):
        named = minute if version == 9 else 1
        name = log_name("a", named, 1 if version == 9 else minute)
        table.commit(minute, {"dt=1": {name: b""}})
    run(table.storage, **{"hoodie.compact.inline.max.delta.commits": "6"})
    assert active(table.storage, Action.DELTACOMMIT) == minutes(*range(6, 12))
    [seen] = FileIndex(open_state(table.storage)).list_files_at()
    assert len(seen.file_slices[0].logs) == 10


def test_nothing_leaves_while_writes_are_taken_back(version: int) -> None:
    table = written(TinyTable(version), *range(1, 9))
    plan = RollbackPlan(InstantInfo(at(8), "commit"))
    table.storage.write(f"{table.timeline}/{at(20)}.rollback.requested", encode_rollback_plan(plan))
    planned = plan_archive(servicing(table.storage, **KEEP))
    assert planned.instants == ()
    assert "everything stays: writes are being taken back" in str(planned)


def test_limits_must_leave_room() -> None:
    table = TinyTable()
    with pytest.raises(Invalid, match="not below"):
        plan_archive(servicing(table.storage, **{"hoodie.keep.min.commits": "30"}))


def busy(version: int) -> TinyTable:
    table = written(TinyTable(version), 1, 2)
    table.commit(3, {"dt=2": {base_name("b", 3): b""}}, replaced={"dt=2": ["gone"]})
    table.cleaned(4, 3)
    return written(table, 5, 6, 7, 8).cleaned(9, 8)


@pytest.mark.parametrize("error", [Crash, lambda: Unavailable("gone")], ids=["crash", "outage"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_it_can_be_cut_off_at_every_call(version: int, after: bool, error: type) -> None:
    whole = busy(version).storage
    everything = open_state(whole).timeline.completed()
    calls = every_call(whole, run)
    ended = (active(whole), past(whole))
    assert len(calls) > 5
    for call in calls:
        storage = busy(version).storage
        with contextlib.suppress(Crash, Unavailable):
            run(FaultyStorage(storage, [Fault(call.verb, call.at, after, error=error)]))
        assert open_state(storage).timeline.with_history().completed() == everything, call
        run(storage)
        assert (active(storage), past(storage)) == ended, call


def test_levels_of_the_history_are_merged_and_survive_cuts() -> None:
    options = {"hoodie.timeline.compaction.batch.size": "2"}

    def long() -> TinyTable:
        table = written(TinyTable(9, **{k.replace(".", "__"): v for k, v in options.items()}), 1)
        for minute in range(2, 20):
            written(table, minute)
            run(table.storage)
        written(table, *range(20, 24))
        return table

    whole = long().storage
    everything = open_state(whole).timeline.with_history().completed()
    assert len(everything) == 23
    calls = every_call(whole, run)
    assert len(past(whole)) == 20
    for call in calls:
        for after in (False, True):
            storage = long().storage
            with contextlib.suppress(Crash):
                fault = Fault(call.verb, call.at, after, error=Crash)
                run(FaultyStorage(storage, [fault]))
            assert open_state(storage).timeline.with_history().completed() == everything
            run(storage)
            assert len(past(storage)) == 20, call


class ListsWhileArchived(MemoryStorage):
    """Archives the table in the middle of a listing of its timeline."""

    hook: Storage | None = None

    def list(self, folder: str = "", **how: bool) -> Iterator[object]:  # type: ignore[override]
        names = sorted(super().list(folder, **how), key=lambda file: file.path)
        for number, file in enumerate(names):
            if number == 6 and self.hook is not None and folder.endswith("timeline"):
                self.hook, inner = None, self.hook
                run(inner)
            if super().stat(file.path) is not None or number < 6:
                yield file


def test_a_reader_that_lists_meanwhile_misses_no_write() -> None:
    storage = ListsWhileArchived("memory://listed-while-archived/t", {})
    table = TinyTable(9, storage=storage)
    for minute in range(1, 9):
        table.commit(minute, {f"dt={minute}": {base_name("a", minute): b"x"}})
    storage.hook = storage
    state = open_state(storage)
    assert storage.hook is None
    seen = {p.descriptor.path for p in FileIndex(state).list_files_at()}
    assert seen == {f"dt={minute}" for minute in range(1, 9)}
    assert len(state.timeline.with_history().data()) == 8


# ------------------------------------------------------------------ room for cleaning


def test_archiving_leaves_what_cleaning_is_going_to_keep(version: int) -> None:
    table = written(TinyTable(version), *range(1, 21))
    options = {**KEEP, "hoodie.clean.commits.retained": "10"}
    assert archiving_due(open_state(table.storage).timeline, options) == "20 commits, more than 13"
    run(table.storage, **options)
    assert active(table.storage) == minutes(*range(10, 21)), "ten, and the one before them"
    written(table, 21, 22)
    assert archiving_due(open_state(table.storage).timeline, options) is None
    planned = plan_archive(servicing(table.storage, **options))
    assert planned.instants == ()
    assert planned.bound is not None
    assert planned.bound.instant == at(12)
    assert planned.bound.why.startswith("cleaning by KEEP_LATEST_COMMITS (10 commits)")


def test_the_hours_of_cleaning_stay_on_the_timeline(version: int) -> None:
    table = TinyTable(version)
    now = dt.datetime.now(dt.UTC)
    ages = [*range(30, 10, -2), 5, 4, 3, 2]
    times = [(now - dt.timedelta(hours=age)).strftime("%Y%m%d%H%M%S000") for age in ages]
    for moment in times:
        Write.begin(table.storage, instant=moment).base("a").publish()
    hours = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "13"}
    run(table.storage, **hours)
    assert active(table.storage) == times[8:], "the one of 14 hours ago tells what was before"


# What a reader within the kept hours, or within the grace, is looking at.
_RECENT = [
    {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "2"},
    {"hoodie.clean.commits.retained": "1", "lakewright.clean.grace": "2h"},
    {
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": "1",
        "lakewright.clean.grace": "2h",
    },
]


@pytest.mark.parametrize("options", _RECENT, ids=["hours", "grace", "versions"])
def test_cleaning_remembers_times_that_are_archived(version: int, options: dict[str, str]) -> None:
    table = TinyTable(version).touch("dt=1/.hoodie_partition_metadata")
    now = dt.datetime.now(dt.UTC)
    ages = (300, 200, 100, 50, 40, 30, 20, 10)
    times = [(now - dt.timedelta(minutes=age)).strftime("%Y%m%d%H%M%S000") for age in ages]
    for moment in times:
        Write.begin(table.storage, instant=moment).base("a").publish()
    run(table.storage)
    assert active(table.storage) == times[5:]
    clean(servicing(table.storage, **options))
    left = {f.path.rpartition("_")[2].removesuffix(".parquet") for f in table.storage.list("dt=1")}
    assert left >= set(times[1:])
    [seen] = FileIndex(open_state(table.storage)).list_files_at(times[2])
    assert seen.file_slices[0].base_instant == times[2]


def test_options_of_one_call_shape_the_history() -> None:
    table = TinyTable(9)
    options = {"lakewright.archive.files-per-level": "2"}
    for first in (1, 7):
        written(table, *range(first, first + 6))
        run(table.storage, **options)
    names = [f.path.rpartition("/")[2] for f in table.storage.list(f"{table.timeline}/history")]
    assert any(name.endswith("_1.parquet") for name in names), "two files became one of level 1"
