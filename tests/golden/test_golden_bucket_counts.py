"""Tables that real Hudi rescaled: the numbers of buckets that we read are those of its files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.schema import RECORD_KEY, STRING, Field, Struct
from lakewright.storage.open import open_storage
from lakewright.table.file_index import FileIndex
from lakewright.table.reader.slice_reader import FileSliceReader
from lakewright.table.state import open_state

EARLIER = BucketRules((BucketRule(r"\d{4}-12-25", 4), BucketRule("2024-.*", 2)), 1)
LATER = BucketRules((BucketRule("2024-.*", 3), BucketRule("special", 5)), 1)
TABLES = {
    "cow_bucket_partition_v9": [EARLIER],
    "cow_bucket_rescaled_v9": [EARLIER, LATER],
    "cow_rescaled_h12": [EARLIER, LATER],
    "mor_bucket_rescaled_v9": [EARLIER, LATER],
}


@pytest.mark.parametrize("name", TABLES)
def test_the_rules_of_every_version_are_those_that_were_called(
    golden_table: Callable[[str], Path], name: str
) -> None:
    state = open_state(open_storage(golden_table(name)))
    store = HashingStore(state.storage)
    versions = store.history(state.timeline)
    assert [version.rules for version in versions] == TABLES[name]
    replaced = [i.requested for i in state.timeline.data() if i.action == "replacecommit"]
    assert [version.instant for version in versions] == replaced
    counts = store.load(state.timeline)
    assert counts == versions[-1].counts()
    assert store.fixed(state.timeline) == {}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_at_every_instant_lies_in_the_bucket_that_the_counts_say(
    golden_table: Callable[[str], Path], name: str
) -> None:
    state = open_state(open_storage(golden_table(name)))
    store = HashingStore(state.storage)
    reader = FileSliceReader.of(state).project(Struct((Field(RECORD_KEY, STRING),)))
    checked: set[tuple[str | None, int]] = set()
    for instant in state.timeline.data():
        moment = instant.completed or ""
        counts = store.load_at(state.timeline, moment)
        if counts is None:
            assert instant == state.timeline.data()[0], "before the first version"
            continue
        for part in FileIndex(state).list_files_at(moment):
            number = counts.number_of(part.descriptor.path)
            for piece in part.file_slices:
                bucket = bucket_number(piece.group.file_id)
                for batch in reader.open(piece):
                    found = bucket_of(batch.column(0), state.config.record_key, number)
                    assert set(found.tolist()) <= {bucket}
                    checked.add((counts.version, number))
    assert {version for version, _ in checked} == {v.instant for v in store.history(state.timeline)}
    assert len({number for _, number in checked}) > 2


@pytest.mark.parametrize("name", ["cow_bucket_v9", "cow_bucket_v6", "mor_bucket_v9"])
def test_plain_bucket_tables_have_no_counts_by_partition(
    golden_table: Callable[[str], Path], name: str
) -> None:
    state = open_state(open_storage(golden_table(name)))
    assert HashingStore(state.storage).load(state.timeline) is None
