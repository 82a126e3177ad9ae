"""What a committer promises, asked of the storage committer on every kind of storage."""

import pickle
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan, decode_replace_plan
from lakewright.model.errors import Conflict, Invalid
from lakewright.model.instant import Action, State
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.committing import Rivals
from lakewright.timeline.heartbeats import Heartbeat, Record, path_of, read_record
from lakewright.timeline.locks import storage_lock
from lakewright.timeline.locks.storage_lock import LockFile
from lakewright.timeline.markers import MarkerKind, Markers
from lakewright.timeline.view import TimelineView
from support.commits import (
    Write,
    committed_files,
    committer,
    completed,
    data_files,
    leftovers,
    paths,
    strictly_ordered,
)
from support.s3_server import S3Server, running_s3_server
from support.tiny_tables import SCHEMA, TinyTable

PLACES = [
    *((place, version) for place in ("memory", "local") for version in (9, 6)),
    pytest.param(("s3", 9), marks=pytest.mark.service),
]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        server.make_bucket("commits")
        yield server


@pytest.fixture(params=PLACES, ids=str)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    place, version = request.param
    match place:
        case "memory":
            empty: Storage = MemoryStorage(f"memory://commits-{uuid.uuid4().hex}/t")
        case "local":
            empty = open_storage(tmp_path)
        case _:
            server = request.getfixturevalue("s3")
            empty = open_storage(f"s3://commits/{uuid.uuid4().hex}", server.options)
    return TinyTable(version, storage=empty).storage


@pytest.fixture(params=[9, 6])
def memory(request: pytest.FixtureRequest) -> Storage:
    return TinyTable(request.param).storage


def test_a_write_takes_effect_with_all_its_files(storage: Storage) -> None:
    write = Write.begin(storage)
    view = open_state(storage).timeline
    assert [i.state for i in view.instants] == [State.INFLIGHT]
    assert paths(storage, ".hoodie/.heartbeat") == [f".hoodie/.heartbeat/{write.ticket.instant}"]
    done = write.base("a").base("b", "dt=2").publish()
    after = open_state(storage).timeline
    assert after.data() == (done,)
    assert set(after.entries[0].files) == set(State)
    metadata = after.commit_metadata(done)
    assert metadata.schema == SCHEMA
    assert metadata.operation == "UPSERT"
    assert len(committed_files(storage)) == 2
    assert not leftovers(storage)


def test_files_of_other_attempts_are_deleted(storage: Storage) -> None:
    Write.begin(storage).base("a").base("a", counts=False).publish()
    assert data_files(storage) == committed_files(storage)
    assert not leftovers(storage)


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("files", ["", "bc"])
def test_an_abandoned_write_leaves_no_trace(storage: Storage, files: str, detached: bool) -> None:
    Write.begin(storage).base("a").publish()
    before = paths(storage)
    write = Write.begin(storage, detached=detached)
    for group in files:
        write.base(group)
    write.abandon()
    assert paths(storage) == before


def test_an_abandoned_write_whose_publication_was_tried_leaves_a_rollback(
    storage: Storage,
) -> None:
    """Whoever looked at its completed file must find told what became of it."""
    write = Write.begin(storage).base("b")
    record = read_record(storage, write.ticket.instant)
    assert record is not None
    by, instant = committer(storage), write.ticket.instant
    write.by._rest(write.ticket)
    tried = replace(record, completion=str(int(instant) + 1))
    storage.write(path_of(instant), tried.encode())
    by.abandon(write.ticket)
    view = open_state(storage).timeline
    assert [i.action for i in view.completed()] == [Action.ROLLBACK]
    assert not data_files(storage) and not leftovers(storage)


def test_a_write_whose_heartbeat_another_has_leaves_a_rollback(storage: Storage) -> None:
    write = Write.begin(storage).base("b")
    write.by.abandon(replace(write.ticket, token="another"))
    assert [i.action for i in open_state(storage).timeline.completed()] == [Action.ROLLBACK]
    assert not data_files(storage) and not leftovers(storage)


def test_the_next_writer_rolls_back_what_a_dead_one_left(storage: Storage) -> None:
    dead = Write.begin(storage).base("a").die()
    write = Write.begin(storage)
    assert dead.instant not in {i.requested for i in open_state(storage).timeline.instants}
    write.base("b").publish()
    assert not leftovers(storage)


def test_a_living_write_is_left_alone(storage: Storage) -> None:
    first = Write.begin(storage).base("a")
    Write.begin(storage).base("b").publish()
    first.publish()
    assert len(completed(storage)) == 2
    assert not leftovers(storage)


def test_a_ticket_crosses_processes(storage: Storage) -> None:
    write = Write.begin(storage, detached=True).base("a")
    ticket = pickle.loads(pickle.dumps(write.die()))
    Write.begin(storage).base("b").publish()
    done = committer(storage).publish(ticket, write.metadata())
    assert done.requested == ticket.instant
    assert not leftovers(storage)


def test_publishing_again_returns_the_same_instant(storage: Storage) -> None:
    write = Write.begin(storage).base("a")
    assert write.publish() == write.publish()
    assert len(completed(storage)) == 1


def test_publishing_again_with_another_list_deletes_nothing(storage: Storage) -> None:
    write = Write.begin(storage).base("a")
    done = write.publish()
    named = committed_files(storage)
    Markers(storage, done.requested).create(next(iter(named)), MarkerKind.CREATE)
    assert write.by.publish(write.ticket, CommitMetadata(extra={"schema": SCHEMA})) == done
    assert data_files(storage) == named


def test_a_write_that_was_rolled_back_is_refused(storage: Storage) -> None:
    write = Write.begin(storage).base("a")
    folder = open_state(storage).config.timeline_folder
    pending = [p for p in paths(storage, folder) if write.ticket.instant in p and "heart" not in p]
    storage.delete(pending)
    with pytest.raises(Conflict, match="was rolled back"):
        write.publish()
    assert completed(storage) == []


def test_metadata_without_a_schema_is_refused(memory: Storage) -> None:
    with pytest.raises(Invalid, match="schema"):
        Write.begin(memory).base("a").publish(schema=None)


def test_replace_commits_are_requested_in_avro(memory: Storage) -> None:
    Write.begin(memory).base("a").publish()
    write = Write.begin(memory, action=Action.REPLACECOMMIT, operation="INSERT_OVERWRITE")
    folder = open_state(memory).config.timeline_folder
    body = memory.read(f"{folder}/{write.ticket.instant}.replacecommit.requested")
    assert body[:4] == b"Obj\x01"
    assert decode_replace_plan(body, "") == ReplacePlan()
    done = write.base("b").replacing("a").publish()
    assert open_state(memory).timeline.commit_metadata(done).replaced == {"dt=1": ("a",)}


def test_only_writes_are_begun(memory: Storage) -> None:
    with pytest.raises(Invalid, match="clean"):
        committer(memory).begin(Action.CLEAN, "CLEAN")


# ------------------------------------------------------------------------------ instants


@pytest.mark.parametrize(
    "wanted", ["20261115", "2026111500010000", "20261399000000000", "x" * 17, "20261115000100000 "]
)
def test_instants_that_are_none_are_refused(memory: Storage, wanted: str) -> None:
    with pytest.raises(Invalid):
        committer(memory).begin(Action.COMMIT, "UPSERT", instant=wanted)
    assert not leftovers(memory)


def test_a_wanted_instant_is_later_than_everything(memory: Storage) -> None:
    last = Write.begin(memory, instant="20200101000000000").base("a").publish()
    for wanted in ("20191231235959999", "20200101000000000"):
        with pytest.raises(Invalid, match="not after"):
            committer(memory).begin(Action.COMMIT, "UPSERT", instant=wanted)
    assert last.requested == "20200101000000000"
    assert Write.begin(memory).ticket.instant > "2026"


def test_times_rise_while_the_clock_runs_backwards(
    memory: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10**6, 0, -1))
    monkeypatch.setattr(time, "time", lambda: 1.9e9 + next(clock))
    done = [Write.begin(memory).base(str(n)).publish() for n in range(5)]
    times = [t for i in done for t in ((i.requested, i.completed) if i.completed else ())]
    assert times == sorted(times)
    assert strictly_ordered(done)


def test_threads_get_instants_in_strict_order(storage: Storage) -> None:
    rounds, made = 2, []

    def work(number: int) -> None:
        own = committer(storage)
        for turn in range(rounds):
            made.append(Write.begin(storage, own).base(f"g{number}-{turn}").publish())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8 * rounds
    assert strictly_ordered(made)
    assert sorted(completed(storage)) == sorted(i.requested for i in made)
    assert not leftovers(storage)


# -------------------------------------------------------------------------------- rivals


def test_writers_of_different_groups_both_take_effect(storage: Storage) -> None:
    one, other = Write.begin(storage).base("a"), Write.begin(storage).base("b")
    other.publish()
    one.publish()
    assert len(completed(storage)) == 2


def test_of_two_writers_of_one_group_the_first_wins(storage: Storage) -> None:
    one, other = Write.begin(storage).base("a"), Write.begin(storage).base("a")
    other.publish()
    with pytest.raises(Conflict, match="file groups"):
        one.publish()
    one.abandon()
    assert completed(storage) == [other.ticket.instant]
    assert not leftovers(storage)


def test_an_older_write_that_takes_effect_later_is_a_rival(storage: Storage) -> None:
    """Its requested time is before everything that the younger writer saw completed."""
    old = Write.begin(storage).base("a")
    Write.begin(storage).base("x").publish()
    young = Write.begin(storage).base("a")
    old.publish()
    with pytest.raises(Conflict):
        young.publish()


def test_the_guard_sees_the_rivals_and_the_timeline_under_the_lock(storage: Storage) -> None:
    write = Write.begin(storage).base("a")
    rival = Write.begin(storage).base("b").publish()
    seen: list[object] = []
    views: list[TimelineView] = []

    def guard(rivals: Rivals, view: TimelineView) -> None:
        seen.extend(rivals)
        views.append(view)
        raise Conflict("mine")

    with pytest.raises(Conflict, match="mine"):
        write.publish(guard)
    assert [instant for instant, _ in seen] == [rival]
    assert [view.latest_data() for view in views] == [rival]
    assert [i.requested for i in views[0].pending()] == [write.ticket.instant]
    write.publish(lambda rivals, view: None)


def test_what_was_there_before_is_no_rival(memory: Storage) -> None:
    Write.begin(memory).base("a").publish()
    rivals: list[object] = []
    Write.begin(memory).base("a").publish(lambda found, view: rivals.extend(found))
    assert rivals == []


# -------------------------------------------------------------------------------- clocks


@pytest.mark.service
def test_a_writer_whose_clock_is_ahead_rolls_nobody_back(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = TinyTable(
        storage=open_storage(f"s3://commits/{uuid.uuid4().hex}", s3.options)
    ).storage
    write = Write.begin(storage).base("a")
    ahead = time.time() + 600
    with monkeypatch.context() as other:
        other.setattr(time, "time", lambda: ahead)
        Write.begin(storage).base("b").publish()
    write.publish()
    assert len(completed(storage)) == 2
    assert not leftovers(storage)


def test_a_writer_that_slept_beyond_its_lease_publishes_nothing(
    memory: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped right before the completed file is created, and another takes the lock."""
    by = committer(memory, hoodie__write__lock__provider="storage")
    write = Write.begin(memory, by).base("a")
    wakes, soon = time.monotonic() + 1000, time.time() + 1000
    theirs = LockFile("somebody", soon + 300)
    fix = Heartbeat.fix

    def sleeps(heart: Heartbeat, completion: str, until: float) -> Record:
        before = fix(heart, completion, until)
        memory.write(storage_lock.PATH, theirs.encode())
        monkeypatch.setattr(time, "monotonic", lambda: wakes)
        monkeypatch.setattr(time, "time", lambda: soon)
        return before

    monkeypatch.setattr(Heartbeat, "fix", sleeps)
    with pytest.raises(Conflict, match="lock"):
        write.publish()
    assert completed(memory) == []
    record = read_record(memory, write.ticket.instant)
    assert record is not None and record.completion is None, "nothing was tried"


@pytest.mark.parametrize("misses", ["2", "1000"], ids=["rolled back", "overtaken"])
def test_a_writer_that_slept_while_it_published_takes_that_back(
    memory: Storage, misses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have rolled it back meanwhile, or have published what it does not know of."""
    locked = {"hoodie__write__lock__provider": "storage"}
    write = Write.begin(memory, committer(memory, **locked)).base("a")
    wakes, soon = time.monotonic() + 1000, time.time() + 1000
    create, others = MemoryStorage.create, []

    def sleeps(storage: MemoryStorage, path: str, data: bytes) -> bool:
        if not others and path.endswith(".commit"):
            monkeypatch.setattr(time, "monotonic", lambda: wakes)
            monkeypatch.setattr(time, "time", lambda: soon)
            patient = {**locked, "hoodie__client__heartbeat__tolerable__misses": misses}
            others.append(Write.begin(memory, committer(memory, **patient)).base("a"))
            others[0].publish()
        return create(storage, path, data)

    monkeypatch.setattr(MemoryStorage, "create", sleeps)
    with pytest.raises(Conflict, match="rolled back" if misses == "2" else "touches"):
        write.publish()
    assert completed(memory) == [others[0].ticket.instant]
    write.abandon()
    assert data_files(memory) == committed_files(memory)


# --------------------------------------------------------------------------------- costs


@pytest.mark.service
@pytest.mark.parametrize("how", ["lose", "drop", 503])
def test_lost_answers_of_an_object_store(s3: S3Server, how: str | int) -> None:
    storage = TinyTable(
        storage=open_storage(f"s3://commits/{uuid.uuid4().hex}", s3.options)
    ).storage
    write = Write.begin(storage).base("a")
    s3.set_faults({"method": "PUT", "key": ".commit", "how": how, "times": 2})
    done = write.publish()
    s3.set_faults()
    assert completed(storage) == [done.requested]
    assert not leftovers(storage)


@pytest.mark.service
@pytest.mark.parametrize("version", [9, 6])
def test_a_commit_on_an_object_store_takes_few_requests(s3: S3Server, version: int) -> None:
    """Markers and data files apart. Both lock turns: look, read, take, give back."""
    storage = TinyTable(
        version, storage=open_storage(f"s3://commits/{uuid.uuid4().hex}", s3.options)
    ).storage
    Write.begin(storage).base("a").publish()
    by = committer(storage)
    s3.set_faults()
    ticket = by.begin(Action.COMMIT, "UPSERT")
    begun = s3.seen()
    write = Write(storage, ticket, by).base("b")
    s3.set_faults()
    write.publish()
    published = s3.seen()
    assert len(begun) == 4 + 6, begun
    assert len(published) == 4 + 8, published
