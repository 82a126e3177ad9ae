"""Listing tables: what is found, what is left out, and what is never looked at."""

import re
from collections.abc import Iterator, Mapping, Sequence

import pytest

from lakewright.model.errors import HistoryGone, Invalid
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.build import col
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.parse import parse_expression
from lakewright.model.files import FileSlice, PartitionDescriptor
from lakewright.model.instant import instant_datetime
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import FileStat, Folder
from lakewright.table.file_index import FileIndex
from lakewright.table.horizon import window
from lakewright.table.pruning import Reason, Tally
from lakewright.table.state import TableState, table_schema
from support.tiny_tables import TinyTable, at, base_name, completion, log_name, parquet_bytes

VERSIONS = pytest.mark.parametrize("version", [6, 9])
#: Listed at the end of every stream: nothing may have been taken away meanwhile.
TIMELINE = ".hoodie/timeline"


def where(state: TableState, text: str) -> list[BoundExpression]:
    return [bind(parse_expression(text), table_schema(state))]


def groups(parts: Iterator[object]) -> dict[str, list[str]]:
    return {
        part.descriptor.path: [piece.group.file_id for piece in part.file_slices]  # type: ignore[attr-defined]
        for part in parts
    }


class Watching(MemoryStorage):
    """Remembers which folders were looked into."""

    looked: list[str]

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        self.looked.append(folder)
        return super().list(folder, recursive=recursive, stats=stats)

    def folders(self, folder: str = "") -> Sequence[str]:
        self.looked.append(folder)
        return super().folders(folder)

    def walk(
        self, folder: str = "", *, sizes: bool = True, skip: frozenset[str] = frozenset()
    ) -> Iterator[Folder]:
        self.looked.append(folder)
        return super().walk(folder, sizes=sizes, skip=skip)


def days(table: TinyTable, prefix: str = "dt=") -> TinyTable:
    for number, day in enumerate(("2026-11-01", "2026-11-02", "2026-11-03"), 1):
        table.commit(number, {f"{prefix}{day}": {base_name(f"g{number}", number): b"x"}})
    return table


@VERSIONS
def test_a_snapshot_has_the_live_slices_of_every_partition(version: int) -> None:
    state = days(TinyTable(version)).state()
    parts = {p.descriptor.path: p for p in FileIndex(state).list_files_at()}
    assert sorted(parts) == ["dt=2026-11-01", "dt=2026-11-02", "dt=2026-11-03"]
    first = parts["dt=2026-11-01"]
    assert first.descriptor.values == {"dt": "2026-11-01"}
    assert first.latest_instant == state.timeline.latest_data()
    assert first.file_slices[0].size == 1
    assert {p.path for p in FileIndex(state).partitions()} == set(parts)


@VERSIONS
def test_time_travel_lists_what_was_there(version: int) -> None:
    index = FileIndex(days(TinyTable(version)).state())
    parts = list(index.list_files_at(at(2)))
    assert groups(iter(parts)) == {"dt=2026-11-01": ["g1"], "dt=2026-11-02": ["g2"]}
    assert parts[0].latest_instant is not None
    assert parts[0].latest_instant.requested == at(2)
    assert groups(index.list_files_at(at(0))) == {}


@VERSIONS
def test_a_cleaned_time_is_refused_before_anything_is_listed(version: int) -> None:
    index = FileIndex(days(TinyTable(version)).cleaned(4, earliest=2).state())
    with pytest.raises(HistoryGone, match="cleaned away") as gone:
        index.list_files_at(at(1))
    assert gone.value.facts["earliest"] == at(2)
    assert groups(index.list_files_at(at(2))) == {"dt=2026-11-01": ["g1"], "dt=2026-11-02": ["g2"]}
    with pytest.raises(HistoryGone):
        index.list_files_between(None, at(1) if version == 6 else completion(1))


@VERSIONS
def test_replaced_groups_vanish_and_come_back_in_time_travel(version: int) -> None:
    table = days(TinyTable(version))
    table.commit(
        4, {"dt=2026-11-01": {base_name("g4", 4): b"x"}}, replaced={"dt=2026-11-01": ["g1"]}
    )
    table.commit(5, replaced={"dt=2026-11-02": ["g2"]}, operation="DELETE_PARTITION")
    index = FileIndex(table.state())
    assert groups(index.list_files_at()) == {"dt=2026-11-01": ["g4"], "dt=2026-11-03": ["g3"]}
    assert groups(index.list_files_at(at(3)))["dt=2026-11-01"] == ["g1"]
    assert {p.path for p in index.partitions()} == {"dt=2026-11-01", "dt=2026-11-03"}


def test_an_unpartitioned_table_is_one_partition_even_when_empty() -> None:
    table = TinyTable(partition_by="")
    [empty] = FileIndex(table.commit(1).state()).list_files_at()
    assert (empty.descriptor, empty.file_slices) == (PartitionDescriptor("", {}), ())
    table.commit(2, {"": {base_name("g", 2): b"xy"}})
    assert groups(FileIndex(table.state()).list_files_at()) == {"": ["g"]}
    assert [p.path for p in FileIndex(table.state()).partitions()] == [""]


def test_hidden_folders_and_foreign_files_are_no_partitions() -> None:
    table = days(TinyTable()).touch("_tmp/file.txt").touch("dt=2026-11-01/_SUCCESS")
    table.touch(f".spark-staging/dt=2026-11-01/{base_name('x', 1)}")
    table.touch(f"dt=2026-11-09/{base_name('y', 9)}").touch("README.md")
    assert set(groups(FileIndex(table.state()).list_files_at())) == {
        "dt=2026-11-01", "dt=2026-11-02", "dt=2026-11-03",
    }  # fmt: skip
    assert len(list(FileIndex(table.state()).partitions())) == 3


def watched(partition_by: str = "dt", **properties: str) -> tuple[TinyTable, list[str]]:
    storage = Watching(f"memory://watched-{id(object())}-{partition_by}-{len(properties)}/t", {})
    looked: list[str] = []
    Watching.looked = looked
    return TinyTable(partition_by=partition_by, storage=storage, **properties), looked


def test_a_partition_filter_lists_only_the_folders_it_keeps() -> None:
    table, looked = watched()
    state = days(table).state()
    filters = where(state, "dt = '2026-11-02'")
    tally = Tally()
    looked.clear()
    assert groups(FileIndex(state).list_files_at(None, filters, tally=tally)) == {
        "dt=2026-11-02": ["g2"]
    }
    assert looked == ["", "dt=2026-11-02", TIMELINE]
    report = tally.report()
    assert (report.partitions, report.partitions_kept) == (3, 1)
    assert report.left_out == {Reason.PARTITION: 2}
    assert "partitions 1 of 3" in str(report)


def test_levels_are_pruned_one_by_one() -> None:
    table, looked = watched("dt,hour")
    for number, (day, hour) in enumerate([("a", 1), ("a", 2), ("b", 1), ("b", 2)], 1):
        table.commit(number, {f"dt={day}/hour={hour}": {base_name(f"g{number}", number): b""}})
    state = table.state()
    looked.clear()
    found = groups(FileIndex(state).list_files_at(None, where(state, "dt = 'b' and hour > 1")))
    assert found == {"dt=b/hour=2": ["g4"]}
    assert looked == ["", "dt=b", "dt=b/hour=2", TIMELINE]
    looked.clear()
    found = groups(FileIndex(state).list_files_at(None, where(state, "dt = 'a'")))
    assert found == {"dt=a/hour=1": ["g1"], "dt=a/hour=2": ["g2"]}
    assert looked == ["", "dt=a", TIMELINE]


@pytest.mark.parametrize("hive", ["true", "false"])
def test_a_value_that_goes_over_several_folders_is_not_pruned_by_its_first(hive: str) -> None:
    table = TinyTable(hoodie__datasource__write__hive_style_partitioning=hive)
    prefix = "dt=" if hive == "true" else ""
    for number, day in enumerate(("2025/12/31", "2026/11/01", "2026/11/02"), 1):
        table.commit(number, {f"{prefix}{day}": {base_name(f"g{number}", number): b""}})
    state = table.state()
    found = groups(FileIndex(state).list_files_at(None, where(state, "dt > '2026/11/01'")))
    assert found == {f"{prefix}2026/11/02": ["g3"]}
    found = groups(FileIndex(state).list_files_at(None, where(state, "dt = '2026/11/01'")))
    assert found == {f"{prefix}2026/11/01": ["g2"]}


def test_plain_levels_are_pruned_after_the_walk_where_a_value_could_hold_a_slash() -> None:
    table = TinyTable(
        partition_by="dt,hour", hoodie__datasource__write__hive_style_partitioning="false"
    )
    table.commit(1, {"a/1": {base_name("g1", 1): b""}, "a/x/1": {base_name("g2", 1): b""}})
    state = table.state()
    # "a/x/1" has one level more than there are columns: its values are unknown, so it stays.
    found = groups(FileIndex(state).list_files_at(None, where(state, "hour = 1")))
    assert found == {"a/1": ["g1"], "a/x/1": ["g2"]}
    found = groups(FileIndex(state).list_files_at(None, where(state, "hour = 2")))
    assert found == {"a/x/1": ["g2"]}


def test_null_and_unreadable_partitions_follow_sql() -> None:
    table = TinyTable(partition_by="hour")
    for number, folder in enumerate(("1", "__HIVE_DEFAULT_PARTITION__", "odd"), 1):
        table.commit(number, {f"hour={folder}": {base_name(f"g{number}", number): b""}})
    state = table.state()
    found = groups(FileIndex(state).list_files_at(None, where(state, "hour = 2")))
    assert found == {"hour=odd": ["g3"]}, "what does not read as the column's type is kept"
    found = groups(FileIndex(state).list_files_at(None, where(state, "hour is null")))
    assert set(found) == {"hour=__HIVE_DEFAULT_PARTITION__", "hour=odd"}


def numbered() -> TinyTable:
    return TinyTable(mor=True).commit(
        1,
        {
            "dt=a": {
                base_name("low", 1): parquet_bytes(["k1", "k2"], [1, 9]),
                base_name("high", 1): parquet_bytes(["k3", "k4"], [10, 99]),
                base_name("logged", 1): parquet_bytes(["k5"], [1]),
                log_name("logged", 1): b"",
                base_name("broken", 1): b"no parquet",
            }
        },
    )


def test_footers_leave_out_files_but_never_those_with_logs_or_unreadable_ones() -> None:
    state = numbered().state()
    tally = Tally()
    found = groups(FileIndex(state).list_files_at(None, where(state, "n > 9"), tally=tally))
    assert found == {"dt=a": ["broken", "high", "logged"]}
    assert tally.report().left_out == {Reason.STATISTICS: 1}
    assert tally.report().slices == 4
    assert tally.report().slices_kept == 3
    assert tally.report().files_kept == 4


def test_footers_are_not_read_beyond_their_number() -> None:
    state = numbered().state()
    unread = FileIndex(state, footers=0).list_files_at(None, where(state, "n > 1000"))
    assert len(groups(unread)["dt=a"]) == 4
    few = FileIndex(state, footers=2).list_files_at(None, where(state, "n > 1000"))
    assert len(groups(few)["dt=a"]) == 3


def test_an_index_may_leave_out_slices_too() -> None:
    class OnlyHigh:
        def keep(
            self,
            partition: PartitionDescriptor,
            slices: Sequence[FileSlice],
            filters: Sequence[BoundExpression],
        ) -> Sequence[FileSlice]:
            return [piece for piece in slices if piece.group.file_id == "high"]

    state = numbered().state()
    tally = Tally()
    index = FileIndex(state, OnlyHigh(), footers=0)
    found = groups(index.list_files_at(None, where(state, "id = 'k3'"), tally=tally))
    assert found == {"dt=a": ["high"]}
    assert tally.report().left_out == {Reason.INDEX: 3}
    assert len(groups(index.list_files_at())["dt=a"]) == 4, "without a filter nobody is asked"


@VERSIONS
def test_a_window_lists_the_groups_it_wrote_in_the_partitions_it_touched(version: int) -> None:
    storage = Watching(f"memory://window-{version}-{id(object())}/t", {})
    looked: list[str] = []
    Watching.looked = looked
    table = days(TinyTable(version, storage=storage))
    table.commit(5, {"dt=2026-11-01": {base_name("g1", 5): b"x", base_name("new", 5): b"x"}})
    state = table.state()
    edge = completion(2) if version == 9 else at(2)
    looked.clear()
    parts = list(FileIndex(state).list_files_between(edge, None))
    assert groups(iter(parts)) == {"dt=2026-11-01": ["g1", "new"], "dt=2026-11-03": ["g3"]}
    assert [i.requested for i in parts[0].timeline] == [at(5)]
    assert [i.requested for i in window(state, edge, None)] == [at(3), at(5)]
    assert "dt=2026-11-02" not in looked
    end = completion(3) if version == 9 else at(3)
    assert groups(FileIndex(state).list_files_between(edge, end)) == {"dt=2026-11-03": ["g3"]}
    assert groups(FileIndex(state).list_files_between(edge, edge)) == {}
    kept = FileIndex(state).list_files_between(edge, None, where(state, "dt > '2026-11-02'"))
    assert groups(kept) == {"dt=2026-11-03": ["g3"]}


@VERSIONS
def test_a_window_passes_over_groups_that_were_only_compacted(version: int) -> None:
    table = TinyTable(version, mor=True)
    table.commit(1, {"dt=a": {base_name("g", 1): b"x", base_name("h", 1): b"x"}})
    table.commit(2, {"dt=a": {log_name("h", 1 if version == 6 else 2): b"x"}})
    table.commit(
        3,
        {"dt=a": {base_name("g", 3): b"x", base_name("h", 3): b"x"}},
        action="commit",
        operation="COMPACT",
    )
    edge = completion(1) if version == 9 else at(1)
    [part] = FileIndex(table.state()).list_files_between(edge, None)
    assert [(p.group.file_id, p.base_instant) for p in part.file_slices] == [("h", at(3))]


def test_a_window_ends_with_what_had_completed_by_then() -> None:
    table = TinyTable(9)
    table.commit(1, {"dt=a": {base_name("g", 1): b""}}, completed=2)
    table.commit(3, {"dt=a": {base_name("g", 3): b""}}, completed=8)
    table.commit(4, {"dt=a": {base_name("h", 4): b""}}, completed=5)
    index = FileIndex(table.state())
    [part] = index.list_files_between(None, completion(5))
    assert [(p.group.file_id, p.base_instant) for p in part.file_slices] == [
        ("g", at(1)),
        ("h", at(4)),
    ]
    [later] = index.list_files_between(completion(5), completion(8))
    assert [(p.group.file_id, p.base_instant) for p in later.file_slices] == [("g", at(3))]


def test_read_optimised_listing_drops_logs_and_groups_without_a_base() -> None:
    table = TinyTable(9, mor=True)
    table.commit(1, {"dt=a": {base_name("g", 1): b""}})
    table.commit(2, {"dt=a": {log_name("g", 2): b"", log_name("only", 2): b""}})
    index = FileIndex(table.state())
    [part] = index.list_files_at(read_optimized=True)
    assert [(p.group.file_id, p.logs) for p in part.file_slices] == [("g", ())]
    [full] = index.list_files_at()
    assert [(p.group.file_id, len(p.logs)) for p in full.file_slices] == [("g", 1), ("only", 1)]


def test_partition_values_are_those_of_the_path() -> None:
    table = TinyTable(partition_by="dt,hour").commit(1, {"dt=a/hour=7": {base_name("g", 1): b""}})
    [part] = FileIndex(table.state()).list_files_at()
    values: Mapping[str, object] = part.descriptor.values
    assert values == {"dt": "a", "hour": 7}


@VERSIONS
@pytest.mark.parametrize(
    "condition",
    ["dt = '2026-11-02'", col("dt") == "2026-11-02"],
    ids=["text", "expression"],
)
def test_conditions_are_taken_as_they_were_written(version: int, condition: Expression) -> None:
    index = FileIndex(days(TinyTable(version=version)).state())
    only = ["dt=2026-11-02"]
    assert [part.path for part in index.partitions([condition])] == only
    assert list(groups(index.list_files_at(None, [condition]))) == only
    assert list(groups(index.list_files_between(None, None, [condition]))) == only
    assert [group.id.partition for group in index.file_groups([condition])] == only


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (["nme = 1"], "no column 'nme'. Known: "),
        ([col("nme") == 1], "no column 'nme'. Known: "),
        ("dt = '2026-11-02'", "is one condition"),
        (col("dt") == "2026-11-02", "is one condition"),
        ([7], "7 is no condition"),
    ],
)
def test_wrong_conditions_are_refused_before_anything_is_listed(filters: object, told: str) -> None:
    index = FileIndex(days(TinyTable(version=9)).state())
    for ask in (
        lambda: index.list_files_at(None, filters),  # type: ignore[arg-type]
        lambda: index.list_files_between(None, None, filters),  # type: ignore[arg-type]
        lambda: next(index.partitions(filters)),  # type: ignore[arg-type]
        lambda: next(index.file_groups(filters)),  # type: ignore[arg-type]
    ):
        with pytest.raises(Invalid, match=re.escape(told)):
            ask()


@VERSIONS
def test_points_in_time_are_taken_in_every_form(version: int) -> None:
    index = FileIndex(days(TinyTable(version)).state())
    second = instant_datetime(at(2))
    until_second = groups(index.list_files_at(at(2)))
    assert len(until_second) == 2
    for point in (second, second.isoformat(), index.state.timeline.data()[1]):
        assert groups(index.list_files_at(point)) == until_second
    assert len(groups(index.list_files_at(second.date()))) == 3, "the day's commits are seen"
    assert not groups(index.list_files_between(second.date(), None))
    for wrong in ("zzz", "2026", ""):
        for ask in (
            lambda text=wrong: index.list_files_at(text),
            lambda text=wrong: index.list_files_between(text, None),
            lambda text=wrong: index.list_files_between(None, text),
            lambda text=wrong: index.state.timeline.between(text, None),
            lambda text=wrong: index.state.timeline.between(None, text),
        ):
            with pytest.raises(Invalid, match="neither an instant nor a time"):
                ask()
