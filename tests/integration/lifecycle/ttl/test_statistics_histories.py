"""After any history, statistics that were refreshed on the way equal a listing."""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lakewright.actions.create import create_table
from lakewright.api.creating import plan_table
from lakewright.api.table import Table
from lakewright.lifecycle.ttl.statistics import PartitionStats, gather, verify
from lakewright.model.errors import LakewrightError
from lakewright.model.instant import Action
from lakewright.model.table import TableId
from lakewright.storage.memory import MemoryStorage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import TableState, open_state
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.service_scenarios import EAGER, carry_out, schedule

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("n", pa.int64())])
PARTITIONS = ("x", "y", "z")
DONE: Counter[str] = Counter()
_NUMBERS = itertools.count()

KINDS = [
    pytest.param(mor, version, partitioned, id=f"{kind}-v{version}-{shape}")
    for (mor, kind), version, (partitioned, shape) in itertools.product(
        ((False, "cow"), (True, "mor")), (6, 9), ((True, "partitioned"), (False, "flat"))
    )
]
STEPS = (
    "upsert",
    "upsert",
    "upsert",
    "insert_apart",
    "delete",
    "overwrite",
    "drop",
    "compact",
    "schedule_compaction",
    "log_compact",
    "cluster",
    "clean",
    "archive",
    "savepoint",
    "delete_savepoint",
    "rollback",
    "restore",
    "die",
    "gather",
    "gather",
)
steps = st.lists(
    st.tuples(
        st.sampled_from(STEPS),
        st.sets(st.sampled_from(PARTITIONS), min_size=1).map(sorted),
        st.integers(0, 40),
        st.sampled_from((False, False, True)),
    ),
    min_size=6,
    max_size=18,
)


class History:
    """One table, and what can happen to it."""

    def __init__(self, *, mor: bool, version: int, partitioned: bool) -> None:
        self.storage = MemoryStorage(f"memory://statistics-{next(_NUMBERS)}")
        self.partitioned = partitioned
        details: dict[str, Any] = {
            "partition_by": ["p"] if partitioned else [],
            "type": "MERGE_ON_READ" if mor else "COPY_ON_WRITE",
            "version": version,
            "properties": {"hoodie.clean.commits.retained": "1"},
        }
        create_table(self.storage, plan_table(TableId("", "t"), SCHEMA, "id", details))
        self.shared_logs = mor and version == 6
        self.number = 0

    def rows(self, partitions: list[str], salt: str = "") -> pa.Table:
        self.number += 1
        found = [
            {"id": f"{p}{salt}{k}", "p": p, "n": self.number} for p in partitions for k in range(3)
        ]
        return pa.Table.from_pylist(found, schema=SCHEMA)

    def do(self, step: str, partitions: list[str], number: int) -> None:
        """Do one step; what the table refuses is nothing done."""
        table = Table(self.storage)
        writes = [i.requested for i in table.timeline.data()]
        saved = [i.requested for i in table.timeline.by_action(Action.SAVEPOINT)]
        apart = {"hoodie.parquet.small.file.limit": "0"}
        acts: dict[str, Callable[[], object]] = {
            "upsert": lambda: table.upsert(self.rows(partitions)),
            "insert_apart": lambda: table.insert(
                self.rows(partitions, f"-{number}"), options=apart
            ),
            "delete": lambda: table.delete(self.rows(partitions)),
            "overwrite": lambda: table.insert_overwrite(self.rows(partitions)),
            "drop": lambda: table.delete_partitions(
                [f"p={p}" for p in partitions] if self.partitioned else [""]
            ),
            "compact": table.compact,
            "schedule_compaction": lambda: schedule(table, "compaction"),
            "log_compact": lambda: table.log_compact(options=EAGER),
            "cluster": lambda: carry_out(table, "clustering"),
            "clean": table.clean,
            "archive": lambda: table.archive(min_commits=2, max_commits=3),
            "savepoint": lambda: table.savepoint(writes[-1]),
            "delete_savepoint": lambda: table.delete_savepoint(saved[0]),
            "rollback": lambda: table.rollback(writes[-1]),
            "restore": lambda: table.restore(writes[max(0, len(writes) - 1 - number % 4)]),
            "die": lambda: self._die(partitions, number),
            "gather": lambda: gather(self.state()),
        }
        if not writes and step not in {"upsert", "insert_apart", "gather"}:
            return
        if step == "delete_savepoint" and not saved:
            return
        try:
            acts[step]()
        except LakewrightError as refused:
            DONE[f"{step} refused: {type(refused).__name__}"] += 1
        else:
            DONE[step] += 1

    def state(self) -> TableState:
        return open_state(self.storage)

    def _die(self, partitions: list[str], number: int) -> None:
        """A writer that is gone at some call, and the next one, which takes its write back."""
        faulty = FaultyStorage(self.storage, [Fault(at=number, error=Crash)])
        try:
            Table(faulty).upsert(self.rows(partitions))
        except Crash:
            DONE["deaths"] += 1
        if self.shared_logs:
            # In these tables the log of a dead write counts until it is taken back.
            Table(self.storage).upsert(self.rows(partitions))


def reference(state: TableState) -> dict[str, tuple[str, int]]:
    """The same by other means: the change stream tells times, snapshots tell sizes."""
    sizes = {
        part.descriptor.path: sum(piece.size for piece in part.file_slices)
        for part in FileIndex(state).list_files_at()
        if part.file_slices
    }
    whole = state.timeline.with_history()
    times: dict[str, str] = {}
    for instant in whole.data():
        body = whole.commit_metadata(instant)
        if body.operation in {"COMPACT", "CLUSTER", "LOG_COMPACT"}:
            continue
        for path in {*body.write_stats, *body.replaced}:
            times[path] = max(times.get(path, ""), instant.requested)
    return {path: (times[path], size) for path, size in sizes.items()}


def told(stats: PartitionStats) -> dict[str, tuple[str, int]]:
    return {p: (s.last_modified, s.bytes) for p, s in stats.partitions.items()}


def check(kind: tuple[bool, int, bool], history: list[tuple[str, list[str], int, bool]]) -> None:
    mor, version, partitioned = kind
    table = History(mor=mor, version=version, partitioned=partitioned)
    for step, partitions, number, look in history:
        table.do(step, partitions, number)
        if look:
            state = table.state()
            refreshed = gather(state)
            DONE["comparisons"] += 1
            assert told(refreshed) == reference(state), (step, partitions)
            assert verify(state) == ()
    refreshed = gather(table.state())
    assert refreshed == gather(table.state(), rebuild=True)
    assert told(refreshed) == reference(table.state())


def run(kind: tuple[bool, int, bool], examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(history=steps)
    def histories(history: list[tuple[str, list[str], int, bool]]) -> None:
        check(kind, history)

    histories()


@pytest.mark.parametrize(("mor", "version", "partitioned"), KINDS)
def test_refreshed_statistics_equal_rebuilt_ones(
    mor: bool, version: int, partitioned: bool
) -> None:
    run((mor, version, partitioned), 12)


@pytest.mark.slow
@pytest.mark.parametrize(("mor", "version", "partitioned"), KINDS)
def test_refreshed_statistics_equal_rebuilt_ones_after_many_histories(
    mor: bool, version: int, partitioned: bool
) -> None:
    run((mor, version, partitioned), 300)
