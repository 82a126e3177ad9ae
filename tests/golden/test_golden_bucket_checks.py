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


@pytest.mark.parametrize("name", [n for n in BUCKETED if re.fullmatch(r"cow_bucket_v\d+", str(n))])
def test_hudis_procedure_makes_rules_of_a_plain_table_of_hudi(
    name: str, golden_table: Table, tmp_path: Path
) -> None:
    path = shutil.copytree(golden_table(name), tmp_path / "t")
    lake, table = lw.connect(tmp_path / "lake"), lw.open_table(path)
    before = sorted(map(repr, table.scan().to_arrow().to_pylist()))
    number = int(given(name)["hoodie.bucket.index.num.buckets"])
    first = min(partition.path for partition in table.partitions())
    call = (
        f"CALL partition_bucket_index_manager(path => '{path}', bucket_number => {number}, "
        f"overwrite => '^{re.escape(first)}$,7', "
        f"options => 'hoodie.bucket.index.hash.field={given(name).get(SAID[2], '')}'"
    ).replace("\\", "\\\\")
    planned: Any = lake.sql(f"{call})")
    assert planned["details"].to_pylist() == [f"\n{first} => 7\n"]
    lake.sql(f"{call}, dry_run => false)")
    numbers = {one.partition: one.buckets for one in table.buckets.show().partitions}
    assert numbers == {p.path: 7 if p.path == first else number for p in table.partitions()}
    assert table.buckets.check().ok
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == before
