"""CREATE TABLE under Hudi's names for keys, and what is said of columns."""

from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.model.ddl import parse_ddl

WRITE = "hoodie.datasource.write."
KEYGEN = "org.apache.hudi.keygen"
TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}
TIMESTAMP = {f"{WRITE}keygenerator.class": f"{KEYGEN}.TimestampBasedKeyGenerator", **TIMES}
CUSTOM = {
    f"{WRITE}keygenerator.class": f"{KEYGEN}.CustomKeyGenerator",
    f"{WRITE}partitionpath.field": "p:SIMPLE,at:TIMESTAMP",
    **TIMES,
}
#: These tell the name of a table, and the bytes that follow from it.
OF_ITS_OWN = ("hoodie.table.name", "hoodie.table.checksum", "hoodie.table.create.schema")


@pytest.fixture
def lake(tmp_path: Path) -> lw.Lake:
    return lw.connect(tmp_path)


def create(lake: lw.Lake, name: str, by: str, said: dict[str, str]) -> None:
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in said.items())
    lake.sql(
        f"CREATE TABLE {name} (id INT, p STRING, at BIGINT) USING hudi PARTITIONED BY ({by}) "
        f"TBLPROPERTIES (primaryKey = 'id', {properties})"
    )


def told(table: lw.Table) -> dict[str, str]:
    properties: Any = table.definition.properties
    return {key: value for key, value in properties.items() if key not in OF_ITS_OWN}


@pytest.mark.parametrize("version", ["9", "6"])
@pytest.mark.parametrize(
    ("by", "said", "path"),
    [("at", TIMESTAMP, "at=2025-11-01"), ("p, at", CUSTOM, "p=x/at=2025-11-01")],
    ids=["timestamp", "custom"],
)
def test_generators_are_named_as_in_hudi_and_shown_again(
    lake: lw.Lake, by: str, said: dict[str, str], path: str, version: str
) -> None:
    create(lake, "shop.orders", by, {"hoodie.table.version": version, **said})
    orders = lake.table("shop.orders")
    orders.insert([{"id": 1, "p": "x", "at": 1762000000000}])
    assert [partition.path for partition in orders.partitions()] == [path]
    shown: Any = lake.sql("SHOW CREATE TABLE shop.orders")
    text = shown["createtab_stmt"][0].as_py()
    assert "`at` BIGINT" in text
    lake.sql(text.replace("`orders`", "`again`"))
    assert told(lake.table("shop.again")) == told(orders)


def test_partition_fields_that_are_others_are_refused(lake: lw.Lake) -> None:
    with pytest.raises(lw.Invalid, match="contradicts"):
        create(lake, "shop.orders", "p", {f"{WRITE}partitionpath.field": "at"})
    assert lake.tables() == []


@pytest.mark.parametrize(
    "said",
    ["PRIMARY KEY", "DEFAULT 5", "UNIQUE", "CHECK (id > 1)", "GENERATED ALWAYS AS (n)"],
)
def test_what_a_column_cannot_have_is_refused(lake: lw.Lake, said: str) -> None:
    lake.sql("CREATE TABLE shop.there (id INT, n INT) USING hudi")
    for statement in (
        f"CREATE TABLE shop.orders (id INT {said}, n INT) USING hudi",
        f"ALTER TABLE shop.there ADD COLUMNS (more INT {said})",
    ):
        with pytest.raises(lw.Invalid, match=said.split()[0]) as error:
            lake.sql(statement)
        assert "primaryKey" in str(error.value.next_step)
    with pytest.raises(lw.Invalid, match=said.split()[0]):
        parse_ddl(f"id int {said}")
    assert lake.tables() == ["shop.there"] and lake.table("shop.there").schema.names == ["id", "n"]


def test_columns_may_say_that_they_take_null() -> None:
    told = parse_ddl("a int null, b int not null, c int, s struct<x: int not null>")
    assert [field.nullable for field in told] == [True, False, True, True]
