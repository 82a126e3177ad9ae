"""What claims a file keeps it: each test takes one claim to a file that is an orphan without it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewright.actions.create import create_table
from lakewright.api.creating import plan_table
from lakewright.api.table import Table
from lakewright.format.hudi.file_names import log_file
from lakewright.format.hudi.history import ArchivedInstant, append_history
from lakewright.format.hudi.instant_names import instant_file_name
from lakewright.format.hudi.log.blocks import BlockKind, HeaderKey
from lakewright.format.hudi.log.write import frame
from lakewright.format.hudi.metadata.clean import CleanFile, CleanPlan, encode_clean_plan
from lakewright.format.hudi.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
)
from lakewright.format.hudi.metadata.restore import (
    SavepointMetadata,
    SavepointPartition,
    encode_savepoint,
)
from lakewright.format.hudi.metadata.rollback import (
    InstantInfo,
    RollbackPlan,
    RollbackRequest,
    encode_rollback_plan,
)
from lakewright.lifecycle.orphans import claims
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import Corrupt
from lakewright.model.instant import Action, Instant, State
from lakewright.model.table import TableId
from lakewright.storage.open import open_storage
from lakewright.storage.paths import split
from lakewright.storage.port import FileStat, Storage
from lakewright.table.pins import Pin, add_pin
from lakewright.table.state import open_state
from support import dropping
from support.faulty_storage import FaultyStorage
from support.orphaned import (
    UNKNOWN,
    age,
    applied,
    base_name,
    block,
    later,
    log_name,
    looked_for,
    old_table,
    strewn,
    targets,
)
from support.retention import instant
from support.servicing import servicing
from support.write_scenarios import SCHEMA


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    made = open_storage(tmp_path / "t")
    old_table(made, mor=True)
    return made


def plant(storage: Storage, path: str, data: bytes = b"data") -> str:
    """Put a file that is old into a table."""
    storage.write(path, data)
    age(storage, path)
    return path


def reasons(plan: Plan) -> dict[str, str]:
    return {one.target: one.reason for one in plan.skipped}


def pending(storage: Storage, time: str, action: Action, body: bytes = b"") -> None:
    """Put a pending instant on the timeline."""
    config = open_state(storage).config
    for state in (State.REQUESTED, State.INFLIGHT):
        name = instant_file_name(Instant(time, action, state), config.layout)
        storage.write(f"{config.timeline_folder}/{name}", body if state is State.REQUESTED else b"")


def a_pending_write(storage: Storage, path: str) -> None:
    pending(storage, UNKNOWN, Action.DELTACOMMIT)


def an_archived_write(storage: Storage, path: str) -> None:
    past = Instant(UNKNOWN, Action.DELTACOMMIT, State.COMPLETED, instant(2.1))
    append_history(storage, open_state(storage).config, [ArchivedInstant(past, b"{}", None)])


def an_archived_cleaning(storage: Storage, path: str) -> None:
    past = Instant(UNKNOWN, Action.CLEAN, State.COMPLETED, instant(2.1))
    append_history(storage, open_state(storage).config, [ArchivedInstant(past, b"{}", None)])


def a_rollback_of_its_write(storage: Storage, path: str) -> None:
    plan = RollbackPlan(InstantInfo(UNKNOWN, "deltacommit"))
    pending(storage, instant(9), Action.ROLLBACK, encode_rollback_plan(plan))


def a_rollback_that_names_it(storage: Storage, path: str) -> None:
    request = RollbackRequest("p=x", files=(f"/somewhere/{path}",))
    plan = RollbackPlan(InstantInfo(instant(3), "deltacommit"), (request,))
    pending(storage, instant(9), Action.ROLLBACK, encode_rollback_plan(plan))


def a_rollback_without_a_plan(storage: Storage, path: str) -> None:
    pending(storage, instant(9), Action.ROLLBACK)


def a_restore(storage: Storage, path: str) -> None:
    pending(storage, instant(9), Action.RESTORE)


def a_heartbeat(storage: Storage, path: str) -> None:
    storage.write(f".hoodie/.heartbeat/{UNKNOWN}", b"")


def a_marker(storage: Storage, path: str) -> None:
    storage.write(f".hoodie/.temp/{UNKNOWN}/{path}.marker.CREATE", b"")


def a_savepoint(storage: Storage, path: str) -> None:
    held = {"p=x": SavepointPartition("p=x", (split(path)[1],))}
    body = encode_savepoint(SavepointMetadata("ann", 0, "", held))
    servicing(storage).upkeep.make_savepoint(instant(8), body, lambda view: None)


def a_pin(storage: Storage, path: str) -> None:
    until = (datetime.now(UTC) + timedelta(days=1)).timestamp()
    add_pin(storage, Pin("undo", until, "an undo", {"p=x": frozenset({split(path)[1]})}))


def compaction(storage: Storage, *logs: str, file_id: str) -> None:
    operation = CompactionOperation(instant(1), logs, None, file_id, "p=x")
    body = encode_compaction_plan(CompactionPlan((operation,)))
    config = open_state(storage).config
    name = instant_file_name(Instant(instant(9), Action.COMPACTION, State.REQUESTED), config.layout)
    storage.write(f"{config.timeline_folder}/{name}", body)


def a_compaction_that_names_it(storage: Storage, path: str) -> None:
    compaction(storage, split(path)[1], file_id="another")


def a_compaction_of_its_group(storage: Storage, path: str) -> None:
    found = log_file("", split(path)[1])
    assert found is not None
    compaction(storage, file_id=found.file_id)


def clean_plan(storage: Storage, plan: CleanPlan) -> None:
    pending(storage, instant(9), Action.CLEAN, encode_clean_plan(plan))


def a_cleaning(storage: Storage, path: str) -> None:
    files = {"p=x": (CleanFile(f"/somewhere/{path}"),)}
    clean_plan(storage, CleanPlan(None, "", "KEEP_LATEST_COMMITS", files=files))


def an_old_cleaning(storage: Storage, path: str) -> None:
    files = {"p=x": (split(path)[1],)}
    clean_plan(storage, CleanPlan(None, "", "KEEP_LATEST_COMMITS", old_files=files))


def no_partition(storage: Storage, path: str) -> None:
    storage.delete(["p=x/.hoodie_partition_metadata"])


def another_table(storage: Storage, path: str) -> None:
    storage.write("p=x/.hoodie/hoodie.properties", b"hoodie.table.name=inner")


def a_change(storage: Storage, path: str) -> None:
    age(storage, path, days=2.9)


def a_known_block(storage: Storage, path: str) -> None:
    plant(storage, path, block(UNKNOWN, instant(4)))


def an_archived_block(storage: Storage, path: str) -> None:
    plant(storage, path, block(UNKNOWN, instant(-3)))


def a_block_of_many(storage: Storage, path: str) -> None:
    header = {HeaderKey.INSTANT_TIME: UNKNOWN, HeaderKey.COMPACTED_BLOCK_TIMES: instant(4)}
    plant(storage, path, frame(BlockKind.AVRO_DATA, header, b"nothing"))


#: What may claim a file, and what is told of it then; None where the file is the table's own.
CLAIMS: dict[Callable[[Storage, str], None], str | None] = {
    a_pending_write: None,
    an_archived_write: None,
    an_archived_cleaning: None,
    a_rollback_of_its_write: "its write is being taken back",
    a_rollback_that_names_it: claims.PLANNED,
    a_rollback_without_a_plan: f"the rollback {instant(9)} does not tell what it takes back",
    a_restore: f"the restore {instant(9)} has not finished",
    a_heartbeat: claims.HEARTBEAT,
    a_marker: claims.MARKED,
    a_savepoint: claims.SAVED,
    a_pin: claims.PINNED,
    a_compaction_that_names_it: claims.PLANNED,
    a_compaction_of_its_group: claims.MERGING,
    a_cleaning: claims.PLANNED,
    an_old_cleaning: claims.PLANNED,
    no_partition: claims.NO_PARTITION,
    another_table: claims.NESTED,
    a_change: "it was changed more recently than 3d ago",
    a_known_block: claims.BLOCKS,
    an_archived_block: claims.BLOCKS,
    a_block_of_many: claims.BLOCKS,
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_a_claim_keeps_a_file(storage: Storage, claim: Callable[[Storage, str], None]) -> None:
    path = plant(storage, f"p=x/{log_name()}", block(UNKNOWN))
    before = looked_for(storage)
    assert targets(before) == [path]
    claim(storage, path)
    after = looked_for(storage)
    assert targets(after) == []
    assert reasons(after).get(path) == CLAIMS[claim]
    # What was planned before is kept as well, when it is to go.
    PlanStore(storage).save(before)
    done = applied(storage, before)
    assert (done.done, [one.target for one in done.skipped]) == ((), [path])
    assert storage.stat(path) is not None


def test_an_old_heartbeat_and_old_markers_are_of_the_dead(storage: Storage) -> None:
    path = plant(storage, f"p=x/{base_name()}")
    plant(storage, f".hoodie/.heartbeat/{UNKNOWN}", b"")
    plant(storage, f".hoodie/.temp/{UNKNOWN}/{path}.marker.CREATE", b"")
    assert targets(looked_for(storage)) == [path]


def test_a_stray_attempt_of_a_completed_write_is_left_alone(storage: Storage) -> None:
    plant(storage, f"p=x/{base_name(instant(4), token='7-7-7')}")
    found = looked_for(storage)
    assert found.empty and not found.skipped


@pytest.mark.parametrize("version", [6, 9])
def test_what_is_older_than_the_timeline_counts_as_committed(tmp_path: Path, version: int) -> None:
    storage = open_storage(tmp_path / "t")
    table = old_table(storage, version=version, days=range(8))
    gap = plant(storage, f"p=x/{base_name(instant(1.5))}")
    own = plant(storage, f"p=x/{base_name(instant(1), token='7-7-7')}")
    assert targets(looked_for(storage)) == [gap]
    table.archive(min_commits=2, max_commits=3)
    assert open_state(storage).timeline.start == instant(6)
    found = looked_for(storage)
    assert found.empty and reasons(found) == {gap: claims.COMMITTED}
    assert own not in reasons(found), "an archived write claims it"


def test_history_that_cannot_be_read_stops_it(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    old_table(storage, days=range(8)).archive(min_commits=2, max_commits=3)
    plant(storage, f"p=x/{base_name(instant(6.5))}")
    assert len(looked_for(storage).items) == 1
    state = open_state(storage)
    for file in list(storage.list(state.config.history_folder)):
        if file.path.endswith(".parquet"):
            storage.write(file.path, b"damaged")
    with pytest.raises(Corrupt, match="archived timeline cannot be read"):
        looked_for(storage)


@pytest.mark.parametrize("name", ["savepoint", "pin"])
def test_a_claim_that_cannot_be_read_stops_it(storage: Storage, name: str) -> None:
    plant(storage, f"p=x/{base_name()}")
    if name == "pin":
        storage.write(".hoodie/.lakewright/pins/one.json", b"{")
    else:
        done = Instant(instant(8), Action.SAVEPOINT, State.COMPLETED, instant(9))
        config = open_state(storage).config
        path = f"{config.timeline_folder}/{instant_file_name(done, config.layout)}"
        storage.write(path, b"{")
    with pytest.raises(Corrupt):
        looked_for(storage)


def test_a_table_without_a_write_knows_nothing(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    create_table(storage, plan_table(TableId("", "t"), SCHEMA, "id", {"partition_by": ["p"]}))
    storage.write("p=x/.hoodie_partition_metadata", b"partitionDepth=1")
    path = plant(storage, f"p=x/{base_name()}")
    found = looked_for(storage)
    assert found.empty and reasons(found) == {path: claims.NO_WRITE}


def test_an_instant_that_is_young_or_ahead(storage: Storage) -> None:
    now = datetime.now(UTC)
    times = [now - timedelta(days=2.9), now + timedelta(days=400)]
    names = [base_name(f"{time:%Y%m%d%H%M%S}000") for time in times]
    paths = {plant(storage, f"p=x/{name}") for name in names}
    found = looked_for(storage)
    assert found.empty and reasons(found) == dict.fromkeys(paths, "its instant is younger than 3d")


def test_the_empty_logs_that_hold_folders_stay(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    dropping.made_table(storage, "mor-v6-plain")
    plan = dropping.planned(storage)
    dropping.applied(storage, plan, lakewright__undo__savepoint="true")
    (kept,) = [f.path for f in storage.list("p=x", stats=False) if "_9999" in f.path]
    age(storage, kept)
    for clock in (None, later(3000)):
        found = looked_for(storage, now=clock)
        assert found.empty and kept in reasons(found)
    dropping.undone(storage, plan)
    assert storage.stat(kept) is None


def test_what_is_named_otherwise(storage: Storage) -> None:
    kept = [
        f"p=x/{base_name(token='a')}",
        f"p=x/{base_name('20261301000000000')}",
        f"p=x/{base_name('123')}",
        f"p=x/{log_name(token='')}",
    ]
    for path in kept:
        plant(storage, path)
    others = [
        "p=x/part-0000.parquet",
        "p=x/a_0-1-2_20260103120000000.txt",
        "p=x/readme_of_mine.txt",
        f"p=x/.{base_name()}.crc",
        f"p=x/{log_name()}.crc",
        f"p=x/.hidden/{base_name()}",
        f".hoodie/metadata/files/{base_name()}",
    ]
    for path in others:
        plant(storage, path)
    found = looked_for(storage)
    assert found.empty and reasons(found) == dict.fromkeys(kept, claims.NAMED_OTHERWISE)


def test_files_beside_the_partitions(storage: Storage) -> None:
    path = plant(storage, base_name())
    deep = plant(storage, f"p=x/below/{base_name()}")
    found = looked_for(storage)
    assert found.empty and reasons(found) == dict.fromkeys([path, deep], claims.NO_PARTITION)


class Timeless(FaultyStorage):
    """A storage that does not say when files were changed."""

    def stat(self, path: str) -> FileStat | None:
        found = super().stat(path)
        return None if found is None else replace(found, modified=None)


def test_a_storage_without_times(storage: Storage) -> None:
    path = plant(storage, f"p=x/{base_name()}")
    found = looked_for(Timeless(storage))
    assert found.empty
    assert reasons(found) == {path: "its storage does not say when it was changed"}


@pytest.mark.parametrize(
    ("version", "data", "kept"),
    [
        (6, block(UNKNOWN)[:-3], claims.UNREADABLE),
        (6, b"no log at all", claims.UNREADABLE),
        (6, block(UNKNOWN), None),
        (6, b"", None),
        (9, block(UNKNOWN)[:-3], None),
        (9, b"no log at all", None),
        (9, block(UNKNOWN, instant(4)) + block(UNKNOWN)[:-3], claims.BLOCKS),
        (9, block(UNKNOWN)[:-3] + block(instant(4)), claims.BLOCKS),
    ],
)
def test_logs_that_are_cut_off(tmp_path: Path, version: int, data: bytes, kept: str | None) -> None:
    """In layout 1 a name does not tell who wrote into a log; in layout 2 it does."""
    storage = open_storage(tmp_path / "t")
    old_table(storage, mor=True, version=version)
    path = plant(storage, f"p=x/{log_name()}", data)
    found = looked_for(storage)
    assert reasons(found) == ({} if kept is None else {path: kept})
    assert targets(found) == ([path] if kept is None else [])


def test_a_log_of_version_6_on_a_completed_base_is_never_an_orphan(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    old_table(storage, mor=True, version=6)
    plant(storage, f"p=x/{log_name(instant(4))}", block(UNKNOWN))
    found = looked_for(storage)
    assert found.empty and not found.skipped


def test_every_sort_of_table_and_of_file(tmp_path: Path) -> None:
    for mor in (False, True):
        for version in (6, 9):
            storage = open_storage(tmp_path / f"{mor}{version}")
            table: Table = old_table(storage, mor=mor, version=version)
            found = strewn(storage)
            for path in found:
                age(storage, path)
            plan = looked_for(storage)
            assert targets(plan) == sorted(found) and not plan.skipped
            noted = {one.path for one in table.fsck().notes if one.code == "orphan-file"}
            assert noted == set(found), "as fsck tells of them"
