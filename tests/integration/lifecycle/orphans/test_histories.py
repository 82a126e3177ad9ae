"""After any history, with any files strewn into it, a plan takes the orphans and no other."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lakewright.api.table import Table
from lakewright.model.errors import LakewrightError
from lakewright.model.instant import Action
from lakewright.storage.port import Storage
from lakewright.table.pins import Pin, add_pin
from lakewright.table.state import open_state
from lakewright.timeline.view import TimelineView
from support.dropping import memory, seen
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.orphaned import (
    SHAPES,
    applied,
    base_name,
    block,
    later,
    log_name,
    old_table,
    planned,
    targets,
    tree,
    undone,
)
from support.retention import instant
from support.service_scenarios import EAGER, carry_out, schedule
from support.write_scenarios import rows, table_of
from told import tell

DONE: Counter[str] = Counter()
STEPS = (
    "upsert",
    "upsert",
    "insert_apart",
    "overwrite",
    "drop",
    "compact",
    "schedule_compaction",
    "log_compact",
    "cluster",
    "clean",
    "archive",
    "savepoint",
    "rollback",
    "restore",
    "die",
    "die",
)
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 60)), max_size=10)
#: Files that are nobody's, files that look like such, and files that are none of the table's.
SORTS = (
    "orphan",
    "orphan",
    "orphan log",
    "orphan change log",
    "cut-off log",
    "stray attempt",
    "older than the timeline",
    "ahead",
    "pinned",
    "named otherwise",
    "foreign",
    "in no partition",
    "in another table",
)
strewn = st.lists(
    st.tuples(st.sampled_from(SORTS), st.sampled_from("xy"), st.integers(0, 9)), max_size=8
)


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say what was done."""
    DONE.clear()
    yield
    tell(request, DONE, "orphan histories")


def do(storage: Storage, step: str, number: int) -> None:
    """Do one step; what the table refuses is nothing done."""
    table = Table(storage)
    writes = [i.requested for i in table.timeline.data()]
    if not writes and step not in {"upsert", "insert_apart"}:
        return
    batch = table_of(rows("abq"[number % 3], "x", number), rows("er", "y", number))
    apart = {"hoodie.parquet.small.file.limit": "0"}
    acts: dict[str, Callable[[], object]] = {
        "upsert": lambda: table.upsert(batch),
        "insert_apart": lambda: table.insert(table_of(rows("uv", "x", number)), options=apart),
        "overwrite": lambda: table.insert_overwrite(batch),
        "drop": lambda: table.delete_partitions(["p=x"]),
        "compact": table.compact,
        "schedule_compaction": lambda: schedule(table, "compaction"),
        "log_compact": lambda: table.log_compact(options=EAGER),
        "cluster": lambda: carry_out(table, "clustering"),
        "clean": lambda: table.clean(policy="versions", retain=1),
        "archive": lambda: table.archive(min_commits=2, max_commits=3),
        "savepoint": table.savepoint,
        "rollback": lambda: table.rollback(writes[-1]),
        "restore": lambda: table.restore(writes[max(0, len(writes) - 1 - number % 3)]),
        "die": lambda: die(storage, number),
    }
    try:
        acts[step]()
    except LakewrightError:
        DONE["refused"] += 1
    else:
        DONE[step] += 1


def die(storage: Storage, number: int) -> None:
    """A writer that is gone at some call; its write is pending, and its files are its own."""
    faulty = FaultyStorage(storage, [Fault(at=number, error=Crash)])
    try:
        Table(faulty).upsert(table_of(rows("abcxyz", "x", number), rows("m", "y", number)))
    except Crash:
        DONE["deaths"] += 1


def unknown(view: TimelineView, number: int) -> str:
    """Return an instant within the timeline that the table does not know, or one just after it."""
    known = {i.requested for i in view.with_history().instants}
    begin = max(view.start or "", min(known))
    times = sorted(time for time in known if time >= begin)
    after = int(times[number % len(times)])
    return next(str(after + more) for more in itertools.count(1) if str(after + more) not in known)


def put(storage: Storage, rows: bytes, sort: str, partition: str, number: int) -> tuple[str, bool]:
    """Put a file into a table; return its path, and whether it is an orphan.

    Base files hold ``rows``: readers show those of the files that they take for the table's.
    """
    view = open_state(storage).timeline
    folder, time, data = f"p={partition}", unknown(view, number), rows
    known = [i.requested for i in view.with_history().instants]
    match sort:
        case "orphan log":
            name, data = log_name(time), block(time)
        case "orphan change log":
            name, data = log_name(time, cdc=True), block(time, time)
        case "cut-off log":
            name, data = log_name(time), block(time)[:-5]
        case "stray attempt":
            name = base_name(known[number % len(known)], token="9-9-9")
        case "older than the timeline":
            name = base_name(instant(-20 + number))
        case "ahead":
            name = base_name(f"{later(400):%Y%m%d%H%M%S}000")
        case "named otherwise":
            name = base_name(time, token="me")
        case "foreign":
            name = f"{number}_of_mine.txt"
        case "in no partition":
            folder, name = "elsewhere", base_name(time)
        case "in another table":
            folder, name = f"p={partition}/inner/p=1", base_name(time)
            storage.write(f"p={partition}/inner/.hoodie/hoodie.properties", b"")
            storage.write(f"{folder}/.hoodie_partition_metadata", b"")
        case _:
            name = base_name(time)
    path = f"{folder}/{name}"
    storage.write(path, data)
    if sort == "pinned":
        until = later(100).timestamp()
        add_pin(storage, Pin(name, until, "an undo", {folder: frozenset({name})}))
    is_orphan = sort.startswith("orphan") or (sort == "cut-off log" and view.config.layout == 2)
    held = view.start is None or any(i.action is Action.RESTORE for i in view.pending())
    # A cleaning that took the last file of a dropped partition took that, too.
    is_partition = storage.stat(f"{folder}/.hoodie_partition_metadata") is not None
    return path, is_orphan and is_partition and not held


def check(
    shape: Mapping[str, object], history: list[tuple[str, int]], files: list[tuple[str, str, int]]
) -> None:
    storage = memory()
    old_table(storage, **shape)  # type: ignore[arg-type]
    some = next(data for path, data in tree(storage).items() if path.endswith(".parquet"))
    for step, number in history:
        do(storage, step, number)
    wanted = {path for path, mine in [put(storage, some, *file) for file in files] if mine}
    content, before = seen(storage), tree(storage)
    plan = planned(storage)
    assert set(targets(plan)) == wanted
    DONE["orphans"] += len(wanted)
    done = applied(storage, plan)
    assert set(done.done) == wanted and not done.skipped
    assert seen(storage) == content, "no row changes"
    assert tree(storage) == {path: data for path, data in before.items() if path not in wanted}
    if wanted:
        undone(storage, plan)
    assert tree(storage) == before and seen(storage) == content


def run(shape: str, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(history=steps, files=strewn)
    def histories(history: list[tuple[str, int]], files: list[tuple[str, str, int]]) -> None:
        check(SHAPES[shape], history, files)

    histories()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plan_takes_the_orphans_and_no_other_file(shape: str) -> None:
    run(shape, 12)
    assert DONE["orphans"]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_plan_takes_the_orphans_and_no_other_file_after_many_histories(shape: str) -> None:
    run(shape, 250)
