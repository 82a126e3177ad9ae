"""Rows put aside until a commit."""

import time
from pathlib import Path

import pyarrow as pa
import pytest

from lakewright.actions.write.staging import (
    ABANDONED,
    StagedFile,
    clear_staged,
    stage,
    staged_rows,
    staging_folder,
    sweep_staged,
)
from lakewright.model.errors import Invalid
from lakewright.storage.local import LocalStorage
from lakewright.storage.memory import MemoryStorage

ROWS = pa.table({"id": ["a", "b", "c"], "n": [1, None, 3]})
FOLDER = staging_folder("q-1")


def test_rows_come_back_in_order_from_several_files() -> None:
    storage = MemoryStorage("memory://staging/a", {})
    first = stage(storage, FOLDER, "0", ROWS.to_batches(max_chunksize=2), 1 << 20)
    second = stage(storage, FOLDER, "1", ROWS.slice(0, 1).to_batches(), 1 << 20)
    assert first is not None and second is not None
    assert (first.rows, second.rows) == (3, 1)
    rows = staged_rows(storage, [first, second])
    assert rows.schema == ROWS.schema and rows.nbytes == first.bytes + second.bytes
    found = pa.Table.from_batches(rows.batches())
    assert found.to_pylist() == [*ROWS.to_pylist(), {"id": "a", "n": 1}]
    clear_staged(storage, FOLDER)
    assert not list(storage.list("", recursive=True))


def test_no_rows_make_no_file() -> None:
    storage = MemoryStorage("memory://staging/b", {})
    assert stage(storage, FOLDER, "0", [], 1) is None
    assert not list(storage.list("", recursive=True))


def test_too_many_rows_are_refused_and_leave_no_file() -> None:
    storage = MemoryStorage("memory://staging/c", {})
    with pytest.raises(Invalid, match=r"table\.upsert\(df\)") as refused:
        stage(storage, FOLDER, "0", ROWS.to_batches(), 10)
    assert "lakewright.write.staged-bytes" in str(refused.value)
    assert not list(storage.list("", recursive=True))


def test_only_what_is_old_and_staged_is_swept(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path), {})
    kept = stage(storage, FOLDER, "0", ROWS.to_batches(), 1 << 20)
    assert isinstance(kept, StagedFile)
    storage.write(".hoodie/.temp/20261115000000000/dt=1/f.parquet.marker.CREATE", b"")
    sweep_staged(storage, time.time())
    assert len(list(storage.list("", recursive=True))) == 2
    sweep_staged(storage, time.time() + ABANDONED + 60)
    left = [file.path for file in storage.list("", recursive=True)]
    assert left == [".hoodie/.temp/20261115000000000/dt=1/f.parquet.marker.CREATE"]
