"""Our locks, heartbeats and markers beside real Hudi: each side respects the other's."""

import uuid
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.model.errors import Unavailable
from lakewright.model.instant import Action
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.locks.choose import open_lock
from support.commits import Write, committer, leftovers, paths

pytestmark = pytest.mark.interop

FILE_LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
OPTIONS = {
    "hoodie.table.name": "orders",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "n",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.compact.inline.max.delta.commits": "99",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.table.timeline.timezone": "UTC",
}
MANY_WRITERS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": FILE_LOCK,
    "hoodie.write.lock.client.num_retries": "2",
    "hoodie.write.lock.num_retries": "2",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    "hoodie.write.lock.wait_time_ms": "500",
}


class Orders:
    """A table that Hudi made and goes on writing."""

    def __init__(self, spark: Any, path: Path, kind: str, version: int) -> None:
        self.spark, self.path = spark, str(path)
        self.storage: Storage = open_storage(path)
        self.options = {
            **OPTIONS,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.write.table.version": str(version),
        }
        self.action = Action.DELTACOMMIT if kind == "MERGE_ON_READ" else Action.COMMIT

    def upsert(self, *rows: tuple[str, int], **more: str) -> None:
        frame = self.spark.createDataFrame(
            [(key, "oslo", number) for key, number in rows], "id string, city string, n int"
        )
        options = {**self.options, **{k.replace("__", "."): v for k, v in more.items()}}
        writer = frame.write.format("hudi").options(**options)
        writer.option("hoodie.datasource.write.operation", "upsert").mode("append").save(self.path)

    def rows(self) -> dict[str, int]:
        found = self.spark.read.format("hudi").load(self.path).select("id", "n").collect()
        ours = lw.open_table(self.path).scan(columns=["id", "n"]).to_arrow().to_pylist()
        assert sorted((r.id, r.n) for r in found) == sorted((r["id"], r["n"]) for r in ours)
        assert len({r.id for r in found}) == len(found)
        return {row.id: row.n for row in found}

    def timeline(self) -> list[str]:
        return [f"{i.action} {i.state}" for i in open_state(self.storage).timeline.instants]


@pytest.fixture(params=[("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6)], ids=str)
def orders(hudi_spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Orders:
    return _made(hudi_spark, tmp_path, *request.param)


@pytest.fixture
def cow(hudi_spark: Any, tmp_path: Path) -> Orders:
    return _made(hudi_spark, tmp_path, "COPY_ON_WRITE", 9)


def _made(spark: Any, folder: Path, kind: str, version: int) -> Orders:
    made = Orders(spark, folder / "orders", kind, version)
    made.upsert(("a", 1), ("b", 1))
    return made


@pytest.fixture
def java_lock(hudi_spark: Any, tmp_path: Path) -> Any:
    """Hudi's own lock provider for a table, with its defaults."""
    java = hudi_spark._jvm
    properties = java.org.apache.hudi.common.config.TypedProperties()
    properties.put("hoodie.base.path", str(tmp_path))
    properties.put("hoodie.write.lock.filesystem.expire", "0")
    conf = java.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(
        hudi_spark._jsc.hadoopConfiguration()
    )
    settings = java.org.apache.hudi.common.config.LockConfiguration(properties)
    return java.org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider(settings, conf)


def try_java(java_lock: Any, spark: Any) -> bool:
    return java_lock.tryLock(100, spark._jvm.java.util.concurrent.TimeUnit.MILLISECONDS)


def test_the_lock_file_is_the_same(hudi_spark: Any, java_lock: Any, tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    ours = open_lock(storage, {})
    assert try_java(java_lock, hudi_spark)
    assert paths(storage, ".hoodie") == [".hoodie/.lock.crc", ".hoodie/lock"]
    assert storage.read(".hoodie/lock") == b"", "the body that its source writes is never flushed"
    with pytest.raises(Unavailable, match="other software"):
        ours.acquire(0.1)
    java_lock.unlock()
    with ours.acquire(5):
        assert not try_java(java_lock, hudi_spark)
        assert "lakewright/" in java_lock.getCurrentOwnerLockInfo()
    assert try_java(java_lock, hudi_spark)
    java_lock.unlock()
    assert ours.describe() is None


def test_a_write_of_hudi_waits_for_our_lock(cow: Orders) -> None:
    with open_lock(cow.storage, {}).acquire(), pytest.raises(Exception, match=r"(?i)lock"):
        cow.upsert(("c", 1), **_dotted(MANY_WRITERS))
    cow.upsert(("d", 1), **_dotted(MANY_WRITERS))
    assert set(cow.rows()) == {"a", "b", "d"}


def test_hudi_leaves_a_living_write_of_ours_alone(cow: Orders) -> None:
    write = Write.begin(cow.storage, action=cow.action)
    cow.upsert(("c", 1), **_dotted(MANY_WRITERS))
    assert write.ticket.instant in {i.requested for i in open_state(cow.storage).timeline}
    write.publish(schema=_schema(cow.storage))
    assert set(cow.rows()) == {"a", "b", "c"}


def test_hudi_rolls_our_crashed_write_back_by_its_markers(orders: Orders) -> None:
    storage = orders.storage
    slice_ = next(iter(lw.open_table(orders.path).get_snapshot(None))).file_slices[0]
    write = Write.begin(storage, action=orders.action).base("new-group-0", "oslo")
    if orders.action is Action.DELTACOMMIT:
        layout_1 = open_state(storage).config.layout == 1
        named = slice_.base_instant if layout_1 else None
        write.log(slice_.group.file_id, named, partition="oslo")
    dead = write.die().instant
    assert any(dead in p for p in paths(storage, "oslo"))
    orders.upsert(("a", 2), ("c", 1))
    assert not [p for p in paths(storage, "oslo") if f"_{dead}." in p], "a file of ours is left"
    assert dead not in {i.requested for i in open_state(storage).timeline}
    assert orders.rows() == {"a": 2, "b": 1, "c": 1}
    Write.begin(storage, action=orders.action).publish(schema=_schema(storage))
    assert not paths(storage, ".hoodie/.temp")
    assert not paths(storage, ".hoodie/.heartbeat")
    assert orders.rows() == {"a": 2, "b": 1, "c": 1}


def test_we_roll_a_crashed_write_of_hudi_back(orders: Orders) -> None:
    storage = orders.storage
    orders.upsert(("a", 2), ("c", 1))
    before, last = open_state(storage).timeline.data()
    folder = open_state(storage).config.timeline_folder
    done = f"{last.requested}_{last.completed}" if "timeline" in folder else last.requested
    storage.delete([f"{folder}/{done}.{last.action}"])  # as if Hudi had died just before
    by = committer(storage, hoodie__cleaner__policy__failed__writes="EAGER")
    Write.begin(storage, by, action=orders.action).publish(schema=_schema(storage))
    assert orders.rows() == {"a": 1, "b": 1}
    assert not [p for p in paths(storage, "oslo") if last.requested in p]
    assert "rollback completed" in orders.timeline()
    orders.upsert(("b", 3), ("d", 4))
    assert orders.rows() == {"a": 1, "b": 3, "d": 4}
    assert before.requested in {i.requested for i in open_state(storage).timeline.data()}


def test_what_we_roll_back_hudi_accepts(orders: Orders) -> None:
    storage = orders.storage
    Write.begin(storage, action=orders.action).base("new-group-0", "oslo").die()
    # The next writer takes back the dead one with a rollback, and itself without a trace.
    Write.begin(storage, action=orders.action).base("new-group-1", "oslo").abandon()
    assert orders.rows() == {"a": 1, "b": 1}
    orders.upsert(("b", 3), ("d", 4))
    assert orders.rows() == {"a": 1, "b": 3, "d": 4}
    assert orders.timeline()[1] == "rollback completed"
    assert not [p for p in leftovers(storage) if p.startswith(".hoodie")]


def test_a_rollback_that_hudi_refuses_is_not_carried_out(cow: Orders) -> None:
    cow.upsert(("a", 2), ("c", 1))
    table = lw.open_table(cow.path)
    saved = table.savepoint().requested
    name = f"t_{uuid.uuid4().hex}"
    cow.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{cow.path}'")
    cow.spark.sql("SET hoodie.metadata.enable=false")
    with pytest.raises(Exception, match=r"(?i)roll"):
        cow.spark.sql(f"CALL rollback_to_instant(table => '{name}', instant_time => '{saved}')")
    cow.spark.sql("RESET hoodie.metadata.enable")
    with pytest.raises(Exception, match=r"(?i)roll"):
        cow.upsert(("d", 1))  # the plan that it left is in its own way
    eager = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
    table.upsert([{"id": "e", "city": "oslo", "n": 1}], options=eager)
    assert cow.rows() == {"a": 2, "b": 1, "c": 1, "e": 1}
    cow.upsert(("d", 1))
    assert cow.rows() == {"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}


def _schema(storage: Storage) -> str | None:
    view = open_state(storage).timeline
    latest = view.latest_data()
    assert latest is not None
    return view.commit_metadata(latest).schema


def _dotted(options: dict[str, str]) -> dict[str, str]:
    return {key.replace(".", "__"): value for key, value in options.items()}
