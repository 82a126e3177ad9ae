"""Every table that Hudi wrote, through versions 9, 8, 6 and 9 again: what it shows must stay."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakewright as lw
from fixture_tables import table_params
from lakewright.actions.services.upgrading import upgrade
from lakewright.api.table import Table
from lakewright.model.errors import HistoryGone, Unsupported
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.servicing import servicing

hudi = pytest.importorskip("hudi", reason="the hudi wheel is not installed")

PATH = (9, 8, 6, 9)
#: Tables of all kinds for the quick suite; the others are slow in sum.
QUICK = {
    "cow_archived_v6",
    "cow_archived_v9",
    "cow_basic_v8",
    "cow_bucket_v6",
    "cow_failed_tail_v6",
    "mor_compaction_pending_v6",
    "mor_rolled_back_v6",
    "mor_savepoint_v9",
    "changes_mor_v8",
    "clustered_cow_v6",
    "partial_mor_v6",
}
#: What some tables cannot become, and why.
REFUSED = {
    ("bare_mor", 6): "does not keep Hudi's own columns",
    ("cow_clustering_pending_v9", 6): "planned and not carried out",
    ("indexed_mor", 8): "metadata table",
    ("indexed_mor", 6): "metadata table",
    ("mor_metadata_h12", 8): "metadata table",
    ("mor_metadata_h12", 6): "metadata table",
    ("mor_metadata_v9", 8): "metadata table",
    ("mor_metadata_v9", 6): "metadata table",
    ("mor_two_orderings_v9", 8): "one column alone",
    ("mor_two_orderings_v9", 6): "one column alone",
    ("ordered_by_two_cow", 8): "one column alone",
    ("ordered_by_two_cow", 6): "one column alone",
    ("timed_custom", 6): "formatted times",
}
#: A payload class that ignored the ordering column: later versions heed it, and say so.
HEEDED_SINCE = frozenset({"latest_mor_v6"})
#: Rows that a payload class merged column by column have the time of one write in version 6, and
#: of another since modes do it, here as in Hudi.
BY_PAYLOAD = frozenset({"partial_mor", "partial_mor_v6"})
#: Failed writes of these tables count as dead at once.
EAGER = {"hoodie__cleaner__policy__failed__writes": "EAGER"}


def params(family: str) -> list[object]:
    found = []
    for name in table_params(family):
        quick = not isinstance(name, str) or name in QUICK
        found.append(name if quick else pytest.param(name, marks=pytest.mark.slow))
    return found


def rows(table: Table, columns: list[str], **how: str) -> object:
    try:
        found = table.scan(columns=columns, **how).to_arrow()
    except HistoryGone as error:
        return type(error)
    return sorted(map(repr, found.to_pylist()))


def picture(name: str, table: Table) -> dict[str, object]:
    has_times = open_state(open_storage(table.path)).config.populate_meta_fields
    told = has_times and name not in BY_PAYLOAD
    columns = ["*", "_hoodie_commit_time"] if told else ["*"]
    shown = {i.requested: rows(table, columns, as_of=i.requested) for i in table.timeline.data()}
    return {**shown, "head": rows(table, columns)}


def by_hudi(place: Path, columns: list[str]) -> list[str] | None:
    """What the wheel reads; None where it cannot."""
    try:
        batches = hudi.HudiTableBuilder.from_base_uri(str(place)).build().read()
        found = [row for b in batches for row in b.select(columns).to_pylist()]
    except BaseException as error:
        # Its panics are no ordinary exceptions.
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None
    return sorted(map(repr, found))


def check(name: str, place: Path) -> None:
    storage = open_storage(str(place))
    table = lw.open_table(place)
    keys = list(table.definition.record_key)
    before, wheel = picture(name, table), by_hudi(place, keys)
    told = [(i.requested, i.action) for i in table.timeline.with_history() if i.is_completed]
    for version in PATH:
        refused = REFUSED.get((name, version))
        if refused is not None:
            with pytest.raises(Unsupported, match=refused):
                upgrade(servicing(storage, **EAGER), version)
            continue
        upgrade(servicing(storage, **EAGER), version)
        assert open_state(storage).config.version == version
        after = picture(name, table)
        if name in HEEDED_SINCE:
            assert after["head"] == before["head"]
        else:
            assert {key: after[key] for key in before} == before
        if wheel is not None:
            assert by_hudi(place, keys) in (wheel, None)
        now = {(i.requested, i.action) for i in table.timeline.with_history()}
        assert now.issuperset(told)
        report = table.fsck()
        assert report.ok, report.problems


@pytest.mark.parametrize("name", params("golden"))
def test_golden_tables_through_all_versions(
    name: str, golden_table: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(golden_table(name), tmp_path / name)
    check(name, tmp_path / name)


@pytest.mark.parametrize("name", params("own"))
def test_own_tables_through_all_versions(
    name: str, own_table: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(own_table(name), tmp_path / name)
    check(name, tmp_path / name)
