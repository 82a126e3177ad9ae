"""The rows that writing is measured with: base rows and two batches of updates, as plain parquet.

Eight columns, keys of 32 hexadecimal digits, 20 partitions. The updates change 1% and 10% of the
rows, uniformly at random, in all partitions. The small batches hold 1,000 rows of one partition,
nine tenths of them known keys.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from read_tables import CITIES, PARTITIONS, SCHEMA

VERSION = 1
TINY_ROWS = 1_000
#: Rows of the table that small commits go to.
TINY_BASE = 200_000
PIECES = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the rows of one size lie."""

    root: Path
    rows: int

    @property
    def base(self) -> Path:
        return self.root / "base"

    def updates(self, percent: int) -> Path:
        return self.root / f"updates-{percent}"

    @property
    def tiny(self) -> Path:
        return self.root / "tiny"


def write_rows(root: Path, rows: int) -> Rows:
    """Return the rows of a size, making them if need be."""
    made = Rows(root / f"write-{rows}-v{VERSION}", rows)
    if not (made.root / "done").exists():
        shutil.rmtree(made.root, ignore_errors=True)
        _make(made)
        (made.root / "done").touch()
    return made


def tiny_batch(made: Rows, number: int) -> pa.Table:
    """Return a batch of one small commit."""
    random = np.random.default_rng([7, number])
    day = f"2026-10-{PARTITIONS:02d}"
    known = pq.read_table(made.base, columns=["id"], filters=[("dt", "=", day)])["id"]
    old = known.take(pa.array(random.integers(0, len(known), TINY_ROWS * 9 // 10)))
    new = _keys(random, TINY_ROWS - len(old))
    keys = pa.chunked_array([*old.chunks, new]).combine_chunks().unique()
    return _columns(random, keys, pa.array([day] * len(keys)), 3_000_000 + number)


def _make(made: Rows) -> None:
    random = np.random.default_rng(made.rows)
    for path in (made.base, made.updates(1), made.updates(10)):
        path.mkdir(parents=True)
    days = pa.array([f"2026-10-{number + 1:02d}" for number in range(PARTITIONS)])
    count = made.rows // PIECES
    for piece in range(PIECES):
        where = days.take(pa.array(random.integers(0, PARTITIONS, count)))
        rows = _columns(random, _keys(random, count), where, 1_000_000)
        _store(rows, made.base / f"part-{piece}.parquet")
        for percent in (1, 10):
            chosen = np.sort(random.choice(count, count * percent // 100, replace=False))
            picked = rows.select(["id", "dt"]).take(pa.array(chosen)).combine_chunks()
            keys, at = picked["id"].combine_chunks(), picked["dt"].combine_chunks()
            later = _columns(random, keys, at, 2_000_000)
            _store(later, made.updates(percent) / f"part-{piece}.parquet")


def _keys(random: np.random.Generator, count: int) -> pa.Array:
    return pa.array(np.frombuffer(random.bytes(16 * count).hex().encode(), "S32").astype(str))


def _columns(random: np.random.Generator, keys: pa.Array, days: pa.Array, ts: int) -> pa.Table:
    count = len(keys)
    columns = {
        "id": keys,
        "ts": pa.array(ts + random.integers(0, 1000, count), pa.int64()),
        "amount": np.round(random.random(count) * 1000, 2),
        "qty": random.integers(1, 100, count, dtype=np.int32),
        "city": CITIES.take(pa.array(random.integers(0, len(CITIES), count))),
        "flag": random.random(count) < 0.5,
        "note": pa.array(np.char.add("note ", random.integers(0, 10**6, count).astype(str))),
        "dt": days,
    }
    return pa.table({name: columns[name] for name in SCHEMA.names})


def _store(rows: pa.Table, path: Path) -> None:
    low = ["city", "flag", "qty", "dt"]
    pq.write_table(rows, path, compression="snappy", use_dictionary=low)
