"""Tables that real Hudi wrote are sound, down to every row."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fixture_tables import table_params
from lakewright.actions.fsck import FsckReport, fsck
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state

Table = Callable[[str], Path]
#: What the tables of the fixtures may be noted for: actions left pending on purpose, a
#: partition expiry that Hudi completed twice with equal bodies, base files in Lance.
EXPECTED_NOTES = {"pending", "orphan-file", "completed-twice", "unsupported"}


def checked(path: Path) -> FsckReport:
    report = fsck(open_state(open_storage(path)), deep=True)
    assert report.problems == ()
    assert {note.code for note in report.notes} <= EXPECTED_NOTES
    assert report.checked["properties"] > 0
    return report


@pytest.mark.parametrize("name", table_params("golden"))
def test_golden_tables_are_sound(name: str, golden_table: Table) -> None:
    report = checked(golden_table(name))
    for kind in ("instants", "bodies", "partitions", "base files", "written files", "rows"):
        assert report.checked[kind] > 0, kind


@pytest.mark.parametrize("name", table_params("hudi"))
def test_sample_tables_are_sound(name: str, hudi_table: Table) -> None:
    report = checked(hudi_table(name))
    notes = {note.code for note in report.notes}
    assert ("unsupported" in notes) == ("lance" in name)
