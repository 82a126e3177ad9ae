"""Plans of rescales: what they tell, and that making one changes nothing."""

import json
from typing import Any

import pytest

from lakewright.actions.buckets.rescale_plan import RescaleItem
from lakewright.model.errors import Invalid
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from support.rescaling import (
    filled_table,
    live_groups,
    made_table,
    memory,
    plan,
    rescaled,
    rows,
    rules,
    table_of,
)


def files(storage: Storage) -> dict[str, bytes]:
    return {file.path: storage.read(file.path) for file in storage.list("", recursive=True)}


@pytest.mark.parametrize("mor", [False, True], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [9, 6])
def test_rows_bytes_and_files_are_told(mor: bool, version: int) -> None:
    storage = memory()
    table = filled_table(storage, mor=mor, version=version)
    before = files(storage)
    planned = plan(storage, rules(("p=x", 8), ("p=y", 2), default=4))
    assert files(storage) == before
    groups = live_groups(storage)
    assert [(i.partition, i.before, i.after) for i in planned.items] == [
        ("p=x", 4, 8),
        ("p=y", 4, 2),
    ]
    for item in planned.items:
        slices = groups[item.partition]
        sizes = [len(before[path]) for piece in slices for path in piece.paths]
        assert item.groups == len(slices)
        assert (item.files, item.bytes) == (len(sizes), sum(sizes))
        bases = [len(before[p.base.path]) for p in slices if p.base is not None]
        assert item.new_bytes == sum(bases)
        assert 1 <= item.new_files <= item.after
        column = f"p = '{item.partition[-1]}'"
        count = table.scan(where=column, mode="read_optimized").to_arrow().num_rows
        assert item.rows == count
    assert planned.rows == sum(item.rows for item in planned.items)
    assert planned.version is None


def test_rows_are_told_by_footers_where_commits_are_archived() -> None:
    storage = memory()
    table = filled_table(storage)
    only = [row for row in rows(range(60), 9) if row["p"] == "z"]
    for _ in range(5):
        table.upsert(table_of(only))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    table.archive(min_commits=1, max_commits=2)
    planned = plan(storage, rules(default=8))
    shown = {item.partition: item.rows for item in planned.items}
    active = {i.requested for i in open_state(storage).timeline.data()}
    bases = [piece.base for piece in live_groups(storage)["p=x"]]
    assert not active & {base.instant for base in bases if base is not None}
    for part in "xyz":
        count = table.scan(where=f"p = '{part}'").to_arrow().num_rows
        assert shown[f"p={part}"] == count


@pytest.mark.parametrize(
    ("count", "buckets", "low", "high"),
    [(1000, 10, 10, 10), (3, 100_000, 3, 3), (100, 100, 60, 66), (50, 1, 1, 1)],
)
def test_how_many_buckets_are_filled_is_estimated(
    count: int, buckets: int, low: int, high: int
) -> None:
    storage = memory()
    table = made_table(storage, partitioned=False, buckets=2)
    table.upsert(table_of(rows(range(count), 1)))
    (item,) = plan(storage, rules(default=buckets)).items
    assert low <= item.new_files <= high
    made = rescaled(storage, rules(default=buckets)).files_written
    # Keys that count up do not hash like dice.
    assert abs(made - item.new_files) <= 0.35 * item.new_files


def test_a_plan_for_people_and_for_programs() -> None:
    storage = memory()
    filled_table(storage)
    planned = plan(storage, rules(("p=x", 8), ("x", 9), default=2), ["p=x"])
    text = str(planned)
    assert text.startswith("rescale of t: 1 partitions, about ")
    assert "  p=x: 4 -> 8 buckets" in text
    assert '"bucketNumber": 8' in text
    assert "2 partitions keep the number that they have, by pins" in text
    assert planned.warnings
    assert f"warning: {planned.warnings[0]}" in text
    told = json.loads(planned.to_json())
    assert told["pins"] == {"p=y": 4, "p=z": 4}
    assert told["rules"]["defaultBucketNumber"] == 2
    (item,) = told["items"]
    assert item["partition"] == "p=x"
    assert item["rows"] == planned.rows
    assert "mark" not in item
    page = planned._repr_html_()
    assert "<td>p=x</td>" in page
    assert page.count("<tr>") == page.count("</tr>") == 2
    assert "<th>new buckets</th>" in page


def test_only_so_many_partitions_are_shown() -> None:
    storage = memory()
    table = made_table(storage, buckets=1)
    parts = tuple(f"n{i:02d}" for i in range(25))
    table.upsert(table_of(rows(range(125), 1, parts)))
    planned = plan(storage, rules(default=2))
    assert len(planned.items) == 25
    assert "  … and 5 more" in list(planned.lines())
    assert sum("1 -> 2 buckets" in line for line in planned.lines(None)) == 25


def test_a_partition_that_is_not_there_is_named() -> None:
    storage = memory()
    filled_table(storage)
    with pytest.raises(Invalid, match=r"no partition 'x'.*'p=x', 'p=y', 'p=z'"):
        plan(storage, rules(default=8), ["x"])
    with pytest.raises(Invalid, match="no partition 'p=q'"):
        plan(storage, None, ["p=q"])


def test_a_partition_that_has_the_number_is_no_item() -> None:
    storage = memory()
    filled_table(storage)
    planned = plan(storage, rules(("p=x", 8), default=4), ["p=y"])
    assert not planned.items
    assert planned.pins == {"p=x": 4}
    assert planned.changes_rules
    assert not plan(storage).changes_rules


def test_an_unpartitioned_table_is_one_partition() -> None:
    storage = memory()
    filled_table(storage, partitioned=False)
    planned = plan(storage, rules(default=8), [""])
    assert [item.partition for item in planned.items] == [""]
    assert "  (table): 4 -> 8 buckets" in str(planned)
    assert "<td>(table)</td>" in planned._repr_html_()


def test_an_empty_table_has_nothing_to_move() -> None:
    storage = memory()
    made_table(storage)
    assert not plan(storage, rules(default=8)).items


def test_plans_are_equal_by_what_they_say() -> None:
    storage = memory()
    filled_table(storage)
    one, two = (plan(storage, rules(default=8)) for _ in range(2))
    assert one == two
    assert one != plan(storage, rules(default=9))
    values: dict[str, Any] = one.items[0].told()
    assert RescaleItem(**values, mark=one.items[0].mark) == one.items[0]
