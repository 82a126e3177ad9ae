"""Cleaning and archiving beside real Hudi: the same files go, and it lives with what we leave."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import hudi
import pytest

import lakewright as lw
from lakewright.actions.services.cleaning import clean
from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from support.hudi_writer import PLAIN
from support.servicing import servicing

pytestmark = pytest.mark.interop

KINDS = [
    (9, "COPY_ON_WRITE", None),
    (9, "MERGE_ON_READ", 2),
    (6, "COPY_ON_WRITE", 2),
    (6, "MERGE_ON_READ", None),
]
POLICIES = [
    ("KEEP_LATEST_COMMITS", "retain_commits", "commits", 2),
    ("KEEP_LATEST_FILE_VERSIONS", "file_versions_retained", "fileversions", 1),
    ("KEEP_LATEST_BY_HOURS", "hours_retained", "hours", 1),
]


@pytest.fixture(params=KINDS, ids=lambda kind: f"v{kind[0]}-{kind[1]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    version, kind, buckets = request.param
    return lw.create_table(
        tmp_path / "t",
        schema="id string, p string, n bigint",
        key="id",
        partition_by=["p"],
        order_by="n",
        type=kind,
        buckets=buckets,
        version=version,
    )


def put(table: Table, n: int, *ids: str) -> None:
    table.upsert([{"id": id, "p": id[0], "n": n} for id in ids])


def data_files(place: Path | str) -> set[str]:
    root = Path(place)
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file()
        and ".hoodie/" not in f"{path.relative_to(root)}/"
        and ".crc" not in path.name
    }


def rows(found: Any) -> set[tuple[str, int]]:
    return {(row["id"], row["n"]) for row in found}


def ours(place: Path | str) -> set[tuple[str, int]]:
    return rows(lw.open_table(str(place)).scan().to_arrow().to_pylist())


def by_hudi_rs(place: Path | str) -> set[tuple[str, int]]:
    batches = hudi.HudiTableBuilder.from_base_uri(str(place)).build().read()
    return rows(row for batch in batches for row in batch.to_pylist())


def by_hudi(spark: Any, place: Path | str) -> set[tuple[str, int]]:
    frame = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(str(place))
    return rows(row.asDict() for row in frame.collect())


def history(table: Table, steps: int = 8) -> None:
    for n in range(1, steps + 1):
        put(table, n, *{f"a{n % 2}", "a0", f"b{n % 3}", *(("c0", "d0") if n < 4 else ())})
        if n == 4:
            table.delete_partitions(["p=d"])
        if n == 5:
            table.insert_overwrite([{"id": "c9", "p": "c", "n": 5}])


def named(spark: Any, place: Path) -> str:
    """Tell Hudi's session of a table; its procedures know tables by name."""
    name = f"t_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{place}'")
    return name


def run_clean(spark: Any, place: Path, policy: str, argument: str, count: int) -> None:
    options = ",".join(f"{key}={value}" for key, value in PLAIN.items())
    spark.sql(
        f"CALL run_clean(table => '{named(spark, place)}', clean_policy => '{policy}', "
        f"{argument} => {count}, options => '{options}')"
    ).collect()


@pytest.mark.parametrize(("policy", "argument", "option", "count"), POLICIES)
def test_the_same_files_go(
    hudi_spark: Any, table: Table, policy: str, argument: str, option: str, count: int
) -> None:
    history(table)
    mine, theirs = Path(table.path), Path(f"{table.path}_by_hudi")
    shutil.copytree(mine, theirs)
    before, expected = data_files(mine), ours(mine)
    run_clean(hudi_spark, theirs, policy, argument, count)
    work = servicing(
        open_storage(str(mine), {}),
        **{"hoodie.clean.policy": policy, f"hoodie.clean.{option}.retained": str(count)},
    )
    clean(work)
    assert data_files(mine) == data_files(theirs)
    assert (data_files(mine) != before) == (policy != "KEEP_LATEST_BY_HOURS")
    assert ours(mine) == by_hudi(hudi_spark, mine) == by_hudi_rs(mine) == expected
