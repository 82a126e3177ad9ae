"""The cleanings that real Hudi carried out on the golden tables, planned again by us.

The files that a cleaning took are put back, empty, and the timeline is cut off before it: what we
plan then must be its very files.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lakewright.actions.services.cleaning import schedule_cleaning
from lakewright.format.hudi.metadata.clean import CleanMetadata, CleanPlan, planned_names
from lakewright.model.instant import Action, Instant
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.servicing import servicing

NAMES = ("cow_cleaned_v6", "cow_cleaned_v9", "mor_archived_v9")


@pytest.mark.parametrize("name", NAMES)
def test_the_same_files_are_chosen(
    name: str, golden_table: Callable[[str], Path], tmp_path: Path
) -> None:
    original = golden_table(name)
    timeline = open_state(open_storage(original)).timeline
    cleanings = [i for i in timeline.by_action(Action.CLEAN) if i.is_completed]
    assert cleanings
    for number, cleaning in enumerate(cleanings):
        root = tmp_path / str(number)
        shutil.copytree(original, root)
        for later in cleanings[number:]:
            body = timeline.metadata(later)
            assert isinstance(body, CleanMetadata)
            for partition, entry in body.partitions.items():
                for file in entry.deleted:
                    (root / partition / file).touch()
        cut_off(root, timeline.config.timeline_folder, cleaning)
        plan = timeline.plan(cleaning)
        assert isinstance(plan, CleanPlan)
        assert plan.earliest_to_retain is not None
        earliest = plan.earliest_to_retain.timestamp
        retained = sum(earliest <= i.requested < cleaning.requested for i in timeline.data())
        work = servicing(open_storage(root), **{"hoodie.clean.commits.retained": str(retained)})
        ours = schedule_cleaning(work, dry_run=True)
        assert ours is not None
        assert isinstance(ours.body, CleanPlan)
        assert chosen(ours.body) == chosen(plan)
        assert ours.body.earliest_to_retain == plan.earliest_to_retain
        assert ours.body.last_completed == plan.last_completed
        assert ours.body.partitions == plan.partitions


def chosen(plan: CleanPlan) -> dict[str, list[str]]:
    return {partition: sorted(names) for partition, names in planned_names(plan)}


def cut_off(root: Path, folder: str, cleaning: Instant) -> None:
    """Remove a cleaning and everything after it from the timeline."""
    for path in (root / folder).iterdir():
        time = path.name.lstrip(".").partition(".")[0].partition("_")[0]
        if path.is_file() and time.isdigit() and time >= cleaning.requested:
            path.unlink()
