"""Which slices a compaction takes, and when one is due."""

import datetime as dt

import pytest

from lakewright.actions.services.compaction_choice import Choice, partition_day
from lakewright.actions.services.compaction_options import (
    PACKAGE,
    STRATEGY,
    PlanSettings,
    Strategy,
)
from lakewright.actions.services.compaction_triggers import compaction_due, log_compaction_due
from lakewright.format.hudi.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
)
from lakewright.model.errors import InvalidOption
from lakewright.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from lakewright.model.instant import Action, instant_datetime
from lakewright.table.state import open_state
from lakewright.timeline.storage_upkeep import StorageUpkeep
from support.commits import Write, committer
from support.tiny_tables import TinyTable

MB = 1 << 20
TODAY = dt.date(2026, 11, 16)


def piece(group: str, *logs: int, base: int | None = MB, partition: str = "p") -> FileSlice:
    at = "20261101000000000"
    return FileSlice(
        FileGroupId(partition, group),
        at,
        None if base is None else BaseFile(partition, f"{group}.parquet", group, "0", at, base),
        tuple(
            LogFile(partition, f".{group}.log.{n}", group, at, n, "0-0-0", size=size)
            for n, size in enumerate(logs)
        ),
    )


def chosen(pieces: list[FileSlice], **settings: object) -> tuple[list[str], dict[str, int]]:
    choice = Choice(PlanSettings(**settings), 120 * MB, TODAY)  # type: ignore[arg-type]
    for found in pieces:
        choice.add(found)
    settled = choice.settled()
    assert settled.settled().chosen() == settled.chosen()
    return [c.piece.group.file_id for c in settled.chosen()], dict(settled.passed_over)


def test_the_largest_logs_come_first_up_to_the_bytes_allowed() -> None:
    pieces = [piece("small", 1 * MB), piece("large", 9 * MB), piece("middle", 3 * MB, MB)]
    assert chosen(pieces)[0] == ["large", "middle", "small"]
    # The group that reaches the bound is in the plan, as in Hudi; the rest is not.
    found, passed = chosen(pieces, target_io=12)
    assert found == ["large", "middle"]
    assert passed == {"beyond 12 MB of one plan": 1}
    assert chosen(pieces, target_io=0)[0] == ["large"]
    assert chosen(pieces, least_log_bytes=2 * MB)[0] == ["large", "middle"]


def test_the_most_logs_come_first() -> None:
    pieces = [piece("one", 9 * MB), piece("three", 1, 1, 1), piece("two", 1, 1)]
    settings = {"strategy": Strategy.LOG_FILE_NUM}
    assert chosen(pieces, **settings)[0] == ["three", "two", "one"]
    assert chosen(pieces, **settings, least_logs=2)[0] == ["three", "two"]


def test_slices_are_taken_as_they_come() -> None:
    pieces = [piece("b", MB), piece("a", 9 * MB), piece("c", MB)]
    assert chosen(pieces, strategy=Strategy.UNBOUNDED, target_io=1)[0] == ["b", "a", "c"]
    assert chosen(pieces, strategy=Strategy.BOUNDED_IO, target_io=4)[0] == ["b", "a"]


def test_a_plan_has_no_more_groups_than_allowed() -> None:
    pieces = [piece(f"g{n:04d}", n) for n in range(1000)]
    found, passed = chosen(pieces, most_groups=3)
    assert found == ["g0999", "g0998", "g0997"]
    assert passed == {"beyond 3 groups of one plan": 997}


def test_partitions_by_day() -> None:
    days = ["dt=2026-11-16", "dt=2026-11-01", "2026/11/10", "other"]
    pieces = [piece(day, 1, partition=day) for day in days]
    newest = {"strategy": Strategy.DAY_BASED, "target_partitions": 2}
    assert chosen(pieces, **newest)[0] == ["dt=2026-11-16", "2026/11/10"]
    recent = {"strategy": Strategy.BOUNDED_PARTITIONS, "target_partitions": 10}
    assert chosen(pieces, **recent)[0] == ["dt=2026-11-16", "2026/11/10"]
    old = {"strategy": Strategy.UNBOUNDED_PARTITIONS, "target_partitions": 10}
    found, passed = chosen(pieces, **old)
    assert found == ["dt=2026-11-01"]
    assert passed["the partition's path is no date"] == 1
    some = {"strategy": Strategy.PARTITION_REGEX, "partition_pattern": "dt=.*"}
    assert chosen(pieces, **some)[0] == ["dt=2026-11-16", "dt=2026-11-01"]


def test_days_are_read_from_paths() -> None:
    day = dt.date(2026, 11, 5)
    for path in ("2026/11/05", "2026-11-05", "20261105", "y=2026/m=11/d=05", "dt=2026-11-05/h=1"):
        assert partition_day(path) == day, path
    for path in ("", "x", "2026-13-05", "123456789"):
        assert partition_day(path) is None, path


def test_the_figures_of_a_plan_are_those_of_hudi() -> None:
    choice = Choice(PlanSettings(), 120 * MB, TODAY)
    choice.add(piece("a", 3 * MB, MB, base=10 * MB + 5))
    choice.add(piece("b", MB - 1, base=None))
    with_base, without = (found.operation().metrics for found in choice.chosen())
    assert with_base == {
        "TOTAL_IO_READ_MB": 14.0,
        "TOTAL_IO_WRITE_MB": 10.0,
        "TOTAL_IO_MB": 24.0,
        "TOTAL_LOG_FILES_SIZE": 4.0 * MB,
        "TOTAL_LOG_FILES": 2.0,
    }
    assert (without["TOTAL_IO_READ_MB"], without["TOTAL_IO_WRITE_MB"]) == (0.0, 120.0)


def test_what_is_looked_at_again_counts_once() -> None:
    choice = Choice(PlanSettings(target_io=100), 120 * MB, TODAY)
    choice.add(piece("a", MB, partition="x"))
    choice.add(piece("b", 2 * MB, partition="y"))
    choice.forget({"y"})
    choice.add(piece("b", 3 * MB, partition="y"))
    choice.leave({("x", "a")}, "taken")
    assert [c.log_bytes for c in choice.chosen()] == [3 * MB]
    assert choice.passed_over == {"taken": 1}
    assert choice.missing == {"x"}


def test_strategies_go_by_hudis_names() -> None:
    for name in (Strategy.DAY_BASED.value, PACKAGE + Strategy.DAY_BASED.value):
        assert STRATEGY.read({STRATEGY.key: name}).chain == (Strategy.DAY_BASED,)
    with pytest.raises(InvalidOption, match="not allowed"):
        STRATEGY.read({STRATEGY.key: "org.example.Mine"})


@pytest.mark.parametrize("version", [9, 6])
def test_when_a_compaction_is_due(version: int) -> None:
    storage = TinyTable(version, mor=True).storage
    keys = {
        "trigger": "hoodie.compact.inline.trigger.strategy",
        "commits": "hoodie.compact.inline.max.delta.commits",
        "seconds": "hoodie.compact.inline.max.delta.seconds",
    }

    def due(now: dt.datetime | None = None, **options: str) -> bool:
        view = open_state(storage).timeline
        given = {keys[name]: value for name, value in options.items()}
        return compaction_due(view, given, now) is not None

    def delta() -> str:
        return Write.begin(storage, action=Action.DELTACOMMIT).log("a").publish().requested

    assert not due(commits="1")
    first = delta()
    delta()
    assert due(commits="2")
    assert not due(commits="3")
    soon = instant_datetime(first) + dt.timedelta(seconds=59)
    late = instant_datetime(first) + dt.timedelta(seconds=61)
    by_time = {"trigger": "time_elapsed", "seconds": "60"}
    assert (due(soon, **by_time), due(late, **by_time)) == (False, True)
    for commits, now, both, either in (
        ("2", late, True, True),
        ("3", late, False, True),
        ("2", soon, False, True),
        ("3", soon, False, False),
    ):
        given = {"commits": commits, "seconds": "60"}
        assert due(now, trigger="NUM_AND_TIME", **given) is both
        assert due(now, trigger="NUM_OR_TIME", **given) is either

    plan = StorageUpkeep(storage, open_state(storage).config, {}).schedule(
        Action.COMPACTION, lambda view, instant: _plan()
    )
    assert plan is not None
    # A plan counts where requests are counted, and nowhere else before it is carried out.
    assert due(commits="2")
    assert not due(commits="1", trigger="NUM_COMMITS_AFTER_LAST_REQUEST")
    by = committer(storage)
    Write(storage, by.take(plan, "COMPACT"), by).base("a").publish()
    assert not due(commits="1")
    delta()
    assert due(commits="1")
    assert due(commits="1", trigger="NUM_COMMITS_AFTER_LAST_REQUEST")


def test_when_slices_with_many_logs_are_looked_for() -> None:
    storage = TinyTable(9, mor=True).storage
    for _ in range(3):
        Write.begin(storage, action=Action.DELTACOMMIT).log("a").publish()
    view = open_state(storage).timeline
    threshold = "hoodie.log.compaction.blocks.threshold"
    assert log_compaction_due(view, {threshold: "3"})
    assert log_compaction_due(view, {threshold: "4"}) is None


def test_copy_on_write_tables_are_never_due() -> None:
    storage = TinyTable(9).storage
    Write.begin(storage).base("a").publish()
    assert compaction_due(open_state(storage).timeline, {}) is None


def _plan() -> bytes:
    operation = CompactionOperation(None, (), None, "a", "dt=1")
    return encode_compaction_plan(CompactionPlan((operation,)))


def test_strategies_are_chained() -> None:
    pieces = [
        piece("a", 9 * MB, partition="x"),
        piece("b", 8 * MB, MB, MB, partition="x"),
        piece("c", 1 * MB, 1 * MB, partition="y"),
        piece("d", 7 * MB, partition="y"),
    ]
    by_size = PlanSettings.of({STRATEGY.key: f"log_file_size,{PACKAGE}{Strategy.LOG_FILE_NUM}"})
    assert (by_size.strategy, by_size.then) == (Strategy.LOG_FILE_SIZE, (Strategy.LOG_FILE_NUM,))
    assert by_size.name == f"{Strategy.LOG_FILE_SIZE},{Strategy.LOG_FILE_NUM}"
    # The first says which, the last in what order.
    chain = {"strategy": Strategy.LOG_FILE_SIZE, "then": (Strategy.LOG_FILE_NUM,)}
    assert chosen(pieces, **chain, target_io=30)[0] == ["b", "a", "d"]
    # What a later one refuses is not made up for by what an earlier one left out.
    some = {"then": (Strategy.PARTITION_REGEX,), "partition_pattern": "y"}
    found, passed = chosen(pieces, **some, target_io=30)
    assert found == ["d"]
    assert passed == {"beyond 30 MB of one plan": 1, "the partition does not match y": 2}
    with pytest.raises(InvalidOption, match="Nothing"):
        STRATEGY.read({STRATEGY.key: "unbounded,Nothing"})
