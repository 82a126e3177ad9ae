"""The bucket of each row, where partitions differ in their number of buckets."""

import time

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.bucket_routing import route_to_buckets, widest
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules

PATHS = ("dt=1", "dt=2", "dt=11", "", "é")
COUNTS = st.builds(
    BucketCounts,
    st.builds(
        BucketRules,
        st.lists(
            st.builds(BucketRule, st.sampled_from(("1", "=1$", "2|é", "^$")), st.integers(1, 300)),
            max_size=3,
        ).map(tuple),
        st.integers(1, 300),
    ),
    st.dictionaries(st.sampled_from(PATHS), st.integers(1, 99_999_999), max_size=2),
)
ROWS = st.lists(st.tuples(st.text("ab,:1é😀", max_size=6), st.sampled_from(PATHS)), max_size=12)


@given(rows=ROWS, counts=COUNTS)
def test_every_row_is_routed_by_the_number_of_its_partition(
    rows: list[tuple[str, str]], counts: BucketCounts
) -> None:
    keys = pa.array([key for key, _ in rows], pa.string())
    partitions = pa.array([path for _, path in rows], pa.string()).dictionary_encode()
    found = route_to_buckets(keys, partitions, ("a", "b"), counts)
    assert found.tolist() == [
        int(bucket_of(pa.array([key], pa.string()), ("a", "b"), counts.number_of(path))[0])
        for key, path in rows
    ]
    assert all(bucket < widest(partitions, counts) for bucket in found)


def test_a_hundred_thousand_buckets_and_partitions() -> None:
    rows = 200_000
    paths = [f"dt={number}" for number in range(100_000)]
    counts = BucketCounts(
        BucketRules((BucketRule("7$", 100_000), BucketRule("1", 99_999_999)), 3),
        dict.fromkeys(paths[::1000], 5),
    )
    keys = pa.array([f"k{number}" for number in range(rows)])
    codes = pa.array(np.arange(rows, dtype=np.int32) % len(paths))
    partitions = pa.DictionaryArray.from_arrays(codes, pa.array(paths))
    begin = time.process_time()
    found = route_to_buckets(keys, partitions, ("id",), counts)
    assert time.process_time() - begin < 10
    for row in (0, 7, 1_000, 77_777, 199_999):
        number = counts.number_of(paths[row % len(paths)])
        assert found[row] == bucket_of(keys[row : row + 1], ("id",), number)[0]
    assert widest(partitions, counts) == 99_999_999
