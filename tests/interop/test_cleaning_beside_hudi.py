"""Cleaning and archiving beside real Hudi: the same files go, and it lives with what we leave."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.services.archiving import archive
from lakewright.actions.services.cleaning import clean, schedule_cleaning
from lakewright.api.table import Table
from lakewright.model.instant import Action
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.view import TimelineView
from support.hudi_writer import PLAIN, frame_of
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


def test_the_same_files_go(hudi_spark: Any, table: Table) -> None:
    history(table)
    before, expected = data_files(table.path), ours(table.path)
    for policy, argument, option, count in POLICIES:
        mine, theirs = (Path(f"{table.path}_{policy}_{who}") for who in ("ours", "theirs"))
        shutil.copytree(table.path, mine)
        shutil.copytree(table.path, theirs)
        run_clean(hudi_spark, theirs, policy, argument, count)
        options = {"hoodie.clean.policy": policy, f"hoodie.clean.{option}.retained": str(count)}
        clean(servicing(open_storage(str(mine), {}), **options))
        assert data_files(mine) == data_files(theirs)
        assert (data_files(mine) != before) == (policy != "KEEP_LATEST_BY_HOURS")
        assert ours(mine) == by_hudi_rs(mine) == expected
        if policy == "KEEP_LATEST_FILE_VERSIONS":
            assert by_hudi(hudi_spark, mine) == expected


def upsert(spark: Any, table: Table, n: int, *ids: str, **more: str) -> None:
    options = {
        **PLAIN,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind_of(table),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "n",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.operation": "upsert",
        **index_options(table),
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    values = pa.table({"id": ids, "p": [id[0] for id in ids], "n": [n] * len(ids)})
    frame = frame_of(spark, values)
    frame.write.format("hudi").options(**options).mode("append").save(table.path)


def kind_of(table: Table) -> str:
    return open_state(open_storage(table.path, {})).config.table_type.value


def index_options(table: Table) -> dict[str, str]:
    config = open_state(open_storage(table.path, {})).config
    stored = {key: value for key, value in config.properties.items() if ".index." in key}
    version = {"hoodie.write.table.version": str(config.version)}
    return {"hoodie.index.type": "SIMPLE", **stored, **version}


def timeline(table: Table) -> TimelineView:
    return open_state(open_storage(table.path, {})).timeline


def test_hudi_lists_and_continues_what_we_archived(hudi_spark: Any, table: Table) -> None:
    for n in range(1, 9):
        put(table, n, "a0", f"b{n}")
    work = servicing(
        open_storage(table.path, {}),
        hoodie__clean__commits__retained="2",
        hoodie__keep__min__commits="3",
        hoodie__keep__max__commits="4",
        hoodie__compact__inline__max__delta__commits="1",
    )
    assert clean(work).total.files_deleted or kind_of(table) == "MERGE_ON_READ"
    moved = archive(work).instants
    assert len(moved) == 5
    assert len(timeline(table).data()) == 3
    expected = ours(table.path)
    assert by_hudi(hudi_spark, table.path) == by_hudi_rs(table.path) == expected
    name = named(hudi_spark, Path(table.path))
    listed = hudi_spark.sql(f"CALL show_commits(table => '{name}', limit => 99)").collect()
    assert {row[0] for row in listed} == {i.requested for i in timeline(table).data()}
    past = hudi_spark.sql(
        f"CALL show_archived_commits(table => '{name}', limit => 99, start_ts => '2000', "
        "end_ts => '3000')"
    ).collect()
    assert {row[0] for row in past} == {i.requested for i in moved}
    # Hudi cleans and archives in its turn, and nothing of the history is lost.
    for n in (20, 21):
        upsert(
            hudi_spark,
            table,
            n,
            "a0",
            f"c{n}",
            hoodie__clean__automatic="true",
            hoodie__clean__commits__retained="2",
            hoodie__archive__automatic="true",
            hoodie__keep__min__commits="3",
            hoodie__keep__max__commits="4",
        )
    after = {*((i, n) for i, n in expected if i != "a0"), ("a0", 21)}
    after |= {("c20", 20), ("c21", 21)}
    assert ours(table.path) == by_hudi(hudi_spark, table.path) == after
    whole = timeline(table).with_history()
    assert len(whole.data()) == 10
    for n in (30, 31):
        put(table, n, "a0")
    assert clean(work).total.files_deleted or kind_of(table) == "MERGE_ON_READ"
    assert archive(work).instants
    assert len(timeline(table).with_history().data()) == 12
    assert by_hudi(hudi_spark, table.path) == ours(table.path)


def test_plans_are_carried_out_by_the_other(hudi_spark: Any, table: Table) -> None:
    history(table)
    mine, theirs = Path(table.path), Path(f"{table.path}_by_hudi")
    shutil.copytree(mine, theirs)
    work = servicing(open_storage(str(mine), {}), hoodie__clean__commits__retained="2")
    planned = schedule_cleaning(work)
    assert planned is not None
    assert planned.instant is not None
    run_clean(hudi_spark, mine, *POLICIES[0][:2], 2)
    by_them = timeline(table).by_action(Action.CLEAN)
    assert [(i.requested, i.is_completed) for i in by_them] == [(planned.instant.requested, True)]
    # The other way round: Hudi's own cleaning, cut off before its end.
    run_clean(hudi_spark, theirs, *POLICIES[0][:2], 2)
    [done] = [path for path in theirs.rglob("*.clean") if path.name.endswith(".clean")]
    done.unlink()
    done.with_name(f".{done.name}.crc").unlink(missing_ok=True)
    again = servicing(open_storage(str(theirs), {}), hoodie__clean__commits__retained="2")
    result = clean(again)
    assert result.total.files_deleted == planned.files
    assert data_files(mine) == data_files(theirs)
    name = named(hudi_spark, theirs)
    shown = hudi_spark.sql(f"CALL show_cleans(table => '{name}')").collect()
    assert [row[0] for row in shown] == [result.instant.requested if result.instant else None]
    assert by_hudi(hudi_spark, theirs) == ours(theirs)
