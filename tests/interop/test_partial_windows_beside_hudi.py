"""Hudi merges parts of rows; windows and changes of it lead from Hudi's rows to Hudi's rows."""

from pathlib import Path
from typing import Any

import pytest

import lakewright as lw

pytestmark = pytest.mark.interop

COLUMNS = ("id", "a", "b", "ts")
PAYLOAD = "org.apache.hudi.common.model."
QUIET = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.auto.upgrade": "false",
}
Row = tuple[Any, ...]


def by_merge(spark: Any, path: Path, version: int) -> None:
    """Insert, then set one column, then another: of record 1 with a smaller ordering value."""
    name = path.name
    settings = {**QUIET, "hoodie.write.table.version": str(version)}
    told = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    spark.sql(
        f"CREATE TABLE {name} (id int, a int, b string, ts int) USING hudi TBLPROPERTIES (type = "
        f"'mor', primaryKey = 'id', preCombineField = 'ts', {told}) LOCATION '{path}'"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 1, 'b', 10), (2, 2, 'b', 10), (3, 3, 'b', 10)")
    for column, one, two in (("a", "100, 20", "200, 20"), ("b", "'late', 15", "'new', 30")):
        spark.sql(
            f"MERGE INTO {name} t USING (SELECT * FROM VALUES (1, {one}), (2, {two}) AS "
            f"s(id, {column}, ts)) s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET {column} = s.{column}, ts = s.ts"
        )


def by_payload(spark: Any, path: Path, version: int) -> None:
    """Upsert records whose nulls leave columns to older ones, the last of them late."""
    options = {
        **QUIET,
        "hoodie.table.name": path.name,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.payload.class": f"{PAYLOAD}PartialUpdateAvroPayload",
        "hoodie.write.table.version": str(version),
    }
    for rows in (
        [(1, 1, None, 20), (2, 2, None, 20), (3, 3, "b", 20)],
        [(2, 22, None, 25)],
        [(1, None, "late", 15), (2, None, "late", 15)],
    ):
        frame = spark.createDataFrame(rows, "id int, a int, b string, ts int")
        frame.write.format("hudi").options(**options).mode("append").save(str(path))


def rows_by_id(rows: list[Any]) -> dict[int, Row]:
    return {row["id"]: tuple(row[name] for name in COLUMNS) for row in rows}


@pytest.mark.parametrize("write", [by_merge, by_payload])
@pytest.mark.parametrize("version", [9, 8])
def test_windows_and_changes_over_parts_of_rows(
    hudi_spark: Any, tmp_path: Path, write: Any, version: int
) -> None:
    path = tmp_path / f"{write.__name__}_{version}"
    write(hudi_spark, path, version)
    table = lw.open_table(path)
    writes = [i for i in table.timeline.completed() if i.action.writes_data]
    there = []
    for instant in writes:
        reader = hudi_spark.read.format("hudi").option("as.of.instant", instant.requested)
        there.append(rows_by_id(reader.load(str(path)).collect()))
    assert there[-1] == rows_by_id(table.scan().to_arrow().to_pylist())
    for first, last in ((0, 1), (1, 2), (0, 2)):
        start, end = writes[first].completed, writes[last].completed
        window = table.incremental(start, end)
        here = rows_by_id(window.to_arrow().to_pylist())
        assert here == {key: there[last][key] for key in here}
        assert {k for k in there[last] if there[first][k] != there[last][k]} <= set(here)
        assert rows_by_id(window.to_spark(hudi_spark).collect()) == here
        held = dict(there[first])
        for change in table.changes(start, end).to_arrow().to_pylist():
            assert change["op"] == "u"
            (old,) = rows_by_id([change["before"]]).values()
            assert held[old[0]] == old
            held |= rows_by_id([change["after"]])
        assert held == there[last]
