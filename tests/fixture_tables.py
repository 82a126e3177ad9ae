"""The tables of other software that tests read: where they lie, their names, how to unpack them.

The family ``own`` lies in the repository, made by ``golden/make_tables.py``. The others are kept
beside it: ``../shared/fixtures``, or the folder that the variable ``LAKEWRIGHT_FIXTURES`` names.
"""

import os
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lakewright.model.instant import Action
from lakewright.table.state import TableState

OWN = Path(__file__).parent / "golden" / "tables"
ABSENT = "no fixture tables beside the repository (../shared/fixtures or LAKEWRIGHT_FIXTURES)"

#: What Hudi answered where it was asked for an instant before its cleaning.
CLEANED = "Cleaner cleaned up the timestamp of interest"


def is_saved(state: TableState, instant: str) -> bool:
    """Whether a savepoint holds the files of an instant."""
    return any(i.requested == instant for i in state.timeline.by_action(Action.SAVEPOINT))


def fixtures_root() -> Path | None:
    """Return the folder of the fixtures, or None where this machine has none."""
    named = os.environ.get("LAKEWRIGHT_FIXTURES")
    root = Path(named) if named else Path(__file__).parents[2] / "shared" / "fixtures"
    return root if root.is_dir() else None


def family_folder(family: str) -> Path | None:
    """Return the folder of the zips of ``own``, ``golden`` or ``hudi``."""
    if family == "own":
        return OWN
    root = fixtures_root()
    return None if root is None else root / family


def table_names(family: str) -> tuple[str, ...]:
    """Return the zip names (without ending) of a family, sorted."""
    folder = family_folder(family)
    return () if folder is None else tuple(sorted(p.stem for p in folder.glob("*.zip")))


def table_params(family: str) -> list[Any]:
    """Return the names as pytest parameters; one skipped parameter where there are none."""
    names = table_names(family)
    return list(names) or [pytest.param("absent", marks=pytest.mark.skip(reason=ABSENT))]


@cache
def unzip_table(family: str, name: str, into: Path) -> Path:
    """Unpack one table under ``into``, once, and return its root folder."""
    folder = family_folder(family)
    assert folder is not None, ABSENT
    target = into / family / name
    with zipfile.ZipFile(folder / f"{name}.zip") as archive:
        members = [m for m in archive.namelist() if not m.startswith("__MACOSX")]
        archive.extractall(target, members)
    (table,) = (entry for entry in target.iterdir() if entry.is_dir())
    return table
