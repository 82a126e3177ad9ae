"""Bucket numbers against real Hudi's own function, over a million keys and typed key columns."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from support.hudi_writer import PLAIN
from support.million_keys import TYPES, KeyGroup, key_groups, typed_columns, typed_keys

pytestmark = pytest.mark.interop

JUDGE = "org.apache.hudi.index.bucket.BucketIdentifier"
#: Spark has no timestamps of milliseconds, which come last.
NAMES = [f"c{number}" for number in range(len(TYPES) - 1)]


def by_hudi(spark: Any, folder: Path, group: KeyGroup) -> npt.NDArray[np.int32]:
    """The bucket of each key, as real Hudi computes it."""
    source = folder / "keys.parquet"
    pq.write_table(pa.table({"key": group.keys}), source)
    fields = ",".join(group.fields)
    call = f"java_method('{JUDGE}', 'getBucketId', key, '{fields}', {group.buckets})"
    # One partition: the order of the file.
    frame = spark.read.parquet(str(source)).coalesce(1).selectExpr(f"cast({call} as int) as bucket")
    frame.write.mode("overwrite").parquet(str(folder / "buckets"))
    return pq.read_table(folder / "buckets")["bucket"].to_numpy().astype(np.int32)


def test_a_million_keys_have_the_buckets_of_hudi(hudi_spark: Any, tmp_path: Path) -> None:
    judged = 0
    for group in key_groups():
        ours, theirs = group.judged(), by_hudi(hudi_spark, tmp_path, group)
        wrong = np.flatnonzero(ours != theirs)
        sample = [(group.keys[int(i)].as_py(), ours[i], theirs[i]) for i in wrong[:5]]
        assert not sample, f"{len(wrong)} of {group.name}: {sample}"
        judged += len(ours)
    assert judged == 1_000_000


@pytest.mark.parametrize(
    "name",
    [
        [NAMES[0]],
        [NAMES[-1]],
        NAMES,
        NAMES[:3],
        # Each of them is one of all columns above.
        *(pytest.param([name], marks=pytest.mark.rest) for name in NAMES[1:-1]),
    ],
    ids="-".join,
)
def test_rows_with_keys_of_every_type_lie_where_hudi_puts_them(
    hudi_spark: Any, tmp_path: Path, name: list[str]
) -> None:
    rows = typed_columns("written", 120)
    keys = typed_keys("written", 120, name)
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = hudi_spark.read.parquet(str(tmp_path / "rows.parquet")).coalesce(1)
    some = " or ".join(f"{column} is not null" for column in name)
    frame.where(some).write.format("hudi").options(
        **{
            **PLAIN,
            "hoodie.table.name": "t",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.recordkey.field": ",".join(name),
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "13",
            "hoodie.bucket.index.hash.field": ",".join(name),
        }
    ).mode("overwrite").save(str(tmp_path / "t"))
    found = {}
    for path in (tmp_path / "t").glob("*.parquet"):
        for key in pq.read_table(path)["_hoodie_record_key"].to_pylist():
            found[key] = bucket_number(path.name)
    buckets = bucket_of(keys, name, 13).tolist()
    assert found == dict(zip(keys.to_pylist(), buckets, strict=True))
    assert len(found) > 1
