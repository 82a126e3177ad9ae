"""Files whose pages go straight into another file: not a byte is lost, nor held without need."""

import errno
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.format.arrow.parquet_footer import MAGIC
from lakewright.format.arrow.parquet_pages import PageStream
from lakewright.format.hudi.parquet_writing import ParquetFile

ROWS = pa.table({"n": pa.array(range(1000)), "text": [f"text {n}" for n in range(1000)]})


def whole_file() -> bytes:
    sink = io.BytesIO()
    pq.write_table(ROWS, sink)
    return sink.getvalue()


def footer_size(file: bytes) -> int:
    return int.from_bytes(file[-8:-4], "little") + 8


@pytest.mark.parametrize("piece", [1, 3, 4, 5, 1 << 20])
@pytest.mark.parametrize("late", [0, 1, 100])
def test_pages_pass_on_and_the_footer_is_held(piece: int, late: int) -> None:
    file = whole_file()
    size = footer_size(file)
    begun, rest = file[: len(file) - size - late], file[len(file) - size - late :]
    sink = io.BytesIO()
    stream = PageStream(sink)
    for start in range(0, len(begun), piece):
        assert stream.write(begun[start : start + piece]) == len(begun[start : start + piece])
    assert sink.getvalue() == begun[len(MAGIC) :]
    stream.end_pages()
    for start in range(0, len(rest), piece):
        stream.write(rest[start : start + piece])
    assert stream.footer().to_pybytes() == file[-size:]
    assert sink.getvalue() == file[len(MAGIC) : -size]
    assert stream.passed == len(file) - size - len(MAGIC)


class Full(io.BytesIO):
    """A disk that has room for little."""

    def write(self, data: object, /) -> int:
        if self.tell() > 1000:
            raise OSError(errno.ENOSPC, "no space left on device")
        return super().write(data)  # type: ignore[arg-type]


def test_what_the_sink_meets_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewright.format.arrow.parquet_assembly._LARGE", 0)
    monkeypatch.setattr("lakewright.format.hudi.parquet_writing._FEW", 0)
    file = ParquetFile(Full(), ROWS.schema, (), ())
    with pytest.raises(OSError, match="no space left") as caught:
        file.write(ROWS)
    assert caught.value.errno == errno.ENOSPC
