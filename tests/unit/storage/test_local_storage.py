"""Local files: what holds beyond the contract of all storages."""

# ruff: noqa: PTH106, PTH108, PTH112, PTH123, PTH208, PTH211

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lakewright.model.errors import Denied, InvalidPath, NotFound, Unavailable
from lakewright.storage.local import LocalStorage
from lakewright.timeline.markers import MarkerKind, Markers
from support import storage_deaths


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path / "root"))


def names(storage: LocalStorage, folder: str = "") -> list[str]:
    return sorted(os.listdir(storage.locate(folder)))


VERBS = ["create", "stream", "write", "writer", "replace_if", "move", "delete"]


def left(folder: Path) -> list[Path]:
    return list(folder.rglob("*.lakewright-tmp"))


@pytest.mark.parametrize("drafts", ["nameless", "named"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_death_at_any_call_leaves_whole_files(tmp_path: Path, verb: str, drafts: str):
    script = [sys.executable, storage_deaths.__file__, str(tmp_path), verb, drafts]
    deaths = int(subprocess.run(script, capture_output=True, text=True, check=True).stdout)
    assert deaths >= 4
    old, new = storage_deaths.OLD, storage_deaths.NEW
    outcomes = set()
    for number in range(deaths + 1):
        storage = LocalStorage(str(tmp_path / str(number)))
        seen = {
            file.path: storage.read(file.path)
            for file in storage.list(recursive=True)
            if not file.path.endswith(".crc")
        }
        checksum = storage.stat("kept/.f.crc") is not None
        expected = {
            "create": [{"kept/f": old}, {"kept/f": old, "a/b/f": new}],
            "stream": [{"kept/f": old}, {"kept/f": old, "a/b/f": new}],
            "write": [{"kept/f": old}, {"kept/f": new}],
            "writer": [{"kept/f": old}, {"kept/f": new}],
            "replace_if": [{"kept/f": old}, {"kept/f": new}],
            "move": [{"kept/f": old}, {"kept/f": old, "a/b/f": old}, {"a/b/f": old}],
            "delete": [{"kept/f": old}, {}],
        }[verb]
        assert seen in expected
        assert not checksum or seen.get("kept/f") == old, "a stale checksum makes Java refuse"
        outcomes.add(expected.index(seen))
    assert 0 in outcomes, "some deaths came too early to change anything"
    assert expected.index(seen) == len(expected) - 1, "the survivor finished"
    if drafts == "nameless":
        # A file that takes another's place has a temporary name just before.
        most = 0 if verb in {"create", "stream", "move", "delete"} else 1
        assert len(left(tmp_path)) <= most, "what has no name is gone with its writer"


@pytest.mark.parametrize("code", [errno.EPERM, errno.EXDEV, errno.ENOENT])
def test_a_draft_that_cannot_be_named_is_copied(storage, monkeypatch, code: int):
    """As where ``/proc`` is another's, or a guard forbids it."""
    link = os.link

    def guarded(source, *args, **kwargs):
        if str(source).startswith("/proc/"):
            raise OSError(code, "forbidden")
        return link(source, *args, **kwargs)

    monkeypatch.setattr(os, "link", guarded)
    data = os.urandom(3_000_000)
    with storage.writer("streamed") as file:
        file.write(data)
    assert storage.create("created", data)
    assert not storage.create("created", b"other")
    storage.write("created", b"other")
    assert storage.read("streamed") == data
    assert storage.read("created") == b"other"
    assert names(storage) == ["created", "streamed"]


def test_a_full_disk_is_told_when_a_draft_gets_its_name(storage, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.ENOSPC, "no room for the name")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(Unavailable, match="no room"), storage.writer("f") as file:
        file.write(b"x")
    assert names(storage) == []


def test_create_syncs_the_file_before_and_the_folder_after_it_is_named(storage, monkeypatch):
    storage.write("first", b"")
    done: list[str] = []

    def noted(name: str):
        call = getattr(os, name)

        def wrapper(*args, **kwargs):
            if name == "fsync":
                kind = "folder" if os.path.isdir(f"/proc/self/fd/{args[0]}") else "file"
                done.append(f"fsync {kind}")
            else:
                done.append(name)
            return call(*args, **kwargs)

        return wrapper

    for name in ("fsync", "link", "rename"):
        monkeypatch.setattr(os, name, noted(name))
    storage.create("f", b"x")
    assert done == ["fsync file", "link", "fsync folder"]
    done.clear()
    storage.write("f", b"y")
    assert done == ["fsync file", "link", "link", "rename", "fsync folder"]
    done.clear()
    storage.create("new/folder/g", b"z")
    assert done == ["fsync folder", "fsync folder", "fsync file", "link", "fsync folder"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_one_still_creates(storage, monkeypatch, code: int):
    def refuse(*args, **kwargs):
        raise OSError(code, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    wins: list[int] = []

    def work(number: int) -> None:
        for i in range(20):
            if storage.create(f"{i}", str(number).encode()):
                wins.append(i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == list(range(20))
    storage.move("0", "moved")
    assert "0" not in names(storage)
    assert "moved" in names(storage)


def test_no_temporary_files_stay_and_left_ones_are_hidden(storage):
    storage.create("f", b"1")
    assert not storage.create("f", b"2")
    storage.write("f", b"3")
    assert not storage.replace_if("f", b"4", "stale")
    assert names(storage) == ["f"]
    Path(storage.locate(".0123.lakewright-tmp")).write_bytes(b"left by a crash")
    assert [file.path for file in storage.list()] == ["f"]
    assert [folder.names for folder in storage.walk()] == [["f"]]


def test_markers_are_made_without_temporary_files(storage, monkeypatch):
    """Hudi's rollback takes such a file for a marker, and leaves a file of the write behind."""
    made = []
    opened = os.open

    def watched(path, flags, *rest, **more):
        if flags & os.O_CREAT:
            made.append(path)
        return opened(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", watched)
    markers = Markers(storage, "20260101000000000")
    markers.create("p=x/.f_1.log.1_0-0-1", MarkerKind.CREATE)
    assert made == [".f_1.log.1_0-0-1.marker.CREATE"]
    assert [marker.path for marker in markers.names()] == ["p=x/.f_1.log.1_0-0-1"]


@pytest.mark.parametrize("data", [b"", b"new"])
def test_a_file_may_become_empty_and_full(storage, data: bytes):
    storage.write("f", b"old" if not data else b"")
    before = storage.stat("f").version
    storage.write("f", data)
    assert storage.read("f") == data
    assert storage.stat("f").version != before
    assert names(storage) == ["f"]


@pytest.mark.parametrize("verb", ["create", "write", "replace_if", "delete", "move"])
def test_checksums_of_hadoop_do_not_outlive_their_file(storage, verb: str):
    storage.write("d/f", b"old")
    Path(storage.locate("d/.f.crc")).write_bytes(b"sum of old")
    Path(storage.locate("d/.other.crc")).write_bytes(b"of another file")
    if verb == "create":
        os.unlink(storage.locate("d/f"))
        assert storage.create("d/f", b"new")
    elif verb == "write":
        storage.write("d/f", b"new")
    elif verb == "replace_if":
        assert storage.replace_if("d/f", b"new", storage.stat("d/f").version)
    elif verb == "delete":
        storage.delete(["d/f"])
    else:
        storage.move("d/f", "d/g")
    assert ".f.crc" not in names(storage, "d")
    assert ".other.crc" in names(storage, "d")


def test_a_failed_replace_leaves_the_checksum(storage):
    storage.write("f", b"old")
    Path(storage.locate(".f.crc")).write_bytes(b"sum of old")
    assert not storage.replace_if("f", b"new", "stale")
    assert not storage.create("f", b"new")
    assert names(storage) == [".f.crc", "f"]


def test_two_writes_in_one_tick_have_two_versions(storage, monkeypatch):
    storage.write("f", b"0")
    versions = []
    for number in range(60):
        storage.write("f", str(number % 10).encode())
        versions.append(storage.stat("f").version)
    assert len(set(versions)) == 60


def test_a_change_in_place_by_other_software_is_another_version(storage):
    storage.write("f", b"one")
    version = storage.stat("f").version
    with open(storage.locate("f"), "ab") as file:
        file.write(b"more")
    assert not storage.replace_if("f", b"two", version)


def test_links_inside_the_root_are_followed(storage, tmp_path: Path):
    storage.write("real/f", b"x")
    root = tmp_path / "root"
    (root / "linked").symlink_to(root / "real")
    (root / "file").symlink_to("real/f")
    (root / "dangling").symlink_to("nowhere")
    assert storage.read("linked/f") == b"x"
    assert storage.read("file") == b"x"
    walked = {folder.path: list(folder.names) for folder in storage.walk()}
    assert walked == {"": ["file"], "linked": ["f"], "real": ["f"]}


def test_the_root_itself_may_be_a_link(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    storage = LocalStorage(str(tmp_path / "root"))
    storage.write("a/f", b"x")
    (tmp_path / "real/in").symlink_to("a/f")
    assert storage.read("in") == b"x"
    assert storage.uri == str(tmp_path / "root")


@pytest.mark.parametrize("target", [".", "..", "../..", "../../a"])
def test_links_that_lead_round_are_refused(storage, target: str):
    storage.write("a/b/f", b"x")
    os.symlink(target, storage.locate("a/b/loop"))
    with pytest.raises(InvalidPath):
        list(storage.walk())
    with pytest.raises(InvalidPath):
        list(storage.list(recursive=True))


def test_two_links_that_lead_round_together_are_refused(storage):
    storage.write("a/f", b"x")
    storage.write("b/f", b"x")
    os.symlink("../b", storage.locate("a/to-b"))
    os.symlink("../a", storage.locate("b/to-a"))
    with pytest.raises(InvalidPath):
        list(storage.walk())


def test_a_link_to_a_name_that_only_begins_like_the_root_is_outside(tmp_path: Path):
    (tmp_path / "root-other").mkdir()
    (tmp_path / "root-other/f").write_bytes(b"x")
    storage = LocalStorage(str(tmp_path / "root"))
    storage.write("f", b"x")
    (tmp_path / "root/link").symlink_to(tmp_path / "root-other")
    with pytest.raises(InvalidPath, match="root-other"):
        storage.read("link/f")


def test_what_stands_in_the_way_is_named(storage):
    storage.write("file", b"x")
    storage.write("folder/f", b"x")
    for write in (storage.create, storage.write):
        with pytest.raises(InvalidPath, match="A file stands where a folder"):
            write("file/below", b"")
        with pytest.raises(InvalidPath, match="A file stands where a folder"):
            write("file/below/deeper", b"")
    with pytest.raises(InvalidPath, match="A folder stands where a file"):
        storage.write("folder", b"")
    assert storage.create("folder", b"") is False
    assert names(storage) == ["file", "folder"]


def test_errors_of_the_operating_system_become_ours(storage, monkeypatch):
    storage.write("f", b"x")
    with pytest.raises(InvalidPath, match="name"):
        storage.write("n" * 300, b"")
    for code, error in ((errno.EACCES, Denied), (errno.EIO, Unavailable), (errno.ENOENT, NotFound)):

        def fail(*args, code=code, **kwargs):
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", fail)
            with pytest.raises(error) as caught:
                storage.read("f")
        assert caught.value.facts["path"] == "f"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(Unavailable, match="full"):
            storage.write("g", b"x")
    assert names(storage) == ["f"]


def test_no_descriptor_is_left_open(storage):
    storage.write("d/f", b"x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        storage.create("d/f", b"y")
        storage.create("d/g", b"y")
        storage.write("d/f", b"y")
        storage.replace_if("d/f", b"z", "stale")
        storage.read("d/f")
        storage.read_range("d/f", 0, 1)
        storage.open("d/f").close()
        storage.move("d/g", "d/h")
        storage.delete(["d/g", "d/h"])
        list(storage.walk())
        with pytest.raises(NotFound):
            storage.read("gone")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_vanishes_during_a_walk_is_passed_over(storage):
    for number in range(5):
        storage.write(f"d{number}/f", b"")
    found = storage.walk()
    next(found)
    for number in range(5):
        os.unlink(storage.locate(f"d{number}/f"))
        os.rmdir(storage.locate(f"d{number}"))
    assert list(found) == []


def test_deletes_of_many_files_in_one_folder(storage, tmp_path: Path):
    folder = tmp_path / "root/d"
    folder.mkdir(parents=True)
    for number in range(2_500):
        (folder / str(number)).touch()
    storage.delete(f"d/{number}" for number in range(2_499))
    assert names(storage, "d") == ["2499"]
