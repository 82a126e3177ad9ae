"""Tables whose version we changed: real Hudi reads, writes and compacts them, and its own change
of a copy comes to the same."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.actions.services.savepoints import savepoint
from lakewright.actions.services.upgrading import upgrade
from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.hudi_writer import COMPACT, PLAIN
from support.servicing import servicing

pytestmark = pytest.mark.interop

Rows = set[tuple[str, int]]
#: What Hudi's writer must be told beside what the table says.
WRITING = {
    **PLAIN,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "n",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.index.type": "SIMPLE",
}
#: Properties that tell nothing of how a table is read or written, or what others tell too.
UNIMPORTANT = frozenset(
    {
        "hoodie.compaction.record.merger.strategy",
        "hoodie.table.keygenerator.class",
        "hoodie.table.checksum",
        "hoodie.table.partition_extractor_class",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.table.multiple.base.file.formats.enable",
    }
)


def made(folder: Path, version: int, kind: str) -> Table:
    table = lw.create_table(
        folder / "t",
        schema="id string, p string, n bigint",
        key="id",
        partition_by=["p"],
        order_by="n",
        type=kind,
        version=version,
    )
    put(table, 1, "a1", "a2", "b1")
    put(table, 3, "a1", "b2")
    latest = table.timeline.latest_data()
    assert latest is not None
    savepoint(servicing(open_storage(table.path)), latest.requested, "kept", "me")
    # Whoever merges the logs of this slice into a later one loses b1 again.
    table.delete(["b1"])
    put(table, 2, "a1", "c1")
    put(table, 1, "b1")
    return table


def put(table: Table, n: int, *ids: str) -> None:
    table.upsert([{"id": i, "p": i[0], "n": n} for i in ids])


def change(table: Table, version: int) -> None:
    upgrade(servicing(open_storage(table.path)), version)


def ours(table: Table, **how: str) -> Rows:
    return {(r["id"], r["n"]) for r in table.scan(**how).to_arrow().to_pylist()}


def theirs(spark: Any, table: Table, **options: str) -> Rows:
    frame = spark.read.format("hudi").options(**options).load(table.path)
    found = [(row["id"], row["n"]) for row in frame.collect()]
    assert len(found) == len(set(found))
    return set(found)


def hudi_writes(spark: Any, table: Table, n: int, *ids: str, **more: str) -> None:
    frame = spark.createDataFrame([(i, i[0], n) for i in ids], "id string, p string, n bigint")
    state = open_state(open_storage(table.path))
    options = {
        **WRITING,
        "hoodie.datasource.write.table.type": state.config.table_type.value,
        "hoodie.write.table.version": str(state.config.version),
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    frame.coalesce(1).write.format("hudi").options(**options).option(
        "hoodie.datasource.write.operation", "upsert"
    ).mode("append").save(table.path)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("path", [(6, 9), (9, 6), (6, 8), (6, 9, 6)], ids=str)
def test_hudi_goes_on_with_tables_that_we_changed(
    path: tuple[int, ...], kind: str, hudi_spark: Any, tmp_path: Path
) -> None:
    table = made(tmp_path, path[0], kind)
    instants = [i.requested for i in table.timeline.data()]
    shown = {i: ours(table, as_of=i) for i in instants}
    before = ours(table)
    for version in path[1:]:
        change(table, version)
    assert theirs(hudi_spark, table) == before
    for instant in (instants[1], instants[-1]):
        assert ours(table, as_of=instant) == shown[instant]
        if kind == "COPY_ON_WRITE":
            assert theirs(hudi_spark, table, **{"as.of.instant": instant}) == shown[instant]
    compacting = {key.replace(".", "__"): value for key, value in COMPACT.items()}
    hudi_writes(hudi_spark, table, 7, "a1", "d1")
    hudi_writes(hudi_spark, table, 8, "d1", **(compacting if kind == "MERGE_ON_READ" else {}))
    after = {row for row in before if row[0] != "a1"} | {("a1", 7), ("d1", 8)}
    assert theirs(hudi_spark, table) == after == ours(table)
    assert open_state(open_storage(table.path)).config.version == path[-1]
    kept = hudi_spark.sql(f"CALL show_savepoints(path => '{table.path}')").collect()
    assert [row[0] for row in kept] == [instants[1]]
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("name", ["cow_archived_v6", "mor_basic_v6", "cow_basic_v8"])
def test_our_upgrade_comes_to_what_hudis_does(
    name: str, hudi_spark: Any, golden_table: Callable[[str], Path], tmp_path: Path
) -> None:
    source = golden_table(name)
    shutil.copytree(source, tmp_path / "ours")
    shutil.copytree(source, tmp_path / "hudis")
    mine = lw.open_table(tmp_path / "ours")
    change(mine, 9)
    hudi_spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{tmp_path / 'hudis'}'")
    hudi_spark.sql(f"CALL upgrade_table(table => '{name}', to_version => 'NINE')").collect()
    other = lw.open_table(tmp_path / "hudis")
    assert other.definition.version == 9
    assert sorted(map(repr, mine.scan().to_arrow().to_pylist())) == sorted(
        map(repr, other.scan().to_arrow().to_pylist())
    )
    assert important(mine) == important(other)
    told = [{(i.requested, i.action) for i in t.timeline.with_history()} for t in (mine, other)]
    first = open_state(open_storage(str(source))).timeline.with_history()
    known = {(i.requested, i.action) for i in first if i.is_completed}
    assert told[0] >= known
    hudi_spark.sql(f"DROP TABLE {name}")


def important(table: Table) -> dict[str, str]:
    found = open_state(open_storage(table.path)).config.properties
    return {key: value for key, value in found.items() if key not in UNIMPORTANT}
