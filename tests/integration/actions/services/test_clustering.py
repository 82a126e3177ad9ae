"""Clustering from plan to commit: rows, files, what Hudi's readers find, rivals, crashes."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakewright as lw
from lakewright.actions.services import clustering, clustering_planning
from lakewright.actions.services.clustering import cluster, schedule_clustering
from lakewright.actions.services.clustering_triggers import clustering_due
from lakewright.actions.services.compaction import schedule_compaction
from lakewright.actions.services.plan import ServicePlan
from lakewright.api.table import Table
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.format.hudi.metadata.replace_plan import (
    ClusteringPlan,
    ReplacePlan,
    encode_replace_plan,
)
from lakewright.model.errors import Conflict, Invalid, NotFound, Unsupported
from lakewright.model.instant import Action, Instant
from lakewright.model.services import ServiceResult
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_upkeep import StorageUpkeep
from support.grouped import META, by_hudi, crash_everywhere, deleted, grouped_table, put, rows
from support.servicing import servicing

KINDS = [(9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ"), (6, "COPY_ON_WRITE"), (6, "MERGE_ON_READ")]
STRATEGY = "hoodie__clustering__plan__strategy__"
BY_N = {STRATEGY + "sort__columns": "n,id"}
COPY = {"lakewright__clustering__copied-row-group-bytes": "0"}


@pytest.fixture(params=KINDS, ids=lambda kind: f"v{kind[0]}-{kind[1]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return made(tmp_path, *request.param)


@pytest.fixture(params=[KINDS[0], KINDS[3]], ids=["v9", "v6"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return made(tmp_path, *request.param)


@pytest.fixture
def plain(tmp_path: Path) -> Table:
    return made(tmp_path, 9, "COPY_ON_WRITE")


def made(folder: Path, version: int, kind: str, buckets: int | None = None) -> Table:
    return grouped_table(folder, version=version, type=kind, buckets=buckets)


def history(table: Table) -> list[str]:
    """Small groups in a and b, one group in c; updates and deletes on some of them."""
    return [
        put(table, 9, "a1", "a2", "b1", new=True),
        put(table, 4, "a3", "a4", "b2", "c1", new=True),
        put(table, 6, "a5", "b3", new=True),
        put(table, 10, "a1", "b2"),
        deleted(table, "a4"),
    ]


def run(table: Table, plan: Instant | None = None, **options: str) -> ServiceResult:
    return cluster(servicing(open_storage(table.path), **options), plan)


def planned(table: Table, *partitions: str, **options: str) -> ServicePlan:
    work = servicing(open_storage(table.path), **options)
    found = schedule_clustering(work, partitions=partitions or None)
    assert found is not None and found.instant is not None
    return found


def body_of(plan: ServicePlan) -> ClusteringPlan:
    assert isinstance(plan.body, ReplacePlan) and plan.body.clustering is not None
    return plan.body.clustering


def files(table: Table, instant: str) -> list[Path]:
    return sorted(Path(table.path).glob(f"**/*_{instant}.parquet"))


# --------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("options", [{}, COPY, BY_N], ids=["read", "copied", "sorted"])
def test_rows_stay_and_groups_become_one(table: Table, options: dict[str, str]) -> None:
    instants = history(table)
    before = rows(table)
    seen = {instant: rows(table, as_of=instant) for instant in instants}
    changed = {r["id"] for r in table.incremental(instants[0], None).to_arrow().to_pylist()}
    opened = table.scan(columns=["*", *META])
    done = run(table, **options)
    assert done.instant is not None
    assert rows(table) == before == by_hudi(table)
    assert opened.to_arrow().sort_by("id").to_pylist() == before
    slices = [split.slice for split in table.scan().plan()]
    assert sorted(piece.group.partition for piece in slices) == ["p=a", "p=b", "p=c"]
    assert all(not piece.logs for piece in slices)
    # Before and after it, time travel sees what it saw.
    assert {instant: rows(table, as_of=instant) for instant in instants} == seen
    assert rows(table, as_of=done.instant.requested) == before
    # Whoever reads changes is not told of rows that were only moved.
    again = table.incremental(instants[0], None).to_arrow().to_pylist()
    assert {row["id"] for row in again} == changed
    latest = max(i.completed or "" for i in table.timeline.data() if i != done.instant)
    assert table.incremental(latest, None).to_arrow().num_rows == 0
    assert lw.open_table(table.path).fsck().ok
    put(table, 19, "a1", "c1", "a9")
    deleted(table, "b1")
    found = {row["id"]: row["n"] for row in rows(table)}
    kept = {str(row["id"]): row["n"] for row in before if row["id"] != "b1"}
    assert found == {**kept, "a1": 19, "c1": 19, "a9": 19}


def test_the_commit_tells_what_hudis_tells(table: Table) -> None:
    history(table)
    plan = planned(table)
    done = run(table)
    assert done.instant is not None
    view = open_state(open_storage(table.path)).timeline
    body = view.commit_metadata(done.instant)
    assert (done.instant.action, body.operation) == (Action.REPLACECOMMIT, "CLUSTER")
    assert body.schema
    groups = body_of(plan).groups
    named = {(s.partition, s.file_id) for group in groups for s in group.slices}
    assert named == {(p, f) for p, ids in body.replaced.items() for f in ids}
    stats = [stat for found in body.write_stats.values() for stat in found]
    assert named.isdisjoint((s.partition_path, s.file_id) for s in stats)
    for stat in stats:
        assert (stat.prev_commit, stat.num_inserts) == ("null", stat.num_writes)
        path = Path(table.path) / str(stat.path)
        assert stat.file_size_in_bytes == stat.total_write_bytes == path.stat().st_size
        assert set(pq.read_table(path)["_hoodie_file_name"].to_pylist()) == {path.name}
    assert done.total.rows == sum(stat.num_writes for stat in stats)
    assert (done.total.groups, done.total.files_written) == (len(named), len(stats))


def test_the_plan_is_hudis(either: Table) -> None:
    history(either)
    plan = planned(either, **BY_N)
    body = body_of(plan)
    assert plan.instant is not None
    layout = open_state(open_storage(either.path)).config.layout
    assert plan.instant.action is (Action.REPLACECOMMIT if layout == 1 else Action.CLUSTERING)
    assert body.preserves_meta_columns is True
    assert body.strategy is not None
    assert body.strategy.class_name is not None
    assert body.strategy.class_name.endswith(".run.strategy.SparkSortAndSizeExecutionStrategy")
    assert body.strategy.params["hoodie.clustering.plan.strategy.sort.columns"] == "n,id"
    paths = [s.base_file or "" for group in body.groups for s in group.slices]
    assert all(Path(path).is_file() for path in paths)
    metrics = {"TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB", "TOTAL_IO_MB"}
    assert metrics < body.groups[0].metrics.keys()


def test_rows_of_a_group_lie_in_order(either: Table) -> None:
    history(either)
    done = run(either, **BY_N)
    assert done.instant is not None
    for path in files(either, done.instant.requested):
        found = pq.read_table(path, columns=["n", "id"]).to_pylist()
        assert found == sorted(found, key=lambda row: (row["n"], row["id"]))


def test_a_group_becomes_several_files(either: Table) -> None:
    history(either)
    before = rows(either)
    size = sum(f.stat().st_size for f in Path(either.path).glob("p=a/*.parquet"))
    run(either, **BY_N, **{STRATEGY + "target__file__max__bytes": str(size // 2)})
    assert rows(either) == before == by_hudi(either)
    found = [s.slice for s in either.scan(where="p = 'a'").plan()]
    assert len(found) == 2
    first, second = (
        pq.read_table(Path(either.path) / piece.paths[0])["n"].to_pylist() for piece in found
    )
    assert max(first) <= min(second) or max(second) <= min(first)


def test_all_rows_deleted_leaves_no_file(tmp_path: Path) -> None:
    table = made(tmp_path, 9, "MERGE_ON_READ")
    put(table, 1, "a1", new=True)
    put(table, 2, "a2", new=True)
    deleted(table, "a1", "a2")
    done = run(table)
    assert (done.total.groups, done.total.files_written) == (2, 0)
    assert rows(table) == by_hudi(table) == []
    put(table, 3, "a1")
    assert [row["n"] for row in rows(table)] == [3]


def test_row_groups_are_copied_unread(plain: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    history(plain)
    before = rows(plain)
    keys = pa.array([str(row["id"]) for row in before if row["p"] == "a"])

    def unread(*_: object, **__: object) -> None:
        raise AssertionError("rows were decoded")

    from lakewright.actions.tasks import cluster as task

    monkeypatch.setattr(task, "write_base", unread)
    done = run(plain, **COPY)
    assert done.instant is not None
    assert rows(plain) == before == by_hudi(plain)
    path = next(f for f in files(plain, done.instant.requested) if f.parent.name == "p=a")
    footer = read_footer(open_storage(plain.path), f"p=a/{path.name}")
    assert footer.metadata.num_row_groups > 1
    assert footer.key_range == ("a1", "a5")
    assert footer.bloom is not None
    assert parse_bloom(*footer.bloom).contains(keys).all()
    assert not parse_bloom(*footer.bloom).contains(pa.array(["zz", "yy"])).any()
    assert footer.avro_schema is not None


def test_small_row_groups_are_put_together(plain: Table) -> None:
    history(plain)
    done = run(plain)
    assert done.instant is not None
    assert {pq.ParquetFile(f).num_row_groups for f in files(plain, done.instant.requested)} == {1}


def test_columns_that_were_added(either: Table) -> None:
    history(either)
    either.add_columns("more string")
    wider = [{"id": "a1", "p": "a", "n": 17, "s": None, "more": "x"}]
    either.upsert(pa.Table.from_pylist(wider, schema=either.schema))
    before = rows(either)
    run(either, **COPY)
    assert rows(either) == before == by_hudi(either)


@pytest.mark.parametrize("layout", ["ZORDER", "HILBERT"])
def test_a_curve_makes_ranges_narrow_in_both_columns(tmp_path: Path, layout: str) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, x bigint, y string", key="id")
    side = 64
    cells = [(x * 37 % side, y * 29 % side) for x in range(side) for y in range(side)]
    values = [
        {"id": f"{x}-{y}", "x": x if x else None, "y": f"{y:03}" if y else None} for x, y in cells
    ]
    table.bulk_insert(pa.Table.from_pylist(values, schema=table.schema))
    size = sum(f.stat().st_size for f in Path(table.path).glob("*.parquet"))
    options = {
        STRATEGY + "sort__columns": "x,y",
        STRATEGY + "target__file__max__bytes": str(size // 64),
    }
    before = rows(table)
    shutil.copytree(table.path, tmp_path / "curved")
    curved = lw.open_table(tmp_path / "curved")

    def kept(table: Table, where: str) -> int:
        return len({split.slice.paths[0] for split in table.scan(where=where).plan()})

    run(table, **options)
    run(curved, **options, hoodie__layout__optimize__strategy=layout)
    assert rows(curved) == before
    files = len(list(curved.scan().plan()))
    assert files >= 64
    # Sorted by x, most files hold most of y; along a curve both leave most files out.
    assert kept(table, "y = '040'") >= files // 2
    assert max(kept(curved, "x = 40"), kept(curved, "y = '040'")) < files // 3


# ------------------------------------------------------------------------------ planning


def test_a_plan_is_looked_at_without_a_trace(either: Table) -> None:
    history(either)
    work = servicing(open_storage(either.path))
    before = sorted(Path(either.path).rglob("*"))
    plan = schedule_clustering(work, dry_run=True)
    assert plan is not None
    assert plan.instant is None
    assert {item.partition for item in plan.items} == {"p=a", "p=b"}
    assert ("a single file, and nothing to sort it by", 1) in plan.passed_over
    assert plan.bytes_in > 0
    assert "SparkSizeBasedClusteringPlanStrategy" in str(plan)
    assert sorted(Path(either.path).rglob("*")) == before


def test_only_the_partitions_that_were_asked_for(either: Table) -> None:
    history(either)
    before = rows(either)
    plan = planned(either, "p=b", "p=none")
    assert {item.partition for item in plan.items} == {"p=b"}
    # Hudi, which looks at what was written since, comes back to the others.
    assert {"p=a", "p=c"} <= set(body_of(plan).missing_partitions)
    run(either, plan.instant)
    assert rows(either) == before
    again = schedule_clustering(servicing(open_storage(either.path)), dry_run=True)
    assert again is not None
    assert {item.partition for item in again.items} == {"p=a"}


def test_groups_of_unfinished_plans_are_passed_over(either: Table) -> None:
    history(either)
    before = rows(either)
    first = planned(either, "p=a")
    second = planned(either)
    groups = {item.group for item in first.items}
    assert groups.isdisjoint(item.group for item in second.items)
    assert {item.partition for item in second.items} == {"p=b"}
    assert "in an unfinished plan" in dict(second.passed_over)
    assert schedule_clustering(servicing(open_storage(either.path))) is None
    done = [run(either).instant, run(either).instant]
    assert [i.requested for i in done if i] == [
        plan.instant.requested for plan in (first, second) if plan.instant
    ]
    assert rows(either) == before == by_hudi(either)


def test_slices_of_a_planned_compaction_are_passed_over(tmp_path: Path) -> None:
    table = made(tmp_path, 9, "MERGE_ON_READ")
    history(table)
    compaction = schedule_compaction(servicing(open_storage(table.path)))
    assert compaction is not None
    plan = planned(table)
    taken = {item.group for item in compaction.items}
    assert taken.isdisjoint(i for item in plan.items for i in item.group.split(","))


def test_no_more_groups_than_allowed(plain: Table) -> None:
    history(plain)
    plan = planned(plain, **{STRATEGY + "max__num__groups": "1"})
    assert len(plan.items) == 1
    left = {"p=a", "p=b"} - {plan.items[0].partition}
    assert left <= set(body_of(plan).missing_partitions)


def test_writes_between_the_look_and_the_lock_are_in_the_plan(
    either: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(either)
    listed: list[object] = []
    looking = StorageUpkeep.schedule

    def late(self: StorageUpkeep, *given: object, **more: object) -> object:
        put(either, 18, "b7", new=True)
        real = clustering_planning.list_slices

        def counted(state: object, partitions: object = None) -> Iterator[object]:
            listed.append(partitions)
            return real(state, partitions)  # type: ignore[arg-type]

        monkeypatch.setattr(clustering_planning, "list_slices", counted)
        return looking(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(StorageUpkeep, "schedule", late)
    work = servicing(open_storage(either.path))
    plan = schedule_clustering(work)
    monkeypatch.undo()
    assert plan is not None
    assert listed == [["p=b"]]  # and no other partition is looked at under the lock
    before = rows(either)
    run(either)
    assert rows(either) == before
    assert len(list(either.scan(where="p = 'b'").plan())) == 1


def test_columns_that_cannot_be_sorted_by(plain: Table) -> None:
    history(plain)
    for columns, message in (("nothing", "no column 'nothing'"), ("s", "has no order")):
        with pytest.raises(Invalid, match=message):
            planned(plain, **{STRATEGY + "sort__columns": columns})


def test_it_is_due_after_so_many_commits(either: Table) -> None:
    options = {"hoodie.clustering.inline.max.commits": "3"}
    put(either, 1, "a1")
    put(either, 1, "a2", new=True)
    assert clustering_due(either.timeline, options) is None
    put(either, 1, "a3", new=True)
    why = clustering_due(lw.open_table(either.path).timeline, options)
    assert why == "3 commits since the last clustering, 3 are enough"
    run(either)
    assert clustering_due(lw.open_table(either.path).timeline, options) is None
    put(either, 1, "a4", new=True)
    assert clustering_due(lw.open_table(either.path).timeline, options) is None


# ------------------------------------------------------------------------------- buckets


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_buckets_are_sorted_each_by_itself(tmp_path: Path, version: int, kind: str) -> None:
    table = made(tmp_path, version, kind, buckets=2)
    put(table, 2, *(f"a{n}" for n in range(20)))
    put(table, 1, *(f"a{n}" for n in range(20, 30)))
    put(table, 3, "a3", "a25")
    before = rows(table)
    with pytest.raises(Invalid, match="is a bucket table"):
        schedule_clustering(servicing(open_storage(table.path)))
    old = {s.slice.group.file_id for s in table.scan().plan()}
    plan = planned(table, **BY_N)
    assert all(len(group.slices) == 1 for group in body_of(plan).groups)
    run(table)
    now = lw.open_table(table.path)
    new = {s.slice.group.file_id for s in now.scan().plan()}
    assert new.isdisjoint(old)
    assert sorted(i[:8] for i in new) == sorted(i[:8] for i in old)
    assert rows(now) == before == by_hudi(now)
    put(now, 9, "a1", "a25")
    assert {r["n"] for r in rows(now) if r["id"] in ("a1", "a25")} == {9}
    assert len(rows(now)) == 30
    assert lw.open_table(table.path).fsck().ok


def test_a_plan_that_would_break_buckets_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, 9, "COPY_ON_WRITE", buckets=4)
    put(table, 2, *(f"a{n}" for n in range(20)))
    storage = open_storage(table.path)
    work = servicing(storage, **BY_N)
    plan = schedule_clustering(work, dry_run=True)
    assert plan is not None
    body = body_of(plan)
    one = replace(body.groups[0], slices=tuple(s for g in body.groups for s in g.slices))
    broken = ReplacePlan("CLUSTER", replace(body, groups=(one,)), version=1)
    work.upkeep.schedule(Action.CLUSTERING, lambda *_: encode_replace_plan(broken))
    before = rows(table)
    with pytest.raises(Unsupported, match="4 buckets together"):
        run(table)
    assert rows(table) == before


# ------------------------------------------------------------------ rivals and failures


def test_groups_under_a_plan_are_not_written(table: Table) -> None:
    history(table)
    before = rows(table)
    plan = planned(table, "p=a")
    with pytest.raises(Conflict, match=r"planned or at work.*table\.cluster\(\)"):
        put(table, 20, "a1")
    assert rows(table) == before
    put(table, 20, "b1")  # groups that no plan names are free
    latest = rows(table)
    assert run(table, plan.instant).instant is not None
    assert rows(table) == latest == by_hudi(table)
    put(table, 21, "a1")
    assert {r["n"] for r in rows(table) if r["id"] == "a1"} == {21}


def test_new_rows_stay_out_of_groups_under_a_plan(either: Table) -> None:
    history(either)
    planned(either)
    put(either, 3, "a7", "b7")  # no such keys yet: they go into groups of their own
    latest = rows(either)
    run(either)
    assert rows(either) == latest == by_hudi(either)


def test_one_that_fails_leaves_the_plan(either: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    history(either)
    before = rows(either)
    instant = planned(either).instant
    assert instant is not None

    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(clustering, "cluster_group", broken)
    with pytest.raises(OSError, match="the disk is full"):
        run(either)
    monkeypatch.undo()
    assert [i.requested for i in either.timeline.pending()] == [instant.requested]
    assert not files(either, instant.requested)
    assert rows(either) == before
    assert run(either).instant is not None
    assert rows(either) == before == by_hudi(either)


def test_files_that_are_gone_are_named(plain: Table) -> None:
    history(plain)
    planned(plain)
    gone = next(Path(plain.path).glob("p=a/*.parquet"))
    for path in Path(plain.path).glob("p=a/*.parquet"):
        path.unlink()
    with pytest.raises(NotFound, match="the plan that names it is not"):
        run(plain)
    assert not gone.exists()


def test_plans_that_are_worked_on_are_left_alone(either: Table) -> None:
    history(either)
    before = rows(either)
    plan = planned(either).instant
    assert plan is not None
    busy = servicing(open_storage(either.path))
    ticket = busy.committer.take(plan, "CLUSTER")
    assert run(either).instant is None
    with pytest.raises(Conflict, match="Somebody is carrying out"):
        run(either, plan)
    busy.committer.abandon(ticket)
    assert run(either).instant is not None
    assert rows(either) == before


@pytest.mark.parametrize("version", [9, 6])
def test_a_crash_at_any_call_leaves_the_rows_and_the_next_run_finishes(
    version: int, tmp_path: Path
) -> None:
    table = made(tmp_path, version, "COPY_ON_WRITE")
    put(table, 1, "a1", "a2", new=True)
    put(table, 2, "a3", new=True)

    def judge(found: Table) -> None:
        assert len(list(found.scan().plan())) == 1

    # Each copy costs a clustering; every fourth call is enough to meet all kinds of them.
    crash_everywhere(tmp_path, table, cluster, step=4, judge=judge)


# -------------------------------------------------------------------------- Hudi's plans


def test_a_plan_that_hudi_made_is_carried_out(golden_table, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    place = tmp_path / "t"
    shutil.copytree(golden_table("cow_clustering_pending_v9"), place)
    table = lw.open_table(place)
    before = table.scan(columns=["*", *META]).to_arrow().sort_by("_hoodie_record_key").to_pylist()
    groups = len(list(table.scan().plan()))
    done = run(table)
    assert done.total.groups == 6
    after = lw.open_table(place)
    found = after.scan(columns=["*", *META]).to_arrow().sort_by("_hoodie_record_key").to_pylist()
    assert found == before
    assert len(list(after.scan().plan())) == groups - 3
    assert done.instant is not None
    for path in files(after, done.instant.requested):
        values = pq.read_table(path, columns=["qty", "id"]).to_pylist()
        assert values == sorted(values, key=lambda row: (row["qty"], row["id"]))
    assert after.fsck().ok
