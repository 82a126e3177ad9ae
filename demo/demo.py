"""The main job, end to end: read a table that real Hudi wrote, in every way there is.

    ./dev demo

The table is a merge-on-read table of orders with four commits: inserts, late and newer updates,
a delete, more updates. It is read without Java first, then on Spark.
"""

import os
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

import lakewright as lw

ORDERS = Path(__file__).parents[1] / "tests" / "golden" / "tables" / "orders_mor.zip"
console = Console(width=None if sys.stdout.isatty() else 110)


def step(title: str) -> None:
    """Print the heading of a step."""
    console.rule(f"[bold]{title}", align="left")


def show(rows: pa.Table) -> None:
    """Print rows as a table."""
    grid = Grid(header_style="bold cyan")
    for name in rows.column_names:
        grid.add_column(name)
    for row in sorted(rows.to_pylist(), key=str):
        grid.add_row(*("" if v is None else str(v) for v in row.values()))
    console.print(grid)


def without_java(table: lw.Table) -> None:
    """Read with Arrow alone, in every mode."""
    step("The table")
    definition = table.definition
    console.print(
        f"{definition.table_type}, version {definition.version}, "
        f"key {definition.record_key}, partitioned by {definition.partition_by}, "
        f"{definition.merge_mode}"
    )
    writes = [i for i in table.timeline.completed() if i.action.writes_data]
    for instant in writes:
        console.print(f"  {instant.requested}  {instant.action}", highlight=False)

    step("Now: table.scan()")
    show(table.scan(columns=["id", "city", "item", "n", "total", "at"]).to_arrow())

    step("Some of it: where=lw.col('city') == 'oslo', two columns")
    query = table.scan(where=lw.col("city") == "oslo", columns=["id", "total"])
    show(query.to_arrow())
    console.print(query.explain(), highlight=False)

    step("As it was after the first commit: as_of=…")
    show(table.scan(as_of=writes[0].requested, columns=["id", "city", "n"]).to_arrow())

    step("What changed after the second commit: table.incremental(start=…)")
    assert writes[1].completed
    show(table.incremental(writes[1].completed, columns=["id", "n", "at"], meta=False).to_arrow())

    step("The change stream: table.changes()")
    changes = table.changes().to_arrow()
    for change in sorted(changes.to_pylist(), key=lambda c: (c["ts_ms"], str(c["after"]))):
        before, after = change["before"], change["after"]
        row = (after or before)["id"]
        console.print(
            f"  {change['ts_ms']} {change['op']} {row}: "
            f"n {before and before['n']} -> {after and after['n']}",
            highlight=False,
        )

    step("Is it sound? table.fsck()")
    report = table.fsck(deep=True)
    console.print(f"ok={report.ok}, checked {dict(report.checked)}", highlight=False)

    step("A mistake is answered")
    try:
        table.scan(columns=["idd"]).to_arrow()
    except lw.LakewrightError as error:
        console.print(f"{type(error).__name__}: {error}", highlight=False)


def on_spark(table: lw.Table) -> None:
    """Read the same on a local Spark session."""
    step("The same on Spark: table.scan().to_spark(spark)")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("lakewright demo")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        frame = table.scan(where="n >= 0").to_spark(spark)
        frame.groupBy("city").sum("total").orderBy("city").show()
        writes = [i for i in table.timeline.completed() if i.action.writes_data]
        before = table.scan(as_of=writes[0].requested).to_spark(spark).count()
        now = table.scan().to_spark(spark).count()
        changed = table.incremental(writes[0].completed).to_spark(spark).count()
        console.print(f"rows then {before}, now {now}, changed since {changed}", highlight=False)
        if hasattr(spark, "dataSource"):
            loaded = spark.read.format("lakewright").load(table.path).count()
            console.print(f'spark.read.format("lakewright"): {loaded} rows', highlight=False)
    finally:
        spark.stop()


def main() -> None:
    """Unpack the table and read it."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(ORDERS) as bundle:
            bundle.extractall(folder)
        table = lw.open_table(Path(folder) / "orders_mor")
        without_java(table)
        on_spark(table)
    console.print("\n[bold green]done[/]")


if __name__ == "__main__":
    main()
