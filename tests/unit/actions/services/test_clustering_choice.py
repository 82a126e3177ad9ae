"""Which slices are clustered together, by sizes, partitions and settings."""

from collections import Counter

import pytest

from lakewright.actions.services.clustering_choice import (
    SliceGroup,
    chosen_partitions,
    grouped,
    partition_filter,
)
from lakewright.actions.services.clustering_options import (
    ClusteringSettings,
    FilterMode,
    Strategy,
)
from lakewright.actions.tasks.cluster_order import Layout, Order
from lakewright.model.errors import InvalidOption
from lakewright.model.files import BaseFile, FileGroupId, FileSlice, LogFile

PREFIX = "hoodie.clustering.plan.strategy."


def piece(number: int, size: int | None, logs: int = 0) -> FileSlice:
    file_id = f"g{number}"
    base = (
        None if size is None else BaseFile("p", f"{file_id}_0_1.parquet", file_id, "0", "1", size)
    )
    held = tuple(
        LogFile("p", f".{file_id}_1.log.{n}_0", file_id, "1", n, "0", size=10) for n in range(logs)
    )
    return FileSlice(FileGroupId("p", file_id), "1", base, held)


def groups(
    pieces: list[FileSlice], *, buckets: bool = False, **settings: object
) -> tuple[list[tuple[list[str], int]], dict[str, int]]:
    passed: Counter[str] = Counter()
    chosen = ClusteringSettings(**settings)  # type: ignore[arg-type]
    found: list[SliceGroup] = list(grouped("p", pieces, chosen, 120, passed, buckets=buckets))
    return [([s.group.file_id for s in g.slices], g.outputs) for g in found], dict(passed)


def test_large_ones_first_up_to_a_size_as_in_hudi() -> None:
    sizes = [200, 200, 300, 300, 400, 400, 400, 400]
    found, _ = groups(
        [piece(n, size) for n, size in enumerate(sizes)],
        group_bytes=2000,
        target_file=1000,
        small_file=500,
    )
    assert [(len(ids), outputs) for ids, outputs in found] == [(5, 2), (3, 1)]


def test_large_files_are_left_alone() -> None:
    found, passed = groups([piece(1, 10), piece(2, 20), piece(3, 500)], small_file=500)
    assert found == [(["g2", "g1"], 1)]
    assert passed == {"files of 500 bytes or more": 1}


def test_a_single_file_without_need_is_left_alone() -> None:
    sort = Order(("a",))
    alone = "a single file, and nothing to sort it by"
    assert groups([piece(1, 10)]) == ([], {alone: 1})
    assert groups([piece(1, 10)], order=sort) == ([(["g1"], 1)], {})
    assert groups([piece(1, 10)], order=sort, single_group=False)[1] == {"alone in its group": 1}
    assert groups([piece(1, 10, logs=1)])[0] == [(["g1"], 1)]
    assert groups([piece(1, 100)], target_file=40)[0] == [(["g1"], 3)]


def test_slices_of_logs_alone_count_as_a_whole_file() -> None:
    found, _ = groups([piece(1, 10), piece(2, None, logs=2)], group_bytes=125)
    assert found == [(["g2"], 1)]


@pytest.mark.parametrize("how", [{"buckets": True}, {"strategy": Strategy.SINGLE_FILE}])
def test_each_slice_by_itself(how: dict[str, object]) -> None:
    pieces = [piece(1, 100), piece(2, 50)]
    found, _ = groups(pieces, order=Order(("a",)), target_file=10, **how)  # type: ignore[arg-type]
    assert found == [(["g1"], 1), (["g2"], 1)]


DAYS = [f"d={n:02}" for n in range(1, 31)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"lookback": 2}, ["d=30", "d=29"]),
        ({"lookback": 2, "skipped": 3}, ["d=27", "d=26"]),
        ({"lookback": 0, "skipped": 28}, ["d=02", "d=01"]),
    ],
)
def test_the_last_partitions(settings: dict[str, int], expected: list[str]) -> None:
    chosen = ClusteringSettings(mode=FilterMode.RECENT_DAYS, **settings)  # type: ignore[arg-type]
    assert list(chosen_partitions(reversed(DAYS), chosen, 0)) == expected


def test_every_partition_once_a_day() -> None:
    chosen = ClusteringSettings(mode=FilterMode.DAY_ROLLING)
    found = [p for hour in range(24) for p in chosen_partitions(DAYS, chosen, hour)]
    assert sorted(found) == DAYS
    assert list(chosen_partitions(DAYS, chosen, 3)) == ["d=04", "d=28"]


def test_partitions_by_name() -> None:
    between = ClusteringSettings(mode=FilterMode.SELECTED_PARTITIONS, begin="d=05", end="d=07")
    assert [p for p in DAYS if partition_filter(between)(p) is None] == ["d=05", "d=06", "d=07"]
    matching = ClusteringSettings(pattern=r"d=.0")
    assert [p for p in DAYS if partition_filter(matching)(p) is None] == ["d=10", "d=20", "d=30"]
    chosen = ClusteringSettings(selected=("d=02",))
    assert [p for p in DAYS if partition_filter(chosen)(p) is None] == ["d=02"]


def test_settings_by_hudis_names() -> None:
    package = "org.apache.hudi.client.clustering.plan.strategy."
    found = ClusteringSettings.of(
        {
            f"{PREFIX}class": f"{package}SparkRecentDaysClusteringPlanStrategy",
            f"{PREFIX}sort.columns": "a, b,a",
            "hoodie.layout.optimize.strategy": "z-order",
            f"{PREFIX}small.file.limit": "7",
        }
    )
    assert found.mode is FilterMode.RECENT_DAYS
    assert found.order == Order(("a", "b"), Layout.ZORDER)
    assert found.small_file == 7
    with pytest.raises(InvalidOption, match="SparkSizeBased"):
        ClusteringSettings.of({f"{PREFIX}class": "com.example.Mine"})
