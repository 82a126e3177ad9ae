"""Base files: footers in one read, rows by column and row group, ranges, and other formats."""

import datetime as dt
import io
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakewright.format.hudi.base_file import open_base
from lakewright.format.hudi.base_footer import parse_footer, read_footer
from lakewright.format.hudi.base_pruning import file_ranges, group_ranges, may_contain_key
from lakewright.model.errors import Corrupt, LakewrightError, NotFound, Unsupported
from lakewright.model.expression.prune import ColumnRange
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage

PATH = "p/f-0_0-0-1_20260101000000000.parquet"
ROWS = [
    {"id": f"k{i}", "n": i, "who": {"name": f"p{i}", "at": None}, "tags": ["x"] * (i % 3)}
    for i in range(10)
]
TABLE = pa.Table.from_pylist(
    ROWS,
    pa.schema(
        [
            ("id", pa.string()),
            ("n", pa.int64()),
            ("who", pa.struct([("name", pa.string()), ("at", pa.date32())])),
            ("tags", pa.list_(pa.string())),
        ]
    ),
)


class Watched:
    """Counts the ranged reads and opens of a storage."""

    def __init__(self, inner: Storage, uri: str) -> None:
        self._inner = inner
        self.uri = uri
        self.reads: list[tuple[int, int]] = []
        self.opened = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self._inner.read_range(path, offset, length)

    def open(self, path: str) -> IO[bytes]:
        self.opened += 1
        return self._inner.open(path)


def stored(table: pa.Table, **options: Any) -> Storage:
    sink = io.BytesIO()
    metadata = options.pop("metadata", None)
    with pq.ParquetWriter(sink, table.schema, store_schema=False, **options) as writer:
        writer.write_table(table, row_group_size=4)
        if metadata:
            writer.add_key_value_metadata(metadata)
    storage = open_storage(f"memory://{uuid.uuid4()}")
    storage.write(PATH, sink.getvalue())
    return storage


def test_rows_come_in_file_order_by_row_group() -> None:
    with open_base(stored(TABLE), PATH) as reader:
        assert (reader.num_rows, reader.num_row_groups) == (10, 3)
        assert [reader.row_group_rows(g) for g in range(3)] == [4, 4, 2]
        assert reader.read().to_pylist() == ROWS
        batches = list(reader.iter_batches(batch_rows=3))
        assert [b.num_rows for b in batches] == [3, 1, 3, 1, 2]


def test_columns_row_groups_and_filters() -> None:
    with open_base(stored(TABLE), PATH) as reader:
        made = pa.Table.from_batches(
            reader.iter_batches(["n", "absent", "id"], [1, 2], pc.field("n") > 5)
        )
        assert made.to_pylist() == [{"n": i, "id": f"k{i}"} for i in range(6, 10)]
        nested = pa.Table.from_batches(reader.iter_batches(["who"], [0]))
        assert nested.to_pylist() == [{"who": row["who"]} for row in ROWS[:4]]


def test_rows_can_be_counted_without_columns() -> None:
    storage = Watched(stored(TABLE), "memory://x")
    with open_base(storage, PATH) as reader:
        assert [b.num_rows for b in reader.iter_batches([], batch_rows=3)] == [3, 1, 3, 1, 2]
    assert storage.opened == 0


def test_a_small_footer_is_one_read() -> None:
    storage = Watched(stored(TABLE), "memory://x")
    size = storage.stat(PATH).size
    read_footer(storage, PATH)
    assert len(storage.reads) == 1
    read_footer(storage, PATH, size)
    assert len(storage.reads) == 2


@pytest.mark.parametrize(("uri", "reads"), [("/local", 2), ("s3://far", 1)])
def test_a_footer_with_a_large_filter(uri: str, reads: int) -> None:
    storage = Watched(stored(TABLE, metadata={"org.apache.hudi.bloomfilter": "A" * 431_380}), uri)
    footer = read_footer(storage, PATH)
    assert footer.bloom is not None
    assert len(footer.bloom[1]) == 431_380
    assert len(storage.reads) == reads


def test_types_are_brought_to_their_normal_form() -> None:
    table = pa.table(
        {
            "tiny": pa.array([1], pa.int8()),
            "big": pa.array(["x"], pa.large_string()),
            "code": pa.array(["x"]).dictionary_encode(),
            "l": pa.array([["x"]], pa.large_list(pa.large_string())),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    storage = open_storage(f"memory://{uuid.uuid4()}")
    storage.write(PATH, sink.getvalue())
    with open_base(storage, PATH) as reader:
        made = reader.read()
    element = pa.field("element", pa.string())
    assert made.schema.types == [pa.int32(), pa.string(), pa.string(), pa.list_(element)]
    assert made.to_pylist() == table.to_pylist()


def test_old_timestamps_are_moments_at_every_depth() -> None:
    moments = [dt.datetime(1020, 3, 4, 5, 6, 7, 89), dt.datetime(9020, 1, 1), None]
    kind = pa.timestamp("us")
    table = pa.table(
        {
            "n": [1, 2, 3],
            "t": pa.array(moments, kind),
            "s": pa.array([{"x": m, "l": [m]} for m in moments]),
            "m": pa.array([[("k", m)] for m in moments], pa.map_(pa.string(), kind)),
        }
    )
    storage = stored(table, use_deprecated_int96_timestamps=True)
    with open_base(storage, PATH) as reader:
        made = reader.read()
    utc = [m.replace(tzinfo=dt.UTC) if m else None for m in moments]
    assert made["t"].to_pylist() == utc
    assert made["s"].to_pylist() == [{"x": m, "l": [m]} for m in utc]
    assert made["m"].to_pylist() == [[("k", m)] for m in utc]


@pytest.mark.parametrize("name", ["a.orc", "a.hfile", "a.lance"])
def test_other_formats_are_refused_by_name(name: str) -> None:
    with pytest.raises(Unsupported, match=f"{name} is a base file in the") as caught:
        open_base(stored(TABLE), name)
    assert caught.value.facts["path"] == name


def test_an_absent_file() -> None:
    with pytest.raises(NotFound):
        open_base(stored(TABLE), "p/other.parquet")


def bytes_of(storage: Storage) -> bytes:
    return storage.read(PATH)


def damaged() -> Iterator[bytes]:
    data = bytes_of(stored(TABLE))
    yield from (b"", b"PAR1", b"PAR1PAR1", data[:-1], data[:-8], bytes(len(data)))
    yield data[:-8] + (2**31).to_bytes(4, "little") + b"PAR1"
    yield data[:-8] + (5).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("data", list(damaged()))
def test_damaged_footers_are_corrupt(data: bytes) -> None:
    storage = open_storage(f"memory://{uuid.uuid4()}")
    storage.write(PATH, data)
    with pytest.raises(Corrupt) as caught:
        open_base(storage, PATH)
    assert caught.value.facts["path"] == PATH


def test_damaged_pages_are_corrupt() -> None:
    data = bytearray(bytes_of(stored(TABLE)))
    data[4:400] = bytes(396)
    storage = open_storage(f"memory://{uuid.uuid4()}")
    storage.write(PATH, bytes(data))
    with open_base(storage, PATH) as reader, pytest.raises(LakewrightError):
        reader.read()


def test_storage_errors_are_not_called_damage() -> None:
    storage = stored(TABLE)
    reader = open_base(storage, PATH)
    storage.delete([PATH])
    with pytest.raises(NotFound):
        reader.read()


# Ranges -------------------------------------------------------------------------------------


def ranges_of(table: pa.Table, *paths: tuple[str, ...], target: pa.Schema | None = None) -> Any:
    return file_ranges(read_footer(stored(table), PATH), paths, target)


def test_ranges_of_groups_and_files() -> None:
    footer = read_footer(stored(TABLE), PATH)
    paths = [("n",), ("who", "name"), ("who", "at"), ("tags",), ("absent",)]
    first = group_ranges(footer, 0, paths)
    assert first[("n",)] == ColumnRange(0, 3, 0, 4)
    assert first[("who", "name")] == ColumnRange("p0", "p3", 0, 4)
    assert first[("who", "at")].nulls == 4
    assert ("tags",) not in first
    assert ("absent",) not in first
    whole = file_ranges(footer, paths)
    assert whole[("n",)] == ColumnRange(0, 9, 0, 10)
    assert whole[("who", "at")].nulls == whole[("who", "at")].rows == 10


def test_groups_of_nulls_do_not_hide_the_others() -> None:
    table = pa.table({"c": pa.array([None] * 4 + [5, 6], pa.int32())})
    assert ranges_of(table, ("c",))[("c",)] == ColumnRange(5, 6, 4, 6)


def test_values_in_the_form_that_conditions_use() -> None:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    table = pa.table(
        {
            "t": pa.array([moment], pa.timestamp("us", "UTC")),
            "local": pa.array([moment.replace(tzinfo=None)], pa.timestamp("us")),
            "d": [dt.date(2026, 1, 1)],
            "x": pa.array([Decimal("1.50")], pa.decimal128(20, 2)),
            "b": [b"\xff"],
            "ok": [True],
        }
    )
    made = ranges_of(table, *((name,) for name in table.schema.names))
    row = table.to_pylist()[0]
    assert {path[0]: r.low for path, r in made.items()} == row
    assert {path[0]: r.high for path, r in made.items()} == row


def test_bounds_follow_the_type_that_the_column_has_now() -> None:
    table = pa.table(
        {
            "f": pa.array([0.1, 2.5], pa.float32()),
            "i": pa.array([1, 2], pa.int32()),
            "t": pa.array([1, 2], pa.timestamp("ms")),
            "s": pa.array([9, 10], pa.int32()),
        }
    )
    target = pa.schema(
        [
            ("f", pa.float64()),
            ("i", pa.decimal128(12, 1)),
            ("t", pa.timestamp("us", "UTC")),
            ("s", pa.string()),
        ]
    )
    made = ranges_of(table, ("f",), ("i",), ("t",), ("s",), target=target)
    assert (made[("f",)].low, made[("f",)].high) == (0.1, 2.5)
    assert made[("i",)].high == Decimal("2.0")
    assert made[("t",)].low == dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC)
    # As text "10" sorts before "9": the old bounds say nothing, the null count still does.
    assert made[("s",)] == ColumnRange(nulls=0, rows=2)


def test_statistics_that_leave_nan_out_do_not_deny_it() -> None:
    made = ranges_of(pa.table({"c": [1.0, math.nan]}), ("c",))
    assert made[("c",)].nans is None


def test_times_beyond_the_calendar_are_unknown() -> None:
    table = pa.table({"t": pa.array([2**62], pa.timestamp("us", "UTC"))})
    assert ranges_of(table, ("t",))[("t",)] == ColumnRange(nulls=0, rows=1)


def test_keys_outside_the_range_are_ruled_out() -> None:
    keys = {"hoodie_min_record_key": "b", "hoodie_max_record_key": "d"}
    footer = read_footer(stored(TABLE, metadata=keys), PATH)
    assert footer.key_range == ("b", "d")
    assert may_contain_key(footer, ["a", "c"])
    assert not may_contain_key(footer, ["a", "e"])
    assert not may_contain_key(footer, [])
    assert may_contain_key(read_footer(stored(TABLE), PATH), ["anything"])


def test_key_ranges_are_in_the_order_of_java() -> None:
    # U+FFFD sorts after the emoji in Java, before it in UTF-8.
    keys = {"hoodie_min_record_key": "a", "hoodie_max_record_key": "😀"}
    footer = read_footer(stored(TABLE, metadata=keys), PATH)
    assert not may_contain_key(footer, ["\ufffd"])


def test_a_footer_can_be_parsed_from_its_bytes() -> None:
    data = bytes_of(stored(TABLE))
    assert parse_footer(data, len(data), PATH).num_rows == 10


def test_texts_come_as_dictionaries_where_the_file_keeps_codes() -> None:
    count = 2_000
    rows = pa.table(
        {
            "few": ["x", "y", None, "zz"] * (count // 4),
            "own": [f"key {number}" for number in range(count)],
            "a.b": ["p"] * count,
            "n": [1] * count,
        }
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=500)
    storage = open_storage("memory://coded")
    storage.create(PATH, sink.getvalue())
    names = rows.schema.names
    with open_base(storage, PATH, coded=names) as reader:
        batches = list(reader.iter_batches(["own", "few", "n", "a.b"], batch_rows=300))
    coded = [field.name for field in batches[0].schema if pa.types.is_dictionary(field.type)]
    assert coded == ["few"], "codes of as many texts as rows gain nothing, nor do numbers"
    with open_base(storage, PATH) as reader:
        plain = pa.Table.from_batches(reader.iter_batches(["own", "few", "n", "a.b"]))
    found = pa.Table.from_batches(batches).unify_dictionaries()
    assert found.cast(plain.schema).equals(plain)


def test_codes_that_the_dictionary_lacks_are_damage() -> None:
    """Arrow checks them where it decodes texts, and not where it hands codes on."""
    texts = ["aa", "bb", "cc", "aa", "cc", "cc", "bb"] * 600
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": texts}), sink, compression="none")
    data = bytearray(sink.getvalue())
    codes = data.find(b"cc") + 200
    data[codes : codes + 20] = b"\xff" * 20  # the code 3, over and over
    storage = open_storage("memory://codes-beyond")
    storage.create(PATH, bytes(data))
    for coded in ((), ("s",)):
        with open_base(storage, PATH, coded=coded) as reader, pytest.raises(Corrupt) as error:
            reader.read()
        assert error.value.facts == {"path": PATH, "offset": 4}


def test_values_that_would_be_cut_off_are_not_read() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"at": pa.array([1_001], pa.timestamp("ns"))}), sink)
    storage = open_storage("memory://nanoseconds")
    storage.create(PATH, sink.getvalue())
    with open_base(storage, PATH) as reader, pytest.raises(Unsupported, match=r"column at .*ns"):
        reader.read()


def test_a_file_without_dictionaries_has_no_codes() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": ["", ""] * 500}), sink, use_dictionary=False)
    data = sink.getvalue()
    assert (
        parse_footer(data[-1000:] if len(data) > 1000 else data, len(data), PATH).kept_as_codes(
            ["s", "no such column"]
        )
        == ()
    )


def test_members_that_are_never_null_under_structs_that_may_be() -> None:
    """Arrow's own cast takes what lies under an absent struct for null, and refuses it."""
    within = pa.struct([pa.field("tags", pa.list_(pa.int32()), nullable=False)])
    outer = pa.struct([pa.field("within", within, nullable=False)])
    schema = pa.schema([("id", pa.large_string()), ("s", outer)])
    rows = [{"id": "a", "s": {"within": {"tags": [1, 2]}}}, {"id": "b", "s": None}]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink)
    storage = open_storage("memory://never-null")
    storage.create(PATH, sink.getvalue())
    with open_base(storage, PATH) as reader:
        assert reader.read().to_pylist() == rows
