"""The slicing rules of both layouts, from names alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.model.files import FileSlice
from lakewright.table.slicing import Listing, file_groups, latest_bases, latest_slices
from lakewright.table.visibility import Visibility


def at(minute: int) -> str:
    return f"202611150000{minute:02d}000"


def base(group: str, minute: int, token: str = "0-1-1") -> str:
    return f"{group}_{token}_{at(minute)}.parquet"


def log(group: str, minute: int, version: int = 1, token: str = "0-1-1") -> str:
    return f".{group}_{at(minute)}.log.{version}_{token}"


def listing(*names: str, partition: str = "dt=1") -> Listing:
    return Listing(partition, names, [10] * len(names))


def history(layout: int, done: dict[int, int], **more: object) -> Visibility:
    """``done`` maps requested to completion minutes; in layout 1 the two are equal."""
    completions = {at(r): at(c if layout == 2 else r) for r, c in done.items()}
    start = min(completions, default=None)
    settings: dict[str, object] = {"start": start, **more}
    return Visibility(
        layout=layout,
        completions=completions,
        completion_of=lambda requested: completions.get(requested, requested),
        **settings,  # type: ignore[arg-type]
    )


def shape(slices: list[FileSlice]) -> dict[str, tuple[str | None, list[str]]]:
    return {
        s.group.file_id: (s.base.name if s.base else None, [x.name for x in s.logs]) for s in slices
    }


BOTH = pytest.mark.parametrize("layout", [1, 2])


@BOTH
def test_the_newest_committed_base_file_of_each_group_counts(layout: int) -> None:
    files = listing(
        base("a", 1), base("a", 3), base("a", 5), base("b", 1), "notes.txt", "x.parquet"
    )
    visible = history(layout, {1: 2, 3: 4}, pending=frozenset({at(5)}))
    assert shape(latest_slices(files, visible)) == {
        "a": (base("a", 3), []),
        "b": (base("b", 1), []),
    }


@BOTH
def test_time_travel_goes_by_requested_time(layout: int) -> None:
    files = listing(base("a", 1), base("a", 3), base("b", 3))
    visible = history(layout, {1: 2, 3: 4}, as_of=at(1))
    assert shape(latest_slices(files, visible)) == {"a": (base("a", 1), [])}
    visible = history(layout, {1: 2, 3: 4}, as_of=at(3))
    assert shape(latest_slices(files, visible)) == {
        "a": (base("a", 3), []),
        "b": (base("b", 3), []),
    }


@BOTH
def test_files_older_than_the_timeline_are_committed_and_unknown_ones_within_it_are_not(
    layout: int,
) -> None:
    files = listing(base("old", 1), base("stray", 5), base("late", 9))
    visible = history(layout, {4: 4, 6: 6}, start=at(4))
    assert shape(latest_slices(files, visible)) == {"old": (base("old", 1), [])}


@BOTH
def test_a_pending_write_is_invisible_even_before_the_first_completed_one(layout: int) -> None:
    files = listing(base("a", 1), base("b", 4))
    visible = history(layout, {4: 4}, pending=frozenset({at(1)}))
    assert shape(latest_slices(files, visible)) == {"b": (base("b", 4), [])}


@BOTH
def test_replaced_groups_are_gone_in_their_partition_only(layout: int) -> None:
    visible = history(layout, {1: 2, 3: 4}, replaced={"dt=1": {"a": at(3)}})
    files = (base("a", 1), base("b", 3))
    assert shape(latest_slices(listing(*files), visible)) == {"b": (base("b", 3), [])}
    assert len(latest_slices(listing(*files, partition="dt=2"), visible)) == 2
    assert shape(latest_bases(listing(*files), visible)) == {"b": (base("b", 3), [])}


def test_layout_1_logs_belong_to_the_base_in_their_name() -> None:
    files = listing(
        base("a", 1), log("a", 1, 2), log("a", 1, 1), base("a", 5), log("a", 5, 1), log("b", 3, 10),
        log("b", 3, 9),
    )  # fmt: skip
    visible = history(1, {1: 1, 3: 3, 5: 5})
    assert shape(latest_slices(files, visible)) == {
        "a": (base("a", 5), [log("a", 5, 1)]),
        "b": (None, [log("b", 3, 9), log("b", 3, 10)]),
    }
    earlier = history(1, {1: 1, 3: 3, 5: 5}, as_of=at(4))
    assert shape(latest_slices(files, earlier))["a"] == (
        base("a", 1),
        [log("a", 1, 1), log("a", 1, 2)],
    )


def test_layout_2_logs_belong_to_the_newest_base_requested_when_they_completed() -> None:
    # The log was requested before the base and completed after it was requested.
    files = listing(base("a", 1), base("a", 4), log("a", 3), log("a", 2))
    overlapping = history(2, {1: 1, 2: 3, 3: 6, 4: 5})
    assert shape(latest_slices(files, overlapping)) == {"a": (base("a", 4), [log("a", 3)])}
    before = history(2, {1: 1, 2: 3, 3: 6, 4: 5}, as_of=at(3))
    assert shape(latest_slices(files, before)) == {"a": (base("a", 1), [log("a", 2)])}


def test_layout_2_logs_are_merged_in_the_order_in_which_they_were_requested() -> None:
    # Writers that do not block each other may end the other way round; Hudi merges by requests.
    files = listing(base("a", 1), log("a", 2), log("a", 3, 2), log("a", 3, 1))
    visible = history(2, {1: 1, 2: 9, 3: 5})
    assert shape(latest_slices(files, visible)) == {
        "a": (base("a", 1), [log("a", 2), log("a", 3, 1), log("a", 3, 2)])
    }


def test_layout_2_logs_of_unfinished_writes_and_after_the_time_asked_for_are_left_out() -> None:
    files = listing(base("a", 1), log("a", 2), log("a", 3), log("a", 4), log("new", 4))
    visible = history(2, {1: 1, 2: 2, 3: 3}, as_of=at(2), pending=frozenset({at(4)}))
    assert shape(latest_slices(files, visible)) == {"a": (base("a", 1), [log("a", 2)])}


def test_layout_2_groups_of_logs_alone_stay_one_slice_until_compacted() -> None:
    files = listing(log("a", 2), log("a", 4), base("a", 6), log("a", 7))
    done = {2: 3, 4: 5, 6: 6, 7: 8}
    assert shape(latest_slices(files, history(2, done))) == {"a": (base("a", 6), [log("a", 7)])}
    assert shape(latest_slices(files, history(2, done, as_of=at(5)))) == {
        "a": (None, [log("a", 2), log("a", 4)])
    }


@BOTH
def test_an_unfinished_compaction_reads_the_slice_before_with_the_logs_of_both(layout: int) -> None:
    # In layout 1 logs written after the plan carry the compaction's time; in layout 2 their own.
    later = log("a", 4) if layout == 1 else log("a", 5)
    earlier = log("a", 1) if layout == 1 else log("a", 2)
    files = listing(base("a", 1), earlier, later, base("a", 4))
    done = {1: 1, 2: 2, 5: 5}
    visible = history(layout, done, pending=frozenset({at(4)}), compactions={"dt=1": {"a": at(4)}})
    assert shape(latest_slices(files, visible)) == {"a": (base("a", 1), [earlier, later])}
    assert shape(latest_bases(files, visible)) == {"a": (base("a", 1), [])}
    before = history(
        layout, done, pending=frozenset({at(4)}), compactions={"dt=1": {"a": at(4)}}, as_of=at(2)
    )
    assert shape(latest_slices(files, before)) == {"a": (base("a", 1), [earlier])}


def test_a_compaction_that_passed_a_group_over_leaves_its_logs_on_the_slice_before() -> None:
    files = listing(base("a", 1), log("a", 1, 1), log("a", 4, 1))
    visible = history(1, {1: 1, 3: 3, 4: 4, 5: 5})
    assert shape(latest_slices(files, visible)) == {
        "a": (base("a", 1), [log("a", 1, 1), log("a", 4, 1)])
    }
    before = history(1, {1: 1, 3: 3, 4: 4, 5: 5}, as_of=at(3))
    assert shape(latest_slices(files, before)) == {"a": (base("a", 1), [log("a", 1, 1)])}


@BOTH
def test_an_unfinished_compaction_of_logs_alone_loses_nothing(layout: int) -> None:
    later = log("a", 4) if layout == 1 else log("a", 5)
    files = listing(log("a", 1), later)
    visible = history(
        layout, {1: 1, 5: 5}, pending=frozenset({at(4)}), compactions={"dt=1": {"a": at(4)}}
    )
    assert shape(latest_slices(files, visible)) == {"a": (None, [log("a", 1), later])}
    assert latest_bases(files, visible) == []


def test_archived_logs_ask_the_history_only_when_a_base_could_be_theirs() -> None:
    asked: list[str] = []

    def completion_of(requested: str) -> str:
        asked.append(requested)
        return {at(2): at(5)}.get(requested, requested)

    visible = Visibility(2, {at(9): at(9)}, at(9), completion_of=completion_of)
    plain = listing(base("a", 1), log("a", 2))
    assert shape(latest_slices(plain, visible)) == {"a": (base("a", 1), [log("a", 2)])}
    assert asked == []
    crossed = listing(base("a", 1), base("a", 4), log("a", 2))
    assert shape(latest_slices(crossed, visible)) == {"a": (base("a", 4), [log("a", 2)])}
    assert asked == [at(2)]


def test_a_window_that_ends_in_the_archived_past_asks_when_writes_completed() -> None:
    ends = {at(1): at(1), at(2): at(6)}
    visible = Visibility(2, {at(9): at(9)}, at(9), upto=at(5), completion_of=ends.get)
    files = listing(base("a", 1), base("a", 2))
    assert shape(latest_slices(files, visible)) == {"a": (base("a", 1), [])}


@BOTH
def test_of_two_attempts_the_one_that_the_commit_names_counts(layout: int) -> None:
    first, second = base("a", 1, "0-1-9"), base("a", 1, "0-1-10")
    for files in (listing(first, second), listing(second, first)):
        assert shape(latest_slices(files, history(layout, {1: 1}))) == {"a": (second, [])}
        named = history(layout, {1: 1}, named_by=lambda _: frozenset({f"dt=1/{first}"}))
        assert shape(latest_slices(files, named)) == {"a": (first, [])}


def test_logs_of_a_failed_attempt_are_dropped_where_the_commit_tells() -> None:
    good, bad = log("a", 2, token="0-1-2"), log("a", 2, token="0-1-1")
    files = listing(base("a", 1), good, bad)
    named = history(2, {1: 1, 2: 2}, named_by=lambda _: frozenset({f"dt=1/{good}"}))
    assert shape(latest_slices(files, named)) == {"a": (base("a", 1), [good])}
    assert shape(latest_slices(files, history(2, {1: 1, 2: 2}))) == {
        "a": (base("a", 1), [bad, good])
    }


def test_change_files_checksums_and_foreign_names_are_no_part_of_slices() -> None:
    files = listing(
        base("a", 1), log("a", 2) + ".cdc", f".{base('a', 1)}.crc", f".{log('a', 2)}.crc",
        ".hoodie_partition_metadata", "a_b.parquet", "a_0-1-1_x.parquet", f"_0-1-1_{at(1)}.parquet",
        "a_0-1-1_.parquet", f"a_0-1-1_{at(2)}.txt",
    )  # fmt: skip
    assert shape(latest_slices(files, history(2, {1: 1, 2: 2}))) == {"a": (base("a", 1), [])}


@BOTH
def test_a_window_ends_at_completion_times_in_layout_2(layout: int) -> None:
    files = listing(base("a", 1), base("a", 3))
    done = {1: 2, 3: 6}
    cut = {"upto": at(5)} if layout == 2 else {"as_of": at(5)}
    expected = base("a", 1) if layout == 2 else base("a", 3)
    assert shape(latest_slices(files, history(layout, done, **cut))) == {"a": (expected, [])}


def test_a_base_file_that_had_not_completed_draws_no_logs_at_the_end_of_a_window() -> None:
    files = listing(base("a", 1), base("a", 3), log("a", 4))
    done = {1: 1, 3: 8, 4: 5}
    assert shape(latest_slices(files, history(2, done, upto=at(5)))) == {
        "a": (base("a", 1), [log("a", 4)])
    }
    assert shape(latest_slices(files, history(2, done, upto=at(8)))) == {
        "a": (base("a", 3), [log("a", 4)])
    }


@BOTH
def test_groups_hold_all_committed_slices_newest_first(layout: int) -> None:
    files = listing(base("a", 1), log("a", 1 if layout == 1 else 2), base("a", 4), base("a", 6))
    [group] = file_groups(files, history(layout, {1: 1, 2: 2, 4: 4}, pending=frozenset({at(6)})))
    assert [(s.base_instant, len(s.logs)) for s in group.slices] == [(at(4), 0), (at(1), 1)]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9), st.booleans()), max_size=12),
    st.sets(st.integers(1, 9)),
    st.integers(1, 9),
    st.sampled_from([1, 2]),
    st.randoms(use_true_random=False),
)
def test_order_of_listing_never_matters_and_nothing_uncommitted_shows(
    files: list[tuple[str, int, bool]], done: set[int], cut: int, layout: int, shuffle: object
) -> None:
    names = sorted({log(g, t) if is_log else base(g, t) for g, t, is_log in files})
    visible = history(layout, {t: t for t in done}, as_of=at(cut))
    expected = shape(latest_slices(listing(*names), visible))
    shuffled = list(names)
    shuffle.shuffle(shuffled)  # type: ignore[attr-defined]
    assert shape(latest_slices(listing(*shuffled), visible)) == expected
    first = min(done, default=99)
    for piece in latest_slices(listing(*names), visible):
        instants = [file.instant for file in (piece.base, *piece.logs) if file is not None]
        for instant in instants:
            minute = int(instant[12:14])
            assert minute <= cut
            assert minute in done or (done and minute < first)
