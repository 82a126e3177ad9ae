"""Every table of real Hudi gives exactly the rows that Hudi returned, in every mode of reading."""

import datetime as dt
import decimal
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fixture_tables import CLEANED, OWN, fixtures_root, is_saved, table_params, unzip_table
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.count import count_rows
from lakewright.engine.local.scan import scan_batches
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import HistoryGone, Unsupported
from lakewright.model.files import ReadingMode
from lakewright.model.schema import META_COLUMNS
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state

Table = Callable[[str], Path]
Row = dict[str, Any]

#: Columns that the recorded rows leave out.
DROPPED = {"_hoodie_commit_seqno", "_hoodie_file_name"}
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


@dataclass(frozen=True)
class Recorded:
    """A table, and what Hudi returned for it."""

    name: str
    state: TableState
    entry: Row


@cache
def entry_of(family: str, name: str) -> Row:
    if family == "own":
        return json.loads((OWN / f"{name}.json").read_text())  # type: ignore[no-any-return]
    return expected(family)[name]  # type: ignore[no-any-return]


def params() -> list[Any]:
    found = []
    for family in ("own", "golden"):
        for param in table_params(family):
            if isinstance(param, str):
                found.append(pytest.param((family, param), id=f"{family}-{param}"))
            else:
                found.append(pytest.param((family, "absent"), marks=param.marks))
    return found


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(params=params())
def table(request: pytest.FixtureRequest, unpacked: Path) -> Recorded:
    family, name = request.param
    root = unzip_table(family, name, unpacked)
    return Recorded(name, open_state(open_storage(root)), entry_of(family, name))


def test_the_snapshot(table: Recorded) -> None:
    assert read(table.state, meta=True) == table.entry["snapshot"]


def test_the_read_optimised_snapshot(table: Recorded) -> None:
    wanted = table.entry.get("read_optimized", table.entry["snapshot"])
    assert read(table.state, meta=True, mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED) == wanted


def test_every_instant(table: Recorded) -> None:
    instants = [e for e in table.entry["history"] if "rows_as_of" in e]
    assert instants
    for instant in instants:
        wanted, time = instant["rows_as_of"], instant["requested"]
        if isinstance(wanted, list):
            assert read(table.state, meta=True, as_of=time) == wanted, time
        elif CLEANED in wanted and is_saved(table.state, time):
            # Hudi keeps the files and refuses to read them; here they are read.
            assert read(table.state, meta=True, as_of=time)
        elif CLEANED in wanted:
            with pytest.raises(HistoryGone):
                read(table.state, meta=True, as_of=time)
        else:
            # Hudi looks for a hashing config that this instant has none of, and gives up.
            assert "hashing config" in wanted
            assert len(read(table.state, meta=True, as_of=time)) == 16


def test_every_window(table: Recorded) -> None:
    for window in table.entry["incremental"]:
        times = {"start": window["after"], "end": window["upto"]}
        found = read(table.state, meta=True, mode=ReadingMode.INCREMENTAL, **times)
        assert found == window["rows"], times


def test_the_window_of_all_time_is_the_snapshot(table: Recorded) -> None:
    """Rows keep the instant that wrote them, so the window from the beginning holds them all."""
    if not table.state.config.populate_meta_fields:
        with pytest.raises(Unsupported, match="commit time"):
            read(table.state, mode=ReadingMode.INCREMENTAL)
        return
    for start in (None, "000"):
        found = read(table.state, meta=True, mode=ReadingMode.INCREMENTAL, start=start)
        assert found == table.entry["snapshot"]


def test_the_change_stream(table: Recorded) -> None:
    if "cdc" in table.entry:
        window = table.entry["cdc"]
        times = {"start": window["after"], "end": window["upto"]}
        assert read(table.state, mode=ReadingMode.CDC, **times) == window["rows"]


def test_changes_lead_from_any_instant_to_the_snapshot(table: Recorded) -> None:
    """Applied in order to the rows of an instant, the changes since then give the rows of now."""
    starts: list[tuple[str | None, list[Row]]] = [(None, [])]
    # Rows recorded under an older schema cannot be compared with images under the present one.
    if not any(word in table.entry["recipe"] for word in ("evolved", "renamed")):
        starts += [(e["completed"], e["rows_as_of"]) for e in turning_points(table.entry)]
    applied = 0
    for start, rows in starts:
        held = [plain(row) for row in rows]
        try:
            changes = in_sequence(table.state, start)
        except HistoryGone:
            continue
        for change in changes:
            before, after = change["before"], change["after"]
            assert (before is None, after is None) == {
                "i": (True, False),
                "u": (False, False),
                "d": (False, True),
            }[change["op"]]
            if before is not None:
                held.remove(before)
            if after is not None:
                held.append(after)
        assert in_order(held) == in_order([plain(row) for row in table.entry["snapshot"]])
        applied += 1
    assert applied >= 1


def turning_points(entry: Row) -> list[Row]:
    """Return the writes before which all others had completed when they began, or began after.

    Time travel goes by requested times and windows by completion times; there they agree.
    """
    done = [e for e in entry["history"] if e["completed"]]
    return [
        point
        for point in done
        if isinstance(point.get("rows_as_of"), list)
        and all(
            (e["requested"] <= point["requested"]) == (e["completed"] <= point["completed"])
            for e in done
        )
    ]


def in_sequence(state: TableState, start: str | None) -> list[Row]:
    plan = plan_scan(state, ScanRequest(mode=ReadingMode.CDC, start=start))
    kinds = to_arrow_schema(plan.schema)
    return [
        {f.name: canonical(row[f.name], f.type) for f in kinds}
        for batch in scan_batches(plan)
        for row in batch.to_pylist()
    ]


def plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in META_COLUMNS}


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
