"""The whole story on Spark: create, load, upsert, delete, merge, read, travel, stream.

    ./dev demo

Every step compares the rows that it shows with those it expects; the exit code is 0 only if all
are as expected.
"""

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

import lakewright as lw

SCHEMA = "order_id string, item string, total double, ts bigint, dt string"
DAYS = ("2026-11-13", "2026-11-14", "2026-11-15")
Rows = dict[str, dict[str, Any]]

console = Console(width=None if sys.stdout.isatty() else 100)
begun = time.monotonic()


def step(title: str, code: str = "") -> None:
    """Print the heading of a step, and the call that it makes."""
    console.print()
    console.rule(f"[bold]{title}[/]  [dim]{time.monotonic() - begun:.1f} s[/]", align="left")
    if code:
        console.print(f"[cyan]>>> {code}[/]", highlight=False)


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows as a table."""
    grid = Grid(header_style="bold")
    for name in rows[0]:
        grid.add_column(name)
    for row in rows:
        grid.add_row(*("" if value is None else str(value) for value in row.values()))
    console.print(grid)


def by_id(rows: pa.Table) -> Rows:
    """Return rows by their key; a key that is there twice is an error."""
    found = {row["order_id"]: row for row in rows.to_pylist()}
    expect("every key once", len(found), rows.num_rows)
    return dict(sorted(found.items()))


def expect(what: str, found: object, wanted: object) -> None:
    """Stop the demo where something is not as it should be."""
    if found != wanted:
        console.print(f"[bold red]not as expected[/]: {what}\n  found  {found}\n  wanted {wanted}")
        sys.exit(1)


def session() -> Any:  # noqa: ANN401 - pyspark is imported only here
    """Start a small local Spark session."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("lakewright demo")
    for key, value in {
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def orders(numbers: Sequence[int], *, total: float = 1.0, ts: int = 1) -> list[dict[str, Any]]:
    """Make orders."""
    return [
        {
            "order_id": f"o{n:04d}",
            "item": ("cup", "plate", "spoon")[n % 3],
            "total": float(total * n),
            "ts": ts,
            "dt": DAYS[n % 3],
        }
        for n in numbers
    ]


class Demo:
    """The table of the story, and beside it a dictionary that says what must be in it."""

    def __init__(self, spark: Any, folder: Path) -> None:  # noqa: ANN401
        self.spark = spark
        self.folder = folder
        self.lake = lw.connect(folder / "lake", spark=spark)
        self.wanted: Rows = {}

    def frame(self, rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401
        """Return rows as a Spark DataFrame."""
        return self.spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA)

    def check(self) -> None:
        """Compare the table with the dictionary, row by row, read by Spark."""
        found = by_id(self.table.scan().to_spark(self.spark).toArrow())
        expect("the rows of the table", found, dict(sorted(self.wanted.items())))
        console.print(f"[green]✓[/] {len(found)} rows, as expected", highlight=False)

    def told(self, result: lw.WriteResult) -> None:
        """Print what a write did."""
        counts = ("inserted", "updated", "deleted", "files", "bytes")
        done = ", ".join(f"{name} {getattr(result, name):,}" for name in counts)
        at = result.instant.requested if result.instant else "nothing"
        console.print(f"{result.operation} {at}: {done}", highlight=False)

    # ------------------------------------------------------------------ the steps

    def create(self) -> None:
        """Make the table."""
        step(
            "Create a table",
            'lake.create_table("shop.orders", schema=…, key="order_id", partition_by="dt", '
            'order_by="ts", type="MERGE_ON_READ", buckets=2)',
        )
        self.table = self.lake.create_table(
            "shop.orders",
            schema=SCHEMA,
            key="order_id",
            partition_by="dt",
            order_by="ts",
            type="MERGE_ON_READ",
            buckets=2,
        )
        definition = self.table.definition
        console.print(
            f"{definition.table_type}, version {definition.version}, key {definition.record_key}, "
            f"partitioned by {definition.partition_by}, {definition.merge_mode}",
            highlight=False,
        )

    def load(self) -> None:
        """Insert many rows."""
        step("Load 3,000 orders", "orders.bulk_insert(df)")
        rows = orders(range(3000))
        self.told(self.table.bulk_insert(self.frame(rows)))
        self.wanted = {row["order_id"]: row for row in rows}
        self.check()
        self.loaded = self.table.timeline.data()[-1]

    def upsert(self) -> None:
        """Update some rows, add some, and send one that is late."""
        step("Upsert: 3 newer, 2 new, 1 late (it must not win)", "orders.upsert(df)")
        newer, new = orders([1, 2, 3], total=100, ts=2), orders([3000, 3001], ts=2)
        self.late = orders([4], total=9999, ts=0)
        self.told(self.table.upsert(self.frame([*newer, *new, *self.late])))
        self.wanted.update({row["order_id"]: row for row in [*newer, *new]})
        self.check()

    def delete(self) -> None:
        """Delete by key and by condition."""
        step("Delete by key and by condition", "orders.delete(['o0003']); orders.delete(where=…)")
        self.told(self.table.delete(["o0003"]))
        condition = "item = 'spoon' AND total >= 2900"
        self.told(self.table.delete(where=condition))
        self.wanted = {
            key: row
            for key, row in self.wanted.items()
            if key != "o0003" and not (row["item"] == "spoon" and row["total"] >= 2900)
        }
        self.check()

    def merge(self) -> None:
        """Merge by SQL."""
        sql = (
            "MERGE INTO shop.orders t USING corrections s ON t.order_id = s.order_id\n"
            "WHEN MATCHED AND s.total = 0 THEN DELETE\n"
            "WHEN MATCHED THEN UPDATE SET total = s.total, ts = s.ts\n"
            "WHEN NOT MATCHED THEN INSERT *"
        )
        step("Merge by SQL", 'lake.sql("""' + sql.replace("\n", "\n    ") + '""")')
        fixes = [*orders([5, 6], total=10, ts=3), *orders([4000], ts=3), *orders([7], total=0)]
        self.frame(fixes).createOrReplaceTempView("corrections")
        self.lake.sql(sql)
        for row in fixes:
            old = self.wanted.pop(row["order_id"], None)
            if old is None:
                self.wanted[row["order_id"]] = row
            elif row["total"]:
                self.wanted[row["order_id"]] = {**old, "total": row["total"], "ts": row["ts"]}
        self.check()

    def read(self) -> None:
        """Query in three ways."""
        step("Query it", "lake.sql('SELECT dt, count(*) …')")
        found = self.lake.sql(
            "SELECT dt, count(*) AS orders, sum(total) AS total FROM shop.orders "
            "GROUP BY dt ORDER BY dt"
        )
        rows = [row.asDict() for row in found.collect()]
        show(rows)
        for row in rows:
            day = [r for r in self.wanted.values() if r["dt"] == row["dt"]]
            expect(
                row["dt"], (row["orders"], row["total"]), (len(day), sum(r["total"] for r in day))
            )
        reader = self.spark.read.format("lakewright").options(where="total >= 100", columns="total")
        expect(
            'format("lakewright")',
            reader.load(self.table.path).count(),
            sum(row["total"] >= 100 for row in self.wanted.values()),
        )
        local = self.table.scan(where=lw.col("order_id") == "o0001").to_arrow()
        expect("without Spark", local.to_pylist(), [self.wanted["o0001"]])
        console.print('[green]✓[/] the same by format("lakewright"), and by Arrow without Spark')

    def travel(self) -> None:
        """Go back in time."""
        step("Travel in time", "orders.scan(as_of=…), orders.incremental(…), orders.changes(…)")
        then = by_id(self.table.scan(as_of=self.loaded.requested).to_arrow())
        expect("as of the load", then, {r["order_id"]: r for r in orders(range(3000))})
        since = by_id(self.table.incremental(self.loaded.completed).to_spark(self.spark).toArrow())
        changed = {k: r for k, r in self.wanted.items() if r["ts"] > 1}
        changed |= {row["order_id"]: row for row in self.late}  # news of the window, as in Hudi
        expect("changed since the load", since, dict(sorted(changed.items())))
        changes = self.table.changes(self.loaded.completed).to_arrow().to_pylist()
        kinds = {op: sum(c["op"] == op for c in changes) for op in "iud"}
        show([{"as of the load": len(then), "changed since": len(since), **kinds}])
        expect("inserts", kinds["i"], 3)

    def stream(self) -> None:
        """Follow the table into another one, twice."""
        step(
            "Stream it into another table, and again after a change",
            'spark.readStream.format("lakewright").load(orders) … '
            '.writeStream.format("lakewright").option("operation", "upsert").start(copy)',
        )
        copy = self.lake.create_table(
            "shop.copy", schema=SCHEMA, key="order_id", partition_by="dt", order_by="ts"
        )
        self.follow(copy)
        expect("the copy", by_id(copy.scan().to_arrow()), dict(sorted(self.wanted.items())))
        more = orders(range(5000, 5010), ts=4)
        self.told(self.table.upsert(self.frame(more)))
        self.wanted.update({row["order_id"]: row for row in more})
        self.follow(copy)
        expect("the copy", by_id(copy.scan().to_arrow()), dict(sorted(self.wanted.items())))
        writes = [
            {
                "instant": instant.requested,
                "action": instant.action.value,
                "rows": sum(
                    stat.num_inserts + stat.num_update_writes
                    for stats in body.write_stats.values()
                    for stat in stats
                ),
                "batch": body.extra["_hudi_streaming_sink_checkpoint"].rpartition(" ")[2][1:-2],
            }
            for instant, body in copy.timeline.commits(copy.timeline.data())
        ]
        show(writes)
        expect("commits of the copy", len(writes), 2)
        console.print("[green]✓[/] the second run read and wrote only what was new")

    def follow(self, copy: lw.Table) -> None:
        """Run the query until it has read what is available."""
        source = self.spark.readStream.format("lakewright").load(self.table.path)
        writer = source.writeStream.format("lakewright").option("operation", "upsert")
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start(copy.path)
        expect("the stream ends", query.awaitTermination(900), True)

    def retain(self) -> None:
        """Let the oldest day go, and bring it back."""
        step(
            "Keep two days, look at the plan, apply it, take it back",
            'orders.ttl.add("/", "KEEP_BY_COUNT", 2); plan = orders.ttl.plan(); plan.apply(); '
            "plan.undo()",
        )
        console.print(str(self.table.ttl.add("/", "KEEP_BY_COUNT", 2)), highlight=False)
        plan = self.table.ttl.plan()
        console.print(str(plan), highlight=False, soft_wrap=True)
        console.print(next(plan.apply().lines(0)), highlight=False, soft_wrap=True)
        left = {key: row for key, row in self.wanted.items() if row["dt"] != min(DAYS)}
        expect("two days", by_id(self.table.scan().to_arrow()), dict(sorted(left.items())))
        console.print(next(plan.undo().lines(0)), highlight=False, soft_wrap=True)
        self.check()

    def end(self) -> None:
        """Look the table over."""
        step("Is it sound?", "orders.fsck(deep=True)")
        report = self.table.fsck(deep=True)
        expect("fsck", [str(problem) for problem in report.problems], [])
        checked = ", ".join(f"{name} {count}" for name, count in report.checked.items())
        console.print(f"[green]✓[/] {checked}", highlight=False)
        step("A mistake is answered", "orders.scan(columns=['totl'])")
        try:
            self.table.scan(columns=["totl"]).to_arrow()
        except lw.LakewrightError as error:
            console.print(f"{type(error).__name__}: {error}", highlight=False)


def main() -> None:
    """Tell the story."""
    console.print("[bold]Lakewright[/]: a Hudi table, from Python, without a jar", highlight=False)
    spark = session()
    try:
        with tempfile.TemporaryDirectory() as folder:
            demo = Demo(spark, Path(folder))
            for part in (
                demo.create,
                demo.load,
                demo.upsert,
                demo.delete,
                demo.merge,
                demo.read,
                demo.travel,
                demo.stream,
                demo.retain,
                demo.end,
            ):
                part()
    finally:
        spark.stop()
    took = time.monotonic() - begun
    console.print(f"\n[bold green]all rows as expected[/], {took:.0f} s", highlight=False)


if __name__ == "__main__":
    main()
