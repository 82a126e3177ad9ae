"""Which version of bucket rules counts when, and what writes have fixed."""

import pickle

import pytest

from lakewright.format.hudi.hashing_config import (
    ARCHIVE_FOLDER,
    CONFIGS_FOLDER,
    FIRST_INSTANT,
    HashingConfig,
    encode_hashing_config,
    hashing_config_path,
)
from lakewright.format.hudi.metadata.restore import RestoreMetadata, encode_restore
from lakewright.format.hudi.metadata.rollback import RollbackMetadata, encode_rollback
from lakewright.format.hudi.simple_hash_meta import (
    SIMPLE_ARCHIVE,
    SIMPLE_FOLDER,
    PartitionHashInfo,
    SimpleHashMeta,
    decode_hash_meta,
    encode_hash_meta,
    hash_config_path,
    hash_meta_path,
)
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore, check_counts
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.errors import Conflict, Corrupt
from support.faulty_storage import FaultyStorage
from support.tiny_tables import TinyTable, at, completion

ONE = BucketRules((BucketRule("dt=1", 3),), 2)
TWO = BucketRules((BucketRule("dt=2", 5),), 4)


def table(*minutes: int, version: int = 9) -> TinyTable:
    """Return a table with replace commits of these times."""
    made = TinyTable(version)
    for minute in minutes:
        made.commit(minute, action="replacecommit")
    return made


def ruled(made: TinyTable, **given: BucketRules) -> HashingStore:
    store = HashingStore(made.storage)
    for minute, rules in given.items():
        number = int(minute.removeprefix("at"))
        store.write_config(at(number) if number else FIRST_INSTANT, rules, {})
    return store


def version_of(store: HashingStore, made: TinyTable) -> str | None:
    found = store.load(made.state().timeline)
    return None if found is None else found.version


def fix(made: TinyTable, minute: int, **numbers: tuple[int, int]) -> None:
    """Write hashing metadata: partitions with their number and the minute of their write."""
    entries = {f"dt={p[1:]}": PartitionHashInfo(n, at(m)) for p, (n, m) in numbers.items()}
    made.touch(hash_meta_path(at(minute)), encode_hash_meta(SimpleHashMeta(entries)))


def test_a_plain_table_has_no_counts_and_costs_one_listing() -> None:
    faulty = FaultyStorage(table(1).storage)
    view = table(1).state().timeline
    assert HashingStore(faulty).load(view) is None
    assert check_counts(HashingStore(faulty), view, BucketCounts.plain(4), ["dt=1"]) == {}
    assert [call.verb for call in faulty.calls] == ["list", "list"]


@pytest.mark.parametrize("version", [9, 6])
def test_the_newest_version_counts_whose_write_has_completed(version: int) -> None:
    made = table(1, 3, version=version)
    store = ruled(made, at0=ONE, at3=TWO)
    assert store.load(made.state().timeline) == BucketCounts(TWO, {}, at(3))
    made.touch(f"{made.timeline}/{at(5)}.replacecommit.requested")
    made.touch(f"{made.timeline}/{at(5)}.replacecommit.inflight")
    store.write_config(at(5), ONE, {})
    assert version_of(store, made) == at(3), "a pending one does not"
    made.commit(5, action="replacecommit")
    assert version_of(store, made) == at(5)


def test_pins_come_back_from_the_hashing_config() -> None:
    made = table(1)
    store = HashingStore(made.storage)
    pins = {"dt=1": 7, "dt=é 😀;,": 9, "": 2}
    store.write_config(at(1), TWO, pins)
    counts = store.load(made.state().timeline)
    assert counts == BucketCounts(TWO, pins, at(1))
    paths = ["dt=é 😀;,", "dt=2", "dt=1", "dt=3", ""]
    assert counts.numbers_of(paths) == [9, 5, 7, 4, 2] == [counts.number_of(p) for p in paths]
    assert pickle.loads(pickle.dumps(counts)) == counts
    assert counts.uniform is None
    assert BucketCounts.plain(3).uniform == 3 == BucketCounts.plain(3).number_of("any")


def test_a_version_that_came_after_the_view_is_not_seen() -> None:
    made = table(1, 3)
    store = ruled(made, at3=ONE)
    before = made.state().timeline
    made.commit(5, action="replacecommit")
    store.write_config(at(5), TWO, {})
    found = store.load(before)
    assert found is not None and found.version == at(3)


def test_a_version_beside_the_timeline_counts_as_for_hudi_unless_it_was_rolled_back() -> None:
    made = table(1, 3, 6)
    store = ruled(made, at3=ONE, at5=TWO)
    assert version_of(store, made) == at(5)
    body = encode_rollback(
        RollbackMetadata(
            start=at(7), millis=1, total_deleted=0, commits=(at(5),), partitions={}, instants=()
        )
    )
    made.instant(7, None, "rollback", body)
    assert version_of(store, made) == at(3)
    store.write_config(at(40), TWO, {})
    assert version_of(store, made) == at(40), "even one that is newer than the whole timeline"


def test_a_version_that_a_restore_took_back_counts_no_more() -> None:
    made = table(1, 3, 6)
    store = ruled(made, at3=ONE, at5=TWO)
    restored = RestoreMetadata(start=at(7), millis=1, instants=(at(5),))
    made.instant(7, None, "restore", encode_restore(restored))
    assert version_of(store, made) == at(3)
    # Nor when the timeline begins after it.
    made.storage.delete([f"{made.timeline}/{f}" for f in _begun_before(made, 6)])
    assert version_of(store, made) == at(3)


def _begun_before(made: TinyTable, minute: int) -> list[str]:
    names = [file.path.rpartition("/")[2] for file in made.storage.list(made.timeline)]
    return [name for name in names if name[:1].isdigit() and name[:17] < at(minute)]


def test_the_users_words_are_kept_where_they_say_the_same() -> None:
    made = table(1, 3)
    ranged = BucketRules((BucketRule("dt: [1, 5]", 3, "range"),), 2)
    store = ruled(made, at1=ranged)
    found = store.newest(made.state().timeline)
    assert found is not None and found.rules == ranged
    assert found.config.rule == "regex"
    # Another software that writes a config of the same instant is right.
    config = HashingConfig("dt=7,9", 1, at(1))
    made.touch(hashing_config_path(at(1)), encode_hashing_config(config))
    found = store.newest(made.state().timeline)
    assert found is not None and found.rules == BucketRules((BucketRule("dt=7", 9),), 1)


@pytest.mark.parametrize("damage", [b"{", b"\xff", b'{"expressions": [{"rule": "moon"}]}'])
def test_words_that_cannot_be_read_are_passed_over(damage: bytes) -> None:
    made = table(1)
    store = ruled(made, at1=ONE)
    made.touch(hash_config_path(at(1)), damage)
    found = store.load(made.state().timeline)
    assert found is not None and found.number_of("dt=1") == 3


@pytest.mark.parametrize(
    ("text", "default"), [("a,3,4", 2), ("a,x", 2), ("a,0", 2), ("a,100000000", 2), ("a,3", -1)]
)
def test_a_config_that_cannot_be_read_stops_everything(text: str, default: int) -> None:
    made = table(1)
    config = HashingConfig(text, default, at(1))
    made.touch(hashing_config_path(at(1)), encode_hashing_config(config))
    with pytest.raises(Corrupt, match=at(1)):
        HashingStore(made.storage).load(made.state().timeline)


@pytest.mark.parametrize("version", [9, 6])
def test_as_of_a_moment(version: int) -> None:
    made = TinyTable(version)
    made.commit(1).commit(3, completed=8, action="replacecommit")
    made.commit(9, action="replacecommit").commit(12)
    store = ruled(made, at3=ONE, at9=TWO)
    view = made.state().timeline

    def at_moment(moment: str) -> str | None:
        found = store.load_at(view, moment)
        return None if found is None else found.version

    assert at_moment(completion(1)) is None
    assert at_moment(at(7)) == (None if version == 9 else at(3)), "its completion counts"
    assert at_moment(completion(8)) == at(3)
    assert at_moment(completion(9)) == at_moment(completion(50)) == at(9)
    made.storage.move(hashing_config_path(at(3)), f"{ARCHIVE_FOLDER}/{at(3)}.hashing_config")
    assert at_moment(completion(8)) == at(3), "an archived one is found"
    store.write_config(FIRST_INSTANT, ONE, {})
    assert at_moment(completion(1)) == FIRST_INSTANT


def test_what_is_cached_follows_the_files() -> None:
    made = table(1)
    store = ruled(made, at1=ONE)
    view = made.state().timeline
    faulty = FaultyStorage(made.storage)
    for _ in range(3):
        HashingStore(faulty).load(view)
    assert [c.verb for c in faulty.calls if c.verb == "read"] in ([], ["read", "read"])
    store.write_config(at(1), TWO, {})
    assert store.load(view) == BucketCounts(TWO, {}, at(1))


# --------------------------------------------------------------------------- fixed


def test_metadata_of_the_newest_completed_write_counts() -> None:
    made = table(1, 3)
    store = ruled(made, at0=ONE)
    view = made.state().timeline
    assert store.fixed(view) == {}
    fix(made, 1, p1=(3, 1))
    fix(made, 3, p1=(3, 1), p9=(2, 3))
    fix(made, 5, p1=(8, 5))
    assert store.fixed(view) == {
        "dt=1": PartitionHashInfo(3, at(1)),
        "dt=9": PartitionHashInfo(2, at(3)),
    }
    counts = store.load(view)
    assert counts is not None and counts.meta == at(3)


def test_rules_and_metadata_that_disagree_fail_fast_unless_the_rules_are_newer() -> None:
    made = table(1, 3, 5)
    store = ruled(made, at3=ONE)
    fix(made, 1, p1=(8, 1))
    assert version_of(store, made) == at(3), "the rules are newer"
    fix(made, 5, p1=(8, 1), p2=(2, 5))
    assert version_of(store, made) == at(3), "and newer than what a later file repeats"
    assert store.fixed(made.state().timeline) == {"dt=2": PartitionHashInfo(2, at(5))}
    fix(made, 5, p1=(8, 5), p2=(2, 5))
    with pytest.raises(
        Corrupt, match=r"'dt=1' has 8 buckets since .* but 3 by .*check\(\)"
    ) as told:
        store.load(made.state().timeline)
    assert (told.value.facts["fixed"], told.value.facts["by_rules"]) == (8, 3)
    found = store.load(made.state().timeline, verified=False)
    assert found is not None and found.number_of("dt=1") == 3


def test_numbers_of_a_write_that_hudi_took_back_give_way() -> None:
    """Its metadata stays, and is older than the timeline one day."""
    made = table(20, 22)
    store = ruled(made, at3=ONE)
    fix(made, 9, p1=(8, 9), p2=(8, 9))
    view = made.state().timeline
    assert view.is_committed(at(9)), "as far as the timeline tells"
    counts = store.load(view)
    assert counts is not None
    assert check_counts(store, view, counts, ["dt=1"]) == {"dt=1": 3}
    assert store.write_meta(at(22), {"dt=1": 3}, view)
    assert store.fixed(view) == {
        "dt=1": PartitionHashInfo(3, at(22)),
        "dt=2": PartitionHashInfo(2, at(3)),
    }


def test_metadata_is_merged_and_written_only_for_news() -> None:
    made = table(1, 3, 5)
    store = ruled(made, at0=ONE)
    view = made.state().timeline
    assert store.write_meta(at(1), {"dt=1": 3, "dt=7": 2}, view)
    assert not store.write_meta(at(3), {"dt=1": 3}, view)
    assert store.write_meta(at(3), {"dt=1": 3, "dt=8": 2}, view)
    data = made.storage.read(hash_meta_path(at(3)))
    meta = decode_hash_meta(data, "m")
    assert meta.default_bucket_number == 2
    assert meta.partitions == {
        "dt=1": PartitionHashInfo(3, at(1)),
        "dt=7": PartitionHashInfo(2, at(1)),
        "dt=8": PartitionHashInfo(2, at(3)),
    }


def test_entries_that_new_rules_overtook_are_brought_up_to_date() -> None:
    """Hudi rescaled, and wrote no metadata."""
    made = table(1, 3, 5)
    store = ruled(made, at0=ONE)
    fix(made, 1, p1=(3, 1), p2=(2, 1), p3=(2, 1))
    store.write_config(at(3), TWO, {"dt=3": 2})
    view = made.state().timeline
    counts = store.load(view)
    assert counts is not None
    assert check_counts(store, view, counts, ["dt=1", "dt=2", "dt=3", "dt=4"]) == {
        "dt=1": 4,
        "dt=2": 5,
        "dt=4": 4,
    }
    assert store.write_meta(at(5), {"dt=4": 4}, view)
    assert store.fixed(view) == {
        "dt=1": PartitionHashInfo(4, at(3)),
        "dt=2": PartitionHashInfo(5, at(3)),
        "dt=3": PartitionHashInfo(2, at(1)),
        "dt=4": PartitionHashInfo(4, at(5)),
    }
    assert version_of(store, made) == at(3)


def test_a_rescale_writes_the_numbers_of_its_own_rules() -> None:
    made = table(1)
    store = ruled(made, at0=ONE)
    fix(made, 1, p1=(3, 1), p2=(2, 1))
    view = made.state().timeline
    store.write_config(at(5), TWO, {})
    assert store.write_meta(at(5), {"dt=1": 4, "dt=2": 5}, view)
    meta = decode_hash_meta(made.storage.read(hash_meta_path(at(5))), "m")
    assert meta.default_bucket_number == 4
    assert meta.partitions["dt=1"] == PartitionHashInfo(4, at(5))


def test_plain_tables_get_no_metadata() -> None:
    made = table(1)
    assert not HashingStore(made.storage).write_meta(at(1), {"dt=1": 3}, made.state().timeline)
    assert not list(made.storage.list(SIMPLE_FOLDER))


# -------------------------------------------------------------------------- checks


def test_a_write_that_counted_otherwise_is_refused() -> None:
    made = table(1, 3)
    store = ruled(made, at0=ONE)
    began = store.load(made.state().timeline)
    assert began is not None
    store.write_config(at(3), TWO, {"dt=1": 3})
    view = made.state().timeline
    assert check_counts(store, view, began, ["dt=1"]) == {"dt=1": 3}
    with pytest.raises(Conflict, match=r"'dt=2' has 5 .*20261115000300000.* counted 2") as told:
        check_counts(store, view, began, ["dt=1", "dt=2"])
    assert told.value.facts["number"] == 5
    plain = BucketCounts.plain(3)
    assert check_counts(store, view, plain, ["dt=1"]) == {"dt=1": 3}
    with pytest.raises(Conflict):
        check_counts(store, view, plain, ["dt=9"])


def test_another_number_that_a_write_fixed_is_refused() -> None:
    made = table(1, 3)
    store = ruled(made, at0=ONE)
    view = made.state().timeline
    counts = BucketCounts(ONE, {}, FIRST_INSTANT)
    fix(made, 3, p9=(8, 3))
    with pytest.raises(Conflict, match=f"'dt=9' has 8 buckets by the write {at(3)}"):
        check_counts(store, view, counts, ["dt=9"])


def test_rules_that_vanished_are_refused() -> None:
    made = table(1)
    counts = BucketCounts(ONE, {}, at(1))
    with pytest.raises(Conflict, match="are gone"):
        check_counts(HashingStore(made.storage), made.state().timeline, counts, ["dt=1"])


# ------------------------------------------------------------------------- archive


def names(made: TinyTable, folder: str) -> list[str]:
    return sorted(file.path.rpartition("/")[2] for file in made.storage.list(folder))


def test_versions_that_nothing_needs_are_archived() -> None:
    made = table(20, 22, 30)
    store = ruled(made, at0=ONE, at5=TWO, at9=ONE, at20=TWO, at30=ONE)
    fix(made, 5, p1=(3, 5))
    fix(made, 9, p1=(3, 5))
    fix(made, 22, p1=(3, 5))
    view = made.state().timeline
    before = store.load(view)
    assert store.archive(view) == (FIRST_INSTANT, at(5), at(9)), "20 is as old as the timeline"
    assert names(made, CONFIGS_FOLDER) == [f"{at(m)}.hashing_config" for m in (20, 30)]
    assert names(made, ARCHIVE_FOLDER) == [
        f"{i}.hashing_config" for i in (FIRST_INSTANT, at(5), at(9))
    ]
    assert names(made, SIMPLE_ARCHIVE) == [
        f"{i}.hash_config" for i in (FIRST_INSTANT, at(5), at(9))
    ]
    assert names(made, SIMPLE_FOLDER) == [
        f"{at(9)}.hashing_meta",
        f"{at(20)}.hash_config",
        f"{at(22)}.hashing_meta",
        f"{at(30)}.hash_config",
    ]
    assert store.load(view) == before
    history = store.history(view)
    assert [(v.instant, v.rules, v.archived) for v in history] == [
        (FIRST_INSTANT, ONE, True),
        (at(5), TWO, True),
        (at(9), ONE, True),
        (at(20), TWO, False),
        (at(30), ONE, False),
    ]
    assert store.archive(view) == ()


def test_the_newest_before_the_timeline_stays() -> None:
    made = table(20)
    store = ruled(made, at0=ONE, at5=TWO, at9=ONE)
    assert store.archive(made.state().timeline) == (FIRST_INSTANT, at(5))
    assert version_of(store, made) == at(9)


def test_what_a_savepoint_or_the_caller_needs_stays() -> None:
    made = table(4, 20)
    made.instant(4, None, "savepoint", b"")
    store = ruled(made, at0=ONE, at3=TWO, at5=TWO, at7=ONE, at9=ONE)
    view = made.state().timeline
    assert view.start == at(20)
    assert store.archive(view, needed=[at(6)]) == (FIRST_INSTANT, at(7))
    assert store.load_at(view, completion(4)) == BucketCounts(TWO, {}, at(3))


@pytest.mark.parametrize("copied", [True, False])
def test_an_archiving_that_was_cut_off_is_finished(copied: bool) -> None:
    made = table(20)
    store = ruled(made, at0=ONE, at5=TWO, at9=ONE)
    name = f"{FIRST_INSTANT}.hashing_config"
    if copied:
        made.touch(f"{ARCHIVE_FOLDER}/{name}", made.storage.read(f"{CONFIGS_FOLDER}/{name}"))
    else:
        made.storage.move(f"{CONFIGS_FOLDER}/{name}", f"{ARCHIVE_FOLDER}/{name}")
    store.archive(made.state().timeline)
    assert names(made, CONFIGS_FOLDER) == [f"{at(9)}.hashing_config"]
    assert names(made, ARCHIVE_FOLDER) == [name, f"{at(5)}.hashing_config"]
    assert [v.rules for v in store.history(made.state().timeline)] == [ONE, TWO, ONE]


def test_what_dead_writes_left_is_swept_and_nothing_else() -> None:
    made = table(1, 9)
    store = ruled(made, at0=ONE, at1=TWO)
    made.touch(f"{made.timeline}/{at(5)}.replacecommit.requested")
    for minute in (3, 5, 20):
        made.touch(hash_config_path(at(minute)), b"{}")
        fix(made, minute, p1=(3, 1))
    made.touch(f"{SIMPLE_FOLDER}/notes.txt", b"")
    store.sweep(made.state().timeline)
    assert names(made, SIMPLE_FOLDER) == sorted(
        [
            f"{FIRST_INSTANT}.hash_config",
            f"{at(1)}.hash_config",
            f"{at(5)}.hash_config",
            f"{at(5)}.hashing_meta",
            f"{at(20)}.hash_config",
            f"{at(20)}.hashing_meta",
            "notes.txt",
        ]
    )


def test_a_hundred_thousand_partitions() -> None:
    made = table(1, 3)
    store = ruled(made, at0=ONE)
    pins = {f"dt={n}": 7 for n in range(100_000)}
    store.write_config(at(1), TWO, pins)
    view = made.state().timeline
    counts = store.load(view)
    assert counts is not None and counts.pins == pins
    assert store.write_meta(at(3), pins, view)
    faulty = FaultyStorage(made.storage)
    assert check_counts(HashingStore(faulty), view, counts, pins) == {}
    assert check_counts(HashingStore(faulty), view, counts, pins) == {}
    reads = [call.path for call in faulty.calls if call.verb == "read"]
    assert reads == [hash_meta_path(at(3))], "what did not change is not read again"
