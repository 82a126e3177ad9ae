"""Writes that began under other numbers of buckets than the table has when they end."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakewright.actions.buckets.setting import set_rules
from lakewright.actions.write.progress import Silence
from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.rows import ArrowRows
from lakewright.actions.write.write import write
from lakewright.api.table import Table
from lakewright.engine.local.executor import LocalExecutor
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.simple_hash_meta import SIMPLE_FOLDER
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.errors import Conflict, Invalid
from lakewright.model.writing import Operation, WriteResult
from lakewright.storage.port import Storage
from lakewright.table.state import TableState, open_state
from lakewright.timeline.storage_committer import StorageCommitter
from support.rescaling import (
    check_law,
    content,
    filled_table,
    live_groups,
    made_table,
    memory,
    rescaled,
    rows,
    rules,
    table_of,
)

SHAPES = [
    pytest.param({"mor": mor, "version": version}, id=f"{'mor' if mor else 'cow'}-v{version}")
    for mor in (False, True)
    for version in (9, 6)
]


@pytest.fixture(params=SHAPES)
def storage(request: pytest.FixtureRequest) -> Storage:
    """A table with rows in three partitions of four buckets, and rules that say so."""
    place = memory()
    filled_table(place, **request.param)
    set_rules(open_state(place), rules(("p=q", 2)), {})
    return place


def nothing() -> object:
    return None


def upsert(
    storage: Storage,
    given: list[dict[str, Any]],
    meanwhile: Callable[[], object] = nothing,
    *,
    state: TableState | None = None,
    operation: Operation = Operation.UPSERT,
    **more: Any,
) -> WriteResult:
    """Write rows; ``meanwhile`` happens once the write has begun, before it looks at any file."""
    begun: list[object] = []

    def check(_: TableState) -> None:
        if not begun:
            begun.append(None)
            meanwhile()

    known = state or open_state(storage)
    request: WriteRequest[ArrowRows] = WriteRequest(operation, check=check, **more)
    committer = StorageCommitter(storage, known.config, {})
    made = ArrowRows.of(table_of(given))
    return write(known, LocalExecutor({}), made, request, committer, Silence())


def alter(storage: Storage, wanted: BucketRules) -> Callable[[], object]:
    return lambda: set_rules(open_state(storage), wanted, {})


def metas(storage: Storage) -> set[str]:
    names = (file.path.rpartition("/")[2] for file in storage.list(SIMPLE_FOLDER))
    return {name for name in names if name.endswith(".hashing_meta")}


def check_undamaged(storage: Storage) -> None:
    check_law(storage)
    report = Table(storage).fsck(deep=True)
    assert report.ok, report.problems
    assert not [note for note in report.notes if note.code in {"orphan-file", "pending"}]


@pytest.mark.parametrize(
    "operation", [Operation.UPSERT, Operation.INSERT, Operation.INSERT_OVERWRITE]
)
def test_a_new_partition_under_rules_that_changed_meanwhile(
    storage: Storage, operation: Operation
) -> None:
    before, noted = content(storage), metas(storage)
    new = rows(range(20), 9, "w")
    with pytest.raises(Conflict, match=r"'p=w' has 7 buckets .* counted 4"):
        upsert(storage, new, alter(storage, rules(("w", 7))), operation=operation)
    assert content(storage) == before
    assert metas(storage) == noted
    check_undamaged(storage)
    upsert(storage, new, operation=operation)
    assert check_law(storage)["p=w"] == 7


def test_a_write_that_is_tried_again_takes_the_new_rules(storage: Storage) -> None:
    told = upsert(storage, rows(range(20), 9, "w"), alter(storage, rules(("w", 7))), retry=1)
    assert told.attempts == 2
    assert check_law(storage)["p=w"] == 7


def test_two_writers_of_a_partition_with_different_rules(storage: Storage) -> None:
    """The one that began with the old rules loses, and damages nothing."""

    def other() -> None:
        set_rules(open_state(storage), rules(("w", 7)), {})
        upsert(storage, rows(range(30), 5, "w"))

    with pytest.raises(Conflict, match="'p=w'"):
        upsert(storage, rows(range(100, 130), 9, "w"), other)
    assert check_law(storage)["p=w"] == 7
    assert sum(1 for row in content(storage, meta=False) if row[2] == "w") == 30
    check_undamaged(storage)


def test_new_rules_do_not_disturb_writes_to_partitions_that_are_there(storage: Storage) -> None:
    told = upsert(storage, rows(range(60), 9), alter(storage, rules(("p=[xyz]", 7))))
    assert told.attempts == 1
    numbers = check_law(storage)
    assert numbers == {"p=x": 4, "p=y": 4, "p=z": 4}
    assert all(row[3] == 9 for row in content(storage, meta=False))


def test_rules_that_give_a_new_partition_the_same_number(storage: Storage) -> None:
    upsert(storage, rows(range(20), 9, "w"), alter(storage, rules(("w", 4), default=3)))
    assert check_law(storage)["p=w"] == 4
    fixed = HashingStore(storage).fixed(open_state(storage).timeline)
    assert fixed["p=w"].bucket_number == 4


def test_a_rescale_that_touched_no_file_group_of_the_write(storage: Storage) -> None:
    """The write begins a bucket that had no rows, so that no file group is in both."""
    upsert(storage, rows(range(1), 9, "e"))
    (there,) = (bucket_number(piece.group.file_id) for piece in live_groups(storage)["p=e"])
    upserted = next(
        [row]
        for row in rows(range(1, 200), 9, "e")
        if bucket_of(pa.array([row["id"]]), ("id",), 4)[0] != there
    )
    before = content(storage)
    with pytest.raises(Conflict, match=r"'p=e'"):
        upsert(storage, upserted, lambda: rescaled(storage, rules(("p=e", 8)), ["p=e"]))
    assert content(storage) == before
    assert check_law(storage)["p=e"] == 8
    check_undamaged(storage)
    upsert(storage, upserted)
    assert check_law(storage)["p=e"] == 8


def test_a_rescale_before_the_write_has_begun_is_built_on(storage: Storage) -> None:
    """Even by a write whose caller opened the table before."""
    opened = open_state(storage)
    rescaled(storage, rules(("p=[xy]", 9)), ["p=x", "p=y"])
    upsert(storage, rows(range(60, 120), 9), state=opened)
    assert check_law(storage) == {"p=x": 9, "p=y": 9, "p=z": 4}
    assert len(content(storage)) == 54 + 60


@pytest.mark.parametrize("number", [4, 7])
def test_a_plain_table_that_gets_rules_meanwhile(number: int) -> None:
    place = memory()
    filled_table(place)
    new = rows(range(20), 9, "w")
    meanwhile = alter(place, rules(("w", number)))
    if number == 4:
        upsert(place, new, meanwhile)
        assert HashingStore(place).fixed(open_state(place).timeline)["p=w"].bucket_number == 4
    else:
        with pytest.raises(Conflict, match="'p=w' has 7 buckets"):
            upsert(place, new, meanwhile)
    numbers = check_law(place)
    assert numbers.get("p=w", 4) == 4
    check_undamaged(place)


def test_metadata_is_written_where_a_partition_is_new(storage: Storage) -> None:
    upsert(storage, rows(range(60), 5))
    known = metas(storage)
    assert known
    for ts in (6, 7):
        upsert(storage, rows(range(30), ts))
    assert metas(storage) == known
    told = upsert(storage, rows(range(5), 9, "q"))
    assert told.instant is not None
    assert metas(storage) - known == {f"{told.instant.requested}.hashing_meta"}
    fixed = HashingStore(storage).fixed(open_state(storage).timeline)
    assert {path: info.bucket_number for path, info in fixed.items()} == check_law(storage)


def test_a_plain_table_has_no_metadata() -> None:
    place = memory()
    filled_table(place)
    assert metas(place) == set()
    assert check_law(place) == {"p=x": 4, "p=y": 4, "p=z": 4}


def test_an_overwritten_partition_keeps_its_number(storage: Storage) -> None:
    set_rules(open_state(storage), rules(("p=[xyz]", 7)), {})
    upsert(storage, rows(range(200, 230), 9, "x"), operation=Operation.INSERT_OVERWRITE)
    assert check_law(storage)["p=x"] == 4
    upsert(storage, rows(range(200, 230), 9, "xw"), operation=Operation.INSERT_OVERWRITE_TABLE)
    assert check_law(storage) == {"p=x": 4, "p=w": 4}


def test_a_bucket_beyond_the_number_stops_a_write() -> None:
    place = memory()
    made_table(place, buckets=8)
    upsert(place, rows(range(60), 1))
    HashingStore(place).write_config("00000000000000", rules(default=2), {})
    with pytest.raises(Invalid, match=r"has 2 buckets, but the file group 0000000[2-7]-.*check"):
        upsert(place, rows(range(60), 2))
