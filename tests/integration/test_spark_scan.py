"""What a scan on Spark is made of: native scans, no rows on the driver, settings as they were."""

import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import StringIO
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.actions.scan import ScanPlan
from lakewright.engine.spark import native
from lakewright.engine.spark.scan import to_spark
from lakewright.engine.spark.session import changed_settings
from lakewright.format.hudi.base_file import BaseFileReader
from lakewright.model.errors import SnapshotGone
from support.spark_rows import golden_rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Table = Callable[[str], Path]
LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def with_options(plan: ScanPlan, **options: str) -> ScanPlan:
    named = {f"lakewright.spark.{key}": value for key, value in options.items()}
    return replace(plan, spec=replace(plan.spec, options={**plan.spec.options, **named}))


def explained(frame: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the physical plan without what differs between any two scans: ids and places."""
    capsys.readouterr()
    frame.explain("formatted")
    lines = capsys.readouterr().out.splitlines()
    kept = [re.sub(r"#\d+L?|\[plan_id=\d+\]", "", line) for line in lines]
    return [line for line in kept if not line.startswith(("Location", "Arguments: [file"))]


def shape_of(frame: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    wanted = ("(", "Batched", "PartitionFilters", "PushedFilters", "ReadSchema")
    return [line for line in explained(frame, capsys) if line.startswith(wanted)]


@pytest.fixture
def plain_copy(golden_table: Table, tmp_path: Path) -> Path:
    """The live base files of a copy-on-write table in a folder of their own."""
    table = golden_table("cow_basic_v9")
    for task in lw.open_table(table).scan().plan().tasks:
        target = tmp_path / "plain" / task.paths[0]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(table / task.paths[0], target)
    return tmp_path / "plain"


def test_copy_on_write_is_the_scan_that_spark_makes_of_the_folder(
    golden_table: Table, plain_copy: Path, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = lw.open_table(golden_table("cow_basic_v9")).scan().to_spark(spark)
    theirs = spark.read.parquet(str(plain_copy))
    query = "qty > 3 and region = 'eu' and name is not null"
    for made in (
        lambda frame: frame.where(query).select("id", "price"),
        lambda frame: frame.groupBy("region").agg({"price": "sum"}),
        lambda frame: frame.select("id"),
    ):
        assert shape_of(made(ours), capsys) == shape_of(made(theirs), capsys)
        assert made(ours).rdd.getNumPartitions() == made(theirs).rdd.getNumPartitions()
    assert ours.where(query).count() == theirs.where(query).count() > 0


def test_the_filter_of_a_scan_is_pushed_into_parquet(
    golden_table: Table, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    scan = lw.open_table(golden_table("cow_basic_v9")).scan(
        where="qty > 3 and region = 'eu'", columns=["id"]
    )
    text = "\n".join(explained(scan.to_spark(spark), capsys))
    assert "GreaterThan(qty,3)" in text
    assert "region" in re.search(r"PartitionFilters: (.*)", text).group(1)  # type: ignore[union-attr]
    assert "price" not in text


CONDITIONS = [
    "qty > 0",
    "region = 'eu' and qty <= 10",
    "name like 'n%a' or price is null",
    "_hoodie_record_key in ('k001', 'k002', 'k010')",
    "qty + 1 > 5 and not (region = 'us')",
]


@pytest.mark.parametrize("merging", ["workers", "overlay"])
@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_keep_the_rows_that_arrow_keeps(
    golden_table: Table, spark: Any, where: str, merging: str
) -> None:
    scan = lw.open_table(golden_table("mor_basic_v9")).scan(where=where, columns=["id", "qty"])
    plan = with_options(scan.plan(), merging=merging)
    found = sorted(map(tuple, to_spark(plan, spark).collect()))
    wanted = scan.to_arrow()
    assert found == sorted(zip(*(c.to_pylist() for c in wanted.columns), strict=True))


def test_a_frame_may_be_filtered_twice_and_joined_with_itself(
    golden_table: Table, spark: Any
) -> None:
    plan = lw.open_table(golden_table("mor_basic_v9")).scan().plan()
    frame = to_spark(with_options(plan, merging="overlay"), spark)
    halves = frame.where("qty > 0").unionAll(frame.where("qty <= 0 or qty is null"))
    assert halves.count() == frame.count() > 0
    assert frame.alias("a").join(frame.alias("b"), "id").count() == frame.count()


def test_an_overlay_asks_for_its_verdicts_once(golden_table: Table, spark: Any) -> None:
    plan = lw.open_table(golden_table("mor_basic_v9")).scan().plan()
    asked = to_spark(with_options(plan, merging="overlay"), spark).groupBy("region").count()
    assert asked.collect()
    told = StringIO()
    with redirect_stdout(told):
        asked.explain()
    carried_out = told.getvalue().split("== Initial Plan ==")[0]
    assert carried_out.count("ReusedExchange [_lakewright_file") == 1


@pytest.mark.parametrize("merging", ["workers", "overlay"])
def test_no_row_comes_to_the_driver(
    golden_table: Table, spark: Any, merging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = with_options(lw.open_table(golden_table("mor_basic_v9")).scan().plan(), merging=merging)
    called: list[str] = []

    def spy(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def spied(*args: Any, **kwargs: Any) -> Any:
            called.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, spied)

    frame_type = type(spark.range(1))
    for name in ("collect", "toArrow", "toPandas", "toLocalIterator", "take", "head", "count"):
        spy(frame_type, name)
    spy(BaseFileReader, "iter_batches")
    frame = to_spark(plan, spark)
    frame.write.format("noop").mode("overwrite").save()
    assert called == []
    assert frame.count() > 0
    assert called == ["count"]


def settings_of(spark: Any) -> dict[str, str]:
    return dict(spark.conf.getAll)


@pytest.mark.parametrize("before", [None, "7"])
def test_settings_are_put_back(golden_table: Table, spark: Any, before: str | None) -> None:
    if before is not None:
        spark.conf.set(LISTING, before)
    try:
        untouched = settings_of(spark)
        lw.open_table(golden_table("mor_basic_v9")).scan().to_spark(spark).schema  # noqa: B018
        assert settings_of(spark) == untouched
    finally:
        spark.conf.unset(LISTING)


def test_settings_are_put_back_when_a_file_is_missing(
    golden_table: Table, spark: Any, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    shutil.copytree(golden_table("cow_basic_v9"), table)
    plan = lw.open_table(table).scan().plan()
    instants = [task.slice.base_instant for task in plan.tasks]
    twin = next(i for i, at in enumerate(instants) if at in instants[:i])
    (table / plan.tasks[twin].paths[0]).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        untouched = settings_of(spark)
        with pytest.raises(SnapshotGone, match="make the scan anew"):
            to_spark(plan, spark)
        assert settings_of(spark) == untouched
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_many_files_are_listed_without_a_job(
    golden_table: Table, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = native.changed_settings
    monkeypatch.setattr(
        native, "changed_settings", lambda s, v: seen.append(v[LISTING]) or real(s, v)
    )
    spark.conf.set(LISTING, "2")
    try:
        frame = lw.open_table(golden_table("cow_basic_v9")).scan().to_spark(spark)
    finally:
        spark.conf.unset(LISTING)
    assert len(frame.inputFiles()) > 2
    assert int(seen[0]) > len(frame.inputFiles())


@pytest.mark.parametrize("folder", ["100% [ok] {a,b} *?# =x", "a:b", "a:b [ok]"])
@pytest.mark.parametrize("name", ["cow_odd_partitions_encoded_v9", "mor_basic_v9"])
def test_the_table_may_lie_in_a_folder_with_an_odd_name(
    golden_table: Table, spark: Any, tmp_path: Path, name: str, folder: str
) -> None:
    table = tmp_path / folder / "t"
    shutil.copytree(golden_table(name), table)
    plan = lw.open_table(table).scan(meta=True).plan()
    ours = golden_rows(to_spark(with_options(plan, merging="overlay"), spark))
    there = lw.open_table(golden_table(name)).scan(meta=True)
    assert ours == golden_rows(there.to_spark(spark))


def test_no_columns_still_count(golden_table: Table, spark: Any) -> None:
    table = lw.open_table(golden_table("mor_basic_v9"))
    plan = table.scan(columns=[]).plan()
    frame = to_spark(plan, spark)
    assert frame.columns == []
    assert frame.count() == table.scan().count()


@pytest.mark.parametrize("merging", ["workers", "overlay"])
@pytest.mark.parametrize("columns", [["region"], ["qty", "region", "id"]])
def test_partition_columns_keep_their_place_and_values(
    golden_table: Table, spark: Any, merging: str, columns: list[str]
) -> None:
    scan = lw.open_table(golden_table("mor_basic_v9")).scan(columns=columns)
    frame = to_spark(with_options(scan.plan(), merging=merging), spark)
    assert frame.columns == columns
    wanted = scan.to_arrow()
    assert sorted(map(tuple, frame.collect())) == sorted(
        zip(*(c.to_pylist() for c in wanted.columns), strict=True)
    )


#: Values of a partition column that a plan written as text could take for something else.
ODD = [
    *("plain", "it's", 'a "b"', "back\\slash", "two\nlines", "\u00e4\u6c34\U0001f40b"),
    *("a,b", "${x}", "`t`", None),
]


@pytest.mark.parametrize("merging", ["workers", "overlay"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_odd_values_of_many_partitions(spark: Any, tmp_path: Path, kind: str, merging: str) -> None:
    count = 3 * len(ODD)
    days = [date(1, 1, 1), date(2026, 2, 28), None]
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "text": ODD * 3,
            "flag": pa.array([number % 3 == 0 for number in range(count)]),
            "day": pa.array([days[number % 3] for number in range(count)], pa.date32()),
            "n": pa.array([-(2**63) + number for number in range(count)], pa.int64()),
        }
    )
    table = lw.create_table(
        tmp_path / "t",
        schema=rows.schema,
        key="id",
        partition_by=["text", "flag", "day", "n"],
        type=kind,
        properties={"hoodie.datasource.write.partitionpath.urlencode": "true"},
    )
    table.upsert(rows)
    table.upsert(rows.slice(0, count // 2))
    scan = table.scan()
    frame = to_spark(with_options(scan.plan(), merging=merging), spark)
    wanted = scan.to_arrow().to_pylist()
    assert len(wanted) == count and {row["text"] for row in wanted} == set(ODD)
    ours = [row.asDict() for row in frame.collect()]
    assert sorted(ours, key=itemgetter("id")) == sorted(wanted, key=itemgetter("id"))
    for value in filter(None, ODD):
        found = table.scan(where=lw.col("text") == value).to_spark(spark)
        assert [row["text"] for row in found.select("text").collect()] == [value] * 3


@pytest.mark.parametrize("merging", ["workers", "overlay"])
@pytest.mark.parametrize(
    "name",
    [
        "_tmp_metadata_row_index",
        "_lakewright_row",
        "_lakewright_count",
        "_lakewright_0",
        "_lakewright_file",
        "_lakewright_Bits",
        "_metadata",
        "_Metadata",
    ],
)
def test_columns_may_have_the_names_that_plans_use(
    spark: Any, tmp_path: Path, name: str, merging: str
) -> None:
    rows = pa.table({"id": ["a", "b", "c"], name: pa.array([7, 8, 9], pa.int64())})
    table = lw.create_table(tmp_path / "t", schema=rows.schema, key="id", type="MERGE_ON_READ")
    table.upsert(rows.slice(0, 2))
    table.upsert(rows.slice(2))
    table.upsert([{"id": "a", name: -7}])
    scan = table.scan(where=lw.col(name) < 9)
    frame = to_spark(with_options(scan.plan(), merging=merging), spark)
    assert sorted(map(tuple, frame.collect())) == [("a", -7), ("b", 8)]


#: A column of every type that holds no others.
KINDS = {
    "id": pa.string(),
    "own": pa.string(),
    "few": pa.string(),
    "raw": pa.binary(),
    "yes": pa.bool_(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "dec": pa.decimal128(30, 5),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "milli": pa.timestamp("ms", "UTC"),
}


def one_row(number: int) -> dict[str, Any]:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number, microseconds=1000)
    values = {
        "own": f"other {number}",
        "few": ["red", "green", "", "\u6c34"][number % 4],
        "raw": bytes([number % 256]),
        "yes": number % 2 == 0,
        "i": number,
        "l": number << 40,
        "f": number / 2,
        "d": number / 3,
        "dec": Decimal(number) / 4,
        "day": moment.date(),
        "at": moment,
        "local": moment.replace(tzinfo=None),
        "milli": moment,
    }
    held = {
        name: None if (number + at) % 11 == 0 else v for at, (name, v) in enumerate(values.items())
    }
    return {"id": f"k{number}", **held}


@pytest.mark.parametrize("merging", ["workers", "overlay"])
def test_rows_of_every_plain_type(spark: Any, tmp_path: Path, merging: str) -> None:
    schema = pa.schema(list(KINDS.items()))
    rows = pa.Table.from_pylist([one_row(number) for number in range(3_000)], schema)
    table = lw.create_table(tmp_path / "t", schema=schema, key="id", type="MERGE_ON_READ")
    table.bulk_insert(rows)
    table.upsert(pa.Table.from_pylist([one_row(n) | {"i": -n} for n in range(0, 3_000, 7)], schema))
    table.upsert(pa.Table.from_pylist([{"id": "late", "few": "red"}], schema))
    wanted = sorted(table.scan().to_arrow().to_pylist(), key=itemgetter("id"))
    frame = to_spark(with_options(table.scan().plan(), merging=merging), spark)
    assert frame.columns == list(KINDS)
    asked = frame.toDF(*(f"c{number}" for number in range(len(KINDS))))
    found = sorted(asked.collect(), key=lambda row: row[0])
    assert [_in_utc(tuple(row)) for row in found] == [_in_utc(tuple(r.values())) for r in wanted]
    assert asked.where("c2 = 'red' and c5 < 0").count() == sum(
        row["few"] == "red" and (row["i"] or 0) < 0 for row in wanted
    )


def _in_utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make moments comparable: Spark hands out those of a zone without it, in the machine's."""
    return tuple(
        v.astimezone(UTC) if isinstance(v, datetime) and at in (11, 13) else v
        for at, v in enumerate(row)
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [("spark.sql.codegen.wholeStage", "false"), ("spark.sql.codegen.maxFields", "5")],
)
def test_rows_travel_one_by_one_where_spark_generates_no_code(
    golden_table: Table, spark: Any, key: str, value: str
) -> None:
    """It would copy lists of rows for each of the rows."""
    plan = with_options(
        lw.open_table(golden_table("mor_basic_v9")).scan().plan(), merging="workers"
    )
    with changed_settings(spark, {key: value}):
        frame = to_spark(plan, spark)
        assert "Generate" not in frame._jdf.queryExecution().toString()
        found = sorted(map(tuple, frame.select("id", "qty").collect()))
    usual = to_spark(plan, spark)
    assert "Generate" in usual._jdf.queryExecution().toString()
    assert sorted(map(tuple, usual.select("id", "qty").collect())) == found


def test_lists_of_rows_survive_a_query_without_generated_code(
    golden_table: Table, spark: Any
) -> None:
    plan = with_options(
        lw.open_table(golden_table("mor_basic_v9")).scan().plan(), merging="workers"
    )
    frame = to_spark(plan, spark)
    wanted = sorted(map(tuple, frame.select("id", "qty", "name").collect()))
    with changed_settings(spark, {"spark.sql.codegen.wholeStage": "false"}):
        found = frame.select("id", "qty", "name").collect()
    assert sorted(map(tuple, found)) == wanted


def test_spark_knows_how_large_merged_rows_are(spark: Any, tmp_path: Path) -> None:
    """Else it would take any table for small, and collect its rows in the driver for a join."""
    rows = pa.table(
        {"id": [f"k{n}" for n in range(2_000)], "s": [f"{n}" * 50 for n in range(2_000)]}
    )
    table = lw.create_table(tmp_path / "t", schema=rows.schema, key="id", type="MERGE_ON_READ")
    table.bulk_insert(rows)
    table.upsert(rows.slice(0, 10))
    plan = with_options(table.scan().plan(), merging="workers")
    frame = to_spark(plan, spark)
    assert plan.size // 2 < expected_bytes(frame) < plan.size * 2
    assert frame.count() == 2_000
    large = replace(plan, tasks=[_of_size(task, 1 << 40) for task in plan.tasks])
    assert expected_bytes(to_spark(large, spark)) > 1 << 39


def expected_bytes(frame: Any) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _of_size(task: Any, size: int) -> Any:
    return replace(task, slice=replace(task.slice, base=replace(task.slice.base, size=size)))


def test_an_empty_table_is_an_empty_frame(hudi_table: Table, spark: Any) -> None:
    frame = lw.open_table(hudi_table("sample_table__cow__v6_empty")).scan().to_spark(spark)
    assert frame.count() == 0
    assert "id" in frame.columns


def test_the_active_session_is_used(golden_table: Table, spark: Any) -> None:
    assert lw.open_table(golden_table("cow_basic_v9")).scan().to_spark().count() > 0


def test_a_window_over_an_undo_has_the_rows_that_came_back(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id string, n int, p string", key="id", partition_by="p"
    )
    table.upsert([{"id": "a", "n": 1, "p": "x"}, {"id": "b", "n": 1, "p": "y"}])
    plan = table.plan_delete_partitions([{"p": "x"}])
    plan.apply()
    after = table.timeline.latest_completion()
    table.upsert([{"id": "c", "n": 2, "p": "y"}])
    plan.undo()
    scan = table.incremental(after)
    for frame in (scan.to_spark(spark), scan.to_spark(spark).where("n > 0")):
        assert sorted(row["id"] for row in frame.collect()) == ["a", "c"]
    assert sorted(scan.to_arrow().column("id").to_pylist()) == ["a", "c"]
