"""Every table of real Hudi gives exactly the rows that Hudi returned, in every mode of reading."""

import datetime as dt
import decimal
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fixture_tables import fixtures_root, table_params
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.count import count_rows
from lakewright.engine.local.scan import scan_batches
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import HistoryGone, Unsupported
from lakewright.model.files import ReadingMode
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state

Table = Callable[[str], Path]
Row = dict[str, Any]

#: Columns that the recorded rows leave out.
DROPPED = {"_hoodie_commit_seqno", "_hoodie_file_name"}
CLEANED = "Cleaner cleaned up the timestamp of interest"
HAS_LANCE = {
    "quickstart_trips_table__cow__v9_trips_lance",
    "quickstart_trips_table__mor__avro__v9_trips_lance",
    "sample_table__cow__v9_lance_nonpartitioned",
    "sample_table__cow__v9_lance_txns_nonpart",
    "sample_table__cow__v9_lance_txns_simple",
    "sample_table__mor__avro__v9_lance_nonhivestyle",
}


@cache
def expected(family: str) -> dict[str, Any]:
    root = fixtures_root()
    assert root is not None
    return json.loads((root / f"{family}-expected.json").read_text())  # type: ignore[no-any-return]


def canonical(value: Any, kind: pa.DataType) -> Any:
    """Return a value in the form in which the golden rows are recorded."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: canonical(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        pairs = [[canonical(k, kind.key_type), canonical(v, kind.item_type)] for k, v in value]
        return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
    if pa.types.is_list(kind):
        return [canonical(v, kind.value_type) for v in value]
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case dt.datetime():
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
        case dt.date():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case bytes():
            return f"hex:{value.hex()}"
    return value


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, ensure_ascii=False))


def read(state: TableState, **request: Any) -> list[Row]:
    plan = plan_scan(state, ScanRequest(**request))
    schema = to_arrow_schema(plan.schema)
    fields = [f for f in schema if f.name not in DROPPED]
    rows = []
    for batch in scan_batches(plan):
        assert batch.schema.equals(schema)
        assert batch.num_rows > 0
        for row in batch.to_pylist():
            rows.append({f.name: canonical(row[f.name], f.type) for f in fields})
    assert count_rows(plan) == len(rows)
    return in_order(rows)


@pytest.fixture
def state(request: pytest.FixtureRequest, golden_table: Table) -> TableState:
    return open_state(open_storage(golden_table(request.param)))


golden = pytest.mark.parametrize(
    ("state", "entry"),
    [
        pytest.param(param, param, id=param) if isinstance(param, str) else param
        for param in table_params("golden")
    ],
    indirect=True,
)


@pytest.fixture
def entry(request: pytest.FixtureRequest) -> Row:
    return expected("golden")[request.param]  # type: ignore[no-any-return]


@golden
def test_the_snapshot(state: TableState, entry: Row) -> None:
    assert read(state, meta=True) == entry["snapshot"]


@golden
def test_the_read_optimised_snapshot(state: TableState, entry: Row) -> None:
    wanted = entry.get("read_optimized", entry["snapshot"])
    assert read(state, meta=True, mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED) == wanted


@golden
def test_every_instant(state: TableState, entry: Row) -> None:
    instants = [e for e in entry["history"] if "rows_as_of" in e]
    assert instants
    for instant in instants:
        wanted, time = instant["rows_as_of"], instant["requested"]
        if isinstance(wanted, list):
            assert read(state, meta=True, as_of=time) == wanted, time
        elif CLEANED in wanted:
            with pytest.raises(HistoryGone):
                read(state, meta=True, as_of=time)
        else:
            # Hudi looks for a hashing config that this instant has none of, and gives up.
            assert "hashing config" in wanted
            assert len(read(state, meta=True, as_of=time)) == 16


@golden
def test_every_window(state: TableState, entry: Row) -> None:
    for window in entry["incremental"]:
        times = {"start": window["after"], "end": window["upto"]}
        found = read(state, meta=True, mode=ReadingMode.INCREMENTAL, **times)
        assert found == window["rows"], times


@golden
def test_the_window_of_all_time_is_the_snapshot(state: TableState, entry: Row) -> None:
    """Rows keep the instant that wrote them, so the window from the beginning holds them all."""
    for start in (None, "000"):
        assert (
            read(state, meta=True, mode=ReadingMode.INCREMENTAL, start=start) == entry["snapshot"]
        )


@golden
def test_the_change_stream(state: TableState, entry: Row) -> None:
    if "cdc" in entry:
        window = entry["cdc"]
        found = read(state, mode=ReadingMode.CDC, start=window["after"], end=window["upto"])
        assert found == window["rows"]


# ------------------------------------------------------------------------ sample tables


def as_recorded(value: Any, kind: pa.DataType) -> Any:
    """Return a value as the rows of the sample tables are recorded: most as their text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    if pa.types.is_struct(kind):
        return {f.name: as_recorded(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return sorted([key, held] for key, held in value)
    if pa.types.is_list(kind):
        return [as_recorded(v, kind.value_type) for v in value]
    return str(value)


@pytest.mark.parametrize("name", table_params("hudi"))
def test_sample_tables(name: str, hudi_table: Table) -> None:
    state = open_state(open_storage(hudi_table(name)))
    if name in HAS_LANCE:
        with pytest.raises(Unsupported, match="Lance"):
            plan_scan(state, ScanRequest())
        return
    plan = plan_scan(state, ScanRequest())
    fields = list(to_arrow_schema(plan.schema))
    rows = [row for batch in scan_batches(plan) for row in batch.to_pylist()]
    found = [{f.name: as_recorded(row[f.name], f.type) for f in fields} for row in rows]
    wanted = [
        {k: sorted(v) if k == "mapField" else v for k, v in row.items()}
        for row in expected("hudi")[f"{name}.zip"]["data"]
    ]
    assert in_order(found) == in_order(wanted)
