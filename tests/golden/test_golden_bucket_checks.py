"""The bucket tables of real Hudi are sound to the check, shown with their numbers, and mended."""

import json
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from fixture_tables import fixtures_root, table_params

Table = Callable[[str], Path]
SAID = ("hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field")


@cache
def recorded() -> dict[str, Any]:
    root = fixtures_root()
    return {} if root is None else json.loads((root / "golden-expected.json").read_text())


def given(name: str) -> dict[str, str]:
    """What Hudi's writers had to say, because its tables do not."""
    options: dict[str, str] = recorded()[name]["options"]
    return {key: options[key] for key in SAID if key in options}


BUCKETED = [
    name
    for name in table_params("golden")
    if not isinstance(name, str) or given(name).get(SAID[0]) == "BUCKET"
]


@pytest.mark.parametrize("name", BUCKETED)
def test_tables_of_hudi_are_sound(name: str, golden_table: Table) -> None:
    table = lw.open_table(golden_table(name))
    options = given(name)
    report = table.buckets.check(options=options)
    assert report.ok, str(report)
    assert report.checked["rows"] == len(recorded()[name]["snapshot"])
    assert table.buckets.repair(options=options).plan.empty
    shown = table.buckets.show(options=options)
    for one in shown.partitions:
        assert one.size.used == one.size.groups <= one.buckets
        assert not one.pinned
    advice = table.buckets.advise(target_bytes=1, options=options)
    assert {one.partition for one in advice.partitions} == {p.path for p in table.partitions()}


@pytest.mark.parametrize("name", [name for name in BUCKETED if "partition" not in str(name)][:4])
def test_a_second_group_in_a_table_of_hudi_is_mended(
    name: str, golden_table: Table, tmp_path: Path
) -> None:
    path = shutil.copytree(golden_table(name), tmp_path / "t")
    table, options = lw.open_table(path), given(name)
    before = sorted(map(repr, table.scan().to_arrow().to_pylist()))
    base = next(
        piece.base
        for snapshot in table.files.list_files_at()
        for piece in snapshot.file_slices
        if piece.base is not None and not piece.logs
    )
    other = re.sub(r"^(\d{8})[^_]*", r"\1-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0", base.name)
    shutil.copy(path / base.path, path / base.partition / other)
    plan = table.buckets.repair(options=options)
    assert [item.why for item in plan.plan.items] == ["1 groups too many"]
    plan.apply()
    assert table.buckets.check(options=options).ok
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == before
