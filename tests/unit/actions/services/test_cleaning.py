"""Cleaning: what goes, what stays and why, where it looks, and that it can be cut off anywhere."""

import contextlib
import datetime as dt
import time
from collections.abc import Callable, Mapping

import pytest

from lakewright.actions.services.clean_options import CleanSettings
from lakewright.actions.services.cleaning import clean, cleaning_due, schedule_cleaning
from lakewright.format.hudi.metadata.clean import CleanFile, CleanPlan, encode_clean_plan
from lakewright.format.hudi.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
)
from lakewright.format.hudi.metadata.replace_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ReplacePlan,
    encode_replace_plan,
)
from lakewright.format.hudi.metadata.restore import (
    SavepointMetadata,
    SavepointPartition,
    encode_savepoint,
)
from lakewright.model.errors import (
    Corrupt,
    Denied,
    HistoryGone,
    Invalid,
    InvalidOption,
    LakewrightError,
    Unavailable,
    Unsupported,
)
from lakewright.model.instant import Action, State
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from lakewright.table.file_index import FileIndex
from lakewright.table.pins import PINS_FOLDER, Pin, add_pin, drop_pins
from lakewright.table.state import open_state
from support.commits import Write
from support.faulty_storage import Crash, Fault, FaultyStorage, every_call
from support.servicing import servicing
from support.tiny_tables import TinyTable, at, base_name, log_name

COMMITS_2 = {"hoodie.clean.commits.retained": "2"}
DESCRIBED = "dt=1/.hoodie_partition_metadata"
VERSIONS_1 = {
    "hoodie.clean.policy": "keep_latest_file_versions",
    "hoodie.clean.fileversions.retained": "1",
}


@pytest.fixture(params=[9, 6], ids=["v9", "v6"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def versions(table: TinyTable, group: str, *minutes: int, partition: str = "dt=1") -> TinyTable:
    for minute in minutes:
        table.commit(minute, {partition: {base_name(group, minute): b"x" * minute}})
    return table


def files(storage: Storage, partition: str = "dt=1") -> set[str]:
    found = (file.path.rpartition("/") for file in storage.list(partition))
    return {name for _, _, name in found if not name.startswith(".hoodie")}


def bases(group: str, *minutes: int) -> set[str]:
    return {base_name(group, minute) for minute in minutes}


def savepoint(table: TinyTable, minute: int, *names: str, partition: str = "dt=1") -> None:
    held = {partition: SavepointPartition(partition, names)}
    body = encode_savepoint(SavepointMetadata("me", 1, "", held))
    done = f"{at(minute)}.savepoint" if table.layout == 1 else f"{at(minute)}_{at(59)}.savepoint"
    table.storage.write(f"{table.timeline}/{at(minute)}.savepoint.inflight", b"")
    table.storage.write(f"{table.timeline}/{done}", body)


# --------------------------------------------------------------------------- policies


def test_the_latest_commits_can_be_read(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4, 5)
    result = clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("a", 3, 4, 5)
    assert result.total.files_deleted == 2
    assert result.total.bytes_deleted == 3
    state = open_state(table.storage)
    with pytest.raises(HistoryGone, match=at(4)):
        list(FileIndex(state).list_files_at(at(3)))
    [at_4] = FileIndex(state).list_files_at(at(4))
    assert at_4.file_slices[0].base_instant == at(4)
    assert clean(servicing(table.storage, **COMMITS_2)).instant is None


def test_what_was_planned_before_is_measured_too(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4, 5)
    versions(table, "b", 6, 7, 8, partition="dt=2")
    planned = schedule_cleaning(servicing(table.storage, **COMMITS_2))
    assert planned is not None
    result = clean(servicing(table.storage), planned.instant)
    assert result.partitions["dt=1"].bytes_deleted == 1 + 2 + 3 + 4
    assert result.total.bytes_deleted == planned.bytes_in


def test_versions_are_counted_by_group(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4)
    table.commit(5, {"dt=1": {base_name("b", 5): b""}})
    options = {**VERSIONS_1, "hoodie.cleaner.fileversions.retained": "9"}
    clean(servicing(table.storage, **{**options, "hoodie.clean.fileversions.retained": "2"}))
    assert files(table.storage) == bases("a", 3, 4) | bases("b", 5)
    state = open_state(table.storage)
    with pytest.raises(HistoryGone):
        list(FileIndex(state).list_files_at(at(2)))
    list(FileIndex(state).list_files_at(at(3)))


def test_hours_are_counted_from_now(version: int) -> None:
    table = TinyTable(version).touch(DESCRIBED)
    now = dt.datetime.now(dt.UTC)
    names = []
    for hours in (5, 4, 3, 1):
        moment = (now - dt.timedelta(hours=hours, minutes=1)).strftime("%Y%m%d%H%M%S000")
        Write.begin(table.storage, instant=moment).base("a").publish()
        names.append(f"a_0-0-1_{moment}.parquet")
    options = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "2"}
    clean(servicing(table.storage, **options))
    assert files(table.storage) == set(names[2:])


def test_too_few_commits_are_left_alone(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2)
    assert schedule_cleaning(servicing(table.storage, **COMMITS_2)) is None
    assert schedule_cleaning(servicing(table.storage)) is None


def test_replaced_groups_go_when_no_kept_reading_needs_them(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2)
    table.commit(3, {"dt=1": {base_name("b", 3): b""}}, replaced={"dt=1": ["a"]})
    versions(table, "b", 4)
    assert schedule_cleaning(servicing(table.storage, **COMMITS_2)) is None
    versions(table, "b", 5)
    clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("b", 3, 4, 5)
    assert contents(table.storage) == {"dt=1/b": (f"dt=1/{base_name('b', 5)}",)}


def test_logs_and_change_files_go_with_their_slices() -> None:
    table = TinyTable(9, mor=True)
    table.commit(1, {"dt=1": {base_name("a", 1): b""}})
    table.commit(2, {"dt=1": {log_name("a", 2): b""}})
    table.commit(3, {"dt=1": {base_name("a", 3): b""}}, action="commit", operation="COMPACT")
    table.commit(4, {"dt=1": {log_name("a", 4): b"", f"{log_name('a', 4)}.cdc": b""}})
    table.commit(5, {"dt=1": {base_name("a", 5): b""}}, action="commit", operation="COMPACT")
    table.commit(6, {"dt=1": {log_name("a", 6): b""}})
    clean(servicing(table.storage, **{**VERSIONS_1, "hoodie.clean.fileversions.retained": "2"}))
    first = {base_name("a", 1), log_name("a", 2)}
    assert not first & files(table.storage)
    clean(servicing(table.storage, **VERSIONS_1))
    assert files(table.storage) == {base_name("a", 5), log_name("a", 6)}


def test_change_files_of_rewritten_groups_go_with_the_base_file(version: int) -> None:
    table = TinyTable(version)
    for minute in (1, 2, 3):
        change = f"{log_name('a', minute)}.cdc"
        table.commit(minute, {"dt=1": {base_name("a", minute): b"", change: b""}})
    clean(servicing(table.storage, **VERSIONS_1))
    assert files(table.storage) == {base_name("a", 3), f"{log_name('a', 3)}.cdc"}


def test_late_change_files_never_take_the_place_of_rows() -> None:
    table = TinyTable(9, mor=True)
    table.commit(1, {"dt=1": {base_name("a", 1): b""}})
    for minute in range(2, 7):
        table.commit(minute, {"dt=1": {f"{log_name('a', minute)}.cdc": b""}})
    assert schedule_cleaning(servicing(table.storage, **COMMITS_2)) is None
    assert schedule_cleaning(servicing(table.storage, **VERSIONS_1)) is None


def test_layout_1_logs_go_with_the_slice_they_are_named_after() -> None:
    table = TinyTable(6, mor=True)
    table.commit(1, {"dt=1": {base_name("a", 1): b""}})
    table.commit(2, {"dt=1": {log_name("a", 1): b""}})
    table.commit(3, {"dt=1": {base_name("a", 3): b""}}, action="commit", operation="COMPACT")
    table.commit(4, {"dt=1": {log_name("a", 3): b""}})
    clean(servicing(table.storage, **VERSIONS_1))
    assert files(table.storage) == {base_name("a", 3), log_name("a", 3)}


# --------------------------------------------------------------------------- shields


def test_savepointed_files_stay_until_the_savepoint_goes(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4, 5)
    savepoint(table, 2, base_name("a", 2))
    planned = schedule_cleaning(servicing(table.storage, **COMMITS_2), dry_run=True)
    assert planned is not None
    assert planned.passed_over == (("a savepoint holds them", 1),)
    clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("a", 2, 3, 4, 5)
    versions(table, "b", 6, partition="dt=2")
    servicing(table.storage).upkeep.drop_savepoint(at(2))
    clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("a", 4, 5)


def test_pinned_files_stay_until_the_pin_ends(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4, 5)
    pin = Pin("p", time.time() + 3600, "undo", {"dt=1": frozenset({base_name("a", 1)})})
    add_pin(table.storage, pin)
    clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("a", 1, 3, 4, 5)
    versions(table, "b", 6, partition="dt=2")
    drop_pins(table.storage, "p")
    clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("a", 4, 5)
    table.storage.write(f"{PINS_FOLDER}/q.json", b"?")
    with pytest.raises(Corrupt, match="pin"):
        schedule_cleaning(servicing(table.storage, **COMMITS_2))


def test_what_an_unfinished_compaction_needs_stays(version: int) -> None:
    table = TinyTable(version, mor=True)
    versions(table, "a", 1, 2, 3, 4)
    operation = CompactionOperation(at(2), (), base_name("a", 2), "a", "dt=1")
    body = encode_compaction_plan(CompactionPlan((operation,)))
    table.storage.write(f"{table.timeline}/{at(5)}.compaction.requested", body)
    clean(servicing(table.storage, **VERSIONS_1))
    assert files(table.storage) == bases("a", 2, 3, 4)


def test_what_an_unfinished_clustering_needs_stays(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3)
    piece = ClusteringSlice(table.storage.locate(f"dt=1/{base_name('a', 1)}"), (), "a", "dt=1")
    plan = ReplacePlan("CLUSTER", ClusteringPlan((ClusteringGroup((piece,)),)))
    action = "clustering" if version == 9 else "replacecommit"
    path = f"{table.timeline}/{at(4)}.{action}.requested"
    table.storage.write(path, encode_replace_plan(plan))
    clean(servicing(table.storage, **VERSIONS_1))
    assert files(table.storage) == bases("a", 1, 3)


def test_an_unfinished_write_holds_back_the_earliest_commit(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3)
    stuck = Write.begin(table.storage, instant=at(4)).base("z")
    versions(table, "a", 5, 6, 7, 8)
    planned = schedule_cleaning(servicing(table.storage, **COMMITS_2))
    assert planned is not None
    assert isinstance(planned.body, CleanPlan)
    assert planned.body.earliest_to_retain is not None
    assert planned.body.earliest_to_retain.timestamp == at(3)
    clean(servicing(table.storage, **COMMITS_2), planned.instant)
    unfinished = f"z_0-0-1_{at(4)}.parquet"
    assert files(table.storage) == {*bases("a", 2, 3, 5, 6, 7, 8), unfinished}
    stuck.by.abandon(stuck.ticket)


def test_readers_have_their_grace(version: int) -> None:
    empty = MemoryStorage(f"memory://grace-{version}/t", {})
    table = TinyTable(version, storage=empty).touch(DESCRIBED)
    for _ in range(4):
        Write.begin(empty).base("a").publish()
    before = files(empty)
    grace = {"lakewright.clean.grace": "15m"}
    assert schedule_cleaning(servicing(empty, **COMMITS_2, **grace)) is None
    planned = schedule_cleaning(servicing(empty, **VERSIONS_1, **grace))
    assert planned is None
    assert files(empty) == before
    assert clean(servicing(table.storage, **COMMITS_2)).total.files_deleted == 1


def test_files_of_unknown_and_failed_writes_are_not_touched(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4)
    stray = [base_name("a", 9), "notes.txt", "a_1_x.parquet", ".a_b.log.1"]
    for name in stray:
        table.touch(f"dt=1/{name}", b"")
        table.touch(f"elsewhere/{base_name('a', 1)}", b"")
        table.touch(f"elsewhere/{base_name('a', 2)}", b"")
    clean(servicing(table.storage, **VERSIONS_1))
    assert files(table.storage) == {base_name("a", 4), *stray}
    assert len(files(table.storage, "elsewhere")) == 2


# ---------------------------------------------------------------------- where it looks


def looked_at(storage: Storage, **options: str) -> set[str]:
    counting = FaultyStorage(storage)
    work = servicing(counting, **options)
    counting.calls.clear()
    clean(work)
    seen = {call.path for call in counting.calls if call.verb in {"list", "walk"}}
    return {path for path in seen if not path.startswith(".hoodie")}


def test_only_partitions_written_since_are_listed(version: int) -> None:
    table = TinyTable(version)
    for minute, partition in enumerate(("dt=1", "dt=1", "dt=2", "dt=3", "dt=3", "dt=2"), 1):
        versions(table, "a", minute, partition=partition)
    assert looked_at(table.storage, **COMMITS_2) == {""}
    versions(table, "a", 7, partition="dt=2")
    assert looked_at(table.storage, **COMMITS_2) == {"dt=3"}
    full = {**COMMITS_2, "hoodie.clean.incremental.enabled": "false"}
    versions(table, "a", 8, partition="dt=2")
    assert looked_at(table.storage, **full) == {""}
    assert looked_at(table.storage, **VERSIONS_1) == {""}
    versions(table, "a", 9, partition="dt=2")
    assert looked_at(table.storage, **COMMITS_2) == {""}


def test_more_retained_later_brings_nothing_back(version: int) -> None:
    table = versions(TinyTable(version), "a", *range(1, 9))
    savepoint(table, 2, base_name("a", 1), base_name("a", 2))
    clean(servicing(table.storage, **COMMITS_2))
    servicing(table.storage).upkeep.drop_savepoint(at(2))
    result = clean(servicing(table.storage, **{"hoodie.clean.commits.retained": "4"}))
    assert result.total.files_deleted == 1
    with pytest.raises(HistoryGone, match=at(7)):
        list(FileIndex(open_state(table.storage)).list_files_at(at(5)))


def test_it_is_due_by_the_number_of_commits(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3)

    def due(count: int) -> str | None:
        options = {"hoodie.clean.max.commits": str(count)}
        return cleaning_due(open_state(table.storage).timeline, options)

    assert due(3) == "3 commits since the last cleaning, 3 are enough"
    assert due(4) is None
    clean(servicing(table.storage, **VERSIONS_1))
    assert due(1) is None


# --------------------------------------------------------------------------- partitions


def dropped(version: int) -> TinyTable:
    table = versions(TinyTable(version), "a", 1, partition="dt=9")
    table.commit(2, {}, replaced={"dt=9": ["a"]})
    return versions(table, "b", 3, 4, 5)


def test_a_partition_that_is_left_empty_goes(version: int) -> None:
    table = dropped(version)
    clean(servicing(table.storage, **COMMITS_2))
    assert list(table.storage.list("dt=9")) == []
    [done] = open_state(table.storage).timeline.by_action(Action.CLEAN)
    body = open_state(table.storage).timeline.metadata(done)
    assert body.partitions["dt=9"].is_partition_deleted  # type: ignore[union-attr]


def test_an_empty_partition_stays_while_somebody_writes(version: int) -> None:
    table = dropped(version)
    planned = schedule_cleaning(servicing(table.storage, **COMMITS_2))
    assert planned is not None
    writing = Write.begin(table.storage)
    clean(servicing(table.storage, **COMMITS_2), planned.instant)
    assert [f.path for f in table.storage.list("dt=9")] == ["dt=9/.hoodie_partition_metadata"]
    writing.by.abandon(writing.ticket)


def test_an_empty_partition_that_is_written_again_stays(version: int) -> None:
    table = dropped(version)
    planned = schedule_cleaning(servicing(table.storage, **COMMITS_2))
    assert planned is not None
    Write.begin(table.storage).base("n", "dt=9").publish()
    clean(servicing(table.storage, **COMMITS_2), planned.instant)
    assert len(list(table.storage.list("dt=9"))) == 2


def test_foreign_files_keep_a_partition(version: int) -> None:
    table = dropped(version).touch("dt=9/_SUCCESS")
    clean(servicing(table.storage, **COMMITS_2))
    assert len(list(table.storage.list("dt=9"))) == 2


# ------------------------------------------------------------------- plans and their end


def test_a_plan_is_looked_at_and_carried_out_elsewhere(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4, 5)
    dry = schedule_cleaning(servicing(table.storage, **COMMITS_2), dry_run=True)
    assert dry is not None
    assert dry.instant is None
    assert (dry.files, dry.bytes_in, dry.bytes_out) == (2, 3, 0)
    assert "KEEP_LATEST_COMMITS (2 commits), there was no cleaning before" in str(dry)
    planned = schedule_cleaning(servicing(table.storage, **COMMITS_2))
    assert planned is not None
    assert planned.body == dry.body
    assert files(table.storage) == bases("a", 1, 2, 3, 4, 5)
    assert schedule_cleaning(servicing(table.storage, **COMMITS_2)) is None
    table.storage.delete([f"dt=1/{base_name('a', 1)}"])
    result = clean(servicing(table.storage), planned.instant)
    assert result.total.files_deleted == 2
    again = clean(servicing(table.storage), planned.instant)
    assert again.instant == result.instant
    assert again.total.files_deleted == 2
    assert files(table.storage) == bases("a", 3, 4, 5)


def test_what_is_saved_after_planning_stays(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4, 5)
    planned = schedule_cleaning(servicing(table.storage, **COMMITS_2))
    assert planned is not None
    savepoint(table, 2, base_name("a", 2))
    pin = Pin("p", time.time() + 3600, "undo", {"dt=1": frozenset({base_name("a", 1)})})
    add_pin(table.storage, pin)
    clean(servicing(table.storage), planned.instant)
    assert files(table.storage) == bases("a", 1, 2, 3, 4, 5)
    # The record says so: the next cleaning looks at all partitions once the holders are gone.
    servicing(table.storage).upkeep.drop_savepoint(at(2))
    versions(table, "b", 6, partition="dt=2")
    clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("a", 1, 4, 5)
    drop_pins(table.storage, "p")
    versions(table, "b", 7, partition="dt=2")
    clean(servicing(table.storage, **COMMITS_2))
    assert files(table.storage) == bases("a", 5)


def test_files_that_became_live_again_stay() -> None:
    table = versions(TinyTable(9), "a", 1, 2, 3)
    planned = schedule_cleaning(servicing(table.storage, **VERSIONS_1))
    assert planned is not None
    by = servicing(table.storage).upkeep
    by.roll_back(at(3), lambda view, instant: None)
    clean(servicing(table.storage), planned.instant)
    assert files(table.storage) == bases("a", 2)


@pytest.mark.parametrize(
    ("partition", "name"),
    [
        ("dt=1", ".hoodie_partition_metadata"),
        ("", "hoodie.properties"),
        ("dt=1", "notes.txt"),
        (".hoodie/timeline", base_name("a", 1)),
        ("..", base_name("a", 1)),
    ],
)
def test_a_plan_that_names_anything_else_is_refused(partition: str, name: str) -> None:
    table = versions(TinyTable(9), "a", 1, 2, 3)
    good = CleanFile(f"s3://elsewhere/t/dt=1/{base_name('a', 1)}")
    named = {"dt=1": (good,), partition: (good, CleanFile(f"s3://elsewhere/t/{name}"))}
    plan = CleanPlan(None, "", "KEEP_LATEST_COMMITS", files=named)
    planned = servicing(table.storage).upkeep.schedule(
        Action.CLEAN, lambda view, instant: encode_clean_plan(plan)
    )
    with pytest.raises(LakewrightError, match=r"no data file|holds"):
        clean(servicing(table.storage), planned)
    assert files(table.storage) == bases("a", 1, 2, 3)


def test_plans_of_other_software_are_carried_out(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3)

    def schedule(plan: CleanPlan) -> None:
        servicing(table.storage).upkeep.schedule(
            Action.CLEAN, lambda view, instant: encode_clean_plan(plan)
        )

    schedule(CleanPlan(None, "", "KEEP_LATEST_COMMITS", {"dt=1": (base_name("a", 1),)}, version=1))
    clean(servicing(table.storage))
    assert files(table.storage) == bases("a", 2, 3)
    boot = {"dt=1": (CleanFile(f"file:/old/{base_name('a', 2)}", True),)}
    schedule(CleanPlan(None, "", "KEEP_LATEST_COMMITS", files=boot))
    with pytest.raises(Unsupported, match="bootstrapped"):
        clean(servicing(table.storage))


def test_a_file_that_the_store_refuses_to_delete_is_reported(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4)

    def refused() -> BaseException:
        return Denied("not this one")

    paths = [Fault("delete", at=n, path=base_name("a", 2), error=refused) for n in (0, 1, 2)]
    whole = Fault("delete", path="dt=1/a", error=refused)
    result = clean(servicing(FaultyStorage(table.storage, [whole, *paths]), **VERSIONS_1))
    assert result.instant is not None
    body = open_state(table.storage).timeline.metadata(result.instant)
    assert body.partitions["dt=1"].failed == (base_name("a", 2),)  # type: ignore[union-attr]
    assert files(table.storage) == bases("a", 2, 4)
    assert result.total.files_deleted == 2


def test_what_was_refused_is_tried_again(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3)
    versions(table, "b", 4, 5, partition="dt=2")

    def refused() -> BaseException:
        return Denied("not now")

    faults = [Fault("delete", at=n, path="dt=1/a", error=refused) for n in range(9)]
    clean(servicing(FaultyStorage(table.storage, faults), **COMMITS_2))
    assert files(table.storage) == bases("a", 1, 2, 3)
    versions(table, "b", 6, partition="dt=2")
    assert looked_at(table.storage, **COMMITS_2) == {"dt=1", "dt=2"}
    assert files(table.storage) == bases("a", 3)


def test_a_store_that_does_not_answer_leaves_the_rest_to_the_next(version: int) -> None:
    table = versions(TinyTable(version), "a", 1, 2, 3, 4)
    faulty = FaultyStorage(table.storage, [Fault("delete", path="dt=1/a")])
    with pytest.raises(Unavailable):
        clean(servicing(faulty, **VERSIONS_1))
    [left] = open_state(table.storage).timeline.by_action(Action.CLEAN)
    assert left.state is State.INFLIGHT
    assert clean(servicing(table.storage, **VERSIONS_1)).total.files_deleted == 3
    assert files(table.storage) == bases("a", 4)


def interesting(version: int) -> TinyTable:
    table = dropped(version)
    return versions(table, "c", 6, 7, 8, 9)


def contents(storage: Storage) -> Mapping[str, object]:
    slices = (s for p in FileIndex(open_state(storage)).list_files_at() for s in p.file_slices)
    return {str(piece.group): piece.paths for piece in slices}


@pytest.mark.parametrize("error", [Crash, lambda: Unavailable("gone")], ids=["crash", "outage"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_it_can_be_cut_off_at_every_call(
    version: int, after: bool, error: Callable[[], BaseException]
) -> None:
    def run(storage: Storage) -> None:
        clean(servicing(storage, **COMMITS_2))

    whole = interesting(version).storage
    expected = contents(whole)
    calls = every_call(whole, run)
    ended = {f.path for f in whole.list("", recursive=True) if ".hoodie/" not in f.path}
    assert calls
    for call in calls:
        storage = interesting(version).storage
        fault = Fault(call.verb, call.at, after, error=error)
        with contextlib.suppress(Crash, Unavailable):
            run(FaultyStorage(storage, [fault]))
        assert contents(storage) == expected
        run(storage)
        left = {f.path for f in storage.list("", recursive=True) if ".hoodie/" not in f.path}
        assert left - {"dt=9/.hoodie_partition_metadata"} == ended, call
        assert open_state(storage).timeline.pending() == ()


def test_settings_have_hudis_names_and_defaults() -> None:
    found = CleanSettings.of({})
    assert (found.commits, found.versions, found.hours, found.grace) == (10, 3, 24, 0.0)
    assert CleanSettings.of({"lakewright.clean.grace": "1.5h"}).grace == 5400.0
    for key in ("hoodie.clean.policy", "hoodie.clean.commits.retained", "lakewright.clean.grace"):
        with pytest.raises(InvalidOption, match=key):
            CleanSettings.of({key: "-1"})


def test_a_table_whose_metadata_table_would_be_left_behind_is_refused() -> None:
    table = TinyTable(9, hoodie__table__metadata__partitions="files")
    with pytest.raises(Unsupported, match="metadata table"):
        schedule_cleaning(servicing(table.storage))


# ------------------------------------------------------------------------- bounded cleanings


def _grown(version: int) -> TinyTable:
    """Four inserts into new groups, then four versions of one, in two partitions."""
    table = TinyTable(version=version, partition_fields=("dt",))
    for number in range(4):
        table.commit(number, {"dt=1": {base_name(f"new{number}", number): b"x"}})
    for minute in range(4, 9):
        made = {f"dt={p}": {base_name(f"g{p}", minute): b"x"} for p in (1, 2)}
        table.commit(minute, made)
    return table


def test_a_cleaning_goes_on_by_so_many_commits(version: int) -> None:
    table = _grown(version)
    options = {"hoodie.clean.commits.retained": "1", "hoodie.clean.max.commits.to.clean": "2"}
    # The first commits have nothing to clean, and do not keep it from those after them.
    for left in ((5, 6, 7, 8), (7, 8), (7, 8)):
        clean(servicing(table.storage, **options))
        assert files(table.storage, "dt=2") == bases("g2", *left)
    whole = _grown(version)
    clean(servicing(whole.storage, **{"hoodie.clean.commits.retained": "1"}))
    for partition in ("dt=1", "dt=2"):
        assert files(table.storage, partition) == files(whole.storage, partition)
    with pytest.raises(InvalidOption, match="from 1"):
        CleanSettings.of({"hoodie.clean.max.commits.to.clean": "0"})


@pytest.mark.parametrize(
    "chosen",
    [
        {"hoodie.clean.partition.filter.selected": "dt=2, dt=9"},
        {"hoodie.clean.partition.filter.regex": "dt=[2-9]"},
        {
            "hoodie.clean.partition.filter.regex": "dt=1",
            "hoodie.clean.partition.filter.selected": "dt=2",
        },
    ],
    ids=["selected", "regex", "both"],
)
def test_some_partitions_alone_are_cleaned(version: int, chosen: Mapping[str, str]) -> None:
    table = _grown(version)
    options = {"hoodie.clean.commits.retained": "1", "hoodie.clean.incremental.enabled": "false"}
    plan = schedule_cleaning(servicing(table.storage, **options, **chosen), dry_run=True)
    assert plan is not None and {item.partition for item in plan.items} == {"dt=2"}
    before = files(table.storage)
    clean(servicing(table.storage, **options, **chosen))
    assert files(table.storage) == before
    assert files(table.storage, "dt=2") == bases("g2", 7, 8)
    # The next one does not take what was left out for cleaned.
    done = clean(servicing(table.storage, **{"hoodie.clean.commits.retained": "1"}))
    assert set(done.partitions) == {"dt=1"}
    assert files(table.storage) < before


def test_a_filter_beside_an_incremental_cleaning_is_refused(version: int) -> None:
    chosen = {"hoodie.clean.partition.filter.regex": "dt=2"}
    with pytest.raises(Invalid, match="looked at") as caught:
        CleanSettings.of(chosen)
    assert "hoodie.clean.incremental.enabled=false" in str(caught.value)
    assert CleanSettings.of({**chosen, **VERSIONS_1}).filters
    with pytest.raises(InvalidOption, match="regular expression"):
        CleanSettings.of({"hoodie.clean.partition.filter.regex": "("})
