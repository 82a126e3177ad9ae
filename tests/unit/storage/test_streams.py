"""Many folders at once: everything arrives once, errors come through, nothing runs on."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.storage.streams import map_bounded, merge_streams, walk_tree


def children(number: int, limit: int) -> tuple[int, list[int]]:
    return number, [
        child for child in (3 * number + 1, 3 * number + 2, 3 * number + 3) if child < limit
    ]


@given(limit=st.integers(1, 300), threads=st.integers(1, 4), batch=st.integers(1, 8))
def test_a_tree_is_walked_whole(limit: int, threads: int, batch: int):
    found = walk_tree(0, lambda n: children(n, limit), threads=threads, batch=batch)
    assert sorted(found) == list(range(limit))


def test_an_error_in_a_walk_comes_through():
    def scan(number: int) -> tuple[int, list[int]]:
        if number == 50:
            raise ValueError("fifty")
        return children(number, 100)

    with pytest.raises(ValueError, match="fifty"):
        list(walk_tree(0, scan, threads=3))
    assert not [t for t in threading.enumerate() if t.name.startswith("lakewright-walk")]


def test_a_walk_does_not_run_ahead_of_its_reader():
    scanned = []

    def scan(number: int) -> tuple[int, list[int]]:
        scanned.append(number)
        return number, list(range(1, 10_000)) if number == 0 else []

    walk = walk_tree(0, scan, threads=2, batch=8)
    for _ in range(20):
        next(walk)
    time.sleep(0.05)
    assert len(scanned) <= 1 + 20 + 2 * 2 * 8 + 8
    walk.close()


@given(st.lists(st.integers(), max_size=50), st.integers(1, 4))
def test_mapping_keeps_the_order(items: list[int], threads: int):
    found = map_bounded(lambda item: item + 1, iter(items), threads=threads)
    assert list(found) == [item + 1 for item in items]


def test_mapping_reads_its_input_only_as_far_as_needed():
    read = []

    def items():
        for number in range(1_000):
            read.append(number)
            yield number

    found = map_bounded(lambda item: item, items(), threads=2)
    next(found)
    assert len(read) <= 4
    found.close()


@given(st.lists(st.lists(st.integers(), max_size=20), max_size=6), st.integers(1, 4))
def test_merging_loses_nothing(lists: list[list[int]], threads: int):
    found = merge_streams([lambda part=part: iter(part) for part in lists], threads=threads)
    assert sorted(found) == sorted(item for part in lists for item in part)


def test_an_error_in_a_source_ends_the_merged_stream():
    def bad():
        yield 1
        raise ValueError("bad source")

    with pytest.raises(ValueError, match="bad source"):
        list(merge_streams([bad, lambda: iter(range(10**9))], threads=2, held=4))
    assert not [t for t in threading.enumerate() if t.name.startswith("lakewright-merge")]


def test_leaving_a_merged_stream_stops_its_sources():
    merged = merge_streams([lambda: iter(range(10**9))] * 3, threads=2, held=4)
    next(merged)
    merged.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("lakewright-merge")]
