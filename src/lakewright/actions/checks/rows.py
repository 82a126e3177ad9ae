"""Deep checks: every value can be read, and rows agree with the table's names, keys, footers."""

from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.checks.findings import Findings
from lakewright.format.hudi.base_file import BaseFileReader, open_base
from lakewright.format.hudi.base_pruning import java_order
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.format.hudi.log.blocks import BlockKind, LogBlock
from lakewright.format.hudi.log.read import read_data, read_deletes, read_positions, scan_blocks
from lakewright.model.files import BaseFile, FileSlice
from lakewright.model.schema import (
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
)
from lakewright.table.state import TableState


def check_rows(state: TableState, piece: FileSlice, findings: Findings) -> None:
    """Read a slice's base file and logs, and check the meta columns of every row of the former."""
    if piece.base is not None:
        with (
            findings.reading("base-file", piece.base.path),
            open_base(state.storage, piece.base.path, piece.base.size) as reader,
        ):
            findings.checked["opened files"] += 1
            findings.checked["rows"] += reader.num_rows
            if state.config.populate_meta_fields:
                _check_meta(reader, piece.base, findings)
            for _ in reader.iter_batches([c for c in reader.schema.names if c not in META_COLUMNS]):
                pass  # what cannot be read raises
    for log in piece.logs:
        with findings.reading("log", log.path), state.storage.open(log.path) as file:
            findings.checked["opened files"] += 1
            for block in scan_blocks(file, log.size, log.path):
                with findings.reading("log-block", log.path):
                    findings.checked["log records"] += _records(file, block)


def _records(file: IO[bytes], block: LogBlock) -> int:
    """Read what a block holds; return how many records and deletes that are."""
    read_positions(block)
    match block.kind:
        case BlockKind.CORRUPT | BlockKind.COMMAND:
            return 0
        case BlockKind.DELETE:
            return len(read_deletes(file, block))
        case _:
            return len(read_data(file, block))


def _check_meta(reader: BaseFileReader, base: BaseFile, findings: Findings) -> None:
    if tuple(reader.schema.names[: len(META_COLUMNS)]) != META_COLUMNS:
        findings.problem("meta-columns", base.path, "the five meta columns do not come first.")
        return
    rows = reader.read(META_COLUMNS)
    for column, expected in ((FILE_NAME, base.name), (PARTITION_PATH, base.partition)):
        wrong = _others(rows.column(column), expected)
        if wrong:
            findings.problem("meta-value", base.path, f"{wrong} rows have another {column}.")
    late = pc.sum(pc.greater(rows.column(COMMIT_TIME), base.instant)).as_py() or 0
    if late or rows.column(COMMIT_TIME).null_count:
        findings.problem("meta-value", base.path, f"{late} rows are newer than their file.")
    _check_keys(reader, rows.column(RECORD_KEY), base, findings)


def _check_keys(
    reader: BaseFileReader, keys: pa.ChunkedArray, base: BaseFile, findings: Findings
) -> None:
    if keys.null_count:
        findings.problem("key-null", base.path, f"{keys.null_count} rows have no record key.")
        return
    distinct = pc.unique(keys)
    if len(distinct) != len(keys):
        twice = len(keys) - len(distinct)
        findings.problem("key-twice", base.path, f"{twice} rows repeat a record key.")
    stated = reader.footer.key_range
    if stated is not None and len(distinct):
        # Deleted keys may leave the range wider than need be; who looks for keys loses nothing.
        least, *_, greatest = sorted(map(java_order, [*distinct.to_pylist(), *stated]))
        if (least, greatest) != (java_order(stated[0]), java_order(stated[1])):
            findings.problem("key-range", base.path, "keys lie outside of the footer's range.")
    if reader.footer.bloom is not None and len(distinct):
        kind, text = reader.footer.bloom
        bloom = parse_bloom(kind, text, base.path, reader.footer.offset)
        missing = int((~bloom.contains(distinct)).sum())
        if missing:
            findings.problem("bloom", base.path, f"the bloom filter lacks {missing} keys.")


def _others(column: pa.ChunkedArray, expected: str) -> int:
    same = pc.sum(pc.equal(column, expected)).as_py() or 0
    return len(column) - int(same)
