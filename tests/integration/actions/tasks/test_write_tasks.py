"""Task functions of writes, on every kind of table, against a dictionary and the hudi package."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from lakewright.model.table import TableType
from lakewright.model.writing import Operation
from lakewright.storage.open import open_storage
from support.task_writes import TaskTable, hudi_rows, rows_of

UPSERT, INSERT, DELETE = Operation.UPSERT, Operation.INSERT, Operation.DELETE
COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ

KINDS = list(itertools.product((COW, MOR), (9, 6), (None, 3), (False, True)))


def names(param: Any) -> str:
    kind, version, buckets, stream = param
    short = "cow" if kind is COW else "mor"
    index = "bucket" if buckets else "lookup"
    return f"{short}-v{version}-{index}-{'stream' if stream else 'plan'}"


@pytest.mark.parametrize("kind", KINDS, ids=names)
def test_a_history_equals_a_dictionary(kind: Any, tmp_path: Path) -> None:
    table_type, version, buckets, stream = kind
    table = TaskTable(open_storage(tmp_path), table_type, version, buckets)

    def put(operation: Operation, *rows: tuple[str, int, str, str]) -> None:
        table.write(operation, rows_of(*rows), stream=stream)

    put(UPSERT, *((f"k{n}", 10, "a", f"p{n % 3}") for n in range(30)))
    expected = {(f"p{n % 3}", f"k{n}"): "a" for n in range(30)}
    assert table.by_key() == expected
    # Later, equal and earlier ordering values, and a new key; a duplicate in the batch.
    put(
        UPSERT,
        ("k0", 11, "later", "p0"),
        ("k3", 10, "tie", "p0"),
        ("k6", 9, "late", "p0"),
        ("new", 1, "first", "p1"),
        ("new", 2, "greater", "p1"),
        ("new", 1, "last", "p1"),
        ("far", 1, "x", "p9"),
    )
    expected |= {
        ("p0", "k0"): "later",
        ("p0", "k3"): "tie",
        ("p1", "new"): "greater",
        ("p9", "far"): "x",
    }
    assert table.by_key() == expected
    table.write(
        DELETE, deletes=[("dt=p0", "k0"), ("dt=p1", "k1"), ("dt=p1", "no"), ("dt=p7", "k0")]
    )
    del expected["p0", "k0"], expected["p1", "k1"]
    assert table.by_key() == expected
    put(UPSERT, ("k0", 20, "again", "p0"))
    expected["p0", "k0"] = "again"
    assert table.by_key() == expected
    seen = {(r["dt"], r["id"]): r["v"] for r in hudi_rows(str(tmp_path))}
    assert seen == expected
