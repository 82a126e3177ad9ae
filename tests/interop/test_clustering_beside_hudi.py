"""Clustering beside real Hudi: it carries out our plans and we its, and both read the result."""

import uuid
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakewright as lw
from lakewright.actions.services.clustering import cluster, schedule_clustering
from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.plans import is_plan
from support.hudi_writer import PLAIN
from support.servicing import servicing

pytestmark = pytest.mark.interop

KEYS = ",".join(
    [
        *(f"{key}={value}" for key, value in PLAIN.items()),
        "hoodie.datasource.write.recordkey.field=id",
        "hoodie.clustering.group.read.parallelism=1",
    ]
)
SCHEMA = "id string, p string, n bigint, tags array<string>, at struct<x: int, y: string>"
KINDS = [(9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ"), (6, "COPY_ON_WRITE")]
BY_N = {"hoodie__clustering__plan__strategy__sort__columns": "n"}
# As large as Hudi makes them unless told otherwise: here they are read, and put together.
FILTERS = {
    "hoodie.index.bloom.num_entries": "60000",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100000",
}
COPY = {"lakewright__clustering__copied-row-group-bytes": "0"}


@pytest.fixture(params=KINDS, ids=lambda kind: f"v{kind[0]}-{kind[1]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return table_of(tmp_path, *request.param)


def table_of(
    folder: Path, version: int, kind: str, buckets: int | None = None, index: str | None = None
) -> Table:
    made = empty(folder, version, kind, buckets, index)
    put(made, 9, "a1", "a2", "b1", new=not buckets)
    put(made, 4, "a3", "a4", "b2", new=not buckets)
    put(made, 5, "a5", "b3", new=not buckets)
    put(made, 10, "a1")
    made.delete(where="id = 'b1'")
    return made


def empty(
    folder: Path, version: int, kind: str, buckets: int | None = None, index: str | None = None
) -> Table:
    return lw.create_table(
        folder / f"t{uuid.uuid4().hex[:8]}",
        schema=SCHEMA,
        key="id",
        partition_by=["p"],
        order_by="n",
        type=kind,
        buckets=buckets,
        version=version,
        properties={} if index is None else {"hoodie.index.type": index},
    )


def put(table: Table, n: int, *ids: str, new: bool = False) -> None:
    rows = [{"id": i, "p": i[0], "n": n, "tags": [i, str(n)], "at": {"x": n, "y": i}} for i in ids]
    values = pa.Table.from_pylist(rows, schema=table.schema)
    (table.bulk_insert if new else table.upsert)(values)


EXPECTED = {("a1", 10), ("a2", 9), ("a3", 4), ("a4", 4), ("a5", 5), ("b2", 4), ("b3", 5)}


def rows(found: Any) -> set[tuple[str, int]]:
    return {(row["id"], row["n"]) for row in found}


def check_readers(spark: Any, table: Table, expected: set[tuple[str, int]] = EXPECTED) -> None:
    """All readers see the rows, each with its commit time, and the file that it lies in."""
    ours = lw.open_table(table.path).scan(meta=True).to_arrow().to_pylist()
    theirs = [r.asDict() for r in spark.read.format("hudi").load(table.path).collect()]
    rust = pa.Table.from_batches(
        hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    ).to_pylist()
    assert rows(ours) == rows(theirs) == rows(rust) == expected
    assert len(ours) == len(theirs) == len(rust) == len(expected)
    for column in ("_hoodie_commit_time", "_hoodie_file_name"):
        held = {(row["id"], row[column]) for row in ours}
        assert held == {(row["id"], row[column]) for row in theirs}
        assert held == {(row["id"], row[column]) for row in rust}


def call(spark: Any, table: Table, operation: str, *more: str) -> list[Any]:
    given = f"op => '{operation}', path => '{table.path}', options => '{','.join([KEYS, *more])}'"
    return list(spark.sql(f"CALL run_clustering({given})").collect())


def clusterings(table: Table) -> tuple[int, int]:
    """How many there are, and how many of them are done."""
    view = open_state(open_storage(table.path)).timeline
    found = [e.instant for e in view.entries if is_plan(view, e)]
    return len(found), sum(i.is_completed for i in found)


def write_by_hudi(
    spark: Any, table: Table, *values: tuple[Any, ...], index: str, **more: str
) -> None:
    config = open_state(open_storage(table.path)).config
    options = {
        **PLAIN,
        "hoodie.table.name": table.name,
        "hoodie.index.type": index,
        "hoodie.datasource.write.table.type": config.table_type.value,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "n",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.write.table.version": str(int(config.version)),
        **FILTERS,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    frame = spark.createDataFrame(list(values), SCHEMA).coalesce(1)
    frame.write.format("hudi").options(**options).mode("append").save(table.path)


UPDATE = ("a2", "a", 30, ["x"], (1, "y"))
UPDATED = ({*EXPECTED, ("a2", 30)}) - {("a2", 9)}


def test_hudi_lists_and_carries_out_our_plan(hudi_spark: Any, table: Table) -> None:
    plan = schedule_clustering(servicing(open_storage(table.path), **BY_N))
    assert plan is not None and plan.instant is not None
    shown = hudi_spark.sql(f"CALL show_clustering(path => '{table.path}')").collect()
    assert plan.instant.requested in str(shown)
    check_readers(hudi_spark, table)
    call(hudi_spark, table, "execute")
    assert clusterings(table) == (1, 1)
    assert len(list(lw.open_table(table.path).scan().plan())) == 2
    check_readers(hudi_spark, table)
    put(table, 20, "a2")
    check_readers(hudi_spark, table, {*EXPECTED, ("a2", 20)} - {("a2", 9)})


def test_we_carry_out_the_plan_of_hudi(hudi_spark: Any, table: Table) -> None:
    call(hudi_spark, table, "schedule", "hoodie.clustering.plan.strategy.sort.columns=n")
    assert clusterings(table) == (1, 0)
    done = cluster(servicing(open_storage(table.path)))
    assert done.instant is not None
    assert clusterings(table) == (1, 1)
    check_readers(hudi_spark, table)
    for path in Path(table.path).glob(f"*/*_{done.instant.requested}.parquet"):
        values = pq.read_table(path)["n"].to_pylist()
        assert values == sorted(values)
    # Its writer goes on.
    write_by_hudi(hudi_spark, table, UPDATE, index="SIMPLE")
    check_readers(hudi_spark, table, UPDATED)


def test_hudi_finds_keys_in_files_whose_row_groups_were_copied(
    hudi_spark: Any, tmp_path: Path
) -> None:
    table = table_of(tmp_path, 9, "COPY_ON_WRITE", index="BLOOM")
    done = cluster(servicing(open_storage(table.path), **COPY))
    assert done.instant is not None
    path = next(Path(table.path).glob(f"p=a/*_{done.instant.requested}.parquet"))
    assert pq.ParquetFile(path).num_row_groups == 3
    check_readers(hudi_spark, table)
    write_by_hudi(hudi_spark, table, UPDATE, index="BLOOM")
    check_readers(hudi_spark, table, UPDATED)


def test_row_groups_that_hudi_wrote_are_copied(hudi_spark: Any, tmp_path: Path) -> None:
    table = empty(tmp_path, 9, "COPY_ON_WRITE", index="BLOOM")
    expected = set()
    for n in (2, 40):
        values = [(f"a{n}", "a", n, ["x"], (1, "y")), (f"b{n}", "b", n, None, None)]
        expected |= {(row[0], n) for row in values}
        how = {
            "hoodie__parquet__small__file__limit": "0",
            "hoodie__datasource__write__operation": "insert",
        }
        write_by_hudi(hudi_spark, table, *values, index="BLOOM", **how)
    done = cluster(servicing(open_storage(table.path), **COPY))
    assert done.instant is not None
    path = next(Path(table.path).glob(f"p=a/*_{done.instant.requested}.parquet"))
    assert pq.ParquetFile(path).num_row_groups == 2
    write_by_hudi(hudi_spark, table, UPDATE, index="BLOOM")
    check_readers(hudi_spark, table, (expected | {("a2", 30)}) - {("a2", 2)})


def test_hudi_writes_on_after_buckets_were_sorted(hudi_spark: Any, tmp_path: Path) -> None:
    table = table_of(tmp_path, 9, "COPY_ON_WRITE", buckets=2)
    done = cluster(servicing(open_storage(table.path), **BY_N))
    assert done.instant is not None
    buckets = {
        "hoodie__bucket__index__num__buckets": "2",
        "hoodie__bucket__index__hash__field": "id",
    }
    write_by_hudi(hudi_spark, table, UPDATE, index="BUCKET", **buckets)
    check_readers(hudi_spark, table, UPDATED)
