"""We write, real Hudi reads and writes and tidies up, and we go on: every shape of table.

The rows are those of a dictionary model after each step; what Hudi reads is what we read, with
Hudi's own columns.
"""

import datetime as dt
import itertools
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.model.errors import Conflict, LakewrightError
from lakewright.storage.open import open_storage
from support import hudi_writer, write_deaths
from support.model_table import DELETED, Kind, ModelTable, counted
from support.table_files import strays
from support.write_machine import META, buckets_with_files, by_hudi, create, same
from support.write_scenarios import after, content, prepare, seen
from told import tell

pytestmark = pytest.mark.interop

INT = pa.int64()
SHAPES = [
    Kind(mor, version, partitioned, composite, index, ordering=INT if number % 3 else None)
    for number, (mor, version, partitioned, composite, index) in enumerate(
        itertools.product((False, True), (9, 6), (True, False), (False, True), ("bucket", "lookup"))
    )
]
EXTRA = [
    Kind(False, 9, index="global", ordering=INT, buckets=1),
    Kind(True, 9, index="global", ordering=INT, buckets=1),
    Kind(True, 9, ordering=INT, url_encode=True, buckets=1),
    Kind(True, 9, index="bucket", ordering=INT, url_encode=True, soft=True),
]
IDS = ("a", "b", "a,b", "a:b", "k=v", "50%", "ä", "😀", "日本", "x/y")
CITIES = ("oslo", "são", None, "a=b")
VALUES: dict[str, tuple[Any, ...]] = {
    "s": (None, "", "naïve", "😀", "a\nb"),
    "n": (None, 0, 7, 2**63 - 1, -(2**63)),
    "w": (None, 7, -(2**31)),
    "d": (None, dt.date(1969, 12, 31), dt.date(9999, 12, 31)),
    "m": (None, Decimal("-0.01"), Decimal("9999999.99")),
    "x": (None, float("nan"), -0.0, 1e300),
}
COMPARED: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how much was compared."""
    COMPARED.clear()
    yield
    tell(request, COMPARED, "beside Hudi")


class Shared:
    """One table that both write, and its model."""

    def __init__(self, spark: Any, path: Path, kind: Kind, seed: int) -> None:
        self.spark, self.kind, self.random = spark, kind, Random(seed)
        self.table = create(path, kind)
        self.model = ModelTable(kind)
        self.columns = [*kind.schema.names, *META]
        self.seen: list[tuple[Any, list[dict[str, Any]]]] = []

    def rows(self, count: int, *, once: bool = False) -> list[dict[str, Any]]:
        found = [self.row() for _ in range(count)]
        return list(self.model.combined(found).values()) if once else found

    def row(self) -> dict[str, Any]:
        chance = self.random
        row: dict[str, Any] = {"id": chance.choice(IDS)}
        if self.kind.composite:
            row |= {"id": chance.choice((*IDS[:5], None, "")), "sub": chance.choice((1, -2))}
        if self.kind.partitioned:
            row["p"] = chance.choice((*CITIES, *(("x/y", "q:r") if self.kind.url_encode else ())))
        if self.kind.ordering is not None:
            row["ts"] = chance.randrange(5)
        row |= {name: chance.choice(values) for name, values in VALUES.items()}
        if self.kind.soft:
            row[DELETED] = chance.random() < 0.2
        return row

    def known(self, count: int) -> list[dict[str, Any]]:
        """Rows of keys that are there, and one that is not."""
        live = [dict(stored.values) for stored in self.model.live().values()]
        return [*self.random.sample(live, min(count, len(live))), self.row()]

    # ------------------------------------------------------------------------------- steps

    def pin(self) -> None:
        groups = buckets_with_files(self.table) if self.kind.index == "bucket" else set()
        self.model.groups = lambda: groups

    def arrow(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), schema=self.kind.schema)

    def we_upsert(self, count: int) -> None:
        self.pin()
        rows = self.rows(count)
        done = self.table.upsert(self.arrow(rows)).instant
        self.model.upsert(rows, done.requested)
        self.seen.append((done, self.model.rows()))

    def we_delete(self, count: int) -> None:
        self.pin()
        rows = self.known(count)
        done = self.table.delete(self.arrow(rows)).instant
        self.model.delete(self.found(rows), done.requested if done else "none")
        if done:
            self.seen.append((done, self.model.rows()))

    def we_overwrite(self, count: int) -> None:
        rows = [{**row, **({DELETED: False} if self.kind.soft else {})} for row in self.rows(count)]
        rows = list(self.model.combined(rows).values())
        done = self.table.insert_overwrite(self.arrow(rows)).instant
        self.model.overwrite(rows, done.requested)
        self.seen.append((done, self.model.rows()))

    def hudi_upserts(self, count: int, **more: str) -> None:
        self.pin()
        rows = self.rows(count)
        hudi_writer.write(self.spark, self.table.path, self.kind, rows, more=more)
        self.model.upsert(rows, self.newest())

    def hudi_deletes(self, count: int, more: dict[str, str]) -> None:
        self.pin()
        rows = self.known(count)
        hudi_writer.write(self.spark, self.table.path, self.kind, rows, "delete", more)
        self.model.delete(self.found(rows), "deleted")

    def found(self, rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        if self.kind.index != "global":
            return [self.kind.slot(row) for row in rows]
        keys = {self.kind.record_key(row) for row in rows}
        return [slot for slot in self.model.live() if slot[1] in keys]

    def newest(self) -> str:
        newest = self.table.timeline.latest_data()
        assert newest is not None
        return newest.requested

    # ------------------------------------------------------------------------------ judging

    def agree(self, what: str) -> None:
        """Hudi, hudi-rs, the model and we see the same rows."""
        ours = self.table.scan(meta=True).to_arrow().to_pylist()
        theirs = hudi_writer.read(self.spark, self.table.path)
        same(counted(ours, self.columns), counted(theirs, self.columns), f"{what}, Hudi and we")
        there = by_hudi(self.table.path)
        same(counted(there, self.columns), counted(ours, self.columns), f"{what}, hudi-rs and we")
        # With a global index Hudi stamps rows anew that a late row left as they were.
        stamped = self.columns[:-3] if self.kind.index == "global" else self.columns
        expected = counted(self.model.rows(), stamped)
        same(counted(ours, stamped), expected, f"{what}, we and the model")
        COMPARED["snapshots"] += 1

    def agree_on_the_past(self) -> None:
        spark, path = self.spark, self.table.path
        if self.kind.mor:
            optimised = {"hoodie.datasource.query.type": "read_optimized"}
            ours = self.table.scan(meta=True, mode="read_optimized").to_arrow().to_pylist()
            theirs = hudi_writer.read(spark, path, **optimised)
            same(counted(ours, self.columns), counted(theirs, self.columns), "read optimised")
            COMPARED["read-optimised"] += 1
        instant, rows = self.seen[1]
        theirs = hudi_writer.read(spark, path, **{"as.of.instant": instant.requested})
        same(counted(theirs, self.columns), counted(rows, self.columns), f"as of {instant}")
        COMPARED["instants"] += 1
        start = self.seen[0][0].completed
        window = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": start,
        }
        theirs = hudi_writer.read(spark, path, **window)
        ours = self.table.incremental(start, meta=True).to_arrow().to_pylist()
        # Hudi shows the encoded folder in windows of such tables; see the page of differences.
        columns = [c for c in self.columns if c != "p"] if self.kind.url_encode else self.columns
        same(counted(ours, columns), counted(theirs, columns), f"the window after {start}")
        COMPARED["windows"] += 1


@pytest.mark.parametrize("number", range(len(SHAPES + EXTRA)), ids=[str(s) for s in SHAPES + EXTRA])
def test_both_write_one_table(hudi_spark: Any, tmp_path: Path, number: int) -> None:
    kind = (SHAPES + EXTRA)[number]
    shared = Shared(hudi_spark, tmp_path / "t", kind, number)
    shared.we_upsert(12)
    shared.we_upsert(8)
    shared.we_delete(2)
    if number % 2:
        shared.we_overwrite(3)
        shared.we_upsert(4)
    shared.agree("we wrote")
    shared.agree_on_the_past()
    shared.hudi_upserts(8)
    shared.we_upsert(6)
    shared.agree("we wrote after Hudi")
    shared.we_delete(2)
    services = dict(hudi_writer.CLEAN)
    if kind.mor and number % 4 < 3:
        services |= hudi_writer.COMPACT
    elif kind.index != "bucket":
        services |= hudi_writer.CLUSTER
    shared.hudi_deletes(2, services)
    if services != hudi_writer.CLEAN:
        shared.model.compact()
    shared.agree("Hudi deleted and tidied up")
    shared.we_upsert(6)
    shared.we_delete(2)
    shared.agree("we went on")
    report = shared.table.fsck(deep=True)
    assert report.ok, report.problems


def test_a_table_with_a_metadata_table_is_refused(hudi_spark: Any, tmp_path: Path) -> None:
    shared = Shared(hudi_spark, tmp_path / "t", Kind(ordering=INT), 1)
    shared.we_upsert(5)
    shared.hudi_upserts(5, **{"hoodie.metadata.enable": "true"})
    before = counted(hudi_writer.read(hudi_spark, shared.table.path), shared.columns)
    with pytest.raises(LakewrightError, match="metadata"):
        shared.table.upsert(shared.arrow(shared.rows(3)))
    assert counted(hudi_writer.read(hudi_spark, shared.table.path), shared.columns) == before


@pytest.mark.parametrize("mor", [False, True], ids=["cow", "mor"])
def test_hudi_rolls_back_what_we_left(hudi_spark: Any, tmp_path: Path, mor: bool) -> None:
    """Wherever a writer of ours died, Hudi's next write removes all that it left."""
    prepare(open_storage(tmp_path / "template"), mor=mor, version=9, buckets=None)
    assert write_deaths.run(tmp_path, "upsert", 6) > 1
    new = [{"id": "next", "p": "x", "ts": 9, "n": 1}]
    frame = hudi_spark.createDataFrame(
        [tuple(row.values()) for row in new], "id string, p string, ts bigint, n bigint"
    )
    options = hudi_writer.options_of(Kind(mor=mor, ordering=INT))
    for folder in sorted(tmp_path.iterdir()):
        if folder.name == "template":
            continue
        storage = open_storage(folder)
        found = seen(storage)
        assert found in (after(""), after("upsert"))
        before = _inner_files(folder)
        frame.write.format("hudi").options(**options).mode("append").save(str(folder))
        assert seen(storage) == found + content(new)
        assert content(hudi_writer.read(hudi_spark, folder)) == found + content(new)
        left = [path for path in strays(storage) if not path.endswith(".crc")]
        told = f"{folder}: {before} before Hudi's rollback, {_inner_files(folder)} after it"
        assert [path for path in left if not path.startswith(".hoodie/")] == [], told
        COMPARED["deaths that Hudi mended"] += 1


def _inner_files(folder: Path) -> list[str]:
    """The timeline, markers and heartbeats of a table, temporary files too."""
    inner = (path for path in (folder / ".hoodie").rglob("*") if path.suffix != ".crc")
    return sorted(str(path.relative_to(folder)) for path in inner if path.is_file())


@pytest.mark.parametrize("mor", [False, True], ids=["cow", "mor"])
def test_both_write_at_the_same_time(hudi_spark: Any, tmp_path: Path, mor: bool) -> None:
    """Under the file-system lock nothing that either wrote is lost."""
    path = tmp_path / "t"
    kind = Kind(mor=mor, index="bucket", partitioned=False, buckets=4)

    def keys(prefix: str, odd: int) -> list[str]:
        """Keys of odd or of even buckets: Hudi takes long, and would never win in ours."""
        names = (f"{prefix}{number}" for number in range(100))
        return [name for name in names if kind.group(("", name))[1] % 2 == odd]

    mine, hudis, both = keys("we", 1), keys("they", 0), keys("both", 0)
    table = create(path, kind)
    table.upsert(pa.Table.from_pylist([{"id": "first", "s": "first"}], schema=kind.schema))
    locked = {
        **hudi_writer.LOCKED,
        "hoodie.write.lock.filesystem.path": str(path / ".hoodie"),
        "hoodie.write.concurrency.early.conflict.detection.enable": "false",
    }
    stop, apart = threading.Event(), threading.Event()
    ours: list[tuple[str, str, str]] = []
    theirs: list[tuple[str, str, str]] = []
    failures: list[BaseException] = []
    conflicts: Counter[str] = Counter()

    def write_ours() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            meets = number % 20 == 10 and not apart.is_set()
            key, tag = both[number % 4] if meets else mine[number % 4], f"we{number}"
            rows = pa.Table.from_pylist([{"id": key, "s": tag}], schema=kind.schema)
            try:
                done = table.upsert(rows, retry=2).instant
                ours.append((done.completed, key, tag))
            except Conflict:
                conflicts["ours"] += 1
            except BaseException as error:  # noqa: BLE001  (told below)
                failures.append(error)
                return
            stop.wait(0.1)  # thousands of commits would only make Hudi's own listings long

    writer = threading.Thread(target=write_ours)
    writer.start()
    try:
        for number in range(10):
            if len(theirs) >= 4:
                break
            if number == 3:
                apart.set()
            tag = f"they{number}"
            rows = [{"id": both[number % 4], "s": tag}, {"id": hudis[number], "s": tag}]
            before = {i.requested for i in table.timeline.data()}
            try:
                hudi_writer.write(hudi_spark, path, kind, rows, more=locked)
            except Exception as error:  # noqa: BLE001  (Spark wraps it)
                assert "Conflict" in str(error), error
                conflicts["theirs"] += 1
                continue
            done = _instant_of(table, before, hudis[number], tag)
            theirs += [(done, row["id"], row["s"]) for row in rows]
    finally:
        stop.set()
        writer.join()
    assert not failures, failures
    expected = {"first": "first"}
    for _, key, tag in sorted([*ours, *theirs]):
        expected[key] = tag
    rows = table.scan().to_arrow().to_pylist()
    assert Counter(row["id"] for row in rows).most_common(1)[0][1] == 1
    assert {row["id"]: row["s"] for row in rows} == expected
    found = hudi_writer.read(hudi_spark, path)
    assert {row["id"]: row["s"] for row in found} == expected
    assert ours
    assert theirs
    COMPARED[f"our writes beside Hudi's, {'mor' if mor else 'cow'}"] += len(ours)
    COMPARED[f"Hudi's writes beside ours, {'mor' if mor else 'cow'}"] += len(theirs) // 2
    COMPARED.update({f"conflicts, {who}": count for who, count in conflicts.items()})


def _instant_of(table: lw.Table, before: set[str], key: str, tag: str) -> str:
    """The completion time of the commit that wrote a tag."""
    rows = table.scan(meta=True, where=f"id = '{key}'").to_arrow().to_pylist()
    assert [row["s"] for row in rows] == [tag], f"{tag} is lost"
    requested = rows[0]["_hoodie_commit_time"]
    assert requested not in before
    completed = table.timeline.instant(requested).completed
    assert completed is not None
    return completed
