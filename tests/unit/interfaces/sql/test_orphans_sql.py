"""Orphan files by SQL: what would go, what goes, what lies in quarantine, what is purged."""

from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.api.lake import Lake
from lakewright.model.errors import Invalid, InvalidOption, NotFound
from lakewright.storage.open import open_storage
from support.orphaned import age, old_table, strewn


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    storage = open_storage(tmp_path / "t")
    old_table(storage)
    for name in strewn(storage):
        age(storage, name)
    found = lw.connect(tmp_path / "lake")
    found.register_table("t", tmp_path / "t")
    return found


def answer(lake: Lake, text: str) -> list[dict[str, Any]]:
    found: Any = lake.sql(text)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_from_a_dry_run_to_the_purge(lake: Lake) -> None:
    dry = answer(lake, "CALL plan_orphans(table => 't', older_than => '2d')")
    assert len(dry) == 4 and {one["plan"] for one in dry} == {None}
    assert {one["status"] for one in dry} == {
        "would be put into quarantine: dry_run => false does it"
    }
    assert all("no instant 2026" in one["reason"] for one in dry)
    assert answer(lake, "CALL show_plans('t')") == [], "looking is not keeping"
    done = answer(lake, "CALL plan_orphans('t', dry_run => false)")
    assert [(one["file"], one["bytes"]) for one in done] == [
        (one["file"], one["bytes"]) for one in dry
    ]
    (id,) = {one["plan"] for one in done}
    assert {one["status"] for one in done} == {"put into quarantine"}
    (aside,) = answer(lake, "CALL show_quarantine('t')")
    assert (aside["plan"], aside["files"]) == (id, 4)
    back = answer(lake, f"CALL undo_plan('t', '{id}')")
    assert {one["status"] for one in back} == {"restored"} and len(back) == 4
    (id,) = {one["plan"] for one in answer(lake, "CALL plan_orphans('t', dry_run => false)")}
    would = answer(lake, f"CALL purge_plan('t', '{id}', dry_run => true)")
    assert would[0]["plan"].startswith(f"plan {id}: 4 files of") and len(would) == 5
    gone = answer(lake, f"CALL purge_plan(table => 't', plan => '{id}')")
    assert [one["file"] for one in gone] == [one["file"] for one in dry]
    assert answer(lake, "CALL show_quarantine('t')") == []
    for extra in ("", ", dry_run => true"):
        with pytest.raises(NotFound, match="no files in quarantine"):
            answer(lake, f"CALL purge_plan('t', '{id}'{extra})")
    with pytest.raises(Invalid, match="plan"):
        answer(lake, "CALL purge_plan('t')")
    assert answer(lake, "CALL plan_orphans('t', dry_run => false)") == []


def test_by_the_name_of_others_and_at_once(lake: Lake) -> None:
    dry = answer(lake, "CALL remove_orphan_files('t', purge => true)")
    assert {one["status"] for one in dry} == {"would be deleted: dry_run => false does it"}
    done = answer(lake, "CALL remove_orphan_files('t', purge => true, dry_run => false)")
    assert {one["status"] for one in done} == {"deleted"} and len(done) == 4
    assert answer(lake, "CALL show_quarantine('t')") == []


def test_what_is_kept_is_told(lake: Lake) -> None:
    rows = answer(lake, "CALL plan_orphans('t', older_than => '40d')")
    assert {one["status"] for one in rows} == {"kept"}
    assert {one["reason"] for one in rows} == {"it was changed more recently than 40d ago"}
    with pytest.raises(InvalidOption, match=r"'5m' is not allowed.*at least 1h"):
        answer(lake, "CALL plan_orphans('t', older_than => '5m')")
