"""Real Hudi writes a random history; what we read after every step is what Hudi reads."""

import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lakewright as lw

pytestmark = pytest.mark.interop

SCHEMA = "id string, city string, name string, n int, price decimal(9,2), at long"
CITIES = ("oslo", "lima", "são paulo")
META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")
COLUMNS = [*META, *(field.split()[0] for field in SCHEMA.split(", "))]
PLAIN = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one table is set up; the numbers decide its history."""

    seed: int
    kind: str
    version: int
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        words = (f"{'.'.join(key.split('.')[-2:])}={value}" for key, value in self.options)
        return "-".join([self.kind.split("_")[0].lower(), f"v{self.version}", *words])


COMMIT_TIME = (("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING"),)
EVENT_TIME = (("hoodie.datasource.write.precombine.field", "at"),)
RECIPES = [
    Recipe(1, "COPY_ON_WRITE", 6, EVENT_TIME),
    Recipe(2, "COPY_ON_WRITE", 9, COMMIT_TIME),
    Recipe(3, "COPY_ON_WRITE", 9, (*EVENT_TIME, ("hoodie.metadata.enable", "true"))),
    Recipe(4, "MERGE_ON_READ", 6, EVENT_TIME),
    Recipe(5, "MERGE_ON_READ", 8, COMMIT_TIME),
    Recipe(6, "MERGE_ON_READ", 9, (*EVENT_TIME, ("hoodie.logfile.data.block.format", "parquet"))),
    Recipe(7, "MERGE_ON_READ", 9, (*EVENT_TIME, ("hoodie.compact.inline", "true"))),
]


class Writer:
    """Drives Hudi through one random history."""

    def __init__(self, spark: Any, path: Path, recipe: Recipe) -> None:
        self.spark, self.path, self.random = spark, path, Random(recipe.seed)
        self.options = {
            **PLAIN,
            "hoodie.table.name": "orders",
            "hoodie.datasource.write.table.type": recipe.kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.write.table.version": str(recipe.version),
            "hoodie.compact.inline.max.delta.commits": "2",
            **dict(recipe.options),
        }

    def row(self, number: int) -> tuple[object, ...]:
        random = self.random
        name = random.choice([None, "", "naïve", "a,b", f"n{random.randrange(99)}"])
        price = random.choice([None, f"{random.randrange(10**6) / 100:.2f}"])
        city = CITIES[number % 3]
        return (f"k{number:03d}", city, name, random.randrange(-9, 9), price, random.randrange(5))

    def step(self, number: int) -> None:
        operation = "insert" if number == 0 else self.random.choice(["upsert", "upsert", "delete"])
        count = 60 if number == 0 else self.random.randrange(1, 25)
        rows = [self.row(i) for i in self.random.sample(range(90), count)]
        names = SCHEMA.replace("decimal(9,2)", "string")
        frame = self.spark.createDataFrame(rows, names)
        frame = frame.withColumn("price", frame["price"].cast("decimal(9,2)")).coalesce(1)
        writer = frame.write.format("hudi").options(**self.options)
        writer = writer.option("hoodie.datasource.write.operation", operation)
        writer.mode("overwrite" if number == 0 else "append").save(str(self.path))


def by_hudi(spark: Any, path: Path, **options: str) -> Counter[tuple[object, ...]]:
    frame = spark.read.format("hudi").options(**options).load(str(path)).select(*COLUMNS)
    return Counter(map(tuple, frame.collect()))


def by_us(scan: lw.Scan) -> Counter[tuple[object, ...]]:
    table = scan.to_arrow().select(COLUMNS)
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_every_step_of_a_history_reads_as_hudi_reads_it(
    hudi_spark: Any, tmp_path: Path, recipe: Recipe
) -> None:
    path = tmp_path / "orders"
    writer = Writer(hudi_spark, path, recipe)
    seen: dict[str, Counter[tuple[object, ...]]] = {}
    for number in range(4):
        writer.step(number)
        table = lw.open_table(path)
        expected = by_hudi(hudi_spark, path)
        assert by_us(table.scan(meta=True)) == expected
        newest = table.timeline.latest_data()
        assert newest is not None
        seen[newest.requested] = expected
    optimised = {"hoodie.datasource.query.type": "read_optimized"}
    assert by_us(table.scan(meta=True, mode="read_optimized")) == by_hudi(
        hudi_spark, path, **optimised
    )
    for instant, expected in seen.items():
        assert by_us(table.scan(meta=True, as_of=instant)) == expected


@pytest.mark.parametrize("recipe", [RECIPES[1], RECIPES[5]], ids=str)
def test_a_scan_is_a_dataframe_beside_hudi(hudi_spark: Any, tmp_path: Path, recipe: Recipe) -> None:
    path = tmp_path / "orders"
    writer = Writer(hudi_spark, path, recipe)
    for number in range(3):
        writer.step(number)
    scan = lw.open_table(path).scan(meta=True)
    frame = scan.to_spark(hudi_spark).select(*COLUMNS)
    assert Counter(map(tuple, frame.collect())) == by_hudi(hudi_spark, path)


def test_of_lists_in_logs_whose_structs_grew_hudi_repeats_the_last_element(
    hudi_spark: Any, tmp_path: Path
) -> None:
    """Of its own logs, under schema on read. We show the elements as they were written."""
    name = f"t_{uuid.uuid4().hex}"
    settings = {**PLAIN, "hoodie.schema.on.read.enable": "true"}
    for key, value in settings.items():
        hudi_spark.sql(f"SET {key}={value}")
    try:
        hudi_spark.sql(
            f"CREATE TABLE {name} (id string, l array<struct<u:int>>, at bigint) USING hudi "
            "TBLPROPERTIES (type='mor', primaryKey='id', preCombineField='at') "
            f"LOCATION '{tmp_path / name}'"
        )
        both = "array(named_struct('u', 1), named_struct('u', 2))"
        hudi_spark.sql(f"INSERT INTO {name} SELECT 'a', {both}, 1")
        hudi_spark.sql(f"UPDATE {name} SET at = 2 WHERE id = 'a'")
        hudi_spark.sql(f"ALTER TABLE {name} ADD COLUMNS (l.element.w int)")
        reading = hudi_spark.read.format("hudi").options(**settings).load(str(tmp_path / name))
        (theirs,) = [row.asDict(recursive=True) for row in reading.collect()]
        hudi_spark.sql(f"DROP TABLE {name}")
    finally:
        for key in settings:
            hudi_spark.sql(f"RESET {key}")
    (ours,) = lw.open_table(tmp_path / name).scan().to_arrow().to_pylist()
    assert [element["u"] for element in theirs["l"]] == [2, 2]
    assert ours["l"] == [{"u": 1, "w": None}, {"u": 2, "w": None}]
