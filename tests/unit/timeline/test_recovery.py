"""What the next writer does about writes that failed, and what it leaves alone."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from lakewright.format.hudi.file_names import log_file
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.format.hudi.metadata.compaction import CompactionPlan, encode_compaction_plan
from lakewright.format.hudi.metadata.replace_plan import (
    ClusteringPlan,
    ReplacePlan,
    encode_replace_plan,
)
from lakewright.format.hudi.metadata.rollback import (
    InstantInfo,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    encode_rollback_plan,
)
from lakewright.model.errors import Conflict, Corrupt
from lakewright.model.instant import Action, State
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline import recovery
from lakewright.timeline.heartbeats import Record, beat, is_open, path_of, read_record
from lakewright.timeline.markers import Marker, MarkerKind, Markers
from lakewright.timeline.owner import Owner
from lakewright.timeline.recovery import pending_failed
from support.commits import Write, block, committer, completed, data_files, leftovers, paths
from support.tiny_tables import TinyTable, at, base_name, log_name

EAGER = {"hoodie__cleaner__policy__failed__writes": "EAGER"}
STRANGER = replace(Owner.here(), machine="elsewhere")


@pytest.fixture(params=[9, 6])
def table(request: pytest.FixtureRequest) -> TinyTable:
    return TinyTable(request.param).commit(1, {"dt=1": {base_name("a", 1): b"x"}})


@pytest.fixture
def storage(table: TinyTable) -> Storage:
    return table.storage


def pending(table: TinyTable, minute: int = 2, action: str = "commit") -> str:
    """Leave a write as Hudi does that died in flight, without a heartbeat."""
    name = f"{at(minute)}.inflight" if action == "commit" else f"{at(minute)}.{action}.inflight"
    table.touch(f"{table.timeline}/{at(minute)}.{action}.requested")
    table.touch(f"{table.timeline}/{name}")
    return at(minute)


def begin_and_leave(storage: Storage, **options: str) -> None:
    by = committer(storage, **options)
    by.abandon(by.begin(Action.COMMIT, "UPSERT"))


def instants(storage: Storage) -> set[str]:
    return {i.requested for i in open_state(storage).timeline}


# ---------------------------------------------------------------------------- who is dead


def test_a_write_of_hudi_is_dead_when_it_is_old_or_nobody_else_may_write(table: TinyTable) -> None:
    left = pending(table)
    view = table.state().timeline
    assert pending_failed(view, time.time()) == ()
    assert [i.requested for i in pending_failed(view, time.time() + 125)] == [left]
    eager = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
    assert [i.requested for i in pending_failed(view, time.time(), eager)] == [left]


def test_a_heartbeat_of_hudi_counts_by_its_age(table: TinyTable) -> None:
    left = pending(table)
    table.touch(path_of(left))
    eager = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
    view = table.state().timeline
    assert pending_failed(view, time.time(), eager) == ()
    assert len(pending_failed(view, time.time() + 125)) == 1
    slow = {"hoodie.client.heartbeat.tolerable.misses": "5"}
    assert pending_failed(view, time.time() + 125, slow) == ()


def test_a_heartbeat_of_another_machine_counts_by_its_age(table: TinyTable) -> None:
    left = pending(table)
    table.touch(path_of(left), Record(STRANGER).encode())
    view = table.state().timeline
    assert pending_failed(view, time.time()) == ()
    assert len(pending_failed(view, time.time() + 125)) == 1


def test_a_dead_write_is_found_dead_by_a_clock_that_is_late(
    table: TinyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last sign lies in our future: the clock that dated it says how long ago it was."""
    left = pending(table)
    table.touch(path_of(left), Record(STRANGER).encode())
    now = time.time()
    store = now + 60
    monkeypatch.setattr(recovery, "store_time", lambda storage: store)
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    begin_and_leave(table.storage)
    assert left in instants(table.storage)
    store = now + 130
    begin_and_leave(table.storage)
    pending_now = {i.requested for i in open_state(table.storage).timeline.pending()}
    assert left not in pending_now


def test_a_publication_that_may_still_take_effect_is_waited_for(table: TinyTable) -> None:
    left = pending(table)
    dead = replace(Owner.here(), started=1)
    soon = time.time() + 300
    table.touch(path_of(left), Record(dead, completion=at(3), until=soon).encode())
    view = table.state().timeline
    assert pending_failed(view, soon - 1) == ()
    assert len(pending_failed(view, soon + 1)) == 1


def test_plans_wait_for_whoever_carries_them_out(table: TinyTable) -> None:
    plan = encode_compaction_plan(CompactionPlan())
    for minute, action in enumerate(("compaction", "logcompaction", "clean", "indexing"), 2):
        table.touch(f"{table.timeline}/{at(minute)}.{action}.requested", plan)
        table.touch(f"{table.timeline}/{at(minute)}.{action}.inflight")
    clustering = encode_replace_plan(ReplacePlan("CLUSTER", ClusteringPlan()))
    name = "clustering" if table.layout == 2 else "replacecommit"
    table.touch(f"{table.timeline}/{at(9)}.{name}.requested", clustering)
    assert pending_failed(table.state().timeline, time.time() + 9_999) == ()


def test_nothing_is_rolled_back_where_that_is_asked_for(table: TinyTable) -> None:
    left = pending(table)
    begin_and_leave(table.storage, hoodie__cleaner__policy__failed__writes="NEVER")
    assert left in instants(table.storage)


# ------------------------------------------------------------------------ what is deleted


def test_files_are_found_by_listing_where_there_are_no_markers(table: TinyTable) -> None:
    left = pending(table)
    table.touch(f"dt=1/{base_name('a', 2)}").touch(f"dt=2/{base_name('b', 2)}")
    table.touch(f"dt=1/{log_name('a', 2)}")
    table.touch("dt=1/notes.txt").touch("dt=1/_SUCCESS")
    begin_and_leave(table.storage, **EAGER)
    assert left not in instants(table.storage)
    assert {p for p in data_files(table.storage) if not p.endswith((".txt", "_SUCCESS"))} == {
        f"dt=1/{base_name('a', 1)}"
    }
    assert table.storage.stat("dt=1/notes.txt")


def test_markers_that_hudis_timeline_server_gathered_are_read(table: TinyTable) -> None:
    left = pending(table)
    stray = f"dt=9/{base_name('q', 2)}"
    table.touch(stray)
    folder = f".hoodie/.temp/{left}"
    table.touch(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    table.touch(f"{folder}/MARKERS0", f"{stray}.marker.CREATE\n".encode())
    table.touch(f"{folder}/MARKERS7", b"dt=1/gone_0-1-1_1.parquet.marker.MERGE\n")
    found = set(Markers(table.storage, left).names())
    assert found == {
        Marker(stray, MarkerKind.CREATE),
        Marker("dt=1/gone_0-1-1_1.parquet", MarkerKind.MERGE),
    }
    table.touch(f"{folder}/MARKERS7", b"")
    begin_and_leave(table.storage, **EAGER)
    assert table.storage.stat(stray) is None
    assert not paths(table.storage, ".hoodie/.temp")


def test_a_line_that_is_no_marker_stops_the_rollback(table: TinyTable) -> None:
    left = pending(table)
    table.touch(f".hoodie/.temp/{left}/MARKERS0", b"dt=1/a.parquet\n")
    with pytest.raises(Corrupt, match="MARKERS0"):
        begin_and_leave(table.storage, **EAGER)
    assert left in instants(table.storage)


def test_a_rollback_says_what_it_did(storage: Storage) -> None:
    dead = Write.begin(storage).base("x").base("y", "dt=2").die()
    begin_and_leave(storage)
    view = open_state(storage).timeline
    (done,) = view.by_action(Action.ROLLBACK)
    metadata, plan = view.metadata(done), view.plan(done)
    assert isinstance(metadata, RollbackMetadata) and isinstance(plan, RollbackPlan)
    assert metadata.commits == (dead.instant,)
    assert metadata.instants == (InstantInfo(dead.instant, "commit"),) == (plan.instant,)
    assert metadata.total_deleted == 2 and set(metadata.partitions) == {"dt=1", "dt=2"}
    deleted = metadata.partitions["dt=1"].deleted
    assert deleted == (storage.locate(f"dt=1/x_0-0-1_{dead.instant}.parquet"),)
    assert done.requested > dead.instant


def test_logs_of_layout_1(tmp_path: Path) -> None:
    """A log of its own is deleted; one that others share gets a block that undoes the write."""
    table = TinyTable(6, mor=True).commit(1, {"dt=1": {base_name("a", 1): b"x"}})
    storage = table.storage
    dead = Write.begin(storage, action=Action.DELTACOMMIT).log("a", at(1), 2)
    shared = f"dt=1/{log_name('a', 1)}"
    table.touch(shared, block(at(1)) + block(dead.ticket.instant))
    Markers(storage, dead.ticket.instant).create(shared, MarkerKind.APPEND)
    own = f"dt=1/.a_{at(1)}.log.2_0-0-1"
    assert storage.stat(own)
    gone = dead.die().instant
    begin_and_leave(storage)
    assert storage.stat(own) is None
    logs = [p for p in paths(storage, "dt=1") if ".log." in p]
    assert len(logs) == 2 and shared in logs
    undo = next(p for p in logs if p != shared)
    file = log_file("dt=1", undo.removeprefix("dt=1/"))
    assert file is not None and (file.file_id, file.instant, file.version) == ("a", at(1), 3)
    with storage.open(undo) as stream:
        (found,) = scan_blocks(stream, len(storage.read(undo)), undo)
    assert found.is_rollback and found.target_instant == gone


def test_blocks_in_a_log_of_others_are_undone_by_a_rollback_that_stays() -> None:
    """The block against them names it, so that even a writer's own undo leaves its instant."""
    table = TinyTable(6, mor=True).commit(1, {"dt=1": {base_name("a", 1): b"x"}})
    write = Write.begin(table.storage, action=Action.DELTACOMMIT)
    shared = f"dt=1/{log_name('a', 1)}"
    table.touch(shared, block(at(1)) + block(write.ticket.instant))
    Markers(table.storage, write.ticket.instant).create(shared, MarkerKind.APPEND)
    write.abandon()
    assert [i.action for i in open_state(table.storage).timeline.completed()] == [
        Action.DELTACOMMIT,
        Action.ROLLBACK,
    ]
    assert len([p for p in paths(table.storage, "dt=1") if ".log." in p]) == 2


def test_an_append_marker_of_older_hudi_names_the_base_file() -> None:
    table = TinyTable(6, mor=True).commit(1, {"dt=1": {base_name("a", 1): b"x"}})
    left = pending(table, action="deltacommit")
    own, other = f"dt=1/{log_name('a', 1, 2)}", f"dt=1/{log_name('a', 1, 1)}"
    table.touch(own, block(left)).touch(other, block(at(1)))
    Markers(table.storage, left).create(f"dt=1/{base_name('a', 1)}", MarkerKind.APPEND)
    begin_and_leave(table.storage, **EAGER)
    assert table.storage.stat(own) is None
    assert table.storage.stat(other) and table.storage.stat(f"dt=1/{base_name('a', 1)}")


# ------------------------------------------------------------------------ cut-off rollbacks


def rollback_of(table: TinyTable, target: str, *files: str, minute: int = 3) -> str:
    requests = tuple(
        RollbackRequest("dt=1", "", "", (f"file:/elsewhere/before/dt=1/{name}",)) for name in files
    )
    plan = RollbackPlan(InstantInfo(target, "commit"), requests)
    path = f"{table.timeline}/{at(minute)}.rollback.requested"
    table.touch(path, encode_rollback_plan(plan))
    return at(minute)


def test_a_rollback_of_hudi_that_was_cut_off_is_finished(table: TinyTable) -> None:
    """Its paths are full ones of wherever the table lay then."""
    left = pending(table)
    table.touch(f"dt=1/{base_name('b', 2)}")
    rollback = rollback_of(table, left, base_name("b", 2))
    begin_and_leave(table.storage, **EAGER)
    view = open_state(table.storage).timeline
    assert view.instant(rollback).is_completed
    assert left not in instants(table.storage)
    assert len(data_files(table.storage)) == 1


def test_hudi_names_a_log_of_layout_2_by_its_blocks() -> None:
    table = TinyTable(mor=True).commit(1, {"dt=1": {base_name("a", 1): b"x"}})
    left = pending(table, action="deltacommit")
    stray = log_name("a", 2)
    table.touch(f"dt=1/{stray}", block(left))
    request = RollbackRequest("dt=1", "a", left, (), {f"file:/t/dt=1/{stray}": -1})
    plan = RollbackPlan(InstantInfo(left, "deltacommit"), (request,))
    table.touch(f"{table.timeline}/{at(3)}.rollback.requested", encode_rollback_plan(plan))
    begin_and_leave(table.storage, **EAGER)
    assert data_files(table.storage) == {f"dt=1/{base_name('a', 1)}"}


def test_a_rollback_that_is_under_way_is_left_alone_with_its_target(table: TinyTable) -> None:
    left = pending(table)
    rollback = rollback_of(table, left)
    table.touch(path_of(rollback), Record(STRANGER).encode())
    table.touch(path_of(left), Record(replace(Owner.here(), started=1)).encode())
    begin_and_leave(table.storage)
    assert {left, rollback} <= instants(table.storage)


def test_a_write_that_is_being_rolled_back_is_not_published(storage: Storage) -> None:
    write = Write.begin(storage).base("b")
    folder = open_state(storage).config.timeline_folder
    plan = RollbackPlan(InstantInfo(write.ticket.instant, "commit"))
    later = str(int(write.ticket.instant) + 1)
    storage.create(f"{folder}/{later}.rollback.requested", encode_rollback_plan(plan))
    with pytest.raises(Conflict, match="rolled back"):
        write.publish()


def test_a_rollback_that_would_delete_foreign_files_is_refused(table: TinyTable) -> None:
    left = pending(table)
    kept = base_name("a", 1)
    rollback_of(table, left, kept)
    with pytest.raises(Corrupt, match="no file of that instant"):
        begin_and_leave(table.storage, **EAGER)
    assert table.storage.stat(f"dt=1/{kept}")


def test_a_rollback_without_a_plan_is_dropped(table: TinyTable) -> None:
    left = pending(table)
    rollback = at(3)
    table.touch(f"{table.timeline}/{rollback}.rollback.requested")
    begin_and_leave(table.storage, **EAGER)
    assert not {left, rollback} & instants(table.storage)


# ------------------------------------------------------------------------------ heartbeats


def test_a_heart_that_stood_still_refuses_to_publish(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Write.begin(storage).base("b")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 130)
    with pytest.raises(Conflict, match="stood still"):
        write.publish()


def test_a_heart_beats_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = TinyTable(storage=open_storage(tmp_path)).storage
    by = committer(storage, hoodie__client__heartbeat__interval_in_ms="1000")
    write = Write.begin(storage, by)
    first = storage.stat(path_of(write.ticket.instant))
    deadline = time.monotonic() + 30
    while storage.stat(path_of(write.ticket.instant)) == first and time.monotonic() < deadline:
        time.sleep(0.05)
    assert storage.stat(path_of(write.ticket.instant)) != first
    write.abandon()
    assert not leftovers(storage)


def test_a_beat_keeps_the_content_and_gives_way(storage: Storage) -> None:
    write = Write.begin(storage, detached=True)
    instant = write.ticket.instant
    before = read_record(storage, instant)
    beat(storage, instant)
    assert before == read_record(storage, instant) is not None
    beat(storage, "20261115000000000")  # none: no error, none made
    assert len(paths(storage, ".hoodie/.heartbeat")) == 1


def test_files_count_until_the_publication_is_tried_or_the_write_taken_back(
    storage: Storage,
) -> None:
    write = Write.begin(storage).base("b")
    assert is_open(storage, write.ticket.instant)
    seen: list[bool] = []
    write.publish()
    assert not is_open(storage, write.ticket.instant)

    class Looking(MemoryStorage):
        def delete(self, paths):  # type: ignore[no-untyped-def]
            gone = tuple(paths)
            if any(p.startswith("dt=") for p in gone):
                seen.append(is_open(storage, other.ticket.instant))
            super().delete(gone)

    other = Write.begin(Looking(storage.uri)).base("c")
    other.abandon()
    assert seen == [False]


def test_the_name_of_the_publication_is_fixed_before_it_is_tried(storage: Storage) -> None:
    fixed: list[str | None] = []

    class Looking(MemoryStorage):
        def create(self, path: str, data: bytes) -> bool:
            if path.endswith((f"{write.ticket.instant}.commit", "commit")):
                record = read_record(storage, write.ticket.instant)
                fixed.append(record.completion if record else None)
            return super().create(path, data)

    looking = Looking(storage.uri)
    write = Write.begin(storage)
    write.by = committer(looking)
    done = write.by.publish(write.ticket, write.metadata())
    assert fixed == [done.completed]


def test_leftovers_of_a_writer_that_died_after_its_publication_go(storage: Storage) -> None:
    write = Write.begin(storage).base("b")
    done = write.publish()
    late = f"dt=1/late_0-0-9_{done.requested}.parquet"
    storage.write(late, b"")
    Markers(storage, done.requested).create(late, MarkerKind.CREATE)
    Markers(storage, done.requested).create(
        f"dt=1/b_0-0-1_{done.requested}.parquet", MarkerKind.CREATE
    )
    dead = replace(Owner.here(), started=1)
    # What it tried has taken effect, so that nobody has to wait for it.
    record = Record(dead, completion=done.completed, until=time.time() + 600)
    storage.write(path_of(done.requested), record.encode())
    begin_and_leave(storage)
    assert not leftovers(storage)
    assert len(completed(storage)) == 2


def test_properties_that_were_left_half_replaced_are_mended(storage: Storage) -> None:
    storage.move(".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")
    begin_and_leave(storage)
    assert storage.stat(".hoodie/hoodie.properties")


def test_a_table_that_was_upgraded_meanwhile_is_refused() -> None:
    storage = TinyTable(6).storage
    by = committer(storage)
    TinyTable(9, storage=storage)
    with pytest.raises(Conflict, match="version 9"):
        by.begin(Action.COMMIT, "UPSERT")


def test_an_instant_that_another_writer_took_without_the_lock_is_refused(storage: Storage) -> None:
    """Its requested file is empty, and so would ours be."""

    class Raced(MemoryStorage):
        def create(self, path: str, data: bytes) -> bool:
            if path.endswith(".requested"):
                super().create(path, b"")
            return super().create(path, data)

    with pytest.raises(Conflict, match="taken the instant"):
        committer(Raced(storage.uri)).begin(Action.COMMIT, "UPSERT")
    (theirs,) = open_state(storage).timeline.pending()
    assert theirs.state is State.REQUESTED
    assert not paths(storage, ".hoodie/.heartbeat")
