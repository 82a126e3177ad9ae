"""Where the hudi package reads a table, it returns the same rows; the known differences are named.

The page docs/reference/differences.md lists them for people; here each is held true.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from fixture_tables import table_params, unzip_table
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.model.errors import HistoryGone, Unsupported
from lakewright.model.files import ReadingMode
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state

hudi = pytest.importorskip("hudi", reason="the hudi package is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"
BEGINNING = "19700101000000000"

#: Columns in which the two differ, by table; why is on the page.
COLUMNS = {
    "cow_odd_partitions_encoded_v9": {"region"},
    "cow_odd_partitions_plain_v9": {"region"},
    "partitioned_by_when": {"when"},
    "cow_time_millis_v9": {"at"},
    "timed_seconds_mor": {"moment"},
    "cow_evolved_v9": {"note", "tags"},
    "mor_evolved_v9": {"note", "tags"},
    "nested_evolved_cow": {"extra", "lines", "m", "who"},
    "nested_evolved_mor": {"extra", "lines", "m", "who"},
    "renamed_cow": {"b", "bb", "c", "d", "st"},
    "renamed_cow_v6": {"b", "bb", "c", "d", "st"},
    "renamed_mor": {"b", "bb", "c", "d", "st"},
    "renamed_mor_v8": {"b", "bb", "c", "d", "st"},
}
#: Tables whose windows hold bare records there, and the rows that those had a part in here.
BY_COLUMN = {
    "filled_mor",
    "merged_partly_commit_time_mor",
    "merged_partly_mor",
    "merged_partly_mor_v8",
    "merged_partly_mor_v8_by_1_0",
    "partial_mor",
}
#: Windows that hold nothing but a log compaction are empty there, and are not here.
LOG_COMPACTED = {"mor_log_compacted_v9"}
#: Nor does a window there hold what archived commits wrote.
ARCHIVED = {"upgraded_mor_v8_by_1_0"}
REFUSED_THERE = {
    "mor_two_orderings_v9",
    "ordered_by_two_cow",
    "partial_mor_v6",
    "timed_custom",
    "without_partition_columns",
}


@dataclass(frozen=True)
class Reading:
    """One question to both readers."""

    name: str
    ours: ScanRequest
    theirs: Any = None
    read_optimized: bool = False


def readings(state: TableState) -> Iterator[Reading]:
    yield Reading("snapshot", ScanRequest(meta=True))
    optimised = ScanRequest(meta=True, mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED)
    yield Reading("read optimised", optimised, read_optimized=True)
    writes = state.timeline.data()
    for instant in writes:
        time = instant.requested
        options = hudi.HudiReadOptions().with_as_of_timestamp(time)
        yield Reading(f"as of {time}", ScanRequest(meta=True, as_of=time), options)
    times = [None, *sorted({i.completed for i in writes if i.completed})]
    for start, end in itertools.pairwise(times):
        options = (
            hudi.HudiReadOptions()
            .with_query_type(hudi.HudiQueryType.Incremental)
            .with_start_timestamp(start or BEGINNING)
            .with_end_timestamp(end)
        )
        ours = ScanRequest(meta=True, mode=ReadingMode.INCREMENTAL, start=start, end=end)
        yield Reading(f"after {start} up to {end}", ours, options)


def rows_here(state: TableState, request: ScanRequest) -> list[dict[str, Any]]:
    return [r for b in scan_batches(plan_scan(state, request)) for r in b.to_pylist()]


def rows_there(path: Path, reading: Reading) -> list[dict[str, Any]] | None:
    """Ask hudi-rs; None where it refuses. Its panics are no ordinary exceptions."""
    builder = hudi.HudiTableBuilder.from_base_uri(str(path))
    if reading.read_optimized:
        builder = builder.with_hudi_options({"hoodie.read.use.read_optimized.mode": "true"})
    try:
        table = builder.build()
        batches = table.read(reading.theirs) if reading.theirs else table.read()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None
    return [row for batch in batches for row in pa.record_batch(batch).to_pylist()]


def in_order(rows: list[dict[str, Any]], without: set[str]) -> list[str]:
    return sorted(
        json.dumps({k: v for k, v in r.items() if k not in without}, sort_keys=True, default=repr)
        for r in rows
    )


def params() -> list[Any]:
    found = []
    for family in ("own", "golden", "hudi"):
        for param in table_params(family):
            if isinstance(param, str):
                found.append(pytest.param((family, param), id=f"{family}-{param}"))
            else:
                found.append(pytest.param((family, "absent"), marks=param.marks))
    return found


@pytest.mark.parametrize("which", params())
def test_both_readers_agree(which: tuple[str, str], tmp_path: Path) -> None:
    family, name = which
    path = unzip_table(family, name, tmp_path)
    state = open_state(open_storage(path))
    differing = COLUMNS.get(name, set())
    seen_to_differ: set[str] = set()
    compared = 0
    news: set[str] = set()
    for reading in readings(state):
        there = rows_there(path, reading)
        assert (there is None) <= (name in REFUSED_THERE), reading.name
        try:
            here = rows_here(state, reading.ours)
        except (HistoryGone, Unsupported) as refused:
            assert is_known_refusal(state, name, reading, refused), reading.name
            continue
        if there is None:
            continue
        compared += 1
        if name in LOG_COMPACTED | ARCHIVED and here and not there:
            assert reading.ours.mode is ReadingMode.INCREMENTAL
            news.add(reading.name)
            continue
        if name in BY_COLUMN and reading.ours.mode is ReadingMode.INCREMENTAL:
            if in_order(here, set()) != in_order(there, set()):
                news.add(reading.name)
            there = rows_at_the_end(state, reading.ours.end, there)
        assert in_order(here, differing) == in_order(there, differing), reading.name
        seen_to_differ |= {
            column for column in differing if column_of(here, column) != column_of(there, column)
        }
    assert seen_to_differ == differing
    assert bool(news) == (name in LOG_COMPACTED | ARCHIVED | BY_COLUMN)
    assert compared or name in REFUSED_THERE or "lance" in name


def rows_at_the_end(
    state: TableState, end: str | None, records: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows that the records of a window have at its end."""
    (last,) = (i.requested for i in state.timeline.data() if i.completed == end)
    keys = {record["_hoodie_record_key"] for record in records}
    held = rows_here(state, ScanRequest(meta=True, as_of=last))
    return [row for row in held if row["_hoodie_record_key"] in keys]


def column_of(rows: list[dict[str, Any]], name: str) -> list[str]:
    return sorted(repr(row.get(name, "absent")) for row in rows)


def is_known_refusal(
    state: TableState, name: str, reading: Reading, error: HistoryGone | Unsupported
) -> bool:
    if isinstance(error, HistoryGone):
        return any(fnmatch(name, pattern) for pattern in CLEANED)
    if reading.ours.mode is ReadingMode.INCREMENTAL and not state.config.populate_meta_fields:
        return True
    return "lance" in name


CLEANED = (
    "*_archived_*",
    "*_cleaned_*",
    "*_restored_*",
    "*_savepoint_*",
    "archived_*",
    "restored_*",
    "upgraded_*",
)


@pytest.mark.parametrize("version", [6, 9])
def test_logs_on_top_of_a_planned_compaction(tmp_path: Path, version: int) -> None:
    """hudi-rs passes over them in version 6, in tables that Hudi wrote as well."""
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, n bigint",
        key="id",
        type="MERGE_ON_READ",
        version=version,
    )
    table.upsert([{"id": "a", "n": 0}])
    table.upsert([{"id": "a", "n": 1}])
    assert table.schedule_compaction() is not None
    table.upsert([{"id": "a", "n": 2}])

    def there() -> list[int]:
        found = rows_there(Path(table.path), Reading("snapshot", ScanRequest()))
        return [row["n"] for row in found or ()]

    assert [row["n"] for row in table.scan().to_arrow().to_pylist()] == [2]
    assert there() == ([1] if version == 6 else [2])
    table.compact()
    assert there() == [2]


def merge_on_read(folder: Path, ordering: str) -> lw.Table:
    columns = f"id string, n int, at {ordering}, _hoodie_is_deleted boolean"
    table = lw.create_table(
        folder / "t", schema=columns, key="id", order_by="at", type="MERGE_ON_READ"
    )
    table.upsert([{"id": i, "n": 1, "at": 5} for i in "ab"])
    return table


def test_logs_from_before_a_column_came_and_another_grew_are_refused_there(tmp_path: Path) -> None:
    table = merge_on_read(tmp_path, "int")
    table.upsert([{"id": "a", "n": 2, "at": 6}])
    table.add_columns("e int")
    table.widen_column("n", "bigint")
    found = table.scan(columns=["id", "n"]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": "a", "n": 2}, {"id": "b", "n": 1}]
    with pytest.raises(Exception, match="column 'n' has type Int32"):
        hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    assert "logs from before a column was added and another one widened" in PAGE.read_text()


@pytest.mark.parametrize(("ordering", "left"), [("int", ["b"]), ("bigint", ["a", "b"])])
def test_zero_as_an_int_is_no_ordering_value_of_a_soft_delete(
    tmp_path: Path, ordering: str, left: list[str]
) -> None:
    table = merge_on_read(tmp_path, ordering)
    table.upsert([{"id": "a", "n": 2, "at": 0, "_hoodie_is_deleted": True}])
    batches = hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    assert sorted(pa.Table.from_batches(batches).column("id").to_pylist()) == left
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == left
    assert "the ordering value 0 of an `int` column" in PAGE.read_text()


def test_the_page_names_every_difference() -> None:
    text = PAGE.read_text()
    assert "on top of a compaction that is planned and not done yet, in version 6" in text
    for name in (*COLUMNS, *LOG_COMPACTED, *ARCHIVED, *REFUSED_THERE):
        assert f"`{name}`" in text
    for pattern in CLEANED:
        assert pattern.rstrip("*") in text
