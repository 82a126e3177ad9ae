"""Log blocks of a form that is not read here: their table is refused, never read without them."""

from typing import Any

import pytest

from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.count import count_rows
from lakewright.engine.local.scan import scan_batches
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.write import data_header, frame
from lakewright.model.errors import Unsupported
from lakewright.model.files import ReadingMode
from lakewright.table.state import TableState
from support.histories import GROUP, SCHEMA, WHOLE, Record, base_bytes
from support.tiny_tables import TinyTable, at, base_name, log_name


@pytest.fixture
def state() -> TableState:
    """A base file, and a log with records in an HFile: ``hoodie.logfile.data.block.format``."""
    table = TinyTable(partition_by="", mor=True)
    rows = [Record("a", 10, 1), Record("b", 10, 2)]
    table.commit(1, {"": {base_name(GROUP, 1): base_bytes(rows, at(1))}}, schema=SCHEMA)
    header = data_header(at(2), to_avro_schema(WHOLE, "t", "n"))
    block = frame(BlockKind.HFILE_DATA, header, b"DATABLK*")
    table.commit(2, {"": {log_name(GROUP, 2): block}}, schema=SCHEMA)
    return table.state()


def read(state: TableState, **request: Any) -> list[Any]:
    plan = plan_scan(state, ScanRequest(columns=("id",), **request))
    return sorted(row["id"] for batch in scan_batches(plan) for row in batch.to_pylist())


@pytest.mark.parametrize(
    "request_of",
    [
        {},
        {"as_of": at(2)},
        {"mode": ReadingMode.INCREMENTAL},
        {"mode": ReadingMode.INCREMENTAL, "start": at(1)},
    ],
)
def test_records_in_an_hfile_are_refused(state: TableState, request_of: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="holds records in an HFile"):
        read(state, **request_of)


def test_they_are_not_left_out_of_counts_and_changes(state: TableState) -> None:
    with pytest.raises(Unsupported, match="holds records in an HFile"):
        count_rows(plan_scan(state, ScanRequest()))
    plan = plan_scan(state, ScanRequest(mode=ReadingMode.CDC))
    with pytest.raises(Unsupported, match="holds records in an HFile"):
        list(scan_batches(plan))


def test_what_needs_no_log_is_read(state: TableState) -> None:
    assert read(state, as_of=at(1)) == ["a", "b"]
    assert read(state, mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED) == ["a", "b"]
