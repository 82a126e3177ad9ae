"""Tables that keep changes: real Hudi tells of ours what we tell, and the reverse.

Every mode, both types and versions; each history holds what makes changes in its own way: new
groups, updates, late rows, deletes, inserts into a small file, partitions overwritten and dropped,
records that move.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.storage.open import open_storage
from support import hudi_writer, write_deaths
from support.model_table import Kind
from support.table_files import strays
from support.write_machine import create
from support.write_scenarios import prepare
from told import tell

pytestmark = pytest.mark.interop

ENABLED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
INT = pa.int64()
SHAPES = [
    *((Kind(mor, 9, ordering=INT), mode) for mor in (False, True) for mode in MODES),
    (Kind(False, 6, ordering=INT), "DATA_BEFORE_AFTER"),
    (Kind(False, 6, ordering=INT), "OP_KEY_ONLY"),
    (Kind(False, 6, ordering=INT), "DATA_BEFORE"),
    (Kind(False, 9, partitioned=False, index="bucket", composite=True, buckets=2), "DATA_BEFORE"),
    (Kind(True, 9, partitioned=False, index="bucket", ordering=INT, buckets=2), "OP_KEY_ONLY"),
    (Kind(False, 9, index="global", ordering=INT), "DATA_BEFORE_AFTER"),
]
COMPARED: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how much was compared."""
    COMPARED.clear()
    yield
    tell(request, COMPARED, "beside Hudi")


def row(kind: Kind, name: str, part: str, at: int, n: int | None) -> dict[str, Any]:
    values = {"id": name, "sub": 1, "p": part, "ts": at, "s": f"ä{n}", "n": n, "x": 0.5}
    return {key: value for key, value in values.items() if key in kind.schema.names}


def form(change: dict[str, Any]) -> tuple[str, ...]:
    """A change as text: images without Hudi's own columns, and without nulls."""
    sides = []
    for name in ("before", "after"):
        image = change[name]
        image = json.loads(image) if isinstance(image, str) else image
        known = {k: v for k, v in (image or {}).items() if v is not None and k[:8] != "_hoodie_"}
        sides.append(json.dumps(known, sort_keys=True, default=str))
    return (change["ts_ms"], change["op"], *sides)


def by_hudi(spark: Any, path: Path, start: str, end: str | None = None) -> Counter[tuple[str, ...]]:
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": start,
    }
    if end is not None:
        options["hoodie.datasource.read.end.instanttime"] = end
    return Counter(map(form, hudi_writer.read(spark, path, **options)))


def by_us(path: Path, start: str, end: str | None = None) -> Counter[tuple[str, ...]]:
    return Counter(map(form, lw.open_table(path).changes(start, end).to_arrow().to_pylist()))


def check(spark: Any, path: Path, start: str = "000", end: str | None = None) -> None:
    ours, theirs = by_us(path, start, end), by_hudi(spark, path, start, end)
    assert ours == theirs
    assert ours
    COMPARED["windows"] += 1
    COMPARED["changes"] += ours.total()


@pytest.mark.parametrize(("kind", "mode"), SHAPES, ids=[f"{k}-{m}" for k, m in SHAPES])
def test_both_tell_the_same_changes(hudi_spark: Any, tmp_path: Path, kind: Kind, mode: str) -> None:
    path = tmp_path / "t"
    table = create(path, kind, properties={ENABLED: "true", MODE: mode.lower()})
    table.insert([row(kind, name, "oslo", 5, n) for n, name in enumerate("abcd")])
    table.insert([row(kind, "z", "oslo", 5, 9)])  # into a small base file without logs
    table.upsert([row(kind, "a", "oslo", 6, 10), row(kind, "b", "oslo", 4, 11)])
    table.upsert([row(kind, "c", "oslo", 7, None), row(kind, "e", "lima", 5, 12)])
    middle = table.delete("id = 'a'").instant
    assert middle is not None
    table.insert([row(kind, "f", "oslo", 5, 13)])
    table.update({"n": "n + 100"}, where="id = 'd'")
    if kind.mor:
        assert table.compact().partitions
    table.upsert([row(kind, "e", "oslo" if kind.index == "global" else "lima", 8, 14)])
    if kind.partitioned:
        table.insert_overwrite([row(kind, "g", "oslo", 1, 15), row(kind, "h", "oslo", 1, 16)])
        table.upsert([row(kind, "g", "oslo", 2, 17), row(kind, "i", "lima", 3, 18)])
        table.delete_partitions(["p=lima"])
    check(hudi_spark, path)
    check(hudi_spark, path, start=middle.completed or middle.requested)
    # Hudi goes on with the table, and we after it.
    more = {ENABLED: "true", MODE: mode}
    rows = [row(kind, "g", "oslo", 20, 30), row(kind, "y", "oslo", 20, 31)]
    hudi_writer.write(hudi_spark, path, kind, rows, more=more)
    table.upsert([row(kind, "y", "oslo", 21, 32)])
    check(hudi_spark, path)
    assert table.fsck().ok


@pytest.mark.parametrize("version", [9, 6])
def test_hudi_takes_back_a_write_with_its_change_files(
    hudi_spark: Any, tmp_path: Path, version: int
) -> None:
    """Wherever a writer of ours died, Hudi's next write removes its change files too."""
    kept = {ENABLED: "true", MODE: "DATA_BEFORE_AFTER"}
    template = open_storage(tmp_path / "template")
    prepare(template, mor=False, version=version, buckets=None, properties=kept)
    assert write_deaths.run(tmp_path, "upsert", 5) > 1
    new = [("next", "x", 9, 1)]
    frame = hudi_spark.createDataFrame(new, "id string, p string, ts bigint, n bigint")
    options = hudi_writer.options_of(Kind(version=version, ordering=INT)) | kept
    left = 0
    for folder in sorted(tmp_path.iterdir()):
        storage = open_storage(folder)
        found = [path for path in strays(storage) if path.endswith(".cdc")]
        left += len(found)
        if folder.name == "template" or not found:
            continue
        frame.write.format("hudi").options(**options).mode("append").save(str(folder))
        assert [path for path in strays(storage) if path.endswith(".cdc")] == []
        check(hudi_spark, folder)
        COMPARED["deaths that Hudi mended"] += 1
    assert left


def test_of_logs_of_version_6_hudi_tells_no_changes(hudi_spark: Any, tmp_path: Path) -> None:
    """Not of its own tables either: it takes the body of the commit for Avro. We tell them."""
    kind = Kind(True, 6, ordering=INT)
    path = tmp_path / "t"
    for n in (1, 2):
        rows = [row(kind, "a", "oslo", n, n)]
        hudi_writer.write(hudi_spark, path, kind, rows, more={ENABLED: "true"})
    with pytest.raises(Exception, match="Not an Avro data file"):
        by_hudi(hudi_spark, path, "000")
    assert sorted(change[1] for change in by_us(path, "000").elements()) == ["i", "u"]


def test_of_inserts_into_buckets_hudi_tells_no_changes(hudi_spark: Any, tmp_path: Path) -> None:
    """Not of its own: it looks for a change file that it did not write. We tell them."""
    kind = Kind(False, 9, index="bucket", buckets=1)
    path = tmp_path / "t"
    for name in ("a", "b"):
        rows = [row(kind, name, "oslo", 1, 1)]
        more = {ENABLED: "true", MODE: "OP_KEY_ONLY"}
        hudi_writer.write(hudi_spark, path, kind, rows, "insert", more)
    with pytest.raises(Exception, match="There should be a cdc log file"):
        by_hudi(hudi_spark, path, "000")
    assert [change[1] for change in by_us(path, "000").elements()] == ["i", "i"]
