"""Partition TTL beside real Hudi: its readers see partitions go and come back, and it writes on.

After every step three readers are asked: ours, Hudi on Spark, and the ``hudi`` package.
"""

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.api.table import Table
from support.hudi_writer import PLAIN, frame_of

pytestmark = pytest.mark.interop

KINDS = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in (9, 6)]
SCHEMA = "id string, dt string, n bigint"
DAYS = ("2026-01-01", "2026-01-02", "a,b=c", "é")
NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
Rows = dict[str, tuple[str, int]]


class Both:
    """A table that both write, by partition ``dt``, and what it must hold."""

    def __init__(self, spark: Any, path: Path, kind: str, version: int) -> None:
        self.spark, self.path, self.kind, self.version = spark, str(path), kind, version
        self.held: Rows = {}
        lw.create_table(
            path,
            schema=SCHEMA,
            key="id",
            partition_by=["dt"],
            order_by="n",
            type=kind,
            version=version,
        )

    @property
    def table(self) -> Table:
        return lw.open_table(self.path)

    def ours(self, rows: Rows, at: str | None = None) -> None:
        found = [{"id": key, "dt": day, "n": n} for key, (day, n) in rows.items()]
        given = pa.Table.from_pylist(found, schema=self.table.schema)
        self.table.upsert(given, **({} if at is None else {"instant": at}))
        self.held.update(rows)

    def theirs(self, rows: Rows) -> None:
        options = {
            **PLAIN,
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": self.kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.precombine.field": "n",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.write.table.version": str(self.version),
        }
        days, numbers = zip(*rows.values(), strict=True)
        given = pa.table({"id": list(rows), "dt": days, "n": numbers})
        frame = frame_of(self.spark, given)
        frame.write.format("hudi").options(**options).mode("append").save(self.path)
        self.held.update(rows)

    def call(self, procedure: str, **arguments: object) -> list[Any]:
        name = f"t_{uuid.uuid4().hex}"
        self.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{self.path}'")
        options = {**PLAIN, "hoodie.write.table.version": str(self.version)}
        given = {
            "table": name,
            **arguments,
            "options": ",".join(f"{key}={value}" for key, value in options.items()),
        }
        written = ", ".join(
            f"{key} => '{value}'" if isinstance(value, str) else f"{key} => {value}"
            for key, value in given.items()
        )
        found: list[Any] = self.spark.sql(f"CALL {procedure}({written})").collect()
        return found

    def check(self) -> None:
        """Every reader sees what is held, each key once."""
        expected = sorted((key, day, n) for key, (day, n) in self.held.items())
        by_us = self.table.scan().to_arrow().to_pylist()
        assert sorted((one["id"], one["dt"], one["n"]) for one in by_us) == expected
        frame = self.spark.read.format("hudi").load(self.path)
        by_hudi = frame.select("id", "dt", "n").collect()
        assert sorted(tuple(one) for one in by_hudi) == expected
        batches = hudi.HudiTableBuilder.from_base_uri(self.path).build().read()
        by_rs = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
        assert sorted((one["id"], one["dt"], one["n"]) for one in by_rs) == expected
        report = self.table.fsck(deep=True)
        assert report.ok, report.problems

    def drop(self, *days: str) -> Rows:
        gone = {key: held for key, held in self.held.items() if held[0] in days}
        self.held = {key: held for key, held in self.held.items() if held[0] not in days}
        return gone


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0][:1].lower()}-v{kind[1]}")
def both(hudi_spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Both:
    kind, version = request.param
    made = Both(hudi_spark, tmp_path / "t", kind, version)
    for number, day in enumerate(DAYS):
        at = f"2026010{number + 1}120000000"
        made.ours({f"{number}-{i}": (day, number) for i in range(3)}, at)
    made.ours({"0-0": (DAYS[0], 5)}, "20260105120000000")
    return made


def policies(both: Both) -> list[str]:
    return [str(policy) for policy in both.table.ttl.show()]


def test_partitions_go_and_come_back_for_everybody(both: Both) -> None:
    both.theirs({"new": ("2026-02-27", 7)})
    both.table.ttl.add("/", "KEEP_BY_TIME", 30)
    both.table.ttl.add("dt=a,b=c/", "KEEP_BY_TIME", 10_000)
    told = policies(both)
    plan = both.table.ttl.plan(NOW)
    expired = [DAYS[0], DAYS[1], DAYS[3]]
    assert sorted(item.target for item in plan.items) == sorted(f"dt={day}" for day in expired)
    plan.apply()
    gone = both.drop(*expired)
    both.check()
    # Hudi writes on, into what stayed and into what went, and cleans as far as it may.
    both.theirs({"new": ("2026-02-27", 8), "0-1": (DAYS[0], 50)})
    both.theirs({"2-0": (DAYS[2], 60)})
    both.check()
    for _ in range(2):
        both.call("run_clean", clean_policy="KEEP_LATEST_COMMITS", retain_commits=1)
        both.theirs({"new": ("2026-02-27", 9)})
    both.check()
    assert policies(both) == told, "Hudi leaves the policies alone"
    again = both.table.plan(plan.id)
    assert again.why_not_undoable() is None
    undone = again.undo()
    assert (undone.rows, undone.kept_out) == (8, 1)
    both.held = {**gone, **both.held}
    both.check()
    # What came back is found by the next writers, whoever they are.
    both.theirs({"0-0": (DAYS[0], 70), "1-2": (DAYS[1], 71)})
    both.check()
    both.ours({"0-2": (DAYS[0], 80), "3-0": (DAYS[3], 81)})
    both.check()


# Hudi's run_ttl upgrades tables of version 6, whatever it is told.
@pytest.mark.parametrize("both", [kind for kind in KINDS if kind[1] == 9], indirect=True)
def test_what_hudi_dropped_is_not_picked_again(both: Both) -> None:
    both.theirs({"new": ("2026-02-27", 7)})
    both.table.ttl.add("/", "KEEP_BY_TIME", 30)
    told = policies(both)
    # Its clock is that of now: all that we wrote under old times goes.
    by_hudi = {row[0] for row in both.call("run_ttl", retain_days=3)}
    assert by_hudi == {f"dt={day}" for day in DAYS}
    both.drop(*DAYS)
    both.check()
    assert policies(both) == told
    assert both.table.ttl.plan(NOW).empty
    both.ours({"0-0": (DAYS[0], 9)})
    both.check()
