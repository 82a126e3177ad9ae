"""Setting bucket rules: pins, versions, rivals, and a stop at every storage call."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lakewright.actions.buckets.setting import SET_RULES, RulesSet, create_rules, set_rules
from lakewright.actions.create import create_table
from lakewright.api.creating import plan_table
from lakewright.api.table import Table
from lakewright.format.hudi.hashing_config import (
    ARCHIVE_FOLDER,
    CONFIGS_FOLDER,
    FIRST_INSTANT,
    decode_hashing_config,
    hashing_config_path,
)
from lakewright.format.hudi.simple_hash_meta import SIMPLE_FOLDER, hash_config_path
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import layout_of
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.bucket_rules.text import parse_rules, rules_json
from lakewright.model.errors import AlreadyExists, Conflict, Invalid, LakewrightError
from lakewright.model.table import TableId
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.rescaling import (
    SCHEMA,
    SHAPES,
    by_hudi,
    check_law,
    content,
    filled_table,
    live_groups,
    made_table,
    memory,
    rows,
    rules,
    table_of,
)
from support.table_files import copy_table

NUMBER = "hoodie.bucket.index.num.buckets"
FIRST = rules(("p=x", 3), default=2)
THEN = rules(("p=[yz]", 5), ("p=w", 7), default=6)


def set_here(storage: Storage, given: BucketRules, **options: str) -> RulesSet:
    return set_rules(open_state(storage), given, options)


def counts(storage: Storage, *partitions: str) -> list[int]:
    found = layout_of(open_state(storage), {}).buckets
    assert found is not None
    return found.numbers_of(partitions)


def ruled_table(storage: Storage, given: BucketRules = FIRST, **shape: Any) -> Table:
    return made_table(storage, buckets=json.loads(rules_json(given)), **shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plain_bucket_table_gets_rules_and_no_row_moves(shape: str) -> None:
    storage = memory()
    table = filled_table(storage, **SHAPES[shape])
    before, groups = content(storage), live_groups(storage)
    done = set_here(storage, rules(("p=x", 4), default=9))
    named = {"p=y": 4, "p=z": 4} if SHAPES[shape]["partitioned"] else {"": 4}
    assert (done.pins, done.changed, done.warnings) == (named, True, ())
    assert content(storage) == before
    assert live_groups(storage) == groups
    check_law(storage)
    table.upsert(table_of(rows(range(40, 90), 5, "wxyz")))
    numbers = check_law(storage)
    new = {"p=w": 9, "p=x": 4, "p=y": 4, "p=z": 4} if len(named) == 2 else {"": 4}
    assert numbers == new
    assert table.fsck().ok


def test_the_first_version_of_an_upgraded_table_says_what_it_had() -> None:
    storage = memory()
    filled_table(storage, buckets=4)
    done = set_here(storage, THEN)
    versions = HashingStore(storage).history(open_state(storage).timeline)
    assert [v.instant for v in versions] == [FIRST_INSTANT, done.instant]
    assert versions[0].rules == BucketRules(default=4)
    assert NUMBER not in open_state(storage).config.properties, "Hudi would refuse other rules"
    Table(storage).rollback(done.instant)
    assert counts(storage, "p=x", "p=new") == [4, 4]
    assert [f.path for f in storage.list(CONFIGS_FOLDER)] == [hashing_config_path(FIRST_INSTANT)]
    check_law(storage)


def test_pins_follow_what_is_there_from_version_to_version() -> None:
    storage = memory()
    table = ruled_table(storage)
    table.upsert(table_of(rows(range(30), 1, "xy")))
    assert counts(storage, "p=x", "p=y", "p=w") == [3, 2, 2]
    one = set_here(storage, THEN)
    assert one.pins == {"p=x": 3, "p=y": 2}
    table.upsert(table_of(rows(range(60), 2, "xyzw")))
    assert check_law(storage) == {"p=x": 3, "p=y": 2, "p=z": 5, "p=w": 7}
    two = set_here(storage, rules(("p=[yw]", 2), default=3))
    assert two.pins == {"p=w": 7, "p=z": 5}, "a number that the rules give needs no pin"
    assert check_law(storage) == {"p=x": 3, "p=y": 2, "p=z": 5, "p=w": 7}
    stored = decode_hashing_config(storage.read(hashing_config_path(two.instant)), "c")
    assert stored.expressions.startswith(r"\A(?:p=z)\z,5;\A(?:p=w)\z,7;")


def test_the_same_rules_again_write_nothing() -> None:
    storage = memory()
    filled_table(storage)
    one = set_here(storage, THEN)
    files = {file.path for file in storage.list(recursive=True)}
    two = set_here(storage, THEN)
    assert (two.instant, two.pins, two.changed) == (one.instant, one.pins, False)
    assert {file.path for file in storage.list(recursive=True)} == files
    assert "as before" in str(two)


def test_rules_that_meet_are_told_with_a_partition_that_is_there() -> None:
    storage = memory()
    filled_table(storage)
    done = set_here(storage, rules(("p=[xy]", 4), ("p=y|q", 5), default=4))
    assert "both match paths such as 'p=y'" in done.warnings[0]
    assert "decides for none" in done.warnings[1], "of the partitions that there are"
    assert f"warning: {done.warnings[0]}" in str(done).splitlines()
    assert not done.pins, "the first decides"


def test_a_version_is_a_commit_without_files() -> None:
    storage = memory()
    table = filled_table(storage)
    done = set_here(storage, THEN)
    view = open_state(storage).timeline
    newest = view.latest_data()
    assert newest is not None and newest.requested == done.instant
    body = view.commit_metadata(newest)
    assert not body.write_stats and not body.replaced
    assert body.extra[SET_RULES] == done.instant
    start = view.data()[-2].completed
    assert table.incremental(start=start).count() == 0
    config = decode_hashing_config(storage.read(hashing_config_path(done.instant)), "c")
    assert config.instant == done.instant
    assert parse_rules(storage.read(hash_config_path(done.instant)).decode()) == THEN


def test_ranges_and_unknown_kinds_reach_hudi_as_patterns() -> None:
    storage = memory()
    table = filled_table(storage)
    ranged = BucketRules((BucketRule("p: [w, y]", 3, "range"),), 8)
    done = set_here(storage, ranged)
    version = HashingStore(storage).newest(open_state(storage).timeline)
    assert version is not None and version.rules == ranged
    assert done.pins == {"p=x": 4, "p=y": 4, "p=z": 4}
    assert counts(storage, "p=w", "p=wz", "p=zz") == [3, 3, 8]
    # Another software keeps the hashing config alone.
    storage.delete([hash_config_path(done.instant)])
    assert counts(MemoryStorage(storage.uri, {}), "p=w", "p=wz", "p=zz", "p=y") == [3, 3, 8, 4]
    table.upsert(table_of(rows(range(60), 7, "wxyz")))
    check_law(storage)


@pytest.mark.parametrize("version", [9, 6])
def test_readers_of_the_hudi_package_see_every_row_after_it(tmp_path: Any, version: int) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage, version=version)
    set_here(storage, THEN)
    assert by_hudi(tmp_path / "t") == content(storage, meta=False)
    table.upsert(table_of(rows(range(40, 90), 5, "wxyz")))
    assert by_hudi(tmp_path / "t") == content(storage, meta=False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (BucketRules((BucketRule("(", 3),)), "("),
        (BucketRules((BucketRule("a", 0),)), "number of buckets"),
        (BucketRules((BucketRule("a", 3, "moon"),)), "moon"),
        (BucketRules(default=0), "default"),
    ],
)
def test_wrong_rules_are_refused_before_anything_is_written(given: BucketRules, words: str) -> None:
    storage = memory()
    filled_table(storage)
    files = {file.path for file in storage.list(recursive=True)}
    with pytest.raises(Invalid, match=words.replace("(", r"\(")):
        set_here(storage, given)
    assert {file.path for file in storage.list(recursive=True)} == files


def test_a_table_without_buckets_has_no_rules() -> None:
    storage = memory()
    details: Any = {"partition_by": ["p"]}
    create_table(storage, plan_table(TableId("", "t"), SCHEMA, "id", details))
    with pytest.raises(Invalid, match="SIMPLE, and no buckets"):
        set_here(storage, THEN)


def test_an_index_that_is_not_stored_is_stored_with_the_rules() -> None:
    """Hudi keeps the number of buckets nowhere: the caller gives it, once."""
    storage = memory()
    filled_table(storage)
    path = ".hoodie/hoodie.properties"
    kept = [line for line in storage.read(path).decode().splitlines() if "index" not in line]
    storage.write(path, "\n".join(kept).encode())
    given = {"hoodie.index.type": "BUCKET", NUMBER: "4"}
    with pytest.raises(LakewrightError, match="buckets"):
        set_here(storage, THEN)
    done = set_here(storage, THEN, **given)
    assert done.pins == {"p=x": 4, "p=y": 4, "p=z": 4}
    Table(storage).upsert(table_of(rows(range(80), 4, "wxyz")))
    assert check_law(storage)["p=w"] == 7


# ------------------------------------------------------------------------- rivals


def test_a_partition_that_comes_while_rules_are_set_is_pinned() -> None:
    storage = memory()
    table = ruled_table(storage)
    table.upsert(table_of(rows(range(30), 1, "xy")))
    hook = Meeting(storage, "walk", "")
    hook.then = lambda: Table(storage).upsert(table_of(rows(range(30), 2, "w")))
    done = set_rules(open_state(hook), THEN, {})
    assert hook.met
    assert done.pins == {"p=x": 3, "p=y": 2, "p=w": 2}
    assert check_law(storage)["p=w"] == 2


def test_a_writer_that_counted_a_new_partition_by_old_rules_loses() -> None:
    storage = memory()
    table = ruled_table(storage)
    table.upsert(table_of(rows(range(30), 1, "xy")))
    hook = Meeting(storage, "writer", "p=w")
    hook.then = lambda: set_here(storage, THEN)
    with pytest.raises(Conflict, match=r"'p=w' has 7 buckets by the bucket rules .* counted 2"):
        Table(hook).upsert(table_of(rows(range(30), 2, "w")))
    assert hook.met
    assert "p=w" not in check_law(storage)
    table.upsert(table_of(rows(range(30), 2, "w")))
    assert check_law(storage)["p=w"] == 7


def test_a_writer_on_partitions_that_keep_their_numbers_goes_on() -> None:
    storage = memory()
    table = ruled_table(storage)
    table.upsert(table_of(rows(range(30), 1, "xy")))
    hook = Meeting(storage, "writer", "p=x")
    hook.then = lambda: set_here(storage, THEN)
    Table(hook).upsert(table_of(rows(range(30), 2, "xy")))
    assert hook.met
    assert check_law(storage) == {"p=x": 3, "p=y": 2}


def test_of_two_that_set_rules_at_once_the_later_begun_stays() -> None:
    storage = memory()
    filled_table(storage)
    other = rules(("p=w", 9), default=8)
    hook = Meeting(storage, "walk", "")
    hook.then = lambda: set_here(storage, other)
    with pytest.raises(Conflict, match="rules were changed meanwhile"):
        set_rules(open_state(hook), THEN, {})
    version = HashingStore(storage).newest(open_state(storage).timeline)
    assert version is not None and version.rules == other
    assert not [f.path for f in storage.list(CONFIGS_FOLDER) if version.instant < _instant(f.path)]
    check_law(storage)


def test_many_set_and_write_at_once() -> None:
    storage = memory()
    filled_table(storage)
    done: list[str] = []

    def work(number: int) -> None:
        for turn in range(4):
            try:
                if number % 2:
                    set_here(storage, rules(("p=[a-m]", number + turn), default=turn + 2))
                else:
                    parts = "abcdefgh"[number : number + 2 + turn]
                    Table(storage).upsert(table_of(rows(range(20), turn, parts)))
                done.append("set" if number % 2 else "written")
            except Conflict:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert {"set", "written"} <= set(done)
    check_law(storage)
    assert not open_state(storage).timeline.pending()


def test_rules_cannot_be_set_while_hudi_rescales() -> None:
    storage = memory()
    filled_table(storage)
    folder = open_state(storage).config.timeline_folder
    storage.write(f"{folder}/29990101000000000.replacecommit.requested", b"")
    storage.write(f"{folder}/29990101000000000.replacecommit.inflight", b"")
    storage.write(".hoodie/.heartbeat/29990101000000000", b"")
    HashingStore(storage).write_config("29990101000000000", THEN, {})
    before = counts(storage, "p=w")
    with pytest.raises(Conflict, match="29990101000000000 has not finished"):
        set_here(storage, FIRST)
    assert counts(storage, "p=w") == before == [4]


class Meeting(FaultyStorage):
    """A storage at which something happens once, just before a call."""

    def __init__(self, storage: Storage, verb: str, path: str) -> None:
        super().__init__(storage)
        self.verb, self.path, self.met = verb, path, False
        self.then: Any = None

    def _begin(self, verb: str, path: str) -> Fault | None:
        if verb == self.verb and self.path in path and not self.met:
            self.met = True
            self.then()
        return super()._begin(verb, path)


def _instant(path: str) -> str:
    return path.rpartition("/")[2].split(".")[0]


# ----------------------------------------------------------------- a stop anywhere


def stopped(storage: Storage, act: Any, fault: Fault) -> bool:
    """Do something on a storage that fails, and return whether it reported success."""
    try:
        act(FaultyStorage(storage, [fault]))
    except (LakewrightError, Crash):
        return False
    return True


def unavailable() -> BaseException:
    return Fault().error()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("plain", [True, False])
def test_a_stop_at_any_call_leaves_the_old_rules_or_the_new(
    plain: bool, version: int, every: bool
) -> None:
    """Then the table is read, written, and its rules are set once more."""

    template = memory()
    if plain:
        made_table(template, version=version)
    else:
        ruled_table(template, version=version)
    Table(template).upsert(table_of(rows(range(9), 1, "xy")))
    before, rows_before = counts(template, "p=x", "p=y", "p=w"), content(template)

    def prepared() -> Storage:
        storage = memory()
        copy_table(template, storage)
        return storage

    def act(storage: Storage) -> None:
        set_rules(open_state(storage), THEN, {})

    counting = FaultyStorage(prepared())
    act(counting)
    calls = len(counting.calls)
    assert calls > 30
    seen: set[bool] = set()
    for number in range(0, calls, 1 if every else 3):
        for after in (False, True):
            for error in (
                (unavailable, Crash) if every else ((unavailable, Crash)[number // 3 % 2],)
            ):
                storage = prepared()
                told = stopped(storage, act, Fault(at=number, after=after, error=error))
                check_law(storage)
                now = counts(storage, "p=x", "p=y", "p=w")
                assert now[:2] == before[:2], "what is there keeps its number"
                assert now[2] in (before[2], 7)
                assert now[2] == 7 or not told
                seen.add(now[2] == 7)
                assert content(storage) == rows_before
                Table(storage).upsert(table_of(rows(range(20), 2, "xyw")))
                assert check_law(storage) == {"p=x": now[0], "p=y": now[1], "p=w": now[2]}
                set_here(storage, rules(default=11))
                assert check_law(storage)["p=w"] == now[2]
                assert counts(storage, "p=new") == [11]
                assert not open_state(storage).timeline.pending()
                assert not _orphans(storage)
    assert seen == {True, False}


def test_a_stop_on_disk_leaves_the_old_rules_or_the_new(tmp_path: Any) -> None:
    """Where the lock is a file, which a dead process leaves behind: some of the calls."""

    def prepared(name: str) -> Storage:
        storage = open_storage(tmp_path / name)
        ruled_table(storage)
        Table(storage).upsert(table_of(rows(range(9), 1, "xy")))
        return storage

    counting = FaultyStorage(prepared("count"))
    set_rules(open_state(counting), THEN, {})
    for number in range(3, len(counting.calls), 7):
        storage = prepared(str(number))
        fault = Fault(at=number, after=True, error=(unavailable, Crash)[number % 2])
        stopped(storage, lambda place: set_rules(open_state(place), THEN, {}), fault)
        now = counts(storage, "p=w")[0]
        Table(storage).upsert(table_of(rows(range(20), 2, "xyw")))
        assert check_law(storage) == {"p=x": 3, "p=y": 2, "p=w": now}
        set_here(storage, rules(default=11))
        assert check_law(storage)["p=w"] == now
        assert not _orphans(storage)


@pytest.mark.parametrize("version", [9, 6])
def test_rules_of_a_dead_process_go_with_the_next_write(version: int) -> None:
    storage = memory()
    ruled_table(storage, version=version)
    fault = Fault("write", path=CONFIGS_FOLDER, after=True, error=Crash)
    assert not stopped(storage, lambda place: set_rules(open_state(place), THEN, {}), fault)
    left = [f.path for f in storage.list(CONFIGS_FOLDER)]
    assert len(left) == 2
    assert counts(storage, "p=w") == [2], "they do not count"
    Table(storage).upsert(table_of(rows(range(9), 1, "xy")))
    assert [f.path for f in storage.list(CONFIGS_FOLDER)] == [hashing_config_path(FIRST_INSTANT)]
    assert not _orphans(storage)


@pytest.mark.parametrize("version", [9, 6])
def test_a_stop_while_rules_are_taken_back_is_mended(version: int) -> None:
    def prepared() -> tuple[Storage, str]:
        storage = memory()
        ruled_table(storage, version=version)
        Table(storage).upsert(table_of(rows(range(9), 1, "xy")))
        return storage, set_here(storage, THEN).instant

    storage, target = prepared()
    counting = FaultyStorage(storage)
    Table(counting).rollback(target)
    assert counts(storage, "p=w") == [2]
    for number in range(len(counting.calls)):
        storage, target = prepared()
        stopped(
            storage,
            lambda place, target=target: Table(place).rollback(target),
            Fault(at=number, after=number % 2 == 0, error=Crash),
        )
        check_law(storage)
        table = Table(storage)
        table.upsert(table_of(rows(range(20), 2, "xyw")))
        now = check_law(storage)
        assert now["p=w"] in (2, 7)
        set_here(storage, rules(default=11))
        assert check_law(storage) == now
        assert not _orphans(storage)


@pytest.mark.parametrize("left_ruled", [True, False])
@pytest.mark.parametrize("now_ruled", [True, False])
def test_a_creation_that_stops_anywhere_is_repeated_with_other_rules(
    left_ruled: bool, now_ruled: bool
) -> None:
    def act(given: bool, number: int, storage: Storage) -> None:
        if given:
            ruled_table(storage, rules(("p=x", number), default=number + 1))
        else:
            made_table(storage, buckets=number)

    counting = FaultyStorage(memory())
    act(left_ruled, 3, counting)
    made = 0
    for number in range(len(counting.calls)):
        for after in (False, True):
            storage = memory()
            fault = Fault(at=number, after=after, error=Crash)
            stopped(storage, lambda place: act(left_ruled, 3, place), fault)
            try:
                act(now_ruled, 5, storage)
                expected = [5, 6] if now_ruled else [5, 5]
            except AlreadyExists:
                made += 1
                expected = [3, 4] if left_ruled else [3, 3]
            assert counts(storage, "p=x", "p=w") == expected
            Table(storage).upsert(table_of(rows(range(20), 2, "xw")))
            assert check_law(storage) == dict(zip(("p=x", "p=w"), expected, strict=True))
            set_here(storage, THEN)
            check_law(storage)
    assert 0 < made < len(counting.calls)


def _orphans(storage: Storage) -> list[str]:
    """Return files of the index that no version and no write owns."""
    view = open_state(storage).timeline
    known = {_instant(f.path) for f in storage.list(CONFIGS_FOLDER)}
    known |= {_instant(f.path) for f in storage.list(ARCHIVE_FOLDER)}
    return [
        file.path
        for file in storage.list(SIMPLE_FOLDER)
        if (_instant(file.path) not in known and file.path.endswith("config"))
        or (file.path.endswith("meta") and not view.is_committed(_instant(file.path)))
    ] + [i for i in known - {FIRST_INSTANT} if not view.is_committed(i)]


# ------------------------------------------------------------------------ creating


def test_the_first_version_comes_with_the_table(tmp_path: Any) -> None:
    storage = open_storage(tmp_path / "t")
    ruled_table(storage)
    config = decode_hashing_config(storage.read(hashing_config_path(FIRST_INSTANT)), "c")
    assert (config.default_bucket_number, config.instant) == (2, FIRST_INSTANT)
    assert parse_rules(storage.read(hash_config_path(FIRST_INSTANT)).decode()) == FIRST
    assert (tmp_path / "t" / ARCHIVE_FOLDER).is_dir(), "Hudi looks into it"
    assert NUMBER not in open_state(storage).config.properties


def test_rules_are_not_written_over_a_first_version() -> None:
    storage = memory()
    ruled_table(storage)
    create_rules(storage, THEN)
    assert counts(storage, "p=x") == [3]
