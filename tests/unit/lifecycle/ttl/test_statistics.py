"""Partition statistics: what is counted, what a refresh looks at, and when all is listed again."""

import logging

import pytest

from lakewright.format.hudi.metadata.commit import RESCALED
from lakewright.format.hudi.metadata.restore import RestoreMetadata, encode_restore
from lakewright.format.hudi.metadata.rollback import (
    InstantInfo,
    RollbackMetadata,
    RolledBackPartition,
    encode_rollback,
)
from lakewright.lifecycle.ttl.last_changes import MAINTENANCE
from lakewright.lifecycle.ttl.statistics import (
    NEVER,
    PartitionStat,
    PartitionStats,
    gather,
    verify,
)
from lakewright.lifecycle.ttl.statistics_store import STATISTICS_FOLDER
from lakewright.model.errors import Denied
from lakewright.storage.memory import MemoryStorage
from lakewright.table.changes import plan as changes_plan
from lakewright.table.state import open_state
from support.faulty_storage import Call, Crash, Fault, FaultyStorage
from support.tiny_tables import TinyTable, at, base_name, completion, log_name

VERSIONS = pytest.mark.parametrize("version", [6, 9])
A, B, C = "dt=2026-11-01", "dt=2026-11-02", "dt=2026-11-03"


def days(version: int = 9, **details: bool) -> TinyTable:
    table = TinyTable(version, **details)
    for number, day in enumerate((A, B, C), 1):
        table.commit(number, {day: {base_name(f"g{number}", number): b"x" * number}})
    return table


def told(stats: PartitionStats) -> dict[str, tuple[str, int]]:
    assert all(path == stat.path for path, stat in stats.partitions.items())
    return {p: (s.last_modified, s.bytes) for p, s in stats.partitions.items()}


def refreshed(table: TinyTable) -> dict[str, tuple[str, int]]:
    """Refresh, and compare with a listing that keeps nothing."""
    assert verify(table.state()) == ()
    stats = gather(table.state())
    assert verify(table.state()) == ()
    return told(stats)


def kept(table: TinyTable) -> list[str]:
    return sorted(f.path.rpartition("/")[2] for f in table.storage.list(STATISTICS_FOLDER))


def calls_of(table: TinyTable) -> tuple[list[Call], PartitionStats]:
    """The storage calls of a refresh, those that open the table left out."""
    counting = FaultyStorage(table.storage)
    state = open_state(counting)
    counting.calls.clear()
    stats = gather(state)
    return counting.calls, stats


def rolled_back(
    table: TinyTable, by: int, target: int, action: str, paths: dict[str, list[str]]
) -> None:
    """Take a commit back: its completed file, its files, and the record of it."""
    for file in list(table.storage.list(table.timeline)):
        if file.path.rpartition("/")[2].startswith(at(target)):
            table.storage.delete([file.path])
    for partition, names in paths.items():
        table.storage.delete([f"{partition}/{name}" for name in names])
    record = RollbackMetadata(
        at(by),
        1,
        1,
        (at(target),),
        {p: RolledBackPartition(p, tuple(names)) for p, names in paths.items()},
        instants=(InstantInfo(at(target), action),),
    )
    table.instant(by, None, "rollback", encode_rollback(record))


# ------------------------------------------------------------------------------ values


@VERSIONS
def test_the_first_gathering_lists_the_table(version: int) -> None:
    table = days(version)
    stats = gather(table.state())
    assert stats.instant == at(3)
    assert told(stats) == {A: (at(1), 1), B: (at(2), 2), C: (at(3), 3)}
    assert kept(table) == [f"{at(3)}.json"]


def test_the_file_has_the_three_facts_of_each_partition() -> None:
    table = days()
    gather(table.state())
    text = table.storage.read(f"{STATISTICS_FOLDER}/{at(3)}.json").decode()
    line = f'{{"RelativePath": "{A}", "LastModifiedTime": "{at(1)}", "PartitionTotalFileSize": 1}},'
    assert line in text.splitlines()


def test_a_table_without_writes_has_none_and_keeps_none() -> None:
    table = TinyTable()
    assert gather(table.state()) == PartitionStats(NEVER, {})
    assert verify(table.state()) == ()
    assert kept(table) == []


@VERSIONS
def test_an_unpartitioned_table_is_one_partition(version: int) -> None:
    table = TinyTable(version, partition_by="")
    table.commit(1, {"": {base_name("g", 1): b"xy"}})
    assert told(gather(table.state())) == {"": (at(1), 2)}
    table.commit(2, {"": {base_name("g", 2): b"xyz"}})
    assert refreshed(table) == {"": (at(2), 3)}


@VERSIONS
@pytest.mark.parametrize("odd", ["dt=a,b%3A", "dt=日本", "dt=😀", 'dt="q"\\', "x/y z/=="])
def test_odd_paths_are_exact(version: int, odd: str) -> None:
    table = days(version).commit(4, {odd: {base_name("g4", 4): b"four"}})
    gather(table.state())
    assert told(gather(table.state()))[odd] == (at(4), 4)


@VERSIONS
def test_only_latest_slices_count(version: int) -> None:
    table = days(version, mor=True)
    gather(table.state())
    log = log_name("g1", 1 if version == 6 else 4)
    table.commit(4, {A: {log: b"12345"}})
    assert refreshed(table)[A] == (at(4), 6)
    table.commit(5, {A: {base_name("g1", 5): b"1234"}}, action="commit", operation="COMPACT")
    # The compaction changed the size and no row.
    assert refreshed(table)[A] == (at(4), 4)


@VERSIONS
@pytest.mark.parametrize("operation", ["CLUSTER", "UPSERT"])
def test_maintenance_is_no_modification(version: int, operation: str) -> None:
    table = days(version)
    gather(table.state())
    extra = {} if operation == "CLUSTER" else {RESCALED: ""}
    table.commit(
        4, {A: {base_name("g4", 4): b"1234567"}}, replaced={A: ["g1"]}, operation=operation,
        extra=extra,
    )  # fmt: skip
    assert refreshed(table)[A] == (at(1), 7)
    assert told(gather(table.state(), rebuild=True))[A] == (at(1), 7)


def test_what_is_no_modification_is_what_the_change_stream_leaves_out() -> None:
    assert MAINTENANCE == changes_plan._MAINTENANCE


@VERSIONS
def test_deleted_partitions_leave_and_come_back_with_new_rows(version: int) -> None:
    table = days(version)
    gather(table.state())
    table.commit(4, replaced={A: ["g1"], B: ["g2"]}, operation="DELETE_PARTITION")
    assert refreshed(table) == {C: (at(3), 3)}
    table.commit(5, {A: {base_name("g5", 5): b"55555"}})
    assert refreshed(table) == {A: (at(5), 5), C: (at(3), 3)}


def test_a_write_that_completes_late_is_not_missed() -> None:
    for version in (6, 9):
        table = days(version)
        gather(table.state())
        # Requested before the newest that was seen, completed after it.
        table.commit(2, None)
        table.commit(5, {B: {base_name("g2", 5): b"bbbbb"}})
        gather(table.state())
        table.commit(4, {A: {base_name("g1", 4): b"aaaa"}}, completed=6)
        assert refreshed(table)[A] == (at(4), 4)


# -------------------------------------------------------------------------- what it costs


@VERSIONS
@pytest.mark.parametrize("mor", [False, True])
def test_a_refresh_opens_the_new_instants_and_lists_what_they_touched(
    version: int, mor: bool
) -> None:
    table = days(version, mor=mor)
    gather(table.state())
    for minute in (4, 5):
        table.commit(minute, {A: {base_name("g1", minute): b"12345"}})
    table.commit(6, {"dt=new": {base_name("g6", 6): b"123456"}})
    calls, stats = calls_of(table)
    assert told(stats)[A] == (at(5), 5)
    assert told(stats)["dt=new"] == (at(6), 6)
    stem = {m: at(m) if version == 6 else f"{at(m)}_{completion(m)}" for m in (4, 5, 6)}
    action = "deltacommit" if mor else "commit"
    assert sorted((c.verb, c.path) for c in calls) == sorted(
        [
            ("list", STATISTICS_FOLDER),
            ("read", f"{STATISTICS_FOLDER}/{at(3)}.json"),
            *(("read", f"{table.timeline}/{stem[m]}.{action}") for m in (4, 5, 6)),
            ("list", A),
            ("list", "dt=new"),
            ("writer", f"{STATISTICS_FOLDER}/{at(6)}.json"),
            ("list", STATISTICS_FOLDER),
            ("delete", ""),
        ]
    )


@VERSIONS
def test_nothing_new_costs_one_listing_and_one_reading(version: int) -> None:
    table = days(version)
    gather(table.state())
    calls, stats = calls_of(table)
    assert [c.verb for c in calls] == ["list", "read"]
    assert len(stats.partitions) == 3


@VERSIONS
def test_cleanings_cost_nothing(version: int) -> None:
    table = days(version)
    gather(table.state())
    table.cleaned(4, earliest=2)
    calls, _ = calls_of(table)
    assert [c.verb for c in calls] == ["list", "read"]


# ------------------------------------------------------------------------------ taking back


@VERSIONS
def test_a_write_that_is_rolled_back_gives_back_the_time_before(version: int) -> None:
    table = days(version)
    table.commit(4, {A: {base_name("g1", 4): b"four"}, "dt=new": {base_name("n", 4): b"n"}})
    gather(table.state())
    files = {A: [base_name("g1", 4)], "dt=new": [base_name("n", 4)]}
    rolled_back(table, 5, 4, "commit", files)
    calls, _ = calls_of(table)
    assert "walk" not in {call.verb for call in calls}
    assert refreshed(table) == {A: (at(1), 1), B: (at(2), 2), C: (at(3), 3)}


@VERSIONS
def test_a_compaction_that_is_rolled_back_gives_back_the_size_before(version: int) -> None:
    table = days(version, mor=True)
    table.commit(4, {A: {log_name("g1", 1 if version == 6 else 4): b"12345"}})
    compacted = base_name("g1", 5)
    table.commit(5, {A: {compacted: b"1234"}}, action="commit", operation="COMPACT")
    assert told(gather(table.state()))[A] == (at(4), 4)
    rolled_back(table, 6, 5, "commit", {A: [compacted]})
    assert refreshed(table)[A] == (at(4), 6)


@VERSIONS
def test_after_a_restore_the_table_is_listed(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    table = days(version)
    table.commit(4, {A: {base_name("g1", 4): b"four"}})
    gather(table.state())
    for file in list(table.storage.list(table.timeline)):
        if file.path.rpartition("/")[2].startswith(at(4)):
            table.storage.delete([file.path])
    table.storage.delete([f"{A}/{base_name('g1', 4)}"])
    table.instant(5, None, "restore", encode_restore(RestoreMetadata(at(5), 1, (at(4),))))
    with caplog.at_level(logging.INFO):
        assert told(gather(table.state()))[A] == (at(1), 1)
    why = [record.facts["why"] for record in caplog.records if "continued" in record.message]  # type: ignore[attr-defined]
    assert why == ["the table was restored"]


@VERSIONS
def test_a_replacement_that_is_rolled_back_brings_its_partitions_back(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    table = days(version)
    table.commit(4, replaced={A: ["g1"]}, operation="DELETE_PARTITION")
    table.commit(5, {B: {base_name("g2", 5): b"55555"}})
    assert A not in told(gather(table.state()))
    rolled_back(table, 6, 4, "replacecommit", {})
    with caplog.at_level(logging.INFO):
        assert told(gather(table.state()))[A] == (at(1), 1)
    why = [record.facts["why"] for record in caplog.records if "continued" in record.message]  # type: ignore[attr-defined]
    assert why == [f"the replacement {at(4)} was rolled back"]


@VERSIONS
def test_what_was_archived_meanwhile_is_found_by_a_listing(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    table = days(version)
    gather(table.state())
    for minute in (4, 5):
        table.commit(minute, {A: {base_name("g1", minute): b"z" * minute}})
    for file in list(table.storage.list(table.timeline)):
        if file.path.rpartition("/")[2] < at(5):
            table.storage.delete([file.path])
    with caplog.at_level(logging.INFO):
        stats = gather(table.state())
    assert told(stats)[A] == (at(5), 5)
    assert told(stats)[C] == (at(3), 3)
    why = [record.facts["why"] for record in caplog.records if "continued" in record.message]  # type: ignore[attr-defined]
    assert why == ["instants may have been archived since"]


# ------------------------------------------------------------------------------ the store


def test_two_files_are_kept() -> None:
    table = days()
    for minute in range(4, 9):
        table.commit(minute, {A: {base_name("g1", minute): b"x"}})
        gather(table.state())
    assert kept(table) == [f"{at(7)}.json", f"{at(8)}.json"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"Instant": "x", "Seen": [], "Pending": [], "Partitions": []}',
        b'{"Instant": "20261115000300000", "Seen": [1], "Pending": [], "Partitions": []}',
        b'{"Instant": "20261115000300000", "Seen": [], "Pending": [], "Partitions": [{}]}',
        b'{"RelativePath": "a", "LastModifiedTime": "never", "PartitionTotalFileSize": 1}',
        b'{"RelativePath": "a", "LastModifiedTime": "20261115000300000", '
        b'"PartitionTotalFileSize": 1}',
        b'{"Instant": "20261115000300000", "Seen": [], "Pending": [], "Partitions": [{'
        b'"RelativePath": "a", "LastModifiedTime": "20261115000300000", '
        b'"PartitionTotalFileSize": -1}]}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_said_and_replaced(
    damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    table = days()
    true = gather(table.state())
    for instant in (at(3), "9" * 17):
        path = f"{STATISTICS_FOLDER}/{instant}.json"
        table.storage.write(path, damage)
        assert verify(table.state())[0] == f"{path} cannot be read"
        caplog.clear()
        assert gather(table.state()) == true
        assert "cannot be read" in caplog.text
        assert kept(table) == [f"{at(3)}.json"]
        assert verify(table.state()) == ()


def test_verify_names_what_differs_and_changes_nothing() -> None:
    table = days()
    gather(table.state())
    path = f"{STATISTICS_FOLDER}/{at(3)}.json"
    text = table.storage.read(path).decode()
    wrong = text.replace(A, "dt=gone").replace('Size": 2', 'Size": 7')
    wrong = wrong.replace(f'Time": "{at(3)}', f'Time": "{at(2)}')
    table.storage.write(path, wrong.encode())
    assert verify(table.state()) == (
        f"'{A}' holds files and is not in the statistics",
        f"'{B}' has 2 bytes, the statistics say 7",
        f"'{C}' was modified by {at(3)}, the statistics say {at(2)}",
        "'dt=gone' is in the statistics and holds no files",
    )
    assert table.storage.read(path) == wrong.encode()
    gather(table.state(), rebuild=True)
    assert verify(table.state()) == ()


def test_who_may_not_write_gets_statistics_that_are_not_kept() -> None:
    table = days()
    denied = Fault("writer", error=lambda: Denied("no"))
    stats = gather(open_state(FaultyStorage(table.storage, [denied])))
    assert len(stats.partitions) == 3
    assert kept(table) == []


def test_files_of_others_in_the_folder_are_left_alone() -> None:
    table = days().touch(f"{STATISTICS_FOLDER}/notes.txt").touch(f"{STATISTICS_FOLDER}/x.json")
    gather(table.state())
    assert kept(table) == [f"{at(3)}.json", "notes.txt", "x.json"]


def test_an_old_picture_of_the_table_does_no_harm() -> None:
    table = days()
    old = table.state()
    table.commit(4, {A: {base_name("g1", 4): b"four"}})
    new = gather(table.state())
    assert told(gather(old))[A] == (at(1), 1)
    assert gather(table.state()) == new
    assert verify(table.state()) == ()


def test_a_crash_at_any_call_does_no_harm() -> None:
    def begun() -> TinyTable:
        table = days()
        gather(table.state())
        table.commit(4, {A: {base_name("g1", 4): b"four"}})
        gather(table.state())
        table.commit(5, replaced={B: ["g2"]}, operation="DELETE_PARTITION")
        return table

    counting = FaultyStorage(begun().storage)
    gather(open_state(counting))
    expected = {A: (at(4), 4), C: (at(3), 3)}
    died = 0
    for number in range(len(counting.calls)):
        for after in (False, True):
            table = begun()
            storage = FaultyStorage(table.storage, [Fault(at=number, after=after, error=Crash)])
            with pytest.raises(Crash):
                gather(open_state(storage))
            died += 1
            assert verify(table.state()) == ()
            assert told(gather(table.state())) == expected
            assert len(kept(table)) <= 3
    assert died > 10


def test_two_gatherings_at_once_do_no_harm() -> None:
    """The second runs whole at every call of the first, on a table that has gone on."""

    def begun() -> TinyTable:
        table = days()
        gather(table.state())
        return table.commit(4, {A: {base_name("g1", 4): b"four"}})

    counting = FaultyStorage(begun().storage)
    gather(open_state(counting))
    for number in range(len(counting.calls)):
        table = begun()

        def rival(table: TinyTable = table) -> None:
            table.commit(5, {B: {base_name("g2", 5): b"fives"}})
            assert told(gather(table.state()))[B] == (at(5), 5)

        gather(open_state(_Meanwhile(table.storage, number, rival)))
        assert refreshed(table) == {A: (at(4), 4), B: (at(5), 5), C: (at(3), 3)}


class _Meanwhile(FaultyStorage):
    """Runs something else before one of its calls."""

    def __init__(self, inner: object, number: int, act: object) -> None:
        assert isinstance(inner, MemoryStorage)
        super().__init__(inner)
        self._number, self._act = number, act

    def _begin(self, verb: str, path: str) -> Fault | None:
        if len(self.calls) == self._number:
            self._number = -1
            assert callable(self._act)
            self._act()
        return super()._begin(verb, path)


def test_values_are_small() -> None:
    assert not hasattr(PartitionStat(A, at(1), 1), "__dict__")
