"""The timeline as a value: what its file names and bodies say."""

import datetime as dt
import pickle
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.archived_instant import ArchivedInstant
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.history import append_history
from lakewright.format.hudi.metadata.commit import CommitMetadata, encode_commit
from lakewright.format.hudi.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
)
from lakewright.model.errors import Conflict, Corrupt, InstantNotFound, Invalid
from lakewright.model.instant import Action, Instant, State
from lakewright.storage.memory import MemoryStorage
from lakewright.timeline.entries import gather
from lakewright.timeline.load import load_timeline
from lakewright.timeline.view import TimelineView


def at(minute: int) -> str:
    return f"2026111500{minute:02d}00000"


def config(layout: int) -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": "6" if layout == 1 else "9",
            "hoodie.timeline.layout.version": str(layout),
            "hoodie.table.timeline.timezone": "UTC",
        }
    )


def body(layout: int, operation: str = "UPSERT") -> bytes:
    return encode_commit(CommitMetadata(operation=operation), layout, replace=False)


_FRESH = iter(range(10**9))


class Table:
    """A timeline folder in memory, written file by file."""

    def __init__(self, layout: int, storage: MemoryStorage | None = None) -> None:
        self.layout = layout
        self.config = config(layout)
        self.storage = storage or MemoryStorage(f"memory://timeline-{next(_FRESH)}/t", {})

    def write(self, name: str, data: bytes = b"") -> "Table":
        self.storage.write(f"{self.config.timeline_folder}/{name}", data)
        return self

    def done(
        self, requested: int, completed: int, action: str, data: bytes | None = None
    ) -> "Table":
        stem = at(requested) if self.layout == 1 else f"{at(requested)}_{at(completed)}"
        self.write(f"{at(requested)}.{action}.requested")
        return self.write(f"{stem}.{action}", body(self.layout) if data is None else data)

    def view(self) -> TimelineView:
        return load_timeline(self.storage, self.config)


BOTH = pytest.mark.parametrize("layout", [1, 2])


def never(name: str) -> float | None:
    raise AssertionError(f"{name} says when it was completed")


def test_each_action_is_one_instant_at_its_furthest_state() -> None:
    names = [
        f"{at(1)}.commit.requested", f"{at(1)}.inflight", f"{at(1)}_{at(2)}.commit",
        f"{at(1)}_{at(9)}.savepoint", f"{at(1)}.savepoint.inflight",
        f"{at(3)}.compaction.inflight", f"{at(3)}.compaction.requested",
        f"{at(4)}.clustering.requested", f"{at(4)}_{at(5)}.replacecommit",
        "hoodie.properties", "archived", f".{at(1)}.commit.requested.crc",
    ]  # fmt: skip
    entries = gather(names, 2, dt.UTC, never)
    assert [(e.instant.requested, e.instant.action, e.instant.state) for e in entries] == [
        (at(1), Action.COMMIT, State.COMPLETED),
        (at(1), Action.SAVEPOINT, State.COMPLETED),
        (at(3), Action.COMPACTION, State.INFLIGHT),
        (at(4), Action.REPLACECOMMIT, State.COMPLETED),
    ]
    assert [e.planned for e in entries] == [
        Action.COMMIT, Action.SAVEPOINT, Action.COMPACTION, Action.CLUSTERING,
    ]  # fmt: skip
    assert entries[0].files[State.INFLIGHT] == f"{at(1)}.inflight"


@given(st.permutations(["compaction.requested", "compaction.inflight", "done", "twin"]))
def test_the_order_of_names_does_not_matter(order: list[str]) -> None:
    names = {"done": f"{at(1)}_{at(2)}.commit", "twin": f"{at(1)}_{at(3)}.commit"}
    [entry] = gather((names.get(n, f"{at(1)}.{n}") for n in order), 2, dt.UTC, never)
    assert entry.instant == Instant(at(1), Action.COMMIT, State.COMPLETED, at(2))
    assert entry.planned is Action.COMPACTION
    assert entry.files[State.COMPLETED] == names["done"]


def test_a_completed_file_without_completion_time_counts_from_its_last_change() -> None:
    changed = dt.datetime(2026, 11, 15, 0, 7, tzinfo=dt.UTC).timestamp()
    [entry] = gather([f"{at(1)}.commit"], 2, dt.UTC, lambda name: changed)
    assert entry.instant.completed == at(7)
    [moved] = gather([f"{at(9)}.commit"], 2, dt.UTC, lambda name: changed)
    assert moved.instant.completed == at(9), "never before it was requested"


@BOTH
def test_between_is_open_at_the_start_and_closed_at_the_end(layout: int) -> None:
    table = Table(layout).done(1, 6, "deltacommit").done(2, 3, "deltacommit").done(4, 5, "clean")
    view = table.write(f"{at(7)}.deltacommit.requested").view()

    def found(start: str | None, end: str | None) -> list[str]:
        return [i.requested for i in view.between(start, end)]

    if layout == 1:
        assert found(None, None) == found("000", None) == [at(1), at(2), at(4)]
        assert found(at(1), at(4)) == [at(2), at(4)]
    else:
        assert found(None, None) == [at(2), at(4), at(1)]
        assert found(at(3), at(6)) == [at(4), at(1)]
        assert found(at(1), at(3)) == [at(2)]
    assert found(at(1)[:14], at(2)[:14]) == ([at(2)] if layout == 1 else [])


@BOTH
def test_the_latest_completed_action_at_a_moment(layout: int) -> None:
    view = (
        Table(layout).done(1, 6, "deltacommit").done(2, 3, "deltacommit").done(4, 5, "clean").view()
    )
    moment = dt.datetime(2026, 11, 15, 0, 5, tzinfo=dt.UTC)
    found = view.find_latest_completed_action_at(moment)
    assert found is not None
    assert found.requested == at(2)
    assert view.find_latest_completed_action_at(at(0)) is None
    last = view.find_latest_completed_action_at("2026-11-15")
    assert last is not None
    assert last.requested == (at(2) if layout == 1 else at(1))
    assert view.latest_data() == view.instant(at(2))
    assert view.latest_completion() == (at(2) if layout == 1 else at(6))


def test_the_timeline_starts_at_its_first_write_that_no_savepoint_holds() -> None:
    table = Table(2).done(1, 1, "commit").write(f"{at(1)}_{at(2)}.savepoint").done(3, 3, "clean")
    view = table.done(5, 5, "commit").done(7, 7, "commit").view()
    assert view.start == at(5)
    assert view.is_committed(at(1)), "on the timeline"
    assert view.is_committed(at(4)), "archived"
    assert not view.is_committed(at(6)), "unknown within the timeline"


@BOTH
def test_where_savepoints_hold_all_writes_the_history_says_what_is_older(layout: int) -> None:
    table = Table(layout).done(5, 5, "deltacommit")
    for minute in (1, 3):
        past = Instant(at(minute), Action.DELTACOMMIT, State.COMPLETED, at(minute))
        append_history(table.storage, table.config, [ArchivedInstant(past, body(layout), None)])
    saved = f"{at(5)}_{at(6)}.savepoint" if layout == 2 else f"{at(5)}.savepoint"
    view = table.write(saved).view()
    assert view.start is None
    assert view.committed_before is not None
    assert at(3) < view.committed_before < at(4)
    # Workers get this value; the history has been asked for them.
    travelled = pickle.loads(pickle.dumps(view.committed))
    asked: list[str] = []
    held = [travelled.holds(at(n), lambda time: bool(asked.append(time))) for n in (1, 3, 5, 7)]
    assert (held, asked) == ([True, True, True, False], [])
    assert all(view.is_committed(at(minute)) for minute in (1, 3, 5))
    assert not view.is_committed(at(4))


def test_a_write_that_an_archiver_took_away_while_we_listed_is_still_committed() -> None:
    table = Table(2).done(1, 1, "commit").done(5, 5, "commit").done(7, 7, "commit")
    past = Instant(at(3), Action.COMMIT, State.COMPLETED, at(4))
    append_history(table.storage, table.config, [ArchivedInstant(past, body(2), None)])
    view = table.view()
    assert view.is_committed(at(3)), "gone from the timeline, found in the history"
    assert not view.is_committed(at(6)), "in neither"
    assert not view.is_committed(at(9)), "later than anything"


def test_pending_writes_are_not_committed_wherever_they_stand() -> None:
    view = Table(2).write(f"{at(1)}.commit.requested").done(3, 3, "commit").view()
    assert not view.is_committed(at(1))
    assert view.completion_of(at(1)) is None
    assert view.pending_writes == {at(1)}


def test_a_timeline_of_plans_alone_commits_what_is_older() -> None:
    plan = encode_compaction_plan(CompactionPlan())
    view = Table(2).write(f"{at(3)}.compaction.requested", plan).view()
    assert view.is_committed(at(1))
    assert not view.is_committed(at(3))
    assert not view.is_committed(at(5))


def test_an_empty_timeline_commits_nothing() -> None:
    view = Table(2).view()
    assert view.instants == ()
    assert view.start is None
    assert not view.is_committed(at(1))
    assert view.latest_data() is None


def test_instants_are_found_by_time_and_action() -> None:
    view = Table(2).done(1, 1, "commit").write(f"{at(1)}_{at(2)}.savepoint").view()
    assert view.instant(at(1)).action is Action.COMMIT
    assert view.instant(at(1), Action.SAVEPOINT).completed == at(2)
    with pytest.raises(InstantNotFound, match="no instant"):
        view.instant(at(5))


@BOTH
def test_history_continues_the_timeline_and_knows_completion_times(layout: int) -> None:
    table = Table(layout).done(5, 6, "deltacommit")
    past = Instant(at(1), Action.DELTACOMMIT, State.COMPLETED, at(1) if layout == 1 else at(4))
    entry = ArchivedInstant(past, body(layout, "INSERT"), None)
    append_history(table.storage, table.config, [entry])
    view = table.view()
    assert [i.requested for i in view.instants] == [at(5)]
    assert view.is_archived(at(3))
    assert not view.is_archived(at(5) if layout == 1 else at(6))
    longer = view.with_history()
    assert [i.requested for i in longer.instants] == [at(1), at(5)]
    assert longer.with_history() is longer
    assert longer.start == view.start == at(5)
    assert view.completion_of(at(1)) == past.completed
    assert view.completion_of(at(2)) == at(2), "older than the timeline and in no history"
    assert longer.commit_metadata(longer.instants[0]).operation == "INSERT"
    streamed = [(i.requested, body.operation) for i, body in longer.commits(longer.data())]
    assert streamed == [(at(1), "INSERT"), (at(5), "UPSERT")]


def test_a_body_that_was_archived_meanwhile_is_found_in_the_history() -> None:
    table = Table(2).done(1, 2, "deltacommit").done(3, 4, "deltacommit")
    view = table.view()
    first = view.instants[0]
    append_history(table.storage, table.config, [ArchivedInstant(first, body(2, "INSERT"), None)])
    table.storage.delete([f"{table.config.timeline_folder}/{at(1)}_{at(2)}.deltacommit"])
    assert view.commit_metadata(first).operation == "INSERT"


def test_a_body_that_was_rolled_back_meanwhile_is_a_conflict() -> None:
    table = Table(2).done(1, 2, "deltacommit")
    view = table.view()
    table.storage.delete([f"{table.config.timeline_folder}/{at(1)}_{at(2)}.deltacommit"])
    with pytest.raises(Conflict, match="left the timeline") as lost:
        view.commit_metadata(view.instants[0])
    assert lost.value.retryable


def test_only_writes_have_commit_metadata() -> None:
    view = Table(2).write(f"{at(1)}.deltacommit.requested").view()
    with pytest.raises(Invalid, match="no commit metadata"):
        view.commit_metadata(view.instants[0])


def test_bodies_are_read_on_demand_and_once() -> None:
    reads: list[str] = []

    class Counting(MemoryStorage):
        def read(self, path: str) -> bytes:
            reads.append(path)
            return super().read(path)

    table = Table(2, Counting(f"memory://timeline-{next(_FRESH)}/t", {})).done(1, 2, "deltacommit")
    view = table.view()
    assert reads == [], "opening reads no bodies"
    for _ in range(3):
        view.commit_metadata(view.instants[0])
    assert len(reads) == 1


def test_a_view_survives_pickling() -> None:
    view = Table(2).done(1, 2, "deltacommit").view()
    again = pickle.loads(pickle.dumps(view))
    assert again.instants == view.instants
    assert again.start == view.start


def test_a_compaction_plan_that_vanishes_while_loading_means_another_listing() -> None:
    plan = CompactionPlan(operations=(CompactionOperation(at(1), (), None, "a", "p"),))

    class Racing(MemoryStorage):
        def list(  # type: ignore[override]
            self, folder: str = "", *, recursive: bool = False, stats: bool = True
        ) -> Iterator[object]:
            found = list(super().list(folder, recursive=recursive, stats=stats))
            # The other process rolls its compaction back right after the first listing.
            self.delete([f"{folder}/{at(3)}.compaction.requested"])
            return iter(found)

    table = Table(2, Racing(f"memory://timeline-{next(_FRESH)}/t", {}))
    table.done(1, 2, "deltacommit")
    table.write(f"{at(3)}.compaction.requested", encode_compaction_plan(plan))
    view = table.view()
    assert view.pending_compactions() == ()
    assert [i.requested for i in view.instants] == [at(1)]


def test_plans_come_decoded_and_an_empty_one_is_none() -> None:
    plan = CompactionPlan(operations=(CompactionOperation(at(1), (), None, "a", "p"),))
    table = Table(2).write(f"{at(3)}.compaction.requested", encode_compaction_plan(plan))
    view = table.write(f"{at(4)}.replacecommit.requested").view()
    compaction, replacement = view.instants
    assert view.pending_compactions() == (compaction,)
    assert view.plan(compaction) == plan
    assert view.plan(replacement) is None
    assert view.planned_as(compaction) is Action.COMPACTION


@pytest.mark.parametrize("layout", [1, 2])
def test_a_service_that_waits_with_an_empty_plan_is_damaged(layout: int) -> None:
    # Without the plan nobody knows which logs lie on top of it: their rows would go unread.
    table = Table(layout).write(f"{at(3)}.compaction.requested")
    with pytest.raises(Corrupt, match=r"compaction\.requested"):
        table.view()


def test_a_clustering_with_an_empty_plan_is_damaged() -> None:
    view = Table(2).write(f"{at(3)}.clustering.requested").view()
    (clustering,) = view.instants
    with pytest.raises(Corrupt, match=r"clustering\.requested"):
        view.plan(clustering)


@BOTH
@pytest.mark.parametrize("action", ["commit", "deltacommit", "replacecommit"])
def test_a_completed_write_with_an_empty_body_is_damaged(layout: int, action: str) -> None:
    # Taken for a write that wrote nothing, it would hide its rows from who reads changes.
    view = Table(layout).done(1, 2, action, b"").view()
    (write,) = view.instants
    for read in (view.metadata, view.commit_metadata, lambda one: list(view.commits([one]))):
        with pytest.raises(Corrupt, match=rf"{action} is empty") as raised:
            read(write)
        assert raised.value.facts["offset"] == 0


def test_notebooks_see_the_newest_instants_first_and_names_are_escaped() -> None:
    view = Table(2).done(1, 2, "deltacommit").done(3, 4, "commit").view()
    shown = view._repr_html_()
    assert shown.index(at(3)) < shown.index(at(1))
    assert "2 instants" in shown
    assert dict(view.__rich_repr__())["instants"] == 2
    assert repr(view) == f"TimelineView(t: 2 instants, 0 pending, latest {at(3)})"
