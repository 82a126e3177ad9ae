"""Every verb on every kind of table, without Spark, against a dictionary."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

import lakewright as lw
from support.pairwise import thinned

LARGE = {"lakewright.write.driver-bytes": "0"}
NUMBERS = count()
KINDS = thinned(
    {
        "-".join(str(word) for word in kind): kind
        for kind in product(
            ("COPY_ON_WRITE", "MERGE_ON_READ"), (9, 6), ("parts", "whole"), (1, 2), (3, None)
        )
    }
)
Row = Mapping[str, object]


@dataclass
class Pair:
    """A table, and the rows that it should hold by key and partition."""

    table: lw.Table
    partitioned: bool
    keys: int
    rows: dict[tuple[object, ...], Row] = field(default_factory=dict)

    def row(self, number: int, ts: int, *, p: str | None = None) -> Row:
        return {
            "id": f"k{number:03d}",
            "sub": number % 2,
            "p": p or f"p{number % 3}",
            "ts": ts,
            "v": f"v{number}-{ts}",
        }

    def place(self, row: Row) -> tuple[object, ...]:
        names = ("id", "sub")[: self.keys]
        return (*(row[name] for name in names), *((row["p"],) if self.partitioned else ()))

    def upserted(self, rows: Iterable[Row]) -> tuple[int, int]:
        """Apply an upsert; return how many keys were new, and how many were replaced."""
        inserted, updated = set(), set()
        for row in rows:
            place = self.place(row)
            before = self.rows.get(place)
            if before is None:
                inserted.add(place)
            elif before["ts"] > row["ts"]:
                continue
            elif place not in inserted:
                updated.add(place)
            self.rows[place] = row
        return len(inserted), len(updated)

    def deleted(self, places: Iterable[tuple[object, ...]]) -> int:
        gone = [place for place in places if self.rows.pop(place, None) is not None]
        return len(gone)

    def check(self) -> None:
        held = self.table.scan().to_arrow().to_pylist()
        assert sorted(map(str, held)) == sorted(str(dict(row)) for row in self.rows.values())


def make(kind: str, version: int, parts: str, keys: int, buckets: int | None, root: str) -> Pair:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("sub", pa.int64()),
            ("p", pa.string()),
            ("ts", pa.int64()),
            ("v", pa.string()),
        ]
    )
    table = lw.create_table(
        f"{root}/t{next(NUMBERS)}",
        schema=schema,
        key=("id", "sub")[:keys],
        partition_by=["p"] if parts == "parts" else [],
        order_by="ts",
        type=kind,
        version=version,
        buckets=buckets,
    )
    return Pair(table, parts == "parts", keys)


def told(result: lw.WriteResult, inserted: int = 0, updated: int = 0, deleted: int = 0) -> None:
    """Compare counts, where the result says that they are exact."""
    assert result.instant is not None
    assert result.files > 0
    assert result.bytes > 0
    if result.exact:
        assert (result.inserted, result.updated, result.deleted) == (inserted, updated, deleted)


def history(pair: Pair) -> Iterator[str]:
    """Run every verb; yield after each."""
    table = pair.table
    first = [pair.row(n, 100) for n in range(24)]
    pair.upserted(first)
    told(table.bulk_insert(pa.Table.from_pylist(first)), inserted=24)
    yield "bulk_insert"

    batch = [pair.row(n, 200) for n in range(4)]
    batch += [pair.row(4, 50), pair.row(5, 100)]  # late, and a tie
    batch += [pair.row(30, 1), pair.row(31, 2), pair.row(31, 9), pair.row(31, 5)]
    expected = pair.upserted(sorted(batch, key=lambda row: row["ts"]))
    result = table.upsert(batch)
    told(result, *expected)
    yield "upsert"

    batch = [pair.row(n, 300) for n in (0, 1, 40, 41, 42)]
    expected = pair.upserted(batch)
    told(table.upsert(pa.Table.from_pylist(batch), options=LARGE), *expected)
    yield "upsert, large"

    gone = [pair.row(n, 0) for n in (0, 7, 99)]
    deleted = pair.deleted(pair.place(row) for row in gone)
    told(table.delete(pa.Table.from_pylist(gone).select(["id", "sub", "p"])), deleted=deleted)
    yield "delete rows"

    gone = [pair.row(n, 0) for n in (1, 8)]
    deleted = pair.deleted(pair.place(row) for row in gone)
    names = [(row["id"], row["sub"]) if pair.keys == 2 else row["id"] for row in gone]
    told(table.delete([*names, ("none", 1) if pair.keys == 2 else "none"]), deleted=deleted)
    yield "delete keys"

    gone = [pair.row(n, 0) for n in (2, 9, 98)]
    deleted = pair.deleted(pair.place(row) for row in gone)
    frame = pa.Table.from_pylist(gone).select(["id", "sub", "p"])
    told(table.delete(frame, options=LARGE), deleted=deleted)
    yield "delete rows, large"

    hit = [place for place, row in pair.rows.items() if str(row["v"]).startswith("v1")]
    assert hit
    told(table.delete(where="v LIKE 'v1%'"), deleted=pair.deleted(hit))
    yield "delete where"

    batch = [pair.row(n, 400) for n in (3, 50, 51, 51)]
    fresh = [row for row in batch if pair.place(row) not in pair.rows]
    inserted, _ = pair.upserted(fresh)
    told(table.insert(batch, dedupe=True), inserted=inserted)
    yield "insert, deduped"

    batch = [pair.row(n, 1) for n in (60, 61, 62)]
    inserted, _ = pair.upserted(batch)
    told(table.insert(batch), inserted=inserted)
    yield "insert"

    batch = [pair.row(n, 1, p="p1") for n in (3, 70)]
    for place in [p for p, row in pair.rows.items() if row["p"] == "p1" or not pair.partitioned]:
        del pair.rows[place]
    inserted, _ = pair.upserted(batch)
    result = table.insert_overwrite(batch)
    told(result, inserted=inserted)
    assert all(part.replaced_groups for part in result.partitions.values())
    yield "insert_overwrite"

    if pair.partitioned:
        for place in [p for p, row in pair.rows.items() if row["p"] == "p0"]:
            del pair.rows[place]
        result = table.delete_partitions([{"p": "p0"}, "p=none"])
        assert result.absent == ("p=none",)
        assert result.partitions["p=p0"].replaced_groups > 0
        yield "delete_partitions"

    pair.rows.clear()
    batch = [pair.row(n, 5) for n in range(80, 90)]
    told(table.insert_overwrite_table(batch, options=LARGE), inserted=pair.upserted(batch)[0])
    yield "insert_overwrite_table"

    batch = [pair.row(n, 6) for n in range(85, 95)]
    told(table.upsert(batch), *pair.upserted(batch))
    yield "upsert again"


@pytest.mark.parametrize(("kind", "version", "parts", "keys", "buckets"), KINDS)
def test_every_verb(kind: str, version: int, parts: str, keys: int, buckets: int | None) -> None:
    pair = make(kind, version, parts, keys, buckets, "memory://writing")
    done = list(checked(pair))
    assert len(done) == (13 if parts == "parts" else 12)
    report = pair.table.fsck(deep=True)
    assert report.ok, report.problems


def checked(pair: Pair) -> Iterator[str]:
    for verb in history(pair):
        pair.check()
        if pair.table.definition.table_type == "COPY_ON_WRITE":
            last = pair.table.timeline.latest_data()
            assert last is not None
        yield verb


@pytest.mark.parametrize(
    ("kind", "version", "parts", "keys", "buckets"),
    [
        ("COPY_ON_WRITE", 9, "parts", 1, None),
        ("COPY_ON_WRITE", 6, "whole", 2, 3),
        ("MERGE_ON_READ", 9, "parts", 2, 3),
        ("MERGE_ON_READ", 6, "parts", 1, None),
    ],
)
def test_hudi_reads_what_was_written(
    tmp_path: Path, kind: str, version: int, parts: str, keys: int, buckets: int | None
) -> None:
    pair = make(kind, version, parts, keys, buckets, str(tmp_path))
    for _ in history(pair):
        batches = HudiTableBuilder.from_base_uri(pair.table.path).build().read()
        held = [row for batch in batches for row in batch.to_pylist()]
        names = ("id", "sub", "p", "ts", "v")
        seen = sorted(str({name: row[name] for name in names}) for row in held)
        assert seen == sorted(str(dict(row)) for row in pair.rows.values())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("buckets", [None, 1])
def test_late_rows_are_known_where_the_ordering_column_was_widened(
    kind: str, buckets: int | None
) -> None:
    more = {} if buckets is None else {"buckets": buckets}
    path = f"memory://writing-{next(NUMBERS)}/t"
    schema = pa.schema([("id", pa.string()), ("ts", pa.int32())])
    table = lw.create_table(path, schema=schema, key="id", order_by="ts", type=kind, **more)
    table.insert(pa.table({"id": ["a", "b"], "ts": [50, 50]}, schema))
    result = table.upsert(pa.table({"id": ["a", "b"], "ts": [40.0, 60.0]}))
    assert (result.inserted, result.updated, result.exact) == (0, 1, True)
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": "a", "ts": 50.0}, {"id": "b", "ts": 60.0}]
