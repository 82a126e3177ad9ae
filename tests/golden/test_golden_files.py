"""Every base and log file of every table, decoded and held against what else is known of it.

What a file holds is compared with the commit that wrote it, with an independent decoder, with
its own footer, with the base file whose rows it names, and with the rows that Hudi returned.
"""

import datetime as dt
import io
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from fixture_tables import fixtures_root, table_params, unzip_table
from lakewright.format.hudi.base_file import BaseFileReader, open_base
from lakewright.format.hudi.base_pruning import group_ranges, java_order, may_contain_key
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.log.blocks import BlockKind, LogBlock
from lakewright.format.hudi.log.read import read_data, read_deletes, read_positions, scan_blocks
from lakewright.format.hudi.metadata.commit import decode_commit
from lakewright.model.errors import Unsupported
from lakewright.model.schema import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage

FAMILIES = ("own", "golden", "hudi")
TABLES = [
    pytest.param(family, param, id=f"{family}-{param}")
    if isinstance(param, str)
    else pytest.param(family, *param.values, marks=param.marks)
    for family in FAMILIES
    for param in table_params(family)
]
RECORDS = (BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA, BlockKind.CDC_DATA)

Table = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    into = tmp_path_factory.mktemp("files")
    return lambda family, name: unzip_table(family, name, into)


def data_files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield partition and name of the files outside the table's own folder."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and relative.parts[0] != ".hoodie" and path.suffix != ".crc":
            partition = relative.parent.as_posix()
            yield "" if partition == "." else partition, path.name


def base_files(root: Path) -> Iterator[BaseFileReader]:
    storage = open_storage(root)
    for partition, name in data_files(root):
        found = base_file(partition, name)
        if found is not None:
            with open_base(storage, found.path) as reader:
                yield reader


def log_blocks(root: Path) -> Iterator[tuple[io.BytesIO, LogBlock]]:
    storage = open_storage(root)
    for partition, name in data_files(root):
        found = log_file(partition, name)
        if found is not None:
            data = storage.read(found.path)
            for block in scan_blocks(io.BytesIO(data), len(data), found.path):
                yield io.BytesIO(data), block


def is_lance(name: str) -> bool:
    return "lance" in name


# Base files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "name"), TABLES)
def test_base_files_hold_what_their_footers_say(table: Table, family: str, name: str) -> None:
    root = table(family, name)
    if is_lance(name):
        with pytest.raises(Unsupported, match="Lance format"):
            list(base_files(root))
        return
    for reader in base_files(root):
        rows = reader.read()
        rows.validate(full=True)
        assert rows.num_rows == reader.num_rows
        some = list(reader.schema.names[::-2])
        assert reader.read(some).equals(rows.select(some))
        check_ranges(reader, rows)
        if reader.footer.bloom is not None:
            check_keys(reader, rows.column(RECORD_KEY).combine_chunks())


def check_keys(reader: BaseFileReader, keys: pa.Array) -> None:
    footer = reader.footer
    assert footer.bloom is not None
    kind, text = footer.bloom
    bloom = parse_bloom(kind, text, reader.path)
    assert bloom.encode() == text
    assert bloom.contains(keys).all()
    assert not bloom.contains(pa.array(["no such key", "\U0001f600" * 5])).any()
    if len(keys):
        ordered = sorted(keys.to_pylist(), key=java_order)
        assert footer.key_range == (ordered[0], ordered[-1])
        assert may_contain_key(footer, [ordered[0]])
    assert not may_contain_key(footer, ["no such key"])


def check_ranges(reader: BaseFileReader, rows: pa.Table) -> None:
    at = 0
    for group in range(reader.num_row_groups):
        ranges = group_ranges(reader.footer, group, list(reader.footer.leaves))
        part = rows.slice(at, reader.row_group_rows(group))
        at += part.num_rows
        for path, found in ranges.items():
            values = [value_at(row, path) for row in part.to_pylist()]
            present = [value for value in values if value is not None]
            assert found.rows == len(values)
            assert found.nulls in (None, len(values) - len(present))
            if present and found.low is not None:
                assert found.low <= min(present) <= max(present) <= found.high


def value_at(row: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if row is None:
            return None
        row = row[step]
    return row


# Log files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "name"), TABLES)
def test_avro_blocks_hold_what_fastavro_reads(table: Table, family: str, name: str) -> None:
    for file, block in log_blocks(table(family, name)):
        assert block.kind is not BlockKind.CORRUPT
        if block.kind in (BlockKind.AVRO_DATA, BlockKind.CDC_DATA):
            rows = read_data(file, block)
            rows.validate(full=True)
            assert [plain(row) for row in rows.to_pylist()] == by_fastavro(file, block)


def by_fastavro(file: io.BytesIO, block: LogBlock) -> list[Any]:
    assert block.schema_text is not None
    schema = fastavro.parse_schema(json.loads(block.schema_text))
    data = file.getvalue()[block.content_offset : block.content_offset + block.content_length]
    version, count = struct.unpack_from(">ii", data)
    assert version == 3
    out, at = [], 8
    for _ in range(count):
        (size,) = struct.unpack_from(">i", data, at)
        out.append(
            fastavro.schemaless_reader(io.BytesIO(data[at + 4 : at + 4 + size]), schema, None)
        )
        at += 4 + size
    return [plain(row) for row in out]


def plain(value: Any) -> Any:
    """Return a value in a form in which maps, decimals and times of both readers are equal."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() if value and all(isinstance(pair, tuple) for pair in value):
            return {key: plain(inner) for key, inner in value}
        case list():
            return [plain(inner) for inner in value] or {}
        case dt.datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value


@pytest.mark.parametrize(("family", "name"), TABLES)
def test_positions_name_the_rows_that_a_block_replaces(
    table: Table, family: str, name: str
) -> None:
    root = table(family, name)
    if is_lance(name):
        return
    storage = open_storage(root)
    for file, block in log_blocks(root):
        positions = read_positions(block)
        if positions is None:
            continue
        keys = block_keys(file, block)
        base = base_of(storage, root, block)
        if base is not None and None not in keys:  # tables without meta columns have no keys
            assert base.take(pa.array(positions.astype(np.int64))).to_pylist() == keys


def block_keys(file: io.BytesIO, block: LogBlock) -> list[str]:
    if block.kind is BlockKind.DELETE:
        return list(read_deletes(file, block).keys.to_pylist())
    return list(read_data(file, block, [RECORD_KEY]).column(0).to_pylist())


def base_of(storage: Storage, root: Path, block: LogBlock) -> pa.Array | None:
    """Return the record keys of the base file that a block's positions number."""
    folder, name = block.path.rpartition("/")[::2]
    log = log_file(folder, name)
    assert log is not None
    for partition, other in data_files(root):
        base = base_file(partition, other)
        if (
            base is not None
            and (base.partition, base.file_id) == (folder, log.file_id)
            and base.instant == block.positions_base_instant
        ):
            with open_base(storage, base.path) as reader:
                if RECORD_KEY in reader.schema.names:
                    return reader.read([RECORD_KEY]).column(0).combine_chunks()
    return None


# Commits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "name"), TABLES)
def test_files_hold_as_many_rows_as_their_commits_say(table: Table, family: str, name: str) -> None:
    root = table(family, name)
    if is_lance(name):
        return
    checked = 0
    for path, writes, deletes in written_files(root):
        partition, file_name = path.rpartition("/")[::2]
        if not (root / path).exists():
            continue  # cleaned since
        checked += 1
        if base_file(partition, file_name) is not None:
            with open_base(open_storage(root), path) as reader:
                assert reader.num_rows == writes
            continue
        data = (root / path).read_bytes()
        held: Counter[bool] = Counter()
        for block in scan_blocks(io.BytesIO(data), len(data), path):
            if block.kind in RECORDS:
                held[False] += read_data(io.BytesIO(data), block).num_rows
            elif block.kind is BlockKind.DELETE:
                held[True] += len(read_deletes(io.BytesIO(data), block))
        assert (held[False], held[True]) == (writes, deletes)
    assert checked or not list(base_files(root))


def written_files(root: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, rows and deletes of each file that a commit of the active timeline wrote."""
    timeline = root / ".hoodie" / "timeline"
    folder = timeline if timeline.is_dir() else root / ".hoodie"
    for path in sorted(folder.iterdir()):
        if path.suffix in (".commit", ".deltacommit", ".replacecommit"):
            metadata = decode_commit(path.read_bytes(), path.name)
            for stats in metadata.write_stats.values():
                for stat in stats:
                    if stat.path:
                        yield stat.path, stat.num_writes, stat.num_deletes


# Rows that Hudi returned ----------------------------------------------------------------------


@cache
def expected() -> dict[str, Any]:
    root = fixtures_root()
    return {} if root is None else json.loads((root / "golden-expected.json").read_text())


@pytest.mark.parametrize("name", table_params("golden"))
def test_live_rows_of_base_files_are_those_that_hudi_returned(table: Table, name: str) -> None:
    """A row in a base file that a snapshot also has (same key and commit) is the same row."""
    recorded = {identity(row): row for row in expected()[name]["snapshot"]}
    found = 0
    for reader in base_files(table("golden", name)):
        if RECORD_KEY not in reader.schema.names:
            continue
        for row in reader.read().to_pylist():
            other = recorded.get(identity(row))
            if other is None:
                continue
            found += 1
            for column, value in row.items():
                if column in other and column not in partition_columns(name):
                    assert recorded_form(value) == other[column], column
    assert found or not recorded or name.startswith("mor_")


def identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (COMMIT_TIME, RECORD_KEY, PARTITION_PATH))


def partition_columns(name: str) -> list[str]:
    options = expected()[name]["options"]
    fields = options.get("hoodie.datasource.write.partitionpath.field", "")
    return [field.split(":")[0] for field in fields.split(",")]


def recorded_form(value: Any) -> Any:
    """Return a value as the recorded rows write it."""
    match value:
        case bytes():
            return "hex:" + value.hex()
        case Decimal():
            return str(value)
        case dt.datetime():
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
        case dt.date():
            return value.isoformat()
        case dict():
            return {key: recorded_form(inner) for key, inner in value.items()}
        case list() if value and all(isinstance(pair, tuple) for pair in value):
            return sorted([key, recorded_form(inner)] for key, inner in value)
        case list():
            return [recorded_form(inner) for inner in value]
        case _:
            return value


@pytest.mark.parametrize("name", table_params("golden"))
def test_keys_lie_in_the_bucket_that_we_compute(table: Table, name: str) -> None:
    options = expected().get(name, {}).get("options", {})
    if options.get("hoodie.index.type") != "BUCKET" or any("partition.exp" in o for o in options):
        return
    count = int(options["hoodie.bucket.index.num.buckets"])
    fields = options.get("hoodie.bucket.index.hash.field", "").split(",")
    checked = 0
    for reader in base_files(table("golden", name)):
        keys = reader.read([RECORD_KEY]).column(0).combine_chunks()
        file_id = reader.path.rpartition("/")[2].split("_")[0]
        assert set(bucket_of(keys, fields, count).tolist()) <= {bucket_number(file_id)}
        checked += len(keys)
    assert checked
