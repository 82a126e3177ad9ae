"""What every lock promises, asked of all of them; then what each adds."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.model.errors import Conflict, InvalidOption, Unavailable, Unsupported
from lakewright.model.services import Outcome
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.timeline.locks import storage_lock
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.locks.file_lock import FileLock
from lakewright.timeline.locks.port import TableLock
from lakewright.timeline.locks.process_lock import ProcessLock
from lakewright.timeline.locks.services_lock import services_lock
from lakewright.timeline.locks.storage_lock import LockFile, StorageLock
from lakewright.timeline.owner import Owner
from support.faulty_storage import Fault, FaultyStorage
from support.s3_server import S3Server, running_s3_server


@dataclass(frozen=True)
class Subject:
    """One lock under test: where its table lies, and the option that chooses it.

    The one of ``services`` is that of those who look after a table.
    """

    name: str
    place: str
    provider: str
    processes: bool
    services: bool = False

    def lock(self, storage: Storage) -> TableLock:
        return (services_lock if self.services else open_lock)(storage, self.options())

    def options(self, **more: str) -> dict[str, str]:
        dotted = {f"hoodie.write.lock.{k.replace('__', '.')}": v for k, v in more.items()}
        return {"hoodie.write.lock.provider": self.provider, **dotted}


SUBJECTS = [
    Subject("process", "memory", "process", processes=False),
    Subject("file", "local", "file", processes=True),
    Subject("storage-local", "local", "storage", processes=True),
    Subject("storage-memory", "memory", "storage", processes=False),
    Subject("storage-s3", "s3", "storage", processes=True),
    Subject("services-memory", "memory", "file", processes=False, services=True),
    Subject("services-local", "local", "file", processes=True, services=True),
    Subject("services-s3", "s3", "storage", processes=True, services=True),
]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        server.make_bucket("locks")
        yield server


@pytest.fixture(
    params=[
        pytest.param(s, id=s.name, marks=[pytest.mark.service] if s.place == "s3" else [])
        for s in SUBJECTS
    ]
)
def subject(request: pytest.FixtureRequest) -> Subject:
    return request.param


@pytest.fixture
def storage(subject: Subject, tmp_path: Path, request: pytest.FixtureRequest) -> Storage:
    if subject.place == "memory":
        return MemoryStorage(f"memory://locks-{uuid.uuid4().hex}/t")
    if subject.place == "local":
        return open_storage(tmp_path)
    server = request.getfixturevalue("s3")
    return open_storage(f"s3://locks/{uuid.uuid4().hex}", server.options)


@pytest.fixture
def lock(subject: Subject, storage: Storage) -> TableLock:
    return subject.lock(storage)


def test_one_holder_at_a_time(subject: Subject, storage: Storage, lock: TableLock) -> None:
    other = subject.lock(storage)
    with lock.acquire():
        with pytest.raises(Unavailable) as caught:
            other.acquire(0.05)
        assert f"process {os.getpid()} of " in str(caught.value)
    with other.acquire(5):
        pass


def test_a_lock_that_was_released_twice_is_not_taken_from_the_next(
    subject: Subject, storage: Storage, lock: TableLock
) -> None:
    first = lock.acquire()
    first.release()
    second = subject.lock(storage).acquire()
    first.release()
    second.secure(1)
    with pytest.raises(Unavailable):
        lock.acquire(0.05)
    second.release()


def test_an_error_in_the_block_releases_it(lock: TableLock) -> None:
    with pytest.raises(ZeroDivisionError), lock.acquire():
        raise ZeroDivisionError
    with lock.acquire(5):
        pass


def test_the_holder_is_shown(lock: TableLock) -> None:
    assert lock.describe() is None
    with lock.acquire() as lease:
        status = lock.describe()
        assert status is not None
        assert (status.owner, status.pid, status.alive) == (lease.owner, os.getpid(), True)
        assert status.age is not None and -1 < status.age < 60
    assert lock.describe() is None


def test_a_lease_is_secure_while_it_is_held(lock: TableLock) -> None:
    with lock.acquire() as lease:
        lease.secure(5)


def test_threads_take_turns(subject: Subject, storage: Storage) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        own = subject.lock(storage)
        for _ in range(5):
            with own.acquire(60):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 20


COUNT = """
import sys
from pathlib import Path
from lakewright.storage.open import open_storage
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.locks.services_lock import services_lock
import json
uri, options, services, counter, rounds = json.loads(sys.argv[1])
lock = (services_lock if services else open_lock)(open_storage(uri, options), options)
for _ in range(rounds):
    with lock.acquire(60):
        value = int(Path(counter).read_text())
        Path(counter).write_text(str(value + 1))
"""


def test_processes_take_turns(subject: Subject, storage: Storage, tmp_path: Path) -> None:
    if not subject.processes:
        assert subject.place == "memory", "memory is not shared between processes"
        return
    counter = tmp_path / "counter"
    counter.write_text("0")
    rounds = 40 if subject.place == "local" else 6
    options = {**storage.options, **subject.options()}
    argument = json.dumps([storage.uri, options, subject.services, str(counter), rounds])
    running = [subprocess.Popen([sys.executable, "-c", COUNT, argument]) for _ in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert counter.read_text() == str(3 * rounds)


HOLD = """
import json, sys, time
from lakewright.storage.open import open_storage
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.locks.services_lock import services_lock
uri, options, services = json.loads(sys.argv[1])
(services_lock if services else open_lock)(open_storage(uri, options), options).acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_free_at_once(
    subject: Subject, storage: Storage, lock: TableLock
) -> None:
    if not subject.processes:
        assert subject.place == "memory", "memory dies with its process"
        return
    options = {**storage.options, **subject.options()}
    argument = json.dumps([storage.uri, options, subject.services])
    holder = subprocess.Popen([sys.executable, "-c", HOLD, argument], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder.stdout as lines:
        assert lines.readline() == b"held\n"
        with pytest.raises(Unavailable, match=f"process {holder.pid} of"):
            lock.acquire(0.1)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    status = lock.describe()
    assert status is not None and not status.alive
    with lock.acquire(10):
        pass


def test_lost_answers_are_settled(subject: Subject, storage: Storage) -> None:
    """Each call of acquiring and releasing fails once, before or after it was done."""
    probe = FaultyStorage(storage)
    with subject.lock(probe).acquire():
        pass
    for number in range(len(probe.calls)):
        for after in (False, True):
            faulty = FaultyStorage(storage, [Fault(at=number, after=after)])
            with contextlib.suppress(Unavailable):
                subject.lock(faulty).acquire(5).release()
            with subject.lock(storage).acquire(5):
                pass


# ------------------------------------------------------------------------------- choosing


def test_the_place_chooses_the_lock(tmp_path: Path) -> None:
    assert isinstance(open_lock(MemoryStorage("memory://choice/t"), {}), ProcessLock)
    assert isinstance(open_lock(open_storage(tmp_path), {}), FileLock)
    assert isinstance(open_lock(open_storage("s3://bucket/t"), {}), StorageLock)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider", FileLock),
        ("org.apache.hudi.client.transaction.lock.StorageBasedLockProvider", StorageLock),
        ("org.apache.hudi.client.transaction.lock.InProcessLockProvider", ProcessLock),
        ("FileSystem", FileLock),
        ("storage", StorageLock),
        ("inprocess", ProcessLock),
    ],
)
def test_hudis_names_choose_the_lock(name: str, kind: type, tmp_path: Path) -> None:
    chosen = open_lock(open_storage(tmp_path), {"hoodie.write.lock.provider": name})
    assert isinstance(chosen, kind)


def test_a_lock_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="Zookeeper"):
        open_lock(
            open_storage(tmp_path), {"hoodie.write.lock.provider": "a.ZookeeperBasedLockProvider"}
        )


def test_storage_without_atomic_creation_needs_a_lock_that_is_asked_for() -> None:
    storage = open_storage("fsspec+memory://nolock/t")
    with pytest.raises(Unsupported, match=r"hoodie\.write\.lock\.provider=process"):
        open_lock(storage, {})
    with open_lock(storage, {"hoodie.write.lock.provider": "process"}).acquire():
        pass


# ------------------------------------------------------------------------------ file lock


@pytest.fixture
def folder(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


def file_lock(storage: Storage, **options: str) -> TableLock:
    return open_lock(storage, Subject("", "", "file", processes=True).options(**options))


JAVA = b"""{
  "lockCreateTime" : "2026-11-15 22:00:00.000",
  "lockThreadName" : "main",
  "lockStacksInfo" : [ "a.b (C.java:1)" ]
}"""


def test_a_lock_file_of_hudi_is_respected_until_it_expires(folder: Storage) -> None:
    folder.create(".hoodie/lock", JAVA)
    with pytest.raises(Unavailable, match="thread main"):
        file_lock(folder).acquire(0.05)
    path = Path(folder.locate(".hoodie/lock"))
    old = time.time() - 120
    os.utime(path, (old, old))
    for minutes in ("0", "3"):
        with pytest.raises(Unavailable):
            file_lock(folder, filesystem__expire=minutes).acquire(0.05)
    with file_lock(folder, filesystem__expire="1").acquire(5):
        assert b"lakewright/" in path.read_bytes()
    assert not path.exists()


def test_an_empty_lock_file_is_one_that_hudi_is_just_writing(folder: Storage) -> None:
    folder.create(".hoodie/lock", b"")
    with pytest.raises(Unavailable, match="other software"):
        file_lock(folder).acquire(0.05)


def test_the_lock_file_may_lie_elsewhere(folder: Storage, tmp_path: Path) -> None:
    elsewhere = tmp_path / "locks"
    lock = file_lock(folder, filesystem__path=str(elsewhere))
    with lock.acquire():
        assert json.loads((elsewhere / "lock").read_text())["lockThreadName"]
        assert folder.stat(".hoodie/lock") is None
    assert not list(elsewhere.iterdir())


def test_a_lock_file_that_was_deleted_under_its_holder_is_noticed(folder: Storage) -> None:
    """Hudi deletes the file whenever one of its writers closes."""
    lock = file_lock(folder)
    with lock.acquire() as lease:
        folder.delete([".hoodie/lock"])
        with pytest.raises(Conflict, match="taken away"):
            lease.secure(1)
        with pytest.raises(Unavailable):  # the gate still stands between writers of ours
            file_lock(folder).acquire(0.05)
        folder.create(".hoodie/lock", JAVA)
    assert folder.read(".hoodie/lock") == JAVA, "the lock of another is left alone"


def test_a_lock_file_of_another_machine_is_not_broken_by_its_pid(folder: Storage) -> None:
    for pid in (4_000_000, os.getpid()):
        stranger = replace(Owner.here(), machine="elsewhere", pid=pid)
        folder.write(".hoodie/lock", json.dumps({"owner": str(stranger)}).encode())
        with pytest.raises(Unavailable, match=f"process {pid}"):
            file_lock(folder).acquire(0.05)


FORK = """
import os, sys, time
from lakewright.storage.open import open_storage
from lakewright.timeline.locks.choose import open_lock
lock = open_lock(open_storage(sys.argv[1]), {})
lease = lock.acquire()
child = os.fork()
if child == 0:
    time.sleep(600)
lease.release()
lock.acquire(5).release()
os.kill(child, 9)
"""


def test_a_process_that_was_forked_meanwhile_does_not_hold_the_lock(folder: Storage) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, folder.uri]
    subprocess.run(command, check=True, timeout=120)


def test_a_held_lock_file_is_touched(folder: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewright.timeline.locks.file_lock.RENEWAL", 0.01)
    with file_lock(folder).acquire():
        path = Path(folder.locate(".hoodie/lock"))
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 30
        while path.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 2


# --------------------------------------------------------------------------- storage lock


def storage_file(storage: Storage) -> dict[str, object]:
    return json.loads(storage.read(storage_lock.PATH))


def test_the_lock_file_has_hudis_fields_and_is_never_deleted(folder: Storage) -> None:
    lock = open_lock(folder, {"hoodie.write.lock.provider": "storage"})
    with lock.acquire() as lease:
        held = storage_file(folder)
        assert list(held) == ["expired", "validUntil", "owner"]
        assert held["owner"] == lease.owner and held["expired"] is False
        assert 290_000 < held["validUntil"] - time.time() * 1000 <= 300_000
    assert storage_file(folder) == {**held, "expired": True}


@pytest.mark.parametrize(
    ("valid_for", "expired", "free"),
    [(60, False, False), (60, True, True), (-60, False, True), (-0.3, False, False)],
)
def test_a_lease_of_hudi_is_respected(
    folder: Storage, valid_for: float, expired: bool, free: bool
) -> None:
    """The last case: within the tolerance for clocks."""
    theirs = LockFile("5b2c8f1e-0000-4000-8000-1234567890ab", time.time() + valid_for, expired)
    folder.create(storage_lock.PATH, theirs.encode())
    renewed = theirs.valid_until - 300
    os.utime(folder.locate(storage_lock.PATH), (renewed, renewed))
    lock = open_lock(folder, {"hoodie.write.lock.provider": "storage"})
    if free:
        with lock.acquire(0.5):
            pass
    else:
        with pytest.raises(Unavailable, match="5b2c8f1e"):
            lock.acquire(0.05)


@pytest.mark.parametrize("until", ["tomorrow", "for ever"])
def test_a_lease_that_nobody_renews_ends_though_its_clock_was_far_ahead(
    folder: Storage, until: str
) -> None:
    end = time.time() + 90_000 if until == "tomorrow" else 1e300
    stranger = str(replace(Owner.here(), machine="elsewhere"))
    folder.create(storage_lock.PATH, LockFile(stranger, end).encode())
    lock = open_lock(folder, {"hoodie.write.lock.provider": "storage"})
    for age, free in ((600, False), (7_000, True)):
        renewed = time.time() - age
        os.utime(folder.locate(storage_lock.PATH), (renewed, renewed))
        if free:
            with lock.acquire(0.5):
                pass
        else:
            with pytest.raises(Unavailable, match=str(os.getpid())):
                lock.acquire(0.05)


def test_a_lease_is_renewed_while_it_is_held(folder: Storage) -> None:
    lock = StorageLock(folder, wait=1, validity=600, renewal=0.01)
    with lock.acquire():
        first = storage_file(folder)["validUntil"]
        deadline = time.monotonic() + 30
        while storage_file(folder)["validUntil"] == first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert storage_file(folder)["validUntil"] > first


def test_a_lease_shorter_than_a_request_is_refused(folder: Storage) -> None:
    lock = StorageLock(folder, wait=1, validity=30, renewal=10)
    with lock.acquire() as lease:
        lease.secure(20)
        with pytest.raises(Conflict, match=r"validity\.timeout"):
            lease.secure(60)


def test_a_lease_that_was_taken_over_is_lost_and_left_alone(folder: Storage) -> None:
    lock = StorageLock(folder, wait=1, validity=1.5, renewal=100)
    lease = lock.acquire()
    theirs = LockFile("somebody", time.time() + 100)
    folder.write(storage_lock.PATH, theirs.encode())
    with pytest.raises(Conflict):
        lease.secure(1)
    lease.release()
    assert LockFile.parse(folder.read(storage_lock.PATH)).owner == "somebody"


def test_a_clock_that_is_set_back_does_not_prolong_a_lease(
    folder: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = StorageLock(folder, wait=1, validity=30, renewal=100).acquire()
    theirs = LockFile("somebody", time.time() + 100)
    folder.write(storage_lock.PATH, theirs.encode())
    passed, ago = time.monotonic() + 40, time.time() - 3600
    with monkeypatch.context() as later:
        later.setattr(time, "monotonic", lambda: passed)
        later.setattr(time, "time", lambda: ago)
        with pytest.raises(Conflict):
            lease.secure(1)
        lease.release()
    assert LockFile.parse(folder.read(storage_lock.PATH)) == LockFile.parse(theirs.encode())


def on_s3(s3: S3Server) -> Storage:
    return open_storage(f"s3://locks/{uuid.uuid4().hex}", s3.options)


@pytest.mark.service
@pytest.mark.parametrize("kind", ["storage", "file"])
def test_a_clock_that_is_ahead_robs_nobody(
    s3: S3Server, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = on_s3(s3)
    options = {"hoodie.write.lock.provider": kind}
    with open_lock(storage, options).acquire() as lease:
        ahead = time.time() + 3600
        with monkeypatch.context() as other:
            other.setattr(time, "time", lambda: ahead)
            with pytest.raises(Unavailable):
                open_lock(storage, options).acquire(0.3)
        lease.secure(1)
    with open_lock(storage, options).acquire(5):
        pass


@pytest.mark.service
def test_a_holder_whose_clock_is_late_is_not_robbed(s3: S3Server) -> None:
    storage = on_s3(s3)
    stranger = str(replace(Owner.here(), machine="elsewhere"))
    late = LockFile(stranger, time.time() - 3600)
    storage.create(storage_lock.PATH, late.encode())
    lock = StorageLock(storage, wait=10, validity=3, renewal=1)
    with pytest.raises(Unavailable):
        lock.acquire(0.3)
    # Nobody renews it any more.
    with lock.acquire(10):
        assert LockFile.parse(storage.read(storage_lock.PATH)).owner != stranger


def test_a_clock_that_is_late_does_not_wait_for_somebody_who_is_gone(
    folder: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = str(replace(Owner.here(), machine="elsewhere"))
    now = time.time()
    folder.create(storage_lock.PATH, LockFile(stranger, now + 3).encode())
    lock = StorageLock(folder, wait=1, validity=30, renewal=10)
    store = now + 20
    monkeypatch.setattr(storage_lock, "store_time", lambda storage: store)
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    with pytest.raises(Unavailable):
        lock.acquire(0.1)
    store = now + 40
    with lock.acquire(1) as lease:
        assert LockFile.parse(folder.read(storage_lock.PATH)).owner == lease.owner


def test_a_lock_file_that_cannot_be_read_holds_nobody(folder: Storage) -> None:
    folder.create(storage_lock.PATH, b"{")
    with open_lock(folder, {"hoodie.write.lock.provider": "storage"}).acquire(1):
        pass


# -------------------------------------------------------------------------- lock of services


@pytest.mark.service
def test_one_looks_after_a_table_on_s3_at_a_time(s3: S3Server) -> None:
    uri = f"s3://locks/{uuid.uuid4().hex}"
    table = lw.create_table(
        uri, schema="id string, n bigint", key="id", type="MERGE_ON_READ", options=s3.options
    )
    for number in range(3):
        table.upsert([{"id": "a", "n": number}])
    due = {"hoodie.compact.inline.max.delta.commits": "1", "lakewright.services": "compaction"}
    lock = services_lock(open_storage(uri, s3.options), {})
    with lock.acquire():
        (told,) = table.look_after(options=due)
        assert told.outcome is Outcome.LEFT and f"process {os.getpid()} of" in told.why
        table.upsert([{"id": "a", "n": 3}])  # writers do not wait for services
    # The answer to the first one's taking it is lost: it holds the lock nevertheless.
    s3.set_faults({"method": "PUT", "key": "services.lock", "how": "lose", "times": 1})
    (told,) = table.look_after(options=due)
    assert told.outcome is Outcome.DONE and lock.describe() is None
    assert table.scan().to_arrow().to_pylist() == [{"id": "a", "n": 3}]
