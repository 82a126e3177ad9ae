"""Plans that real Hudi scheduled, carried out here: the rows are those that it made of them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import hudi
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakewright as lw
from fixture_tables import ABSENT, fixtures_root, table_names, unzip_table
from lakewright.actions.services.compaction import compact
from lakewright.actions.services.log_compaction import log_compact
from lakewright.model.errors import Unsupported
from lakewright.model.instant import Action, State
from lakewright.model.table import TableType
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.servicing import servicing

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason=ABSENT)

#: The file name differs, and sequence numbers are of no meaning to readers.
PASSED_OVER = ("_hoodie_file_name",)


def planned_again(root: Path, into: Path, action: Action) -> tuple[Path, str, dict[str, Path]]:
    """Copy a table and undo its last finished plan of an action by hand, the plan itself kept.

    Returns the copy, the instant, and the files that Hudi had made of the plan, by file id.
    """
    place = into / root.name
    shutil.copytree(root, place)
    state = open_state(open_storage(str(place)))
    entry = [e for e in state.timeline.entries if e.planned is action][-1]
    instant = entry.instant.requested
    body = state.timeline.commit_metadata(entry.instant)
    kept = {}
    for stats in body.write_stats.values():
        for stat in stats:
            aside = into / f"hudi-{stat.file_id}"
            (place / str(stat.path)).rename(aside)
            kept[stat.file_id] = aside
    folder = place / state.config.timeline_folder
    for found in (State.COMPLETED, State.INFLIGHT):
        (folder / entry.files[found]).unlink()
    for name in place.rglob("*.crc"):
        name.unlink()
    return place, instant, kept


def snapshot(place: Path) -> pa.Table:
    found = lw.open_table(place).scan(meta=True).to_arrow()
    return found.drop_columns(list(PASSED_OVER)).sort_by("_hoodie_record_key")


@pytest.mark.parametrize(
    "name", ["mor_compaction_pending_v9", "mor_compaction_pending_v6", "mor_compacted_v9"]
)
def test_a_compaction_makes_the_rows_that_hudi_made(
    name: str, golden_table: Callable[[str], Path], tmp_path: Path
) -> None:
    root = golden_table(name)
    before = snapshot(root)
    place, instant, theirs = planned_again(root, tmp_path, Action.COMPACTION)
    assert snapshot(place) == before  # while it waits
    done = compact(servicing(open_storage(str(place))))
    assert done.instant is not None
    assert done.instant.requested == instant
    assert snapshot(place) == before
    made = {path.name.partition("_")[0]: path for path in place.rglob(f"*_{instant}.parquet")}
    assert made.keys() == theirs.keys()
    for file_id, path in made.items():
        ours, his = pq.read_table(path, partitioning=None), pq.read_table(theirs[file_id])
        assert ours.schema.names == his.schema.names
        by_key = [("_hoodie_record_key", "ascending")]
        mine = ours.drop_columns(list(PASSED_OVER)).sort_by(by_key).to_pylist()
        assert mine == his.drop_columns(list(PASSED_OVER)).sort_by(by_key).to_pylist()
    state = open_state(open_storage(str(place)))
    old = open_state(open_storage(str(root)))
    figures = []
    for one in (state, old):
        entry = next(i for i in one.timeline.data() if i.requested == instant)
        stats = one.timeline.commit_metadata(entry).write_stats.values()
        figures.append(
            sorted(
                (
                    s.file_id,
                    s.num_writes,
                    s.num_deletes,
                    s.num_update_writes,
                    s.num_inserts,
                    s.prev_commit,
                    s.prev_base_file,
                    s.total_log_records,
                    s.total_log_blocks,
                    s.total_log_files_compacted,
                    s.total_log_size_compacted,
                    s.total_updated_records_compacted,
                )
                for found in stats
                for s in found
            )
        )
    assert figures[0] == figures[1]
    batches = hudi.HudiTableBuilder.from_base_uri(str(place)).build().read()
    assert pa.Table.from_batches(batches).num_rows == before.num_rows


def test_a_log_compaction_makes_the_rows_that_hudi_made(
    golden_table: Callable[[str], Path], tmp_path: Path
) -> None:
    root = golden_table("mor_log_compacted_v9")
    place, instant, _ = planned_again(root, tmp_path, Action.LOGCOMPACTION)
    before = lw.open_table(root).scan().to_arrow().sort_by("id")
    assert lw.open_table(place).scan().to_arrow().sort_by("id") == before
    done = log_compact(servicing(open_storage(str(place))))
    assert done.instant is not None
    assert done.instant.requested == instant
    assert lw.open_table(place).scan().to_arrow().sort_by("id") == before
    state = open_state(open_storage(str(place)))
    body = state.timeline.commit_metadata(done.instant)
    assert (body.operation, done.instant.action) == ("LOG_COMPACT", Action.DELTACOMMIT)


MERGED = [
    pytest.param(family, name, id=name)
    for family in ("own", "golden")
    for name in table_names(family)
    if ("mor" in name or "ordered_by" in name) and not name.startswith("bare")
]


@pytest.mark.parametrize(("family", "name"), MERGED)
def test_rows_of_every_kind_of_table_stay(family: str, name: str, tmp_path: Path) -> None:
    """Whatever Hudi left in logs: renamed and nested columns, all orderings, changes, rollbacks."""
    place = unzip_table(family, name, tmp_path)
    storage = open_storage(str(place))
    state = open_state(storage)
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return
    before = _texts(place)
    options = {"hoodie__log__compaction__blocks__threshold": "1"}
    if state.config.version == 8 or state.config.metadata_partitions:
        with pytest.raises(Unsupported):
            compact(servicing(storage))
        return
    try:
        log_compact(servicing(storage, **options))
    except Unsupported:
        pass  # version 6, or merging by column
    else:
        assert _texts(place) == before
    compact(servicing(storage))
    assert _texts(place) == before
    left = [s for part in lw.open_table(place).files.list_files_at() for s in part.file_slices]
    assert not any(piece.logs for piece in left)
    assert lw.open_table(place).fsck().ok


def _texts(place: Path) -> list[str]:
    found = lw.open_table(place).scan(meta=True).to_arrow().drop_columns(list(PASSED_OVER))
    return sorted(map(repr, found.to_pylist()))
