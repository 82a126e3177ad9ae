"""Buckets by partition beside real Hudi: each writes on where the other made rules and rescaled.

After every step live groups are counted and their rows hashed (``check_law``), and three readers
are asked: ours, Hudi on Spark, and the ``hudi`` package.
"""

import re
import shutil
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.format.hudi.hashing_config import ARCHIVE_FOLDER, CONFIGS_FOLDER
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.compiled import rule_of
from lakewright.model.bucket_rules.rules import BucketRule
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.faulty_storage import WRITING, Crash, Fault, FaultyStorage
from support.hudi_writer import PLAIN, frame_of
from support.rescaling import check_law, live_groups

pytestmark = pytest.mark.interop

REST = pytest.mark.rest
COW = [("COPY_ON_WRITE", 9), pytest.param(("COPY_ON_WRITE", 6), marks=REST)]
KINDS = [*COW, pytest.param(("MERGE_ON_READ", 9), marks=REST), ("MERGE_ON_READ", 6)]
SCHEMA = "id string, dt string, n bigint"
#: Paths with signs that rules, patterns and configs use themselves.
DAYS = ("2026-11-10", "2026-11-11", "a,b;c", "é😀 (1)")
SEED = {
    "expressions": [
        {
            "expression": r"\d{4}-(06-(01|17|18)|11-(01|10|11))",
            "bucketNumber": 8,
            "rule": "regex",
        },
        {"expression": "dt: [2026-12-01, 2026-12-24)", "bucketNumber": 5, "rule": "range"},
    ],
    "defaultBucketNumber": 3,
}
MANAGER = "CALL partition_bucket_index_manager"
Row = tuple[str, str, int]


def rows(n: int, ids: Iterable[int], days: Sequence[str] = DAYS) -> list[Row]:
    return [(f"k{i}", day, n) for day in days for i in ids]


def literal(value: object) -> str:
    """An argument of a procedure; Spark takes a backslash of a text away."""
    if isinstance(value, str):
        doubled = value.replace("\\", "\\\\")
        return f"'{doubled}'"
    return str(value).lower()


class Both:
    """A table that both write, and what it must hold."""

    def __init__(self, spark: Any, path: Path, kind: str, version: int) -> None:
        self.spark, self.path, self.kind, self.version = spark, str(path), kind, version
        self.held: dict[tuple[str, str], int] = {}
        self.name = f"t_{uuid.uuid4().hex[:8]}"
        #: What the table's properties say, if it was made here; Hudi compares.
        self.number = "2"

    @property
    def storage(self) -> Any:
        return open_storage(self.path)

    @property
    def table(self) -> Table:
        return lw.open_table(self.path)

    def create(self, buckets: Any) -> "Both":
        lw.create_table(
            self.path,
            schema=SCHEMA,
            key="id",
            partition_by=["dt"],
            order_by="n",
            type=self.kind,
            version=self.version,
            buckets=buckets,
        )
        stored = self.table.definition.properties
        self.number = stored.get("hoodie.bucket.index.num.buckets", self.number)
        return self

    def ours(self, *given: Row) -> None:
        found = [{"id": i, "dt": day, "n": n} for i, day, n in given]
        self.table.upsert(pa.Table.from_pylist(found, schema=self.table.schema))
        self._hold(given)

    def theirs(self, *given: Row, mode: str = "append", **more: str) -> None:
        columns = dict(zip(("id", "dt", "n"), zip(*given, strict=True), strict=True))
        frame = frame_of(self.spark, pa.table(columns))
        frame.write.format("hudi").options(**self.options(**more)).mode(mode).save(self.path)
        self._hold(given)

    def options(self, **more: str) -> dict[str, str]:
        """What a writer says who knows nothing of rules; many partitions have other numbers."""
        return {
            **PLAIN,
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": self.kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.precombine.field": "n",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.write.table.version": str(self.version),
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": self.number,
            "hoodie.bucket.index.hash.field": "id",
            **{key.replace("__", "."): value for key, value in more.items()},
        }

    def call(self, **arguments: object) -> Any:
        """Hudi's own procedure."""
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS {self.name} USING hudi LOCATION '{self.path}'")
        options = {**PLAIN, "hoodie.write.table.version": str(self.version)}
        given = {"table": self.name, **arguments}
        if "show_config" not in given:
            given["options"] = ",".join(f"{key}={value}" for key, value in options.items())
        written = ", ".join(f"{key} => {literal(value)}" for key, value in given.items())
        # Rolling back does not look at the options, and would upgrade the table.
        settings = ("hoodie.metadata.enable", "hoodie.write.auto.upgrade")
        for key in settings:
            self.spark.sql(f"SET {key}=false")
        try:
            (told,) = self.spark.sql(f"{MANAGER}({written})").collect()
        finally:
            for key in settings:
                self.spark.sql(f"RESET {key}")
        assert told["result"] == "SUCCESS", told
        return told

    def restored(self, savepoint: str) -> None:
        """Hudi goes back to a savepoint."""
        settings = ("hoodie.metadata.enable", "hoodie.write.auto.upgrade")
        for key in settings:
            self.spark.sql(f"SET {key}=false")
        self.spark.sql(f"SET hoodie.write.table.version={self.version}")
        try:
            given = f"path => '{self.path}', instant_time => '{savepoint}'"
            self.spark.sql(f"CALL rollback_to_savepoint({given})").collect()
        finally:
            for key in (*settings, "hoodie.write.table.version"):
                self.spark.sql(f"RESET {key}")

    def _hold(self, given: Sequence[Row]) -> None:
        self.held |= {(i, day): n for i, day, n in given}

    def check(self) -> dict[str, int]:
        """All that must hold; return the number of buckets of each day."""
        numbers = check_law(self.storage)
        expected = Counter((i, day, n) for (i, day), n in self.held.items())
        ours = lw.open_table(self.path).scan(meta=True).to_arrow().to_pylist()
        theirs = [r.asDict() for r in self.spark.read.format("hudi").load(self.path).collect()]
        rust = pa.Table.from_batches(
            hudi.HudiTableBuilder.from_base_uri(self.path).build().read()
        ).to_pylist()
        for found in (ours, theirs, rust):
            assert Counter((r["id"], r["dt"], r["n"]) for r in found) == expected
        for column in ("_hoodie_commit_time", "_hoodie_file_name"):
            told = {(r["id"], r["dt"]): r[column] for r in ours}
            assert told == {(r["id"], r["dt"]): r[column] for r in theirs}
        return {path.removeprefix("dt="): number for path, number in numbers.items()}

    def groups(self) -> dict[str, set[str]]:
        found = live_groups(self.storage)
        return {path: {s.group.file_id for s in slices} for path, slices in found.items()}

    def look_up(self, key: str, day: str, as_of: str | None = None) -> list[int]:
        """The values of a key, by Hudi's reader, which prunes by the hashing config."""
        reader = self.spark.read.format("hudi").options(**self.options())
        if as_of is not None:
            reader = reader.option("as.of.instant", as_of)
        found = reader.load(self.path).where(f"id = '{key}' AND dt = '{day}'").collect()
        return [row["n"] for row in found]


def named(kind: tuple[str, int]) -> str:
    return f"{kind[0][:4].lower()}-v{kind[1]}"


@pytest.fixture(params=KINDS, ids=named)
def both(request: pytest.FixtureRequest, hudi_spark: Any, tmp_path: Path) -> Both:
    return Both(hudi_spark, tmp_path / "t", *request.param)


def test_hudi_writes_on_into_what_we_made_rescaled_and_undid(both: Both) -> None:
    both.create(SEED)
    both.ours(*rows(1, range(40)))
    numbers = {"2026-11-10": 8, "2026-11-11": 8, "a,b;c": 3, "é😀 (1)": 3}
    assert both.check() == numbers
    before = both.groups()
    both.theirs(*rows(2, range(20, 60)), *rows(2, range(20), ["2026-12-03", "2026-12-24"]))
    assert both.check() == {**numbers, "2026-12-03": 5, "2026-12-24": 3}
    assert all(both.groups()[path] >= ids for path, ids in before.items())
    # Rules without rows: those that are there keep their number, for Hudi too.
    both.table.buckets.set(r"2026-11,4;b,6", default=2)
    both.theirs(*rows(3, range(50, 70)), *rows(3, range(30), ["2026-11-12", "b", "new"]))
    new = {"2026-11-12": 4, "b": 6, "new": 2}
    assert both.check() == {**numbers, "2026-12-03": 5, "2026-12-24": 3, **new}
    # Rows after their rules.
    then = both.table.timeline.data()[-1].requested
    done = both.table.buckets.plan_rescale().apply()
    wanted = {"2026-11-10": 4, "2026-11-11": 4, "a,b;c": 6, "é😀 (1)": 2}
    wanted |= {"2026-12-03": 2, "2026-12-24": 2, **new}
    assert both.check() == wanted
    assert [both.look_up("k7", day) for day in DAYS] == [[1]] * 4
    both.theirs(*rows(4, range(60, 80)))
    assert both.check() == wanted
    assert [both.look_up("k65", day, then) for day in DAYS] == [[3]] * 4
    assert done.instant is not None
    # Back, with what Hudi wrote since.
    both.table.buckets.undo()
    assert both.check() == {**numbers, "2026-12-03": 5, "2026-12-24": 3, **new}
    both.theirs(*rows(5, range(10, 90)))
    both.ours(*rows(6, range(85, 95)))
    assert both.check() == {**numbers, "2026-12-03": 5, "2026-12-24": 3, **new}


def test_we_write_on_into_what_hudi_rescaled(both: Both) -> None:
    both.theirs(*rows(1, range(30)), mode="overwrite")
    both.call(overwrite=r"2026-11-11,6;b,3", bucket_number=2, dry_run=False)
    numbers = {"2026-11-10": 2, "2026-11-11": 6, "a,b;c": 3, "é😀 (1)": 2}
    both.ours(*rows(2, range(20, 50)), *rows(2, range(9), ["2026-11-11x", "new"]))
    numbers |= {"2026-11-11x": 6, "new": 2}
    assert both.check() == numbers
    both.table.buckets.set("2026,7", default=4)
    both.ours(*rows(3, range(5)), *rows(3, range(20), ["2026-01-01", "more"]))
    assert both.check() == {**numbers, "2026-01-01": 7, "more": 4}
    # It takes our pins for what is there: nothing is left out of what it rescales.
    told = both.call(overwrite="2026,7", bucket_number=4, dry_run=True)["details"]
    assert set(re.findall(r"dt=(.*) => (\d+)", told)) == {
        ("2026-11-10", "7"),
        ("2026-11-11", "7"),
        ("2026-11-11x", "7"),
        ("a,b;c", "4"),
        ("é😀 (1)", "4"),
        ("new", "4"),
    }
    both.call(overwrite="2026,7", bucket_number=4, dry_run=False)
    numbers = {day: 7 if "2026" in day else 4 for day in (*numbers, "2026-01-01", "more")}
    assert both.check() == numbers
    both.ours(*rows(4, range(40, 60)))
    assert both.check() == numbers
    both.call(add="more,9", bucket_number=4, dry_run=False)
    both.ours(*rows(5, range(40, 60)), *rows(5, range(30), ["even more"]))
    assert both.check() == {**numbers, "more": 9, "even more": 9}
    assert both.table.buckets.check().ok
    assert both.table.fsck(deep=True).ok


def test_each_undoes_the_rescale_of_the_other(both: Both) -> None:
    both.create(4)
    both.ours(*rows(1, range(40)))
    before = both.groups()
    ours = both.table.buckets.plan_rescale(rules="2026,9", default=2).apply()
    assert ours.instant is not None
    assert set(both.check().values()) == {9, 2}
    shown = both.call(show_config=True)["details"]
    assert ours.instant.requested in shown
    both.call(rollback=ours.instant.requested)
    assert set(both.check().values()) == {4}
    assert both.groups() == before
    both.ours(*rows(2, range(10, 20)))
    both.theirs(*rows(3, range(15, 50)))
    assert set(both.check().values()) == {4}
    both.call(overwrite="2026,9", bucket_number=4, dry_run=False)
    assert set(both.check().values()) == {9, 4}
    both.table.buckets.undo()
    assert set(both.check().values()) == {4}
    both.theirs(*rows(4, range(45, 60)))
    assert set(both.check().values()) == {4}


def last_word(path: str) -> Fault:
    """What stops a rescale when all is written but the end of its commit."""
    copy = f"{path}-copy"
    shutil.copytree(path, copy)
    watched = FaultyStorage(open_storage(copy))
    Table(watched).buckets.plan_rescale(rules=7).apply()
    unfinished = (".requested", ".inflight")
    found = [
        call
        for call in watched.calls
        if call.verb in WRITING
        and "replacecommit" in call.path
        and not call.path.endswith(unfinished)
    ]
    return Fault(found[-1].verb, at=found[-1].at, error=Crash)


def test_hudi_passes_over_a_rescale_that_died(both: Both) -> None:
    both.create(4)
    both.ours(*rows(1, range(40)))
    dying = FaultyStorage(open_storage(both.path), [last_word(both.path)])
    with pytest.raises(Crash):
        Table(dying).buckets.plan_rescale(rules=7).apply()
    pending = both.table.timeline.pending()
    assert len(pending) == 1
    assert set(both.check().values()) == {4}
    both.theirs(*rows(2, range(20, 60)))
    assert set(both.check().values()) == {4}
    both.ours(*rows(3, range(50, 70)))
    assert set(both.check().values()) == {4}
    assert both.table.timeline.pending() == ()
    assert both.table.fsck(deep=True).ok


# It archives nothing of merge-on-read tables that wait for a compaction.
@pytest.mark.parametrize("both", COW, indirect=True, ids=named)
def test_configs_that_hudi_archives_are_found(both: Both) -> None:
    both.create(4)
    both.ours(*rows(1, range(20)))
    for number in (5, 3, 6):
        both.table.buckets.plan_rescale(rules=number).apply()
        both.theirs(*rows(number, range(10, 30)))
    first = both.table.timeline.data()[0].requested
    short = {
        "hoodie__clean__automatic": "true",
        "hoodie__clean__commits__retained": "1",
        "hoodie__archive__automatic": "true",
        "hoodie__keep__min__commits": "2",
        "hoodie__keep__max__commits": "3",
    }
    for n in (7, 8, 9):
        both.theirs(*rows(n, range(25, 35)), **short)
    assert first not in {i.requested for i in both.table.timeline.data()}
    both.call(overwrite="2026,2", bucket_number=4, dry_run=False)
    both.ours(*rows(10, range(30, 40)))
    assert set(both.check().values()) == {2, 4}
    store = HashingStore(both.storage)
    versions = store.history(open_state(both.storage).timeline)
    assert [v.rules.default for v in versions] == [4, 5, 3, 6, 4]
    names = {f.path.rpartition("/")[0] for f in both.storage.list(CONFIGS_FOLDER)}
    assert names == {CONFIGS_FOLDER}
    assert list(both.storage.list(ARCHIVE_FOLDER)) or not any(v.archived for v in versions)
    both.table.buckets.undo()
    assert set(both.check().values()) == {6}
    both.theirs(*rows(11, range(35, 45)))
    assert set(both.check().values()) == {6}


PATHS = [
    *(f"dt=2026-{month:02d}-{day:02d}" for month in (1, 6, 11, 12) for day in (1, 10, 23, 24, 31)),
    *("dt=2025-12-31", "dt=a,b;c", "dt=é😀 (1)", "dt=", "", "dt=2026-12-1", "x/dt=2026-12-02"),
    *(f"n={n}" for n in (-100, -1, 0, 1, 5, 9, 10, 42, 99, 100, 101, 1234)),
    *("n=01", "n=+1", "n=1.0", "n=1\n", "p=a\r\n", "dt=2026-12-01\u2028", "ß", "İ", "k=K"),
]
RULES = [
    BucketRule(r"\d{4}-(06-(01|17|18)|11-(01|10|11))", 2),
    BucketRule(r"^dt=2026.12", 2),
    BucketRule(r"(?i)K$", 2),
    BucketRule(r"\bb\b|[^\x00-\x7f]", 2),
    BucketRule(r"\w+=\w*$", 2),
    BucketRule(r"\A(?:n=\x{31}|dt\x3da\x2cb\x3bc)\z", 2),
    BucketRule(r"[ac]b?\s|-3[01]$", 2),
    BucketRule("dt: [2026-11-10, 2026-12-24)", 2, "range"),
    BucketRule("n: [1, 100]", 2, "range"),
    BucketRule("n: (-inf, 5)", 2, "range"),
    BucketRule("n: (9, inf)", 2, "range"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.expression)
def test_rules_match_what_java_finds(hudi_spark: Any, rule: BucketRule) -> None:
    """A rule, and the pattern that is stored for Hudi, match the same paths as in Java."""
    made = rule_of(rule)
    pattern = hudi_spark._jvm.java.util.regex.Pattern.compile(made.pattern())
    by_java = {path for path in PATHS if pattern.matcher(path).find()}
    assert {path for path in PATHS if made.matches(path)} == by_java
    assert by_java


def test_we_write_on_after_hudi_went_back_behind_a_rescale(both: Both) -> None:
    both.create(4)
    both.ours(*rows(1, range(40)))
    saved = both.table.savepoint().requested
    both.table.buckets.plan_rescale(rules=7).apply()
    both.restored(saved)
    # Its restore leaves the hashing config, which its writers believe: ours takes it away.
    both.ours(*rows(2, range(10, 20)))
    assert set(both.check().values()) == {4}
    both.theirs(*rows(3, range(15, 50)))
    assert set(both.check().values()) == {4}
