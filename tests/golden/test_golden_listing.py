"""The files that are listed hold exactly the rows that Hudi returned.

Base files are read with pyarrow alone, so that nothing but the listing is on trial: every
copy-on-write reading, and the read-optimised one of merge-on-read tables.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fixture_tables import CLEANED, fixtures_root, table_params
from lakewright.format.hudi.metadata.restore import SavepointMetadata
from lakewright.model.errors import HistoryGone
from lakewright.model.expression.bind import bind
from lakewright.model.expression.build import col
from lakewright.model.files import FileSlice
from lakewright.model.instant import Action
from lakewright.model.schema import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakewright.model.table import TableType
from lakewright.storage.open import open_storage
from lakewright.storage.paths import join
from lakewright.table.file_index import FileIndex
from lakewright.table.horizon import window
from lakewright.table.state import open_state, table_schema

Table = Callable[[str], Path]
IDENTITY = [COMMIT_TIME, RECORD_KEY, PARTITION_PATH]


@cache
def expected(family: str) -> dict[str, Any]:
    root = fixtures_root()
    assert root is not None
    return json.loads((root / f"{family}-expected.json").read_text())  # type: ignore[no-any-return]


def rows_of(index: FileIndex, slices: Iterable[FileSlice]) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for piece in slices:
        assert piece.base is not None
        assert not piece.logs
        path = index.state.storage.locate(piece.base.path)
        columns = pq.ParquetFile(path).read(IDENTITY).to_pydict()
        found.update(zip(*(columns[name] for name in IDENTITY), strict=True))
    return found


def recorded(rows: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(row[name] for name in IDENTITY) for row in rows)


def slices_at(index: FileIndex, instant: str | None = None, **how: bool) -> Iterator[FileSlice]:
    return (piece for part in index.list_files_at(instant, **how) for piece in part.file_slices)


def open_index(path: Path) -> FileIndex:
    return FileIndex(open_state(open_storage(path)))


def written(entry: dict[str, Any]) -> bool:
    return entry["action"] in ("commit", "deltacommit", "replacecommit") and entry["completed"]


@pytest.mark.parametrize("name", table_params("golden"))
def test_base_files_hold_the_recorded_rows(name: str, golden_table: Table) -> None:
    index, record = open_index(golden_table(name)), expected("golden")[name]
    if index.state.config.table_type is TableType.MERGE_ON_READ:
        optimised = slices_at(index, read_optimized=True)
        assert rows_of(index, optimised) == recorded(record["read_optimized"])
    else:
        assert rows_of(index, slices_at(index)) == recorded(record["snapshot"])


def kept_by_savepoint(index: FileIndex, instant: str) -> set[str] | None:
    """Return the paths that the savepoint of an instant lists; None where there is none."""
    timeline = index.state.timeline
    for saved in timeline.by_action(Action.SAVEPOINT):
        body = timeline.metadata(saved)
        if saved.requested == instant and isinstance(body, SavepointMetadata):
            return {join(p, name) for p, part in body.partitions.items() for name in part.files}
    return None


@pytest.mark.parametrize("name", table_params("golden"))
def test_every_instant_is_listed_or_refused_as_in_hudi(name: str, golden_table: Table) -> None:
    index, record = open_index(golden_table(name)), expected("golden")[name]
    for entry in filter(written, record["history"]):
        rows = entry["rows_as_of"]
        if isinstance(rows, str) and CLEANED in rows:
            kept = kept_by_savepoint(index, entry["requested"])
            if kept is not None:
                # Hudi keeps the files and refuses to read them; here they are read.
                found = slices_at(index, entry["requested"])
                assert {path for piece in found for path in piece.paths} == kept
                continue
            with pytest.raises(HistoryGone) as gone:
                index.list_files_at(entry["requested"])
            assert gone.value.facts["as_of"] == entry["requested"]
            continue
        slices = list(slices_at(index, entry["requested"]))
        instants = {f.instant for s in slices for f in (s.base, *s.logs) if f is not None}
        assert all(instant <= entry["requested"] for instant in instants)
        if isinstance(rows, list) and not any(piece.logs for piece in slices):
            held = [piece for piece in slices if piece.base is not None]
            assert rows_of(index, held) == recorded(rows)


@pytest.mark.parametrize("name", table_params("golden"))
def test_windows_list_every_row_that_changed(name: str, golden_table: Table) -> None:
    index, record = open_index(golden_table(name)), expected("golden")[name]
    for span in record["incremental"]:
        start, end = span["after"], span["upto"]
        instants = {i.requested for i in window(index.state, start, end)}
        parts = list(index.list_files_between(start, end))
        assert all(i.requested in instants for part in parts for i in part.timeline)
        slices = [piece for part in parts for piece in part.file_slices]
        if any(piece.logs for piece in slices):
            continue
        rows = rows_of(index, slices)
        changed = Counter({row: n for row, n in rows.items() if row[0] in instants})
        assert changed == recorded(span["rows"])


@pytest.mark.parametrize("name", table_params("golden"))
def test_the_whole_history_is_a_window_from_the_beginning(name: str, golden_table: Table) -> None:
    index = open_index(golden_table(name))
    whole = {p.descriptor.path: p.file_slices for p in index.list_files_between(None, None)}
    now = {p.descriptor.path: p.file_slices for p in index.list_files_at()}
    assert whole == now


@pytest.mark.parametrize("name", table_params("golden"))
def test_the_schema_has_the_recorded_columns(name: str, golden_table: Table) -> None:
    state = open_state(open_storage(golden_table(name)))
    for row in expected("golden")[name]["snapshot"][:1]:
        assert set(table_schema(state).names) == set(row) - set(META_COLUMNS)


@pytest.mark.parametrize("name", table_params("hudi"))
def test_sample_tables_have_the_recorded_number_of_slices(name: str, hudi_table: Table) -> None:
    index, record = open_index(hudi_table(name)), expected("hudi")[f"{name}.zip"]
    assert sum(1 for _ in slices_at(index)) == record["slices"]
    assert index.state.config.table_type == record["type"]


@pytest.mark.parametrize("name", ["cow_basic_v6", "cow_basic_v9", "cow_bucket_composite_v9"])
def test_every_key_is_found_through_footers_and_few_files_are_kept(
    name: str, golden_table: Table
) -> None:
    index = open_index(golden_table(name))
    schema = table_schema(index.state)
    keys = index.state.config.record_key
    everything = sum(1 for _ in slices_at(index))
    kept = 0
    rows = expected("golden")[name]["snapshot"]
    for row in rows:
        filters = [bind(col(key) == row[key], schema) for key in keys]
        parts = index.list_files_at(None, filters)
        slices = [piece for part in parts for piece in part.file_slices]
        assert (row[COMMIT_TIME], row[RECORD_KEY], row[PARTITION_PATH]) in rows_of(index, slices)
        kept += len(slices)
    assert kept < everything * len(rows)
