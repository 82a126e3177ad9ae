"""Packing slices into tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.model.errors import Invalid
from lakewright.model.files import BaseFile, FileGroupId, FileSlice
from lakewright.table.splits import OPEN_COST, splits


def piece(number: int, size: int) -> FileSlice:
    base = BaseFile("p", f"f{number}", f"f{number}", "0-0-0", "1", size)
    return FileSlice(FileGroupId("p", f"f{number:04d}"), "1", base)


sizes = st.lists(st.integers(0, 1 << 30), max_size=60)


@given(sizes, st.integers(1, 1 << 28), st.randoms(use_true_random=False))
def test_every_slice_lands_in_one_task_and_order_does_not_matter(
    given_sizes: list[int], target: int, random: object
) -> None:
    slices = [piece(i, size) for i, size in enumerate(given_sizes)]
    tasks = splits(slices, target)
    assert sorted(s.group for task in tasks for s in task) == [s.group for s in slices]
    assert all(tasks)
    random.shuffle(slices)  # type: ignore[attr-defined]
    assert splits(slices, target) == tasks


@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=60), st.integers(OPEN_COST, 1 << 30))
def test_no_task_is_fuller_than_the_mean_by_more_than_one_slice(
    given_sizes: list[int], target: int
) -> None:
    slices = [piece(i, size) for i, size in enumerate(given_sizes)]
    tasks = splits(slices, target)
    weights = [size + OPEN_COST for size in given_sizes]
    loads = [sum(s.size + OPEN_COST for s in task) for task in tasks]
    spare = max(weights) * (1 - 1 / len(tasks))
    assert max(loads) <= sum(weights) / len(tasks) + spare + 1
    assert len(tasks) <= -(-sum(weights) // target)


def test_small_files_count_with_the_cost_of_opening_them() -> None:
    tasks = splits([piece(i, 1) for i in range(64)], 128 << 20)
    assert [len(task) for task in tasks] == [22, 21, 21]


def test_a_slice_larger_than_the_target_is_a_task_of_its_own() -> None:
    tasks = splits([piece(0, 10 << 30), piece(1, 1 << 20), piece(2, 1 << 20)], 1 << 30)
    assert [s.group.file_id for s in tasks[0]] == ["f0000"]


def test_nothing_gives_nothing_and_a_size_below_one_is_refused() -> None:
    assert splits([], 1) == []
    with pytest.raises(Invalid, match="0 bytes"):
        splits([piece(0, 1)], 0)
