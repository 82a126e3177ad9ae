"""Which bucket each row belongs to, where partitions may differ in their number of buckets."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakewright.format.hudi.bucket_hash import Buckets, bucket_of, key_hashes
from lakewright.index.bucket_counts import BucketCounts


def route_to_buckets(
    keys: pa.Array, partitions: pa.DictionaryArray, fields: Sequence[str], counts: BucketCounts
) -> Buckets:
    """Return the bucket of each record within its partition.

    ``fields`` are the hash fields. Rules are asked once for each partition that the rows name.
    """
    uniform = counts.uniform
    if uniform is not None:
        return bucket_of(keys, fields, uniform)
    numbers = np.array(counts.numbers_of(partitions.dictionary.to_pylist()), np.uint32)
    if not len(numbers):
        return np.empty(0, np.int32)
    hashes = key_hashes(keys, fields) & np.uint32(0x7FFFFFFF)
    hashes %= numbers[partitions.indices.to_numpy(zero_copy_only=False)]
    return hashes.astype(np.int32)


def widest(partitions: pa.DictionaryArray, counts: BucketCounts) -> int:
    """Return a number that no bucket of these partitions reaches."""
    uniform = counts.uniform
    if uniform is not None:
        return uniform
    return max(counts.numbers_of(partitions.dictionary.to_pylist()), default=1)
