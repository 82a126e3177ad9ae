"""A reading whose files are taken away meanwhile: all its rows, or an error, and never fewer."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.format.hudi.metadata.clean import CleanFile, CleanPlan, encode_clean_plan
from lakewright.model.errors import Conflict, HistoryGone, LakewrightError, SnapshotGone
from lakewright.model.files import ReadingMode
from lakewright.model.instant import State
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


@pytest.fixture(params=["cow9", "cow6", "mor9", "mor6"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> lw.Table:
    """Two partitions, written twice; without logs a long time ago."""
    made = lw.create_table(
        tmp_path / "t",
        schema="id string, p string, n bigint",
        key="id",
        partition_by="p",
        version=int(request.param[-1]),
        type="MERGE_ON_READ" if request.param.startswith("mor") else "COPY_ON_WRITE",
    )
    for number, instant in enumerate(OLD[:2]):
        _write_old(made, number, instant)
    return made


def _write_old(table: lw.Table, number: int, instant: str) -> None:
    table.upsert(rows(number), instant=None if _has_logs(table) else instant)
    _settle(table)


def _has_logs(table: lw.Table) -> bool:
    return table.definition.table_type.value == "MERGE_ON_READ"


def _settle(table: lw.Table) -> None:
    if _has_logs(table):
        table.compact()


# ------------------------------------------------------------------------------ what others do


def _rewrite(table: lw.Table, times: int = 2) -> None:
    for number in range(times):
        table.upsert(rows(10 + number))
        _settle(table)


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
    table.delete_partitions(["p=p0"])
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
    "compaction": lambda table: _settle(table),
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
        for folder in self.inner.walk(*given, **named):  # type: ignore[arg-type]
            self._count()
            yield folder

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
    "where": lambda state: ScanRequest(where="p = 'p0'"),
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
@pytest.mark.parametrize("moment", [0, 1, 2])
def test_the_answer_is_whole_or_an_error(table: lw.Table, action: str, moment: int) -> None:
    place = Path(table.path)
    state = open_state(open_storage(place))
    wanted = answers(state)
    assert all(wanted.values())
    errors = set()
    for name, ask in REQUESTS.items():
        done = False

        def meanwhile() -> None:
            nonlocal done
            done = True
            ALL[action](lw.open_table(copy))

        copy = place.parent / f"{name}-{moment}"
        _copy(place, copy)
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
