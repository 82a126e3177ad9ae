"""Which writes cannot both take effect."""

import pytest

from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
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
from lakewright.model.errors import Conflict
from lakewright.model.instant import Action, Instant, State
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.conflicts import Touched, check_plans, check_rivals, settled_schema
from support.commits import Write, committer
from support.tiny_tables import SCHEMA, TinyTable, at

MINE, EARLIER, LATER = at(10), at(5), at(15)
WIDER = SCHEMA.replace("]}]}", ']},{"name":"more","type":["null","string"]}]}')
OTHER = SCHEMA.replace("]}]}", ']},{"name":"other","type":["null","long"]}]}')


def wrote(*groups: str, operation: str = "UPSERT", replaced: str = "") -> CommitMetadata:
    stats = tuple(WriteStat(group, f"dt=1/{group}") for group in groups)
    gone = {"dt=1": (replaced,)} if replaced else {}
    return CommitMetadata({"dt=1": stats}, operation=operation, replaced=gone)


def rival(metadata: CommitMetadata, requested: str = LATER) -> list[tuple[Instant, CommitMetadata]]:
    return [(Instant(requested, Action.COMMIT, State.COMPLETED, at(20)), metadata)]


GROUPS, BUCKETS = Touched(buckets=False), Touched(buckets=True)
B1, B1_AGAIN, B2 = "00000001-a-0", "00000001-b-0", "00000002-a-0"

CASES = [
    ("the same group", wrote("a"), wrote("b", "a"), GROUPS, LATER, True),
    ("other groups", wrote("a"), wrote("b"), GROUPS, LATER, False),
    ("a group that was replaced", wrote("a"), wrote("b", replaced="a"), GROUPS, LATER, True),
    ("a group that we replace", wrote("b", replaced="a"), wrote("a"), GROUPS, LATER, True),
    ("both replace it", wrote(replaced="a"), wrote(replaced="a"), GROUPS, LATER, True),
    ("two first writers of a bucket", wrote(B1), wrote(B1_AGAIN), BUCKETS, LATER, True),
    ("other buckets", wrote(B1), wrote(B2), BUCKETS, LATER, False),
    ("no buckets, alike ids", wrote(B1), wrote(B1_AGAIN), GROUPS, LATER, False),
    ("a compaction before us", wrote("a"), wrote("a", operation="COMPACT"), GROUPS, EARLIER, False),
    ("a compaction after us", wrote("a"), wrote("a", operation="COMPACT"), GROUPS, LATER, True),
    (
        "a clustering",
        wrote("a"),
        wrote("z", operation="CLUSTER", replaced="a"),
        GROUPS,
        LATER,
        True,
    ),
    ("an older write, ended later", wrote("a"), wrote("a"), GROUPS, EARLIER, True),
]


@pytest.mark.parametrize(
    ("ours", "theirs", "touched", "requested", "lost"),
    [c[1:] for c in CASES],
    ids=[c[0] for c in CASES],
)
def test_rivals(
    ours: CommitMetadata, theirs: CommitMetadata, touched: Touched, requested: str, lost: bool
) -> None:
    rivals = rival(theirs, requested)
    if lost:
        with pytest.raises(Conflict, match=requested):
            check_rivals(MINE, ours, rivals, touched)
    else:
        check_rivals(MINE, ours, rivals, touched)


def test_one_file_id_in_two_partitions_is_two_groups() -> None:
    theirs = CommitMetadata({"dt=2": (WriteStat("a", "dt=2/a"),)})
    check_rivals(MINE, wrote("a"), rival(theirs), GROUPS)


def compaction(group: str) -> bytes:
    operation = CompactionOperation(at(1), (), None, group, "dt=1")
    return encode_compaction_plan(CompactionPlan((operation,)))


def clustering(group: str) -> bytes:
    piece = ClusteringSlice("", (), group, "dt=1")
    plan = ClusteringPlan((ClusteringGroup((piece,)),))
    return encode_replace_plan(ReplacePlan("CLUSTER", plan))


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize(
    ("action", "minute", "group", "lost"),
    [
        ("compaction", 5, "a", False),
        ("compaction", 15, "a", True),
        ("compaction", 15, "b", False),
        ("logcompaction", 15, "a", True),
        ("clustering", 5, "a", True),
        ("clustering", 15, "a", True),
        ("clustering", 5, "b", False),
    ],
)
def test_plans(version: int, action: str, minute: int, group: str, lost: bool) -> None:
    body = clustering(group) if action == "clustering" else compaction(group)
    name = "replacecommit" if action == "clustering" and version == 6 else action
    table = TinyTable(version, mor=True).commit(1)
    table.touch(f"{table.timeline}/{at(minute)}.{name}.requested", body)
    view = table.state().timeline
    if lost:
        with pytest.raises(Conflict, match="planned") as refused:
            check_plans(view, MINE, wrote("a"), GROUPS)
        waits = action == "clustering"
        assert (f"table.rollback('{at(minute)}')" in refused.value.next_step) == waits
    else:
        check_plans(view, MINE, wrote("a"), GROUPS)


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize(("partition", "lost"), [("dt=1", True), ("dt=2", False)])
def test_a_rescale_under_way_takes_its_partitions_whole(
    version: int, partition: str, lost: bool
) -> None:
    """A bucket that had no file is in no plan, and would be left behind in the old numbering."""
    piece = ClusteringSlice("", (), B2, partition)
    plan = ReplacePlan("INSERT_OVERWRITE", ClusteringPlan((ClusteringGroup((piece,)),)))
    table = TinyTable(version, mor=True).commit(1)
    path = f"{table.timeline}/{at(5)}.replacecommit.requested"
    table.touch(path, encode_replace_plan(plan))
    view = table.state().timeline
    if lost:
        with pytest.raises(Conflict, match="planned"):
            check_plans(view, MINE, wrote(B1), BUCKETS)
    else:
        check_plans(view, MINE, wrote(B1), BUCKETS)


# -------------------------------------------------------------------------------- schemas


@pytest.mark.parametrize(
    ("before", "ours", "theirs", "kept"),
    [
        (SCHEMA, SCHEMA, SCHEMA, SCHEMA),
        (SCHEMA, WIDER, SCHEMA, WIDER),
        (SCHEMA, SCHEMA, WIDER, WIDER),
        (SCHEMA, WIDER, WIDER, WIDER),
        (SCHEMA, WIDER, OTHER, None),
    ],
)
def test_schemas(before: str, ours: str, theirs: str, kept: str | None) -> None:
    mine = CommitMetadata(extra={"schema": ours, "mark": "mine"})
    rivals = rival(CommitMetadata(extra={"schema": theirs}))
    if kept is None:
        with pytest.raises(Conflict, match="schema"):
            settled_schema(mine, rivals, {"schema": before})
    else:
        settled = settled_schema(mine, rivals, {"schema": before})
        assert settled.extra == {"schema": kept, "mark": "mine"}


def test_names_and_spaces_do_not_make_a_schema_differ() -> None:
    spaced = SCHEMA.replace('"name":"t"', '"name" : "orders_record"')
    mine = CommitMetadata(extra={"schema": SCHEMA})
    rivals = rival(CommitMetadata(extra={"schema": spaced}))
    assert settled_schema(mine, rivals, {"schema": WIDER}) is mine


def test_a_history_of_columns_that_changed_is_taken_over_or_a_conflict() -> None:
    theirs = rival(CommitMetadata(extra={"schema": SCHEMA, "latest_schema": "{2}"}))
    mine = CommitMetadata(extra={"schema": SCHEMA})
    assert settled_schema(mine, theirs, {"schema": SCHEMA}).extra["latest_schema"] == "{2}"
    with pytest.raises(Conflict):
        settled_schema(CommitMetadata(extra={"schema": WIDER}), theirs, {"schema": SCHEMA})


@pytest.fixture(params=[9, 6])
def storage(request: pytest.FixtureRequest) -> Storage:
    storage = TinyTable(request.param).storage
    Write.begin(storage).base("a").publish()
    return storage


def test_a_schema_that_a_rival_widened_is_not_narrowed_again(storage: Storage) -> None:
    write = Write.begin(storage).base("b")
    Write.begin(storage).base("c").publish(schema=WIDER)
    done = write.publish()
    assert open_state(storage).timeline.commit_metadata(done).schema == WIDER


def test_two_changes_of_the_schema_conflict(storage: Storage) -> None:
    write = Write.begin(storage).base("b")
    Write.begin(storage).base("c").publish(schema=WIDER)
    with pytest.raises(Conflict, match="schema"):
        write.publish(schema=OTHER)


def test_bucket_tables_compare_buckets() -> None:
    storage = TinyTable(hoodie__index__type="BUCKET").storage
    one, other = Write.begin(storage).base(B1), Write.begin(storage).base(B1_AGAIN)
    other.publish()
    with pytest.raises(Conflict, match="00000001"):
        one.publish()


def test_the_caller_may_say_that_it_is_a_bucket_table() -> None:
    storage = TinyTable().storage
    by = committer(storage, hoodie__index__type="bucket")
    one, other = Write.begin(storage, by).base(B1), Write.begin(storage).base(B1_AGAIN)
    other.publish()
    with pytest.raises(Conflict):
        one.publish()
