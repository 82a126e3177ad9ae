"""A reading whose files are taken away meanwhile: all its rows, or an error, and never fewer."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.format.hudi.metadata.clean import (
    ActionInstant,
    CleanFile,
    CleanMetadata,
    CleanPlan,
    encode_clean,
    encode_clean_plan,
)
from lakewright.model.errors import Conflict, HistoryGone, SnapshotGone
from lakewright.model.files import ReadingMode
from lakewright.storage.open import open_storage
from lakewright.storage.port import Folder, Storage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import TableState, open_state
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.tiny_tables import TinyTable, at, base_name

OLD = ("20200101000000000", "20200102000000000", "20200103000000000")
Row = Mapping[str, object]


def rows(number: int) -> list[Row]:
    return [{"id": f"k{i}", "p": f"p{i % 2}", "n": number} for i in range(4)]


@pytest.fixture(params=["cow9", "mor6"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> lw.Table:
    """Two partitions, written twice: base files of long ago, or base files with logs."""
    made = new_table(tmp_path / "t", request.param)
    for number, instant in enumerate(OLD[:2]):
        _write_old(made, number, instant)
    return made


def new_table(place: Path, kind: str) -> lw.Table:
    return lw.create_table(
        place,
        schema="id string, p string, n bigint",
        key="id",
        partition_by="p",
        version=int(kind[-1]),
        type="MERGE_ON_READ" if kind.startswith("mor") else "COPY_ON_WRITE",
    )


def _write_old(table: lw.Table, number: int, instant: str) -> None:
    table.upsert(rows(number), instant=None if _has_logs(table) else instant)


def _has_logs(table: lw.Table) -> bool:
    return table.definition.table_type.value == "MERGE_ON_READ"


# ------------------------------------------------------------------------------ what others do


def _rewrite(table: lw.Table, times: int = 2) -> None:
    for number in range(times):
        table.upsert(rows(10 + number))
        if _has_logs(table):
            table.compact()


def _clean_by_commits(table: lw.Table) -> None:
    _rewrite(table)
    table.clean(policy="commits", retain=1)


def _clean_by_versions(table: lw.Table) -> None:
    _rewrite(table)
    table.clean(policy="versions", retain=1)


def _clean_by_hours(table: lw.Table) -> None:
    _write_old(table, 9, OLD[2])
    _rewrite(table, 1)
    table.clean(policy="hours", retain=1)


def _cluster(table: lw.Table) -> None:
    table.cluster(sort_by="n")
    table.clean(policy="versions", retain=1)


def _overwrite(table: lw.Table) -> None:
    table.insert_overwrite_table(rows(20))
    table.clean(policy="versions", retain=1)


def _delete_partitions(table: lw.Table) -> None:
    table.delete_partitions(["p=p1"])
    table.clean(policy="versions", retain=1)


def _roll_back(table: lw.Table) -> None:
    table.rollback(max(i.requested for i in table.timeline.data()))


def _restore(table: lw.Table) -> None:
    first = min(i.requested for i in table.timeline.data())
    table.savepoint(first)
    table.restore(first)


def _clean_and_archive(table: lw.Table) -> None:
    _clean_by_versions(table)
    _rewrite(table, 4)
    table.clean(policy="versions", retain=1)
    table.archive(min_commits=2, max_commits=3)


def _compact(table: lw.Table) -> None:
    if _has_logs(table):
        assert table.compact() is not None


def _archive(table: lw.Table) -> None:
    for number in range(3):
        table.upsert([{"id": f"new{number}", "p": "p2", "n": number}])
    table.archive(min_commits=1, max_commits=2)


TAKING: Mapping[str, Callable[[lw.Table], None]] = {
    "commits": _clean_by_commits,
    "versions": _clean_by_versions,
    "hours": _clean_by_hours,
    "cluster": _cluster,
    "overwrite": _overwrite,
    "delete_partitions": _delete_partitions,
    "rollback": _roll_back,
    "restore": _restore,
    "archived": _clean_and_archive,
}
SPARING: Mapping[str, Callable[[lw.Table], None]] = {
    "write": lambda table: _rewrite(table, 1),
    "compaction": _compact,
    "archive": _archive,
}
ALL = {**TAKING, **SPARING}


# --------------------------------------------------------------------------- how others are met


@dataclass
class Interrupted:
    """A storage that lets others work at a moment of the listing of partitions."""

    inner: Storage
    meanwhile: Callable[[], None]
    left: int

    def walk(self, *given: object, **named: object) -> Iterator[Folder]:
        """List one folder after the other, where storages may be a little ahead."""
        for path in [f.path for f in self.inner.walk(*given, **named)]:  # type: ignore[arg-type]
            self._count()
            yield from self.inner.walk(path)

    def list(self, path: str = "", *given: object, **named: object) -> object:
        if not path.startswith(".hoodie"):
            self._count()
        return self.inner.list(path, *given, **named)  # type: ignore[arg-type]

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.meanwhile()

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


REQUESTS: Mapping[str, Callable[[TableState], ScanRequest]] = {
    "scan": lambda state: ScanRequest(),
    "optimized": lambda state: ScanRequest(mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED),
    "as_of": lambda state: ScanRequest(as_of=_newest(state)),
    "where": lambda state: ScanRequest(where="p = 'p1'"),
    "incremental": lambda state: ScanRequest(mode=ReadingMode.INCREMENTAL),
    "changes": lambda state: ScanRequest(mode=ReadingMode.CDC),
}


def _newest(state: TableState) -> str:
    return max(i.requested for i in state.timeline.data())


def answer(state: TableState, request: ScanRequest) -> list[str]:
    found = [r for b in scan_batches(plan_scan(state, request)) for r in b.to_pylist()]
    return sorted(map(repr, found))


def answers(state: TableState) -> dict[str, list[str]]:
    return {name: answer(state, ask(state)) for name, ask in REQUESTS.items()}


@pytest.mark.parametrize("action", ALL)
@pytest.mark.parametrize("moment", [0, 2])
def test_the_answer_is_whole_or_an_error(table: lw.Table, action: str, moment: int) -> None:
    place = Path(table.path)
    state = open_state(open_storage(place))
    wanted = answers(state)
    assert all(found for name, found in wanted.items() if name != "optimized")
    errors = set()
    for name, ask in REQUESTS.items():
        if moment and name in ("optimized", "as_of"):
            continue  # listed by the same steps as a scan
        done = False

        copy = place.parent / f"{name}-{moment}"
        _copy(place, copy)

        def meanwhile(copy: Path = copy) -> None:
            nonlocal done
            done = True
            ALL[action](lw.open_table(copy))

        pinned = open_state(open_storage(copy))
        if moment == 0:
            meanwhile()
        slow = Interrupted(pinned.storage, meanwhile, moment)
        pinned = TableState(slow, pinned.config, pinned.timeline)  # type: ignore[arg-type]
        try:
            assert answer(pinned, ask(pinned)) == wanted[name], name
        except (HistoryGone, Conflict) as error:
            assert error.retryable or name == "changes"
            errors.add(name)
        if not done:
            assert name not in errors
    assert not errors or action in TAKING
    keeps = action == "hours" and _has_logs(table)  # nothing is old enough there
    if moment == 0 and action in TAKING and not keeps:
        assert {"scan", "where", "incremental"} <= errors


def _copy(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())


def test_a_stream_does_not_end_without_a_look_at_what_went(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "cow9")
    table.upsert(rows(0))
    stream = table.files.list_files_at()
    groups = table.files.file_groups()
    partitions = table.files.partitions()
    seen = [next(stream), next(stream)]  # both partitions: what is left to come is the end
    assert len(seen) == 2
    _clean_by_versions(table)
    for late in (stream, groups, partitions):
        with pytest.raises(SnapshotGone, match="make the scan anew"):
            list(late)
    assert sum(len(part.file_slices) for part in table.files.list_files_at()) == 2


def test_a_table_that_is_kept_open_sees_what_is_new_at_every_scan(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "cow9")
    table.upsert(rows(0))
    early = table.scan()
    lw.open_table(tmp_path / "t").upsert([{"id": "k9", "p": "p0", "n": 9}])
    assert early.count() == 4
    assert table.scan().count() == 5


def test_a_file_that_goes_between_planning_and_reading_is_missed(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "cow9")
    table.upsert(rows(0))
    arrow, counted = table.scan(), table.scan()
    arrow.plan()
    counted.plan()
    _clean_by_versions(table)
    for late in (arrow.to_arrow, counted.count):
        with pytest.raises(SnapshotGone, match="is gone since it was listed"):
            late()


def test_a_cleaning_under_way_may_have_taken_files_and_a_planned_one_has_not(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path / "t", "cow9")
    table.upsert(rows(0))
    scans = [table.scan() for _ in range(3)]
    _rewrite(table)
    assert table.schedule_cleaning(policy="versions", retain=1) is not None
    assert scans[0].count() == 4
    storage = FaultyStorage(
        open_storage(table.path), [Fault("delete", path=".parquet", after=True, error=Crash)]
    )
    with pytest.raises(Crash):
        lw.Table(storage).clean()
    with pytest.raises(SnapshotGone):
        scans[1].count()
    assert table.scan().count() == 4
    table.clean()
    with pytest.raises(SnapshotGone):
        scans[2].count()


def test_a_write_that_ends_after_the_picture_is_not_in_it_though_it_began_before(
    tmp_path: Path,
) -> None:
    """By requested times the cleaning keeps the newest write of the picture readable."""
    table = TinyTable(storage=open_storage(tmp_path / "t"))
    table.commit(1, {"dt=a": {base_name("g", 1): b"x"}})
    table.commit(3, {"dt=b": {base_name("h", 3): b"x"}})
    for name in (f"{at(2)}.commit.requested", f"{at(2)}.inflight"):
        table.storage.write(f"{table.timeline}/{name}", b"")
    state = table.state()
    table.commit(2, {"dt=a": {base_name("g", 2): b"x"}}, completed=4)
    _hudi_cleaning(table, 5, {"dt=a": [base_name("g", 1)]}, earliest=3)
    assert _bases(table.state()) == {base_name("g", 2), base_name("h", 3)}
    with pytest.raises(SnapshotGone):
        _bases(state)


def test_a_cleaning_by_versions_of_other_software_counts_by_the_files_it_names() -> None:
    table = TinyTable()
    for minute in (1, 2, 3):
        table.commit(minute, {"dt=a": {base_name("g", minute): b"x"}})
    state = table.state()
    _hudi_cleaning(table, 4, {"dt=a": [base_name("g", 1)]})
    assert _bases(state) == {base_name("g", 3)}
    # It tells no instant from which on the table can be read, neither before nor after.
    for picture in (state, table.state()):
        assert _bases(picture, at(2)) == {base_name("g", 2)}
        with pytest.raises(SnapshotGone, match=at(4)):
            _bases(picture, at(1))


def test_a_bound_that_covers_the_reading_spares_a_second_listing() -> None:
    table = TinyTable()
    for minute in (1, 2, 3, 5):
        table.commit(minute, {"dt=a": {base_name("g", minute): b"x"}})
    _hudi_cleaning(table, 4, {"dt=a": [base_name("g", 1)]}, earliest=2)
    pinned = table.state()
    _hudi_cleaning(table, 6, {"dt=a": [base_name("g", 2)]}, earliest=3)
    faulty = FaultyStorage(table.storage, [])
    assert _bases(TableState(faulty, pinned.config, pinned.timeline)) == {base_name("g", 5)}
    assert [c.path for c in faulty.calls if c.verb in ("list", "walk")] == ["", table.timeline]


@pytest.mark.parametrize("version", [6, 9])
def test_without_cleanings_one_listing_of_the_timeline_is_all(version: int) -> None:
    table = TinyTable(version)
    table.commit(1, {"dt=a": {base_name("g", 1): b"x"}})
    pinned = table.state()
    list(FileIndex(pinned).list_files_at())  # reads what planning reads
    faulty = FaultyStorage(table.storage, [])
    table.commit(2, {"dt=b": {base_name("h", 2): b"x"}})
    assert _bases(TableState(faulty, pinned.config, pinned.timeline)) == {base_name("g", 1)}
    assert [(c.verb, c.path) for c in faulty.calls] == [("walk", ""), ("list", table.timeline)]


def test_what_was_archived_after_the_picture_is_no_past_of_it(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "cow9")
    table.upsert(rows(0))
    pinned = table.timeline
    _archive(table)
    assert [i.requested for i in pinned.with_history().data()] == [
        i.requested for i in pinned.data()
    ]


def _bases(state: TableState, as_of: str | None = None) -> set[str]:
    parts = FileIndex(state).list_files_at(as_of)
    return {s.base.name for part in parts for s in part.file_slices if s.base is not None}


def _hudi_cleaning(
    table: TinyTable, minute: int, files: Mapping[str, list[str]], earliest: int | None = None
) -> None:
    """Clean as Hudi does: by commits with a bound, by versions with none."""
    bound = None if earliest is None else ActionInstant(at(earliest), "commit", "COMPLETED")
    policy = "KEEP_LATEST_FILE_VERSIONS" if earliest is None else "KEEP_LATEST_COMMITS"
    full = {p: tuple(CleanFile(f"/elsewhere/{p}/{n}") for n in names) for p, names in files.items()}
    body = CleanMetadata(at(minute), 1, 1, "" if earliest is None else at(earliest), at(minute))
    table.instant(minute, None, "clean", encode_clean(body))
    plan = encode_clean_plan(CleanPlan(bound, at(minute - 1), policy, files=full))
    table.storage.write(f"{table.timeline}/{at(minute)}.clean.requested", plan)
    table.storage.delete([f"{p}/{name}" for p, names in files.items() for name in names])


# ------------------------------------------------------------------------------------- writers


ONE = [{"id": f"k{i}", "p": "p0"} for i in range(4)]


def _rows(number: int) -> list[Row]:
    return [{**row, "n": number} for row in ONE]


def _give_away(table: lw.Table, action: str) -> None:
    if action == "cluster":
        table.cluster(sort_by="n")
    else:
        table.upsert(_rows(2))
    table.clean(policy="versions", retain=1)


@pytest.mark.parametrize("action", ["update", "cluster"])
@pytest.mark.parametrize("verb", ["upsert", "delete", "overwrite", "global"])
def test_a_write_that_was_overtaken_is_a_conflict(tmp_path: Path, action: str, verb: str) -> None:
    """The keys are not found where they were, and no file group of both writes tells it."""
    index = {"hoodie.index.type": "GLOBAL_SIMPLE" if verb == "global" else "SIMPLE"}
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, p string, n bigint",
        key="id",
        partition_by="p",
        properties=index,
    )
    table.upsert(_rows(0))
    table.upsert(_rows(1))

    def run(retry: int) -> None:
        place = open_storage(tmp_path / "t")
        slow = Interrupted(place, lambda: _give_away(lw.open_table(tmp_path / "t"), action), 1)
        writer = lw.Table(slow)  # type: ignore[arg-type]
        match verb:
            case "upsert" | "global":
                writer.upsert(_rows(3), retry=retry)
            case "delete":
                writer.delete(ONE, retry=retry)
            case _:
                writer.insert_overwrite(_rows(3), retry=retry)

    with pytest.raises(Conflict, match="overtaken"):
        run(0)
    assert table.scan().count() == 4
    run(1)
    left = sorted((str(row["id"]), row["n"]) for row in table.scan().to_arrow().to_pylist())
    assert left == ([] if verb == "delete" else [(f"k{i}", 3) for i in range(4)])
    assert table.fsck().ok


def test_a_file_that_a_write_finds_gone_is_a_conflict(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "cow9")
    table.upsert(rows(0))
    # The other partition is listed before, or after: by another thread.
    slow = Interrupted(open_storage(table.path), lambda: _clean_by_versions(table), 2)
    with pytest.raises(Conflict, match="overtaken"):
        lw.Table(slow).upsert(rows(30))  # type: ignore[arg-type]
    assert table.scan().count() == 4
