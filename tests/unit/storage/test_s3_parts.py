"""The parts of S3 storage that need no server: grouping, key ranges, the ranged file."""

import datetime
import io
import random
from bisect import bisect_right
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.storage.port import FileStat
from lakewright.storage.s3_file import TAIL, RangedFile
from lakewright.storage.s3_listing import Listing, group

names = st.text("ab-.0/=東\U0001f600", min_size=1, max_size=3).filter(
    lambda name: "/" not in name and name not in {".", ".."}
)
trees = st.sets(st.lists(names, min_size=1, max_size=4).map("/".join), max_size=40)


class SortedBucket:
    """Lists keys as S3 does: in order, by prefix, delimiter and start, in pages."""

    def __init__(self, keys: set[str], page: int) -> None:
        self.keys = sorted(keys, key=str.encode)
        self.page = page

    def get_paginator(self, verb: str) -> "SortedBucket":
        assert verb == "list_objects_v2"
        return self

    def paginate(self, Bucket: str, Prefix: str = "", Delimiter: str = "", StartAfter: str = ""):
        entries: list[tuple[str, str]] = []
        for key in self.keys[bisect_right(self.keys, StartAfter) :]:
            if not key.startswith(Prefix):
                continue
            inner, found, _ = (
                key[len(Prefix) :].partition(Delimiter) if Delimiter else (key, "", "")
            )
            entry = ("Prefix", Prefix + inner + found) if found else ("Key", key)
            if entry not in entries[-1:]:
                entries.append(entry)
        for start in range(0, max(len(entries), 1), self.page):
            part = entries[start : start + self.page]
            yield {
                "IsTruncated": start + self.page < len(entries),
                "Contents": [_entry(key) for kind, key in part if kind == "Key"],
                "CommonPrefixes": [{"Prefix": key} for kind, key in part if kind == "Prefix"],
            }


def _entry(key: str) -> dict[str, Any]:
    return {"Key": key, "Size": len(key), "LastModified": datetime.datetime.now(datetime.UTC)}


def expected_walk(paths: set[str], start: str, skip: frozenset[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if start and folder != start and not folder.startswith(f"{start}/"):
            continue
        if skip.isdisjoint(folder[len(start) :].split("/")):
            found.setdefault(folder, set()).add(name)
    return found


@given(
    paths=trees,
    skip=st.frozensets(names, max_size=2),
    page=st.integers(1, 7),
    threads=st.integers(1, 5),
    prefix=st.sampled_from(["", "root/", "a/"]),
    data=st.data(),
)
def test_walks_find_every_file_once(paths, skip, page, threads, prefix, data):
    folders = sorted({path.rpartition("/")[0] for path in paths} | {""})
    start = data.draw(st.sampled_from(folders))
    keys = {prefix + path for path in paths} | {"other/key", "roo", "root", "root-2/x"}
    paths = {key[len(prefix) :] for key in keys if key.startswith(prefix)}
    listing = Listing(SortedBucket(keys, page), "bucket", prefix, "s3://bucket", threads)
    found = list(listing.walk(start, skip))
    expected = expected_walk(paths, start, skip)
    assert len(found) == len(expected)
    assert {folder.path: set(folder.names) for folder in found} == expected
    for folder in found:
        full = [
            f"{prefix}{folder.path}/{name}" if folder.path else prefix + name
            for name in folder.names
        ]
        assert list(folder.sizes) == [len(key) for key in full]


@pytest.mark.parametrize("outer", ["", "deep/"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_file_that_bears_the_name_of_a_folder_is_found_once(outer, threads):
    inner = [f"{letter}{tail}" for letter in "abcdefghijklm" for tail in ("", "-", "/x", "/y/z")]
    paths = {outer + path for path in inner}
    listing = Listing(SortedBucket(paths, 3), "bucket", "", "s3://bucket", threads)
    found = [(f.path, name) for f in listing.walk("", frozenset()) for name in f.names]
    assert sorted(found) == sorted(path.rpartition("/")[::2] for path in paths)


@given(paths=trees, skip=st.frozensets(names, max_size=2))
def test_groups_are_whole_and_appear_once(paths, skip):
    files = [FileStat(path, 1) for path in sorted(paths, key=str.encode)]
    found = list(group(files, "", skip))
    assert {f.path: set(f.names) for f in found} == expected_walk(paths, "", skip)
    assert len(found) == len({f.path for f in found})


PATTERN = random.Random(7).randbytes(9 * TAIL)
SIZES = [0, 1, 1_000, TAIL - 1, TAIL, TAIL + 1, TAIL + 5_000, 3 * TAIL, 9 * TAIL]
steps = st.lists(
    st.tuples(
        st.sampled_from(["read", "readinto", "seek"]),
        st.integers(-10, 10 * TAIL),
        st.sampled_from([-1, 0, 1, 10, 4_096, TAIL, 2 * TAIL]),
    ),
    max_size=12,
)


@given(size=st.sampled_from(SIZES), steps=steps)
def test_a_ranged_file_reads_like_any_file(size, steps):
    data = PATTERN[:size]
    requests: list[tuple[int, int]] = []

    def fetch(offset: int, length: int) -> bytes:
        requests.append((offset, length))
        assert length > 0
        assert offset + length <= max(size - TAIL, 0), "what the tail holds is not asked for"
        return data[offset : offset + length]

    tail = data[max(size - TAIL, 0) :]
    plain, ranged = io.BytesIO(data), RangedFile(size, fetch, tail, "f")
    for verb, offset, length in steps:
        if verb == "seek":
            whence = io.SEEK_SET if offset >= 0 else io.SEEK_END
            if whence == io.SEEK_END and size + offset < 0:
                with pytest.raises(ValueError, match="before the file"):
                    ranged.seek(offset, whence)
                continue
            assert ranged.seek(offset, whence) == plain.seek(offset, whence)
        elif verb == "read":
            assert ranged.read(length) == plain.read(length)
        else:
            ours, theirs = bytearray(max(length, 0)), bytearray(max(length, 0))
            assert ranged.readinto(ours) == plain.readinto(theirs)
            assert ours == theirs
        assert ranged.tell() == plain.tell()
    assert ranged.size() == size


def test_small_reads_in_a_row_cost_few_requests():
    data = bytes(4 << 20)
    requests = []

    def fetch(offset: int, length: int) -> bytes:
        requests.append(length)
        return data[offset : offset + length]

    file = RangedFile(len(data), fetch, data[-TAIL:], "f")
    while file.read(1_000):
        pass
    assert len(requests) == 4


def test_a_closed_file_refuses():
    file = RangedFile(3, lambda offset, length: b"", b"abc", "f")
    file.close()
    for attempt in (lambda: file.read(1), lambda: file.seek(0)):
        with pytest.raises(ValueError, match="closed"):
            attempt()
