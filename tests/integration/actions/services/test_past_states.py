"""The past of a table stays what it was, whatever services and replacements come after it."""

import pickle
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.actions.tasks.read import run_task
from lakewright.format.hudi.archived_instant import ArchivedInstant
from lakewright.format.hudi.history import append_history
from lakewright.model.errors import HistoryGone
from lakewright.model.instant import State
from lakewright.storage.open import open_storage
from support.past_states import PastStates

VERSIONS = pytest.mark.parametrize("version", [6, 9])
ONE_KEPT = {"hoodie.clean.commits.retained": "1"}


@VERSIONS
@pytest.mark.parametrize("seed", [2, 4, 7, 9])
def test_the_past_of_random_histories_is_kept_or_refused(
    tmp_path: Path, version: int, seed: int
) -> None:
    history = PastStates(str(tmp_path / "t"), version, seed)
    history.run(5)
    assert history.done["as of"]


@pytest.mark.slow
@VERSIONS
@pytest.mark.parametrize("seed", range(100, 140))
def test_the_past_of_many_random_histories_is_kept_or_refused(
    tmp_path: Path, version: int, seed: int
) -> None:
    PastStates(str(tmp_path / "t"), version, seed).run(8)


def seen(path: str, **when: str) -> dict[str, int]:
    found = lw.open_table(path).scan(**when).to_arrow().to_pylist()
    return {row["id"]: row["n"] for row in found}


def elsewhere(path: str) -> dict[str, int]:
    """Read the table as a worker does, to which the plan was sent."""
    plan = lw.open_table(path).scan().plan()
    spec = pickle.loads(pickle.dumps(plan.spec))
    batches = [batch for task in plan.tasks for batch in run_task(spec, task)]
    return {row["id"]: row["n"] for batch in batches for row in batch.to_pylist()}


@VERSIONS
@pytest.mark.parametrize("buckets", [None, 1])
def test_logs_of_archived_writes_count_where_savepoints_hold_all_that_is_left(
    tmp_path: Path, version: int, buckets: int | None
) -> None:
    path = str(tmp_path / "t")
    schema = "id string, n bigint, ts bigint"
    more = {} if buckets is None else {"buckets": buckets}
    table = lw.create_table(
        path, schema=schema, key="id", order_by="ts", type="MERGE_ON_READ", version=version, **more
    )
    table.upsert([{"id": key, "n": 0, "ts": 0} for key in "abc"])
    table.upsert([{"id": "a", "n": 1, "ts": 1}])
    table.delete(["c"])
    kept = table.upsert([{"id": "b", "n": 2, "ts": 2}]).instant
    assert kept is not None
    table.savepoint(kept.requested)
    table.compact()
    table.clean(policy="versions", retain=1)
    table.archive(min_commits=1, max_commits=2, options=ONE_KEPT)
    table = lw.open_table(path)
    table.restore(kept.requested)

    view = lw.open_table(path).timeline
    assert [i.requested for i in view.data()] == [kept.requested]
    assert view.start is None
    assert seen(path) == {"a": 1, "b": 2}
    assert elsewhere(path) == {"a": 1, "b": 2}
    lw.open_table(path).update({"n": "n + 10"}, where="n < 100")
    assert seen(path) == {"a": 11, "b": 12}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@VERSIONS
def test_a_window_whose_end_was_cleaned_and_archived_is_refused(
    tmp_path: Path, version: int, kind: str
) -> None:
    path = str(tmp_path / "t")
    table = lw.create_table(
        path, schema="id string, n bigint", key="id", type=kind, version=version
    )
    ends = []
    for n in range(6):
        done = table.upsert([{"id": "a", "n": n}]).instant
        assert done is not None
        ends.append(done.completed)
        if kind == "MERGE_ON_READ":
            table.compact()
    table.clean(policy="commits", retain=1)
    table.archive(min_commits=1, max_commits=2, options=ONE_KEPT)
    table = lw.open_table(path)
    with pytest.raises(HistoryGone, match="cleaned away"):
        table.incremental(ends[0], ends[1]).count()
    with pytest.raises(HistoryGone, match="cleaned away"):
        table.incremental(None, ends[1]).count()
    assert table.incremental(ends[0]).count() == 1


def test_a_compaction_leaves_the_past_of_groups_that_were_replaced_meanwhile(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "t")
    table = lw.create_table(
        path,
        schema="id string, p string, n bigint",
        key="id",
        partition_by="p",
        type="MERGE_ON_READ",
        version=6,
    )
    table.upsert([{"id": key, "p": key[0], "n": 0} for key in ("a1", "b1", "b2")])
    table.upsert([{"id": key, "p": key[0], "n": 1} for key in ("a1", "b1")])
    plan = table.schedule_compaction()
    assert plan is not None
    assert plan.instant is not None
    done = table.upsert([{"id": "b1", "p": "b", "n": 2}]).instant
    assert done is not None
    table.delete_partitions(["p=b"])
    table.compact()
    # As Hudi does: other readers know no other way to the rows below logs of that instant.
    written = [file.name for file in (tmp_path / "t" / "p=b").iterdir()]
    assert any(name.endswith(f"_{plan.instant.requested}.parquet") for name in written)
    assert seen(path) == {"a1": 1}
    assert seen(path, as_of=done.requested) == {"a1": 1, "b1": 2, "b2": 0}
    lw.open_table(path).restore(done.requested)
    assert seen(path) == {"a1": 1, "b1": 2, "b2": 0}


def test_a_compaction_passes_over_replaced_groups_that_were_cleaned(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = lw.create_table(
        path,
        schema="id string, p string, n bigint",
        key="id",
        partition_by="p",
        type="MERGE_ON_READ",
        version=6,
    )
    table.upsert([{"id": key, "p": key[0], "n": 0} for key in ("a1", "b1", "b2")])
    table.upsert([{"id": key, "p": key[0], "n": 1} for key in ("a1", "b1")])
    table.schedule_compaction()
    table.upsert([{"id": "b1", "p": "b", "n": 2}])
    table.delete_partitions(["p=b"])
    for file in (tmp_path / "t" / "p=b").glob("*.parquet"):
        file.unlink()
    result = lw.open_table(path).compact()
    assert set(result.partitions) == {"p=a"}
    assert seen(path) == {"a1": 1}


@VERSIONS
def test_logs_of_a_write_that_an_archiver_took_while_we_listed_count_on_workers_too(
    tmp_path: Path, version: int
) -> None:
    path = str(tmp_path / "t")
    schema = "id string, n bigint, ts bigint"
    table = lw.create_table(
        path, schema=schema, key="id", order_by="ts", type="MERGE_ON_READ", version=version
    )
    table.upsert([{"id": key, "n": 0, "ts": 0} for key in "ab"])
    table.upsert([{"id": "a", "n": 1, "ts": 1}])
    table.upsert([{"id": "b", "n": 2, "ts": 2}])
    first, second, _ = table.timeline.entries
    folder = tmp_path / "t" / table.timeline.config.timeline_folder
    # The first write is still listed, the second has gone into the history already.
    history = [
        ArchivedInstant(second.instant, (folder / second.files[State.COMPLETED]).read_bytes(), None)
    ]
    append_history(open_storage(path), table.timeline.config, history)
    for name in second.files.values():
        (folder / name).unlink()
    view = lw.open_table(path).timeline
    assert view.data()[0] == first.instant
    assert second.instant.requested not in view.completions
    assert seen(path) == {"a": 1, "b": 2}
    assert elsewhere(path) == {"a": 1, "b": 2}
