"""Files that say which column holds their record keys: it is decoded once for both."""

import io
import uuid
from typing import Any

import pyarrow as pa
import pytest

from lakewright.format.hudi.base_file import BaseFileReader, open_base
from lakewright.format.hudi.base_write import BaseFileSpec, write_base
from lakewright.model.schema import INT, RECORD_KEY, STRING, Field, Struct
from lakewright.storage.open import open_storage

SCHEMA = Struct((Field("id", STRING), Field("n", INT)))


def opened(batches: list[dict[str, Any]], *, row_group_bytes: int = 1) -> BaseFileReader:
    spec = BaseFileSpec(
        SCHEMA, "t", "n", "f.parquet", "", "1", keys=("id",), row_group_bytes=row_group_bytes
    )
    sink = io.BytesIO()
    write_base(sink, [pa.RecordBatch.from_pydict(batch) for batch in batches], spec)
    storage = open_storage(f"memory://{uuid.uuid4()}")
    storage.write("f.parquet", sink.getvalue())
    return open_base(storage, "f.parquet")


PLAIN = {"id": ["a", "b"], "n": [1, 2], RECORD_KEY: ["a", "b"]}
NAMED = {"id": ["a", "b"], "n": [1, 2], RECORD_KEY: ["id:a", "id:b"]}


def test_both_columns_lie_in_the_same_memory() -> None:
    reader = opened([PLAIN, PLAIN])
    assert reader.footer.key_column == "id"
    for batch in reader.iter_batches(["n", RECORD_KEY, "id"]):
        assert batch.schema.names == ["n", RECORD_KEY, "id"]
        assert batch.column(1).buffers()[2].address == batch.column(2).buffers()[2].address
        assert batch.to_pydict() == {"n": [1, 2], RECORD_KEY: ["a", "b"], "id": ["a", "b"]}


@pytest.mark.parametrize("wanted", [[RECORD_KEY], ["id"], [RECORD_KEY, "n"], ["n"]])
def test_one_of_them_is_read_as_ever(wanted: list[str]) -> None:
    found = opened([PLAIN]).read(wanted)
    assert found.to_pydict() == {name: PLAIN[name] for name in wanted}


@pytest.mark.parametrize("batches", [[NAMED], [PLAIN, NAMED], [NAMED, PLAIN]])
def test_nothing_is_said_where_some_rows_differ(batches: list[dict[str, Any]]) -> None:
    reader = opened(batches)
    assert reader.footer.key_column is None
    keys = [key for batch in batches for key in batch[RECORD_KEY]]
    assert reader.read([RECORD_KEY, "id"]).column(RECORD_KEY).to_pylist() == keys


def test_a_filter_sees_both() -> None:
    import pyarrow.compute as pc

    reader = opened([PLAIN])
    batches = reader.iter_batches([RECORD_KEY, "id"], filter=pc.field(RECORD_KEY) == "b")
    assert [b.to_pydict() for b in batches] == [{RECORD_KEY: ["b"], "id": ["b"]}]
