"""What travels to Spark's workers and back, without a Spark session."""

import pickle

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.engine.spark import carrying
from lakewright.engine.spark.murmur import hash_int, slots
from lakewright.model.errors import Conflict, Invalid


def test_arrow_data_is_cut_to_what_it_shows() -> None:
    whole = pa.array([f"key {n}" for n in range(100_000)])
    table = pa.table({"k": whole})
    items = [
        table.slice(7, 3),
        whole.slice(5, 2),
        whole.slice(0, 0),
        pa.chunked_array([whole.slice(1, 2), whole.slice(9, 1)]),
        table.slice(3, 2).to_batches()[0],
        table.slice(0, 0),
        pa.RecordBatch.from_pydict({"k": whole.slice(0, 0)}),
        pa.array(["a", None, "a"]).dictionary_encode(),
        {"deep": (table.slice(1, 1), None, 3)},
    ]
    packed = carrying.pack_items(items)
    assert len(packed) < 10_000 < len(pickle.dumps(whole))
    found = carrying.unpack_items(packed)
    for made, item in zip(found[:-1], items[:-1], strict=True):
        assert type(made) is type(item)
        assert made.equals(item)
    assert found[-1]["deep"][0].equals(table.slice(1, 1))


def test_errors_come_out_of_the_text_of_others() -> None:
    error = Invalid("3 rows have no key.", next_step="Give one.", count=3, sample=[{"k": None}])
    text = f"PythonException: Traceback\n  {carrying.error_text(error)}\n SQLSTATE: 38000"
    found = carrying.error_in(text)
    assert isinstance(found, Invalid)
    assert (str(found), found.facts) == (str(error), error.facts)
    assert carrying.error_in("Traceback: [lakewright:AAAA] cut short") is None
    assert carrying.error_in(f"[lakewright:AAAA] {text}") is not None
    assert isinstance(carrying.error_in(carrying.error_text(Conflict("late"))), Conflict)
    assert carrying.error_in("no token") is None


def test_answers_come_back_in_rows() -> None:
    answers = [("file", number) for number in range(1_000)]
    rows = list(carrying.answer_batches(iter(answers)))
    assert len(rows) == 4
    found = [made for row in rows for made in carrying.answers_of(row.column(0)[0].as_py())]
    assert found == answers
    assert not list(carrying.answer_batches(iter(())))


def test_slots_land_in_turn() -> None:
    # Known answers of Spark: select hash(0), hash(1), hash(-1)
    assert [hash_int(0), hash_int(1), hash_int(-1)] == [933211791, -559580957, -1604776387]
    for count in (1, 2, 5, 64):
        assert [hash_int(value) % count for value in slots(count)] == list(range(count))
