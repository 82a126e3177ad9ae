"""SQL on Spark reads times in the zone of the session, in every statement alike."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

_ZONE = "spark.sql.session.timeZone"
_FORMS = {
    "literal": "ts >= TIMESTAMP '2024-03-10 03:00:00'",
    "text": "ts >= '2024-03-10 03:00:00'",
    "zoned": "ts >= TIMESTAMP '2024-03-10 03:00:00Z'",
    "between": "ts BETWEEN '2024-03-09 20:00:00' AND '2024-03-10 01:00:00'",
    "day": "CAST(ts AS DATE) = DATE '2024-03-10'",
    "month": "month(ts) = 3 AND day(ts) = 10",
    "hour": "hour(ts) = 3",
    "column": "ts > d",
    "date": "ts < DATE '2024-03-10'",
    "trunc": "date_trunc('DAY', ts) = TIMESTAMP '2024-03-10'",
    "shown": "CAST(ts AS STRING) LIKE '2024-03-10 0%'",
}
_WHERE = " OR ".join(f"(t.form = '{name}' AND {text})" for name, text in _FORMS.items()).replace(
    "ts", "t.ts"
)


def _rows() -> list[tuple[str, str, dt.datetime, dt.date]]:
    first = dt.datetime(2024, 3, 9, 12, 30, tzinfo=dt.UTC)
    return [
        (f"{form}-{hour}", form, first + dt.timedelta(hours=hour), dt.date(2024, 3, 10))
        for form in _FORMS
        for hour in range(36)
    ]


@pytest.fixture(params=["America/New_York", "Asia/Tokyo"])
def zoned(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    before = spark.conf.get(_ZONE)
    spark.conf.set(_ZONE, request.param)
    yield spark
    spark.conf.set(_ZONE, before)


def test_statements_agree_with_spark_in_every_zone(zoned: Any, tmp_path: Path) -> None:
    lake = lw.connect(tmp_path, spark=zoned)
    lake.sql(
        "CREATE TABLE z (id STRING, form STRING, ts TIMESTAMP, d DATE, n INT, m INT) USING hudi "
        "TBLPROPERTIES (primaryKey='id')"
    )
    table = lake.table("z")
    names = ("id", "form", "ts", "d")
    table.insert([dict(zip(names, row, strict=True), n=0, m=0) for row in _rows()])
    reference = zoned.createDataFrame(_rows(), "id string, form string, ts timestamp, d date")
    wanted = {row.id for row in reference.alias("t").where(_WHERE).collect()}
    told = {id.partition("-")[0] for id in wanted}
    assert told == set(_FORMS)

    assert {row.id for row in lake.sql(f"SELECT id FROM z t WHERE {_WHERE}").collect()} == wanted
    # Alone a condition leaves files out, too.
    for form in ("literal", "day", "column"):
        alone = lake.sql(f"SELECT id FROM z WHERE form = '{form}' AND {_FORMS[form]}").collect()
        assert {row.id for row in alone} == {i for i in wanted if i.startswith(f"{form}-")}

    lake.sql(f"UPDATE z t SET n = hour(t.ts), d = CAST(t.ts AS DATE) WHERE {_WHERE}")
    lake.sql(
        f"MERGE INTO z t USING (SELECT DISTINCT id FROM z) s ON t.id = s.id "
        f"WHEN MATCHED AND {_WHERE.replace('t.d', 'DATE ' + repr('2024-03-10'))} "
        "THEN UPDATE SET m = 1"
    )
    hours = {row.id: row.h for row in reference.selectExpr("id", "hour(ts) AS h").collect()}
    days = {row.id: row.x for row in reference.selectExpr("id", "CAST(ts AS DATE) x").collect()}
    for row in table.scan().to_arrow().to_pylist():
        changed = row["id"] in wanted
        assert row["m"] == (1 if changed else 0), row
        assert row["n"] == (hours[row["id"]] if changed else 0), row
        assert row["d"] == (days[row["id"]] if changed else dt.date(2024, 3, 10)), row

    table.update({"d": dt.date(2024, 3, 10)})
    lake.sql(f"DELETE FROM z t WHERE {_WHERE}")
    left = set(table.scan().to_arrow()["id"].to_pylist())
    assert left == {row[0] for row in _rows()} - wanted
