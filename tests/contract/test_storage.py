"""What every storage promises, asked of all of them."""

import io
import itertools
import json
import pickle
import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs as arrow_files

from lakewright.model.errors import AlreadyExists, Invalid, InvalidPath, NotFound
from lakewright.storage import arrow_fs, fsspec_fs
from lakewright.storage.fleeting import fleeting
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support import storage_race
from support.s3_server import S3Server, running_s3_server

ODD_NAMES = ["a=b", "%", "%2F", "100%25", "two words", "東京", "é", "+plus+", "a:b", "#", "?q", "~"]


@dataclass(frozen=True)
class Subject:
    """One storage under test: how to open it, and which promises it declares not to keep.

    Gaps: ``atomic`` (two writers at once can both win), ``links`` (symbolic links that leave the
    root are not seen). ``processes`` says that another process can open the same place.
    """

    name: str
    open: Callable[[Path, str], Storage]
    gaps: frozenset[str] = frozenset()
    processes: bool = False
    on_disk: bool = False


def _arrow(filesystem: Callable[[Path], object]) -> Callable[[Path, str], Storage]:
    def opened(folder: Path, name: str) -> Storage:
        made = filesystem(folder)
        root = name if isinstance(made, arrow_files.SubTreeFileSystem) else str(folder / name)
        return arrow_fs.from_filesystem(made, root)

    return opened


BEFORE_ACTING = frozenset({"atomic", "links"})
SUBJECTS = [
    Subject("memory", lambda folder, name: open_storage(f"memory://{name}/table")),
    Subject(
        "local", lambda folder, name: open_storage(folder / name), processes=True, on_disk=True
    ),
    Subject(
        "local-fleeting",
        lambda folder, name: fleeting(open_storage(folder / name)),
        processes=True,
        on_disk=True,
    ),
    Subject(
        "arrow-local",
        _arrow(lambda folder: arrow_files.LocalFileSystem()),
        gaps=BEFORE_ACTING,
        on_disk=True,
    ),
    Subject(
        "arrow-subtree",
        _arrow(
            lambda folder: arrow_files.SubTreeFileSystem(str(folder), arrow_files.LocalFileSystem())
        ),
        gaps=BEFORE_ACTING,
        on_disk=True,
    ),
    Subject(
        "fsspec-memory",
        lambda folder, name: open_storage(f"fsspec+memory://{name}/table"),
        gaps=BEFORE_ACTING,
    ),
    Subject(
        "fsspec-local",
        lambda folder, name: fsspec_fs.from_filesystem(
            fsspec.filesystem("file"), str(folder / name)
        ),
        gaps=BEFORE_ACTING,
        on_disk=True,
    ),
    Subject("s3", lambda folder, name: pytest.fail("opened by the fixture"), processes=True),
]


def params(wanted: Callable[[Subject], bool] = lambda subject: True) -> list:
    return [
        pytest.param(s, id=s.name, marks=[pytest.mark.service] if s.name == "s3" else [])
        for s in SUBJECTS
        if wanted(s)
    ]


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3Server]:
    with running_s3_server() as server:
        server.make_bucket("lake")
        yield server


@pytest.fixture(params=params())
def subject(request) -> Subject:
    return request.param


@pytest.fixture
def storage(subject: Subject, tmp_path: Path, request) -> Storage:
    name = uuid.uuid4().hex
    if subject.name == "s3":
        server = request.getfixturevalue("s3_server")
        server.set_faults()
        return open_storage(f"s3://lake/{name}/table", server.options)
    return subject.open(tmp_path, name)


def only(wanted: Callable[[Subject], bool]):
    return pytest.mark.parametrize("subject", params(wanted), indirect=True)


def contents(storage: Storage) -> dict[str, bytes]:
    return {file.path: storage.read(file.path) for file in storage.list(recursive=True)}


def test_says_whether_it_is_atomic(storage: Storage, subject: Subject):
    assert storage.can_create_atomically == ("atomic" not in subject.gaps)


def test_writes_and_reads(storage: Storage):
    storage.write("a/b.bin", b"one")
    assert storage.read("a/b.bin") == b"one"
    storage.write("a/b.bin", b"")
    assert storage.read("a/b.bin") == b""
    storage.write("top", bytes(range(256)) * 5_000)
    assert storage.read("top") == bytes(range(256)) * 5_000


@pytest.mark.parametrize("verb", ["read", "read_range", "open", "move"])
@pytest.mark.parametrize("path", ["gone", "folder/gone", "folder", "folder/file/below-a-file"])
def test_what_is_not_there_is_not_found(storage: Storage, verb: str, path: str):
    storage.write("folder/file", b"x")
    arguments = {"read": (), "read_range": (0, 4), "open": (), "move": ("elsewhere",)}[verb]
    with pytest.raises(NotFound) as caught:
        getattr(storage, verb)(path, *arguments)
    assert path in str(caught.value)


def test_empty_range_of_an_absent_file_is_not_found(storage: Storage):
    with pytest.raises(NotFound):
        storage.read_range("gone", 0, 0)


def test_stat(storage: Storage):
    before = time.time()
    storage.write("a/b", b"12345")
    stat = storage.stat("a/b")
    assert (stat.path, stat.size) == ("a/b", 5)
    assert stat.modified is None or before - 2 < stat.modified < time.time() + 2
    assert storage.stat("a") is None
    assert storage.stat("a/c") is None
    assert storage.stat("a/b/c") is None


def test_version_follows_the_content(storage: Storage):
    storage.write("f", b"1")
    first = storage.stat("f").version
    assert storage.stat("f").version == first
    assert [file.version for file in storage.list()] == [first]
    storage.write("f", b"2")
    assert storage.stat("f").version != first


RANGES = [(0, 0), (0, 1), (0, 10), (0, 11), (3, 4), (9, 1), (9, 2), (10, 0), (10, 5), (50, 5)]


@pytest.mark.parametrize(("offset", "length"), RANGES)
def test_ranges_at_their_boundaries(storage: Storage, offset: int, length: int):
    storage.write("f", b"0123456789")
    assert storage.read_range("f", offset, length) == b"0123456789"[offset : offset + length]


@pytest.mark.parametrize(("offset", "length"), [(0, 1), (0, 0), (1, 1)])
def test_ranges_of_an_empty_file(storage: Storage, offset: int, length: int):
    storage.write("f", b"")
    assert storage.read_range("f", offset, length) == b""


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1)])
def test_what_is_no_range_is_refused(storage: Storage, offset: int, length: int):
    storage.write("f", b"0123456789")
    with pytest.raises(Invalid):
        storage.read_range("f", offset, length)


def test_open_is_a_random_access_file(storage: Storage):
    data = random.Random(1).randbytes(3_000_000)
    storage.write("f", data)
    with storage.open("f") as file:
        assert file.readable()
        assert file.seekable()
        assert file.read(10) == data[:10]
        assert file.tell() == 10
        assert file.seek(-10, io.SEEK_END) == len(data) - 10
        assert file.read() == data[-10:]
        assert file.read(1) == b""
        positions = random.Random(2)
        for _ in range(40):
            offset, length = positions.randrange(len(data)), positions.choice([1, 7, 5_000, 10**6])
            file.seek(offset)
            assert file.read(length) == data[offset : offset + length]
        file.seek(0)
        assert file.read() == data
    assert file.closed


def test_open_of_an_empty_file(storage: Storage):
    storage.write("f", b"")
    with storage.open("f") as file:
        assert file.read() == b""
        assert file.seek(0, io.SEEK_END) == 0


def test_open_serves_parquet(storage: Storage):
    rows = pa.table({"id": range(20_000), "text": [str(i) * 20 for i in range(20_000)]})
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=3_000)
    storage.write("f.parquet", sink.getvalue())
    with storage.open("f.parquet") as file:
        assert pq.ParquetFile(file).read(columns=["text"]) == rows.select(["text"])


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(storage: Storage, name: str):
    path = f"{name}/{name}"
    assert storage.create(path, b"1")
    storage.write(path, b"22")
    assert storage.read(path) == b"22"
    assert storage.stat(path).size == 2
    assert [file.path for file in storage.list(name)] == [path]
    assert list(storage.folders()) == [name]
    assert [(f.path, list(f.names)) for f in storage.walk()] == [(name, [name])]
    storage.move(path, f"{name}2")
    assert storage.read(f"{name}2") == b"22"
    storage.delete([f"{name}2"])
    assert contents(storage) == {}


def test_names_that_are_prefixes_of_others(storage: Storage):
    for path in ("a/x", "a-b/x", "ab/x", "a b/x"):
        storage.write(path, b"")
    assert [file.path for file in storage.list("a", recursive=True)] == ["a/x"]
    assert [folder.path for folder in storage.walk("a")] == ["a"]
    assert list(storage.folders()) == ["a", "a b", "a-b", "ab"]


BAD_PATHS = [
    "..",
    "../x",
    "a/../../x",
    "a/..",
    "/etc/passwd",
    "/",
    "./a",
    "a//b",
    "a/",
    "a/.",
    "a\0",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_paths_that_leave_the_root_are_refused(storage: Storage, path: str):
    storage.write("inside", b"x")
    attempts: list[Callable[[], object]] = [
        lambda: storage.read(path),
        lambda: storage.read_range(path, 0, 1),
        lambda: storage.open(path),
        lambda: storage.stat(path),
        lambda: list(storage.list(path)),
        lambda: storage.folders(path),
        lambda: list(storage.walk(path)),
        lambda: storage.create(path, b""),
        lambda: storage.write(path, b""),
        lambda: storage.writer(path).__enter__(),
        lambda: storage.replace_if(path, b"", "v"),
        lambda: storage.move(path, "x"),
        lambda: storage.move("inside", path),
        lambda: storage.delete([path]),
        lambda: storage.locate(path),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidPath):
            attempt()


@pytest.mark.parametrize("verb", ["read", "stat", "open", "create", "write"])
def test_the_root_is_no_file(storage: Storage, verb: str):
    with pytest.raises(InvalidPath):
        getattr(storage, verb)("", *([b""] if verb in {"create", "write"} else []))


@only(lambda s: s.on_disk)
@pytest.mark.parametrize("kind", ["file", "folder", "ancestor"])
def test_symbolic_links_that_leave_the_root_are_refused(
    storage: Storage, subject: Subject, tmp_path: Path, kind: str, request
):
    if "links" in subject.gaps:
        request.applymarker(pytest.mark.xfail(reason="declared: links are not seen", strict=True))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    storage.write("inside/file", b"x")
    root = _root_of(storage)
    target = {"file": outside / "secret", "folder": outside, "ancestor": tmp_path}[kind]
    (root / "inside/link").symlink_to(target)
    path = {"file": "link", "folder": "link/secret", "ancestor": "link/outside/secret"}[kind]
    path = f"inside/{path}"
    for attempt in [
        lambda: storage.read(path),
        lambda: storage.stat(path),
        lambda: storage.open(path),
        lambda: storage.write(path, b"overwritten"),
        lambda: storage.writer(path).__enter__(),
        lambda: storage.create(path + "2", b"created") if kind != "file" else storage.read(path),
        lambda: storage.delete([path]) if kind != "file" else storage.read(path),
        lambda: storage.move(path, "here"),
        lambda: storage.move("inside/file", path + "3") if kind != "file" else storage.read(path),
        lambda: list(storage.list("inside")),
        lambda: list(storage.walk()),
    ]:
        with pytest.raises(InvalidPath):
            attempt()
    if kind == "file":
        storage.delete([path])  # removes the link, which lies inside
        assert list(storage.folders()) == ["inside"]
        assert contents(storage) == {"inside/file": b"x"}
    assert [f.name for f in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


def _root_of(storage) -> Path:
    if isinstance(getattr(storage, "filesystem", None), arrow_files.SubTreeFileSystem):
        return Path(storage.filesystem.base_path) / storage.root
    return Path(getattr(storage, "root", storage.uri))


def test_an_absent_folder_is_empty(storage: Storage):
    assert list(storage.list("gone")) == []
    assert list(storage.list("gone", recursive=True)) == []
    assert list(storage.walk("gone/below")) == []
    assert list(storage.folders("gone")) == []
    assert list(storage.list()) == []
    assert list(storage.walk()) == []


TREE = [
    "top",
    "z-last",
    ".hoodie/hoodie.properties",
    ".hoodie/timeline/1.commit",
    "dt=1/a",
    "dt=1/h=1/b",
    "dt=1/h=1/c",
    "dt=1/z",
    "dt=2/.hoodie_partition_metadata",
    "dt=2/.hoodie/hidden",
    "dt=10/d",
]


@pytest.fixture
def tree(storage: Storage) -> Storage:
    for path in TREE:
        storage.write(path, path.encode())
    return storage


def test_list_is_one_folder_or_all_below(tree: Storage):
    assert sorted(f.path for f in tree.list()) == ["top", "z-last"]
    assert sorted(f.path for f in tree.list("dt=1")) == ["dt=1/a", "dt=1/z"]
    below = sorted(tree.list("dt=1", recursive=True), key=lambda f: f.path)
    assert [f.path for f in below] == ["dt=1/a", "dt=1/h=1/b", "dt=1/h=1/c", "dt=1/z"]
    assert all(f.size == len(f.path) and f.version for f in below)
    bare = tree.list("dt=1", recursive=True, stats=False)
    assert sorted(f.path for f in bare) == [f.path for f in below]
    assert sorted(f.path for f in tree.list(recursive=True)) == sorted(TREE)
    assert list(tree.list("top")) == []


def test_folders_are_sorted_and_not_recursive(tree: Storage):
    assert list(tree.folders()) == [".hoodie", "dt=1", "dt=10", "dt=2"]
    assert list(tree.folders("dt=1")) == ["dt=1/h=1"]
    assert list(tree.folders("dt=1/h=1")) == []
    assert list(tree.folders("top")) == []


SKIPS = [frozenset[str](), frozenset({".hoodie"}), frozenset({"dt=1", "h=1"})]


def test_walk_shows_each_folder_once(tree: Storage):
    starts = ["", "dt=1", "dt=1/h=1", "dt=2"]
    for sizes, start, skip in itertools.product([True, False], starts, SKIPS):
        expected: dict[str, dict[str, int]] = {}
        for path in TREE:
            folder, _, name = path.rpartition("/")
            below = not start or path.startswith(f"{start}/")
            if below and skip.isdisjoint(folder.removeprefix(start).split("/")):
                expected.setdefault(folder, {})[name] = len(path)
        found = list(tree.walk(start, sizes=sizes, skip=skip))
        assert sorted(folder.path for folder in found) == sorted(expected)
        for folder in found:
            assert len(folder.names) == len(folder.sizes)
            told = dict(zip(folder.names, folder.sizes, strict=True))
            # A store whose listing brings the sizes anyway may tell them unasked.
            unasked = dict.fromkeys(expected[folder.path], -1)
            assert told == expected[folder.path] or (not sizes and told == unasked)


@pytest.fixture
def wide(storage: Storage, subject: Subject) -> tuple[Storage, set[str]]:
    """More folders and files than fit one page, one batch or one thread."""
    folders, files = (30, 3) if subject.name == "s3" else (90, 2)
    paths = {f"dt={i // 10}/h={i}/f{j}" for i in range(folders) for j in range(files)}
    paths |= {f"dt={i // 10}/direct{i}" for i in range(folders)} | {".hoodie/x", ".hoodie/y"}
    for path in paths:
        storage.write(path, b"xy")
    return storage, paths


def test_many_files_are_listed_each_once(wide: tuple[Storage, set[str]], subject: Subject):
    storage, paths = wide
    listed = [f.path for f in storage.list(recursive=True)]
    assert len(listed) == len(paths)
    assert set(listed) == paths
    walked = list(storage.walk(skip=frozenset({".hoodie"})))
    assert len({folder.path for folder in walked}) == len(walked)
    names = [f"{folder.path}/{name}" for folder in walked for name in folder.names]
    assert sorted(names) == sorted(path for path in paths if path[0] != ".")
    assert {size for folder in walked for size in folder.sizes} == {2}


def test_a_walk_or_a_list_can_be_left_early(wide: tuple[Storage, set[str]]):
    storage, _ = wide
    threads = threading.active_count()
    for stream in (storage.walk(), storage.list(recursive=True)):
        next(stream)
        stream.close()
    deadline = time.time() + 5
    while threading.active_count() > threads and time.time() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads


def test_an_empty_folder_may_be_asked_for_twice(storage: Storage, subject: Subject):
    for _ in range(2):
        storage.ensure_folder("a/b/c")
    assert list(storage.list("a", recursive=True)) == []
    if subject.on_disk:
        assert storage.folders("a/b") == ["a/b/c"]
    storage.write("a/b/c/file", b"x")
    assert storage.read("a/b/c/file") == b"x"
    with pytest.raises(InvalidPath):
        storage.ensure_folder("../outside")


def test_create_only_where_nothing_is(storage: Storage):
    assert storage.create("a/f", b"first") is True
    assert storage.create("a/f", b"second") is False
    assert storage.read("a/f") == b"first"
    storage.delete(["a/f"])
    assert storage.create("a/f", b"third") is True
    assert storage.read("a/f") == b"third"


def test_a_stream_appears_when_it_ends(storage: Storage):
    chunk = random.Random(3).randbytes(1_000_000)
    with storage.writer("a/b/f") as file:
        for _ in range(40):  # more than two parts of a store that takes parts
            file.write(chunk)
        assert storage.stat("a/b/f") is None
        assert file.tell() == 40_000_000
        assert list(storage.list("a/b")) == []
    assert storage.stat("a/b/f").size == 40_000_000
    assert storage.read("a/b/f") == chunk * 40
    with storage.writer("a/b/f") as file:
        file.write(b"short")
        assert storage.stat("a/b/f").size == 40_000_000
    assert storage.read("a/b/f") == b"short"
    with storage.writer("a/b/f"):
        pass
    assert storage.read("a/b/f") == b""


@pytest.mark.parametrize("length", [10, 20_000_000])
def test_a_stream_that_fails_leaves_what_was_there(storage: Storage, length: int):
    storage.write("f", b"old")
    for path in ("f", "new/g"):
        with pytest.raises(ZeroDivisionError), storage.writer(path) as file:
            file.write(bytes(length))
            raise ZeroDivisionError
    assert contents(storage) == {"f": b"old"}


def test_a_stream_may_be_closed_before_its_block_ends(storage: Storage):
    with storage.writer("f") as file:
        file.write(b"closed early")
        file.close()
    assert storage.read("f") == b"closed early"


def test_a_stream_takes_parquet(storage: Storage):
    rows = pa.table({"id": range(10_000)})
    with storage.writer("f.parquet") as file, pq.ParquetWriter(file, rows.schema) as parquet:
        parquet.write_table(rows, row_group_size=1_000)
    with storage.open("f.parquet") as file:
        assert pq.ParquetFile(file).read() == rows


def test_a_stream_leaves_the_errors_of_its_block_alone(storage: Storage):
    with pytest.raises(FileNotFoundError), storage.writer("f"):
        raise FileNotFoundError("of the caller's own")


def test_replace_only_the_version_that_was_read(storage: Storage):
    assert storage.replace_if("f", b"x", "any") is False
    assert storage.stat("f") is None
    storage.write("f", b"one")
    version = storage.stat("f").version
    assert storage.replace_if("f", b"two", version) is True
    assert storage.read("f") == b"two"
    assert storage.replace_if("f", b"six", version) is False
    assert storage.read("f") == b"two"
    storage.delete(["f"])
    assert storage.replace_if("f", b"x", version) is False
    assert storage.stat("f") is None


def test_move(storage: Storage):
    storage.write("a/source", b"1")
    storage.write("taken", b"2")
    with pytest.raises(AlreadyExists):
        storage.move("a/source", "taken")
    assert contents(storage) == {"a/source": b"1", "taken": b"2"}
    storage.move("a/source", "new/folder/target")
    assert contents(storage) == {"new/folder/target": b"1", "taken": b"2"}
    with pytest.raises(NotFound):
        storage.move("a/source", "taken")


def test_delete_is_idempotent_and_takes_a_stream(storage: Storage):
    for number in range(60):
        storage.write(f"d{number % 3}/{number}", b"")
    storage.write("d0/kept", b"")
    storage.delete(f"d{number % 3}/{number}" for number in range(60))
    storage.delete(["d0/1", "never/was", "d0/1"])
    storage.delete([])
    assert contents(storage) == {"d0/kept": b""}


def test_a_folder_is_not_deleted_as_a_file(storage: Storage):
    storage.write("folder/file", b"x")
    storage.delete(["folder"])
    assert contents(storage) == {"folder/file": b"x"}


def test_locate_and_uri(storage: Storage):
    storage.write("a/b", b"x")
    assert storage.locate("a/b").endswith("/a/b")
    assert not storage.uri.endswith("/")
    assert storage.locate("") == storage.locate("a/b").removesuffix("/a/b")


@only(lambda s: not s.name.startswith(("arrow", "fsspec-local")))
def test_uri_and_options_open_the_same_place(storage: Storage):
    storage.write("f", b"x")
    again = open_storage(storage.uri, storage.options)
    assert again.read("f") == b"x"
    assert again.uri == storage.uri


def test_pickles(storage: Storage):
    storage.write("f", b"x")
    again = pickle.loads(pickle.dumps(storage))
    assert again.read("f") == b"x"
    assert (again.uri, again.options) == (storage.uri, storage.options)


def test_threads_share_one_storage(storage: Storage):
    def work(number: int) -> None:
        for i in range(5):
            storage.write(f"t{number}/{i}", str(number).encode())
            assert storage.read(f"t{number}/{i}") == str(number).encode()

    _in_threads(work, 6)
    assert len(contents(storage)) == 30


ATOMIC = only(lambda s: "atomic" not in s.gaps)
SHARED = only(lambda s: s.processes and "atomic" not in s.gaps)


@ATOMIC
def test_of_many_threads_one_creates(storage: Storage):
    rounds, contestants = 20, 8
    gate = threading.Barrier(contestants)
    wins: list[tuple[int, int]] = []

    def work(number: int) -> None:
        for i in range(rounds):
            gate.wait()
            if storage.create(f"race/{i}", str(number).encode()):
                wins.append((i, number))

    _in_threads(work, contestants)
    assert sorted(i for i, _ in wins) == list(range(rounds))
    assert all(storage.read(f"race/{i}") == str(number).encode() for i, number in wins)


@ATOMIC
def test_of_many_threads_none_loses_an_increment(storage: Storage):
    storage.write("counter", b"0")
    _in_threads(lambda _: storage_race.increment(storage, 6), 5)
    assert storage.read("counter") == b"30"


@SHARED
def test_of_many_processes_one_creates(storage: Storage):
    rounds = 30
    with ExitStack() as stack:
        racers = [_racer(stack, "create", storage, str(rounds), f"p{i}") for i in range(4)]
        won = [json.loads(line) for line in _run(racers)]
    assert sorted(i for rounds_won in won for i in rounds_won) == list(range(rounds))
    for number, rounds_won in enumerate(won):
        assert all(storage.read(f"race/{i}") == f"p{number}".encode() for i in rounds_won)


@SHARED
def test_of_many_processes_none_loses_an_increment(storage: Storage):
    storage.write("counter", b"0")
    with ExitStack() as stack:
        racers = [_racer(stack, "increment", storage, "10") for _ in range(3)]
        assert _run(racers) == ["done"] * 3
    assert storage.read("counter") == b"30"


@SHARED
def test_a_killed_writer_leaves_no_part_of_a_file(storage: Storage):
    size = 2_000_000
    for seed in range(3):
        with ExitStack() as stack:
            racer = _racer(stack, "pour", storage, str(size))
            racer.stdin.write("go\n")
            racer.stdin.flush()
            time.sleep(random.Random(seed).uniform(0.05, 0.3))
            racer.kill()
            racer.wait()
    for stat in storage.list("poured"):
        number = int(stat.path.rpartition("/")[2])
        assert storage.read(stat.path) == storage_race.poured(number, size)
    assert all(name.isdigit() for folder in storage.walk("poured") for name in folder.names)


def _in_threads(work: Callable[[int], None], count: int) -> None:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  (shown by the test that runs the threads)
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def _racer(stack: ExitStack, verb: str, storage: Storage, *rest: str) -> subprocess.Popen:
    arguments = [verb, storage.uri, json.dumps(dict(storage.options)), *rest]
    process = subprocess.Popen(
        [sys.executable, storage_race.__file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.enter_context(process)
    stack.callback(process.kill)
    assert process.stdout.readline() == "ready\n"
    return process


def _run(racers: list[subprocess.Popen]) -> list[str]:
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return [racer.stdout.readline().strip() for racer in racers]
