"""Tables created here, taken on by real Hudi, which makes the same keys and paths."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.model.ddl import parse_ddl
from lakewright.storage.open import open_storage
from lakewright.table.evolution import stored_schema
from lakewright.table.state import open_state

pytestmark = pytest.mark.interop

SCHEMA = (
    "id string, k bigint, ts bigint, d decimal(20,10), e double, f float, day date, ok boolean, "
    "dt string, s struct<x:int,y:string>"
)
COLUMNS = parse_ddl(SCHEMA).names
TIMES = (1700000000000, 1710000000000, 1720000000000)
ROWS = [
    ("a", 1, TIMES[0], Decimal(0), 1e10, 0.5, dt.date(2024, 2, 29), True, "x", (1, "u")),
    ("b", 2, TIMES[1], Decimal("1E-7"), 100.0, 1.5, dt.date(2023, 1, 2), False, "y z", (2, "v")),
    ("c,d:e", 3, TIMES[2], Decimal("-12.5"), 0.1, 3.0, dt.date(1999, 1, 1), True, None, (3, "")),
]
BY_TIME = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
RECIPES: dict[str, dict[str, Any]] = {
    "composite": {"key": ["s.x", "id"], "partition_by": ["s.y", "dt"], "url_encode": True},
    "one_key_two_partitions": {"key": "id", "partition_by": ["dt", "k"]},
    "types": {"key": ["d", "e", "f", "day", "ok"], "partition_by": ["day", "d"]},
    "custom": {"key": "id", "partition_by": ["dt:SIMPLE", "ts:TIMESTAMP"], "properties": BY_TIME},
    "time_v6": {
        "key": "id",
        "partition_by": "ts",
        "key_generator": "TIMESTAMP",
        "properties": BY_TIME,
        "hive_style": False,
        "version": 6,
    },
    "ordered_mor": {
        "key": "id",
        "partition_by": "dt",
        "order_by": ["ts", "k"],
        "type": "MERGE_ON_READ",
    },
    "buckets_v6": {"key": ["id", "k"], "buckets": 3, "hash_by": "k", "version": 6},
    "generated": {"key": None, "partition_by": "dt"},
}
PLAIN = {
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
}


def options(name: str, details: dict[str, Any], table: lw.Table) -> dict[str, str]:
    stored = table.definition.properties
    index = {key: value for key, value in stored.items() if ".index." in key}
    pinned = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
    return {
        **PLAIN,
        "hoodie.table.name": name,
        "hoodie.datasource.write.operation": "upsert" if details["key"] else "insert",
        **(index if "buckets" in details else {}),
        **(pinned if details.get("version") == 6 else {}),
    }


def arrow() -> pa.Table:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    for row in rows:
        x, y = row["s"]
        row["s"] = {"x": x, "y": y}
    return pa.Table.from_pylist(rows, to_arrow_schema(parse_ddl(SCHEMA)))


@pytest.mark.parametrize("name", RECIPES)
def test_real_hudi_goes_on_with_a_table_created_here(
    hudi_spark: Any, tmp_path: Path, name: str
) -> None:
    details = RECIPES[name]
    table = lw.create_table(tmp_path / name, schema=SCHEMA, **details)
    created = dict(table.definition.properties)
    # The first row is written here, so that Hudi's upsert has to find it by its key.
    table.insert(arrow().slice(0, 1))
    frame = hudi_spark.createDataFrame(ROWS, SCHEMA)
    frame.write.format("hudi").options(**options(name, details, table)).mode("append").save(
        table.path
    )
    found = hudi_spark.read.format("hudi").load(table.path)
    meta = found.select("_hoodie_record_key", "_hoodie_partition_path").collect()
    state = open_state(open_storage(table.path, {}))
    columns = stored_schema(state)
    assert columns is not None
    maker = KeyMaker.of(state.config, columns)
    paths = maker.partitions(arrow()).to_pylist()
    if maker.generated:
        assert sorted(path for _, path in meta) == sorted([paths[0], *paths])
        assert len({key for key, _ in meta}) == len(ROWS) + 1
    else:
        pairs = list(zip(maker.keys(arrow()).to_pylist(), paths, strict=True))
        assert sorted(map(tuple, meta)) == sorted(pairs)
    assert table.scan().count() == len(meta)
    assert created.items() <= table.definition.properties.items()
