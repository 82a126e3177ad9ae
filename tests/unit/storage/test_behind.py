"""Large local files: they are synced while they are written, and what a sync meets is told."""

import errno
import os
import threading
from pathlib import Path

import pytest

from lakewright.model.errors import Unavailable
from lakewright.storage import behind
from lakewright.storage.fleeting import fleeting
from lakewright.storage.open import open_storage

SMALL = 1 << 10


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "STEP", 4 * SMALL)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes that files had when a sync of them began."""
    found: list[int] = []

    def sync(descriptor: int) -> None:
        found.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fdatasync", sync)
    return found


def fill(folder: Path, pieces: int, *, by_kernel: bool = False, durable: bool = True) -> bytes:
    storage = open_storage(folder)
    wanted = b"".join(bytes([number % 251]) * SMALL for number in range(pieces))
    (folder / "source").write_bytes(wanted)
    with (storage if durable else fleeting(storage)).writer("made") as sink:
        if by_kernel:
            with (folder / "source").open("rb") as source:
                for number in range(pieces):
                    sink.flush()
                    os.sendfile(sink.fileno(), source.fileno(), number * SMALL, SMALL)
                    sink.seek(0, os.SEEK_END)
        else:
            for number in range(pieces):
                sink.write(wanted[number * SMALL : (number + 1) * SMALL])
                sink.flush()
        assert sink.tell() == len(wanted)
    return wanted


@pytest.mark.parametrize("by_kernel", [False, True], ids=["written", "copied"])
def test_a_large_file_is_synced_while_it_grows(
    tmp_path: Path, syncs: list[int], by_kernel: bool
) -> None:
    wanted = fill(tmp_path, 64, by_kernel=by_kernel)
    assert (tmp_path / "made").read_bytes() == wanted
    assert syncs and syncs == sorted(syncs) and syncs[0] >= 4 * SMALL
    assert not [t for t in threading.enumerate() if t.name.startswith("sync")]


def test_small_files_and_those_that_need_not_last_are_left_alone(
    tmp_path: Path, syncs: list[int]
) -> None:
    fill(tmp_path, 3)
    fill(tmp_path, 64, durable=False)
    assert syncs == []


@pytest.mark.parametrize("pieces", [5, 64], ids=["the-last", "an-early"])
def test_what_a_sync_meets_fails_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(Unavailable, match="no space left"):
        fill(tmp_path, pieces)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


@pytest.mark.parametrize("size", [(1 << 18) + 1, 1 << 20, (3 << 20) + 5])
def test_large_pieces_are_written_whole(tmp_path: Path, syncs: list[int], size: int) -> None:
    wanted = os.urandom(size)
    with open_storage(tmp_path).writer("made") as sink:
        sink.write(b"before")
        assert sink.write(wanted) == size
        assert sink.tell() == size + 6
    assert (tmp_path / "made").read_bytes() == b"before" + wanted
