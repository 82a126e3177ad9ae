"""How work travels to Spark's Python workers, and answers and errors travel back."""

import base64
import io
import pickle
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import pyarrow as pa
from pyspark import cloudpickle

from lakewright.model.errors import LakewrightError

Reduced: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

#: Marks an error of ours in the text of the error that Spark makes of it.
_ERROR = re.compile(r"\[lakewright:([A-Za-z0-9+/=]+)\]")
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def pack_job(value: object) -> bytes:
    """Return what all tasks of a job share, as few bytes.

    Functions of modules travel by name, as everywhere; others by value.
    """
    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return zlib.compress(data, 1)


def unpack_job(data: bytes) -> object:
    """Return the value behind a packed job."""
    value: object = pickle.loads(zlib.decompress(data))
    return value


def pack_items(items: list[Any]) -> bytes:
    """Return items as bytes; Arrow data in them goes as compressed IPC, cut to what it shows."""
    sink = io.BytesIO()
    _Pickler(sink, protocol=pickle.HIGHEST_PROTOCOL).dump(items)
    return sink.getvalue()


def unpack_items(data: bytes) -> list[Any]:
    """Return the items behind packed bytes."""
    items: list[Any] = pickle.loads(data)
    return items


class _Pickler(pickle.Pickler):
    """A pickled slice of Arrow's own would hold all that it was cut from."""

    def reducer_override(self, value: object) -> Reduced:
        match value:
            case pa.Table():
                return _table, (_ipc(value),)
            case pa.RecordBatch():
                return _batch, (_ipc(pa.Table.from_batches([value])),)
            case pa.ChunkedArray():
                return _column, (_ipc(pa.table({"": value})),)
            case pa.Array():
                return _array, (_ipc(pa.table({"": value})),)
            case _:
                return cast("Reduced", NotImplemented)  # pickle's own way


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _table(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def _batch(data: bytes) -> pa.RecordBatch:
    table = _table(data)
    found = table.combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=table.schema)


def _column(data: bytes) -> pa.ChunkedArray:
    return _table(data).column(0)


def _array(data: bytes) -> pa.Array:
    return _column(data).combine_chunks()


def error_text(error: LakewrightError) -> str:
    """Return the text of an error with the error itself in it, for ``error_in``."""
    data = base64.b64encode(zlib.compress(pickle.dumps(error))).decode()
    return f"[lakewright:{data}] {error}"


def error_in(text: str) -> LakewrightError | None:
    """Find the error of ours that a text from Spark carries, None where there is none."""
    for found in _ERROR.finditer(text):
        try:
            error = pickle.loads(zlib.decompress(base64.b64decode(found.group(1))))
        except (ValueError, zlib.error, pickle.UnpicklingError, EOFError):
            continue  # cut short on its way
        if isinstance(error, LakewrightError):
            return error
    return None


def answer_batches(answers: Iterator[object]) -> Iterator[pa.RecordBatch]:
    """Put answers into rows of one binary column, several to a row."""
    held: list[object] = []
    for answer in answers:
        held.append(answer)
        if len(held) == _ANSWERS:
            yield _row(held)
            held = []
    if held:
        yield _row(held)


#: Answers per row: they are small, and rows cost more than bytes.
_ANSWERS = 256
ANSWER = "made"


def _row(answers: list[object]) -> pa.RecordBatch:
    data = zlib.compress(pickle.dumps(answers, protocol=pickle.HIGHEST_PROTOCOL), 1)
    return pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=[ANSWER])


def answers_of(data: bytes) -> list[Any]:
    """Return the answers in one row."""
    found: list[Any] = pickle.loads(zlib.decompress(data))
    return found
