"""What plans of table services promise, asked of storage: scheduled here, carried out anywhere."""

import time
import uuid
from dataclasses import replace

import pytest

from lakewright.format.hudi.metadata.clean import CleanMetadata, encode_clean
from lakewright.format.hudi.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
)
from lakewright.format.hudi.metadata.replace_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ReplacePlan,
    encode_replace_plan,
)
from lakewright.model.errors import Conflict, InstantNotFound, Invalid
from lakewright.model.instant import Action, Instant, State
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.heartbeats import read_record
from lakewright.timeline.storage_upkeep import StorageUpkeep
from lakewright.timeline.view import TimelineView
from support.commits import Write, committer, leftovers, paths
from support.tiny_tables import TinyTable


@pytest.fixture(params=[9, 6])
def storage(request: pytest.FixtureRequest) -> Storage:
    empty = MemoryStorage(f"memory://upkeep-{uuid.uuid4().hex}/t")
    return TinyTable(request.param, storage=empty).storage


def upkeep(storage: Storage, **options: str) -> StorageUpkeep:
    given = {k.replace("__", "."): v for k, v in options.items()}
    return StorageUpkeep(storage, open_state(storage).config, given)


def compaction(*groups: str) -> bytes:
    operations = tuple(CompactionOperation(None, (), None, group, "dt=1") for group in groups)
    return encode_compaction_plan(CompactionPlan(operations))


def clustering(*groups: str) -> bytes:
    slices = tuple(ClusteringSlice("", (), group, "dt=1") for group in groups)
    plan = ClusteringPlan((ClusteringGroup(slices),))
    return encode_replace_plan(ReplacePlan("CLUSTER", plan))


def planned(storage: Storage, action: Action, body: bytes) -> Instant:
    found = upkeep(storage).schedule(action, lambda view, instant: body)
    assert found is not None
    return found


def carry_out(storage: Storage, plan: Instant, operation: str = "COMPACT") -> Write:
    by = committer(storage)
    return Write(storage, by.take(plan, operation), by)


def test_a_plan_waits_on_the_timeline_and_is_carried_out_once(storage: Storage) -> None:
    Write.begin(storage).base("a").publish()
    plan = planned(storage, Action.COMPACTION, compaction("a"))
    assert plan.state is State.REQUESTED
    # An ordinary write in between neither takes it for dead nor is in its way.
    Write.begin(storage).base("b").publish()
    assert open_state(storage).timeline.pending() == (plan,)
    done = carry_out(storage, plan).base("a").publish()
    view = open_state(storage).timeline
    assert (done.requested, done.action) == (plan.requested, Action.COMMIT)
    assert view.planned_as(done) is Action.COMPACTION
    assert view.pending() == ()
    assert leftovers(storage) == []
    with pytest.raises(Conflict, match="carried out"):
        committer(storage).take(plan, "COMPACT")


def test_a_clustering_completes_as_a_replace_commit(storage: Storage) -> None:
    Write.begin(storage).base("a").publish()
    plan = planned(storage, Action.CLUSTERING, clustering("a"))
    done = carry_out(storage, plan, "CLUSTER").base("new").replacing("a").publish()
    assert done.action is Action.REPLACECOMMIT
    metadata = open_state(storage).timeline.commit_metadata(done)
    assert metadata.replaced == {"dt=1": ("a",)}


def test_nothing_to_do_leaves_no_trace(storage: Storage) -> None:
    before = paths(storage)
    assert upkeep(storage).schedule(Action.COMPACTION, lambda view, instant: None) is None
    assert paths(storage) == before


def test_a_plan_sees_the_timeline_and_its_own_instant(storage: Storage) -> None:
    done = Write.begin(storage).base("a").publish()
    seen: list[tuple[Instant, str]] = []

    def make(view: object, instant: str) -> bytes:
        seen.append((view.data()[-1], instant))  # type: ignore[attr-defined]
        return compaction("a")

    plan = upkeep(storage).schedule(Action.COMPACTION, make)
    assert plan is not None
    assert seen == [(done, plan.requested)]
    assert plan.requested > (done.completed or "")


def test_two_plans_never_name_the_same_group(storage: Storage) -> None:
    Write.begin(storage).base("a").base("b").publish()
    planned(storage, Action.CLUSTERING, clustering("a"))
    with pytest.raises(Conflict, match="1 of the same file groups"):
        planned(storage, Action.COMPACTION, compaction("a", "b"))
    planned(storage, Action.COMPACTION, compaction("b"))


def test_what_is_given_up_leaves_the_plan(storage: Storage) -> None:
    Write.begin(storage).base("a").publish()
    for action, body in (
        (Action.COMPACTION, compaction("a")),
        (Action.CLUSTERING, clustering("other")),
    ):
        plan = planned(storage, action, body)
        before = paths(storage)
        work = carry_out(storage, plan).base("a")
        work.by.abandon(work.ticket)
        assert paths(storage) == before
        assert plan in open_state(storage).timeline.pending()


def test_a_plan_in_work_is_left_alone_and_a_deserted_one_taken_over(storage: Storage) -> None:
    Write.begin(storage).base("a").publish()
    plan = planned(storage, Action.COMPACTION, compaction("a"))
    first = carry_out(storage, plan).base("a")
    with pytest.raises(Conflict, match="Somebody is carrying out"):
        committer(storage).take(plan, "COMPACT")
    record = read_record(storage, plan.requested)
    assert record is not None
    dead = replace(record, owner=replace(record.owner, pid=2**22 + 1))
    first.by._hearts[first.ticket.token].stop()
    storage.write(f".hoodie/.heartbeat/{plan.requested}", dead.encode())
    done = carry_out(storage, plan).base("a2").publish()
    assert open_state(storage).timeline.data()[-1] == done
    left = [path for path in paths(storage) if "a_0-0-1" in path and plan.requested in path]
    assert left == []
    with pytest.raises(Conflict):
        first.publish()


def test_a_service_without_a_heartbeat_is_given_time(storage: Storage) -> None:
    plan = planned(storage, Action.COMPACTION, compaction("a"))
    upkeep(storage).start(plan)  # as Hudi leaves it: no heartbeat
    with pytest.raises(Conflict, match="Somebody is carrying out"):
        committer(storage).take(plan, "COMPACT")
    options = {"hoodie__client__heartbeat__interval_in_ms": "1000"}
    time.sleep(2.1)
    by = committer(storage, **options)
    Write(storage, by.take(plan, "COMPACT"), by).base("a").publish()


def test_a_clustering_loses_against_writes_to_its_groups(storage: Storage) -> None:
    Write.begin(storage).base("a").publish()
    write = Write.begin(storage).log("a", named=None)
    plan = planned(storage, Action.CLUSTERING, clustering("a"))
    with pytest.raises(Conflict, match="planned"):
        write.publish()
    done = carry_out(storage, plan, "CLUSTER").base("new").replacing("a").publish()
    assert done.is_completed


def test_in_layout_2_logs_and_compactions_do_not_meet() -> None:
    storage = TinyTable(9).storage
    Write.begin(storage).base("a").publish()
    before = Write.begin(storage, action=Action.DELTACOMMIT).log("a")
    plan = planned(storage, Action.COMPACTION, compaction("a"))
    before.publish()
    meanwhile = Write.begin(storage, action=Action.DELTACOMMIT).log("a")
    carry_out(storage, plan).base("a").publish()
    meanwhile.publish()
    rewriting = Write.begin(storage).base("a")
    later = planned(storage, Action.COMPACTION, compaction("a"))
    with pytest.raises(Conflict, match="planned compaction"):
        rewriting.publish()
    carry_out(storage, later).base("a").publish()


def test_in_layout_1_a_log_beside_an_older_slice_is_refused() -> None:
    storage = TinyTable(6).storage
    first = Write.begin(storage).base("a").publish()
    write = Write.begin(storage, action=Action.DELTACOMMIT).log("a", named=first.requested)
    planned(storage, Action.COMPACTION, compaction("a"))
    with pytest.raises(Conflict, match="planned compaction"):
        write.publish()


def test_taking_back_a_compaction_leaves_the_logs_named_after_it() -> None:
    storage = TinyTable(6).storage
    Write.begin(storage).base("a").publish()
    plan = planned(storage, Action.COMPACTION, compaction("a"))
    log = Write.begin(storage, action=Action.DELTACOMMIT).log("a", named=plan.requested)
    log.publish()
    upkeep(storage).start(plan)
    storage.write(f"dt=1/a_0-0-7_{plan.requested}.parquet", b"unmarked")
    time.sleep(2.1)
    by = committer(storage, hoodie__client__heartbeat__interval_in_ms="1000")
    Write(storage, by.take(plan, "COMPACT"), by).base("a").publish()
    names = paths(storage, "dt=1")
    assert any(f".a_{plan.requested}.log.1" in name for name in names)
    assert not any("0-0-7" in name for name in names)


def test_a_record_is_completed_once(storage: Storage) -> None:
    body = encode_clean(CleanMetadata("1", 0, 0, "", ""))
    clean = upkeep(storage).schedule(Action.CLEAN, lambda view, instant: b"plan")
    assert clean is not None
    upkeep(storage).start(clean)
    upkeep(storage).start(clean)
    done = upkeep(storage).complete(clean, body)
    assert upkeep(storage).complete(clean, b"another") == done
    assert open_state(storage).timeline.metadata(done) == CleanMetadata("1", 0, 0, "", "")


def test_a_wanted_instant_is_taken_or_refused(storage: Storage) -> None:
    done = Write.begin(storage).base("a").publish()
    with pytest.raises(Invalid, match="not after"):
        upkeep(storage).schedule(
            Action.COMPACTION, lambda view, instant: compaction("a"), instant=done.requested
        )
    wanted = "20991231235959999"
    found = upkeep(storage).schedule(
        Action.COMPACTION, lambda view, instant: compaction("a"), instant=wanted
    )
    assert found is not None
    assert found.requested == wanted


def test_an_unknown_plan_is_refused(storage: Storage) -> None:
    Write.begin(storage).base("a").publish()
    with pytest.raises(InstantNotFound, match="no plan"):
        committer(storage).take(
            Instant("20200101000000000", Action.COMPACTION, State.REQUESTED), "COMPACT"
        )


def test_instants_leave_the_timeline_and_stay_in_the_history(storage: Storage) -> None:
    writes = [Write.begin(storage).base("a").publish() for _ in range(4)]
    before = open_state(storage).timeline
    moved = upkeep(storage).archive(lambda view: view.data()[:-2])
    assert moved == tuple(writes[:2])
    after = open_state(storage).timeline
    assert after.instants == tuple(writes[2:])
    assert after.with_history().completed() == before.completed()
    for write in writes:
        assert after.commit_metadata(write) == before.commit_metadata(write)


def test_what_is_not_chosen_under_the_lock_stays(storage: Storage) -> None:
    writes = [Write.begin(storage).base("a").publish() for _ in range(3)]
    asked: list[int] = []

    def fickle(view: TimelineView) -> tuple[Instant, ...]:
        asked.append(len(view.data()))
        return view.data()[: 2 if len(asked) == 1 else 0]

    assert upkeep(storage).archive(fickle) == ()
    assert open_state(storage).timeline.instants == tuple(writes)
