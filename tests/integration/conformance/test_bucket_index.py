"""The partition-level bucket index at work, one test for each part that its page names."""

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.layout import layout_of
from lakewright.model.instant import Action
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state

#: The config of the specification, word for word.
CONFIG = r"""
{
    "expressions": [
        {
            "expression": "\\d{4}-(06-(01|17|18)|11-(01|10|11))",
            "bucketNumber": 256,
            "rule": "regex"
        }
    ],
  "defaultBucketNumber": 10
}
"""
SALE, PLAIN = "2026-11-11", "2026-11-12"
RULES = "hoodie.bucket.index.partition.expressions"


def make(path: Path, buckets: str | int = CONFIG) -> lw.Table:
    table = lw.create_table(
        path,
        schema="id bigint, name string, price double, dt string",
        key="id",
        partition_by="dt",
        type="MERGE_ON_READ",
        buckets=buckets,
        hive_style=False,
    )
    table.upsert(rows(range(60), SALE) + rows(range(60), PLAIN))
    return table


def rows(ids: range, day: str, price: float = 1.0) -> list[dict[str, object]]:
    return [{"id": n, "name": f"n{n}", "price": price, "dt": day} for n in ids]


def numbers(table: lw.Table) -> dict[str, int]:
    return {one.partition: one.buckets for one in table.buckets.show().partitions}


def simple(table: lw.Table, kind: str) -> dict[str, dict[str, object]]:
    folder = Path(table.path) / ".hoodie" / ".hashing_meta" / "simple"
    return {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob(f"*.{kind}"))}


def laws(table: lw.Table) -> None:
    """One group per bucket, and every row in the bucket of its key, counted here by hand."""
    found = numbers(table)
    for snapshot in table.files.list_files_at():
        partition = snapshot.descriptor.path
        owners = [bucket_number(piece.group.file_id) for piece in snapshot.file_slices]
        assert len(set(owners)) == len(owners)
        assert all(owner is not None and owner < found[partition] for owner in owners)
    meta = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    for key, partition, file in zip(*table.scan(columns=meta).to_arrow().columns, strict=True):
        keys = pa.array([key.as_py()])
        assert int(file.as_py()[:8]) == bucket_of(keys, ("id",), found[partition.as_py()])[0]


def test_the_config_of_the_specification_gives_its_numbers(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    assert numbers(table) == {SALE: 256, PLAIN: 10}
    laws(table)


def test_the_first_config_comes_with_the_ddl(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id int, dt string", key="id", buckets=CONFIG)
    assert simple(table, "hash_config") == {"00000000000000": json.loads(CONFIG)}
    assert simple(table, "hashing_meta") == {}


def test_alter_makes_a_new_version_and_leaves_rows_alone(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    lake.register_table("t", make(tmp_path / "t").path)
    lake.sql(f"ALTER TABLE t SET ('{RULES}' = '11-1.,4')")
    table = lake.table("t")
    configs = simple(table, "hash_config")
    assert list(configs) == ["00000000000000", table.buckets.version]
    assert numbers(table) == {SALE: 256, PLAIN: 10}
    table.upsert(rows(range(9), "2026-11-13"))
    assert numbers(table)["2026-11-13"] == 4
    laws(table)


def test_metadata_is_written_at_pre_commit_and_merged(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    (first,) = simple(table, "hashing_meta")
    table.upsert(rows(range(5), PLAIN))  # nothing new: no file
    assert list(simple(table, "hashing_meta")) == [first]
    table.upsert(rows(range(5), "2026-06-01"))
    newest = simple(table, "hashing_meta")
    last = max(newest)
    assert newest[last] == {
        "version": 1,
        "defaultBucketNumber": 10,
        "partitionMeta": {
            "2026-06-01": {"bucketNumber": 256, "instant": last},
            SALE: {"bucketNumber": 256, "instant": first},
            PLAIN: {"bucketNumber": 10, "instant": first},
        },
    }


def test_runtime_options_cannot_change_the_rules(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for given in ("11-12,99", '{"defaultBucketNumber": 3}'):
        with pytest.raises(lw.Invalid, match="rules"):
            table.upsert(rows(range(5), PLAIN), options={RULES: given})
    table.upsert(rows(range(5), PLAIN), options={RULES: CONFIG})  # what it says is so


def test_config_version_and_meta_instant_go_to_every_task(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    counts = layout_of(open_state(open_storage(table.path)), {}).buckets
    assert isinstance(counts, BucketCounts)
    (written,) = simple(table, "hashing_meta")
    assert (counts.version, counts.meta) == ("00000000000000", written)
    assert pickle.loads(pickle.dumps(counts)) == counts


def test_insert_overwrite_rescales_in_one_replace_commit(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    lake.register_table("t", make(tmp_path / "t").path)
    table = lake.table("t")
    before = table.scan().to_arrow().sort_by([("dt", "ascending"), ("id", "ascending")])
    table.buckets.set({"expressions": [], "defaultBucketNumber": 7})
    lake.sql(f"INSERT OVERWRITE t PARTITION (dt) SELECT * FROM t WHERE dt = '{SALE}'")
    last = table.timeline.latest_data()
    assert last is not None and last.action is Action.REPLACECOMMIT
    meta = simple(table, "hashing_meta")[last.requested]
    assert meta["partitionMeta"][SALE] == {"bucketNumber": 7, "instant": last.requested}  # type: ignore[index]
    assert numbers(table) == {SALE: 7, PLAIN: 10}
    laws(table)
    after = table.scan().to_arrow().sort_by([("dt", "ascending"), ("id", "ascending")])
    assert after == before


def test_a_call_rolls_the_rescale_back(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    lake.register_table("t", make(tmp_path / "t").path)
    table = lake.table("t")
    manage = "CALL partition_bucket_index_manager(table => 't', "
    lake.sql(f"{manage} overwrite => '11-11,3', dry_run => false)")
    assert numbers(table) == {SALE: 3, PLAIN: 10}
    lake.sql(f"{manage} rollback => '{table.buckets.version}')")
    assert numbers(table) == {SALE: 256, PLAIN: 10}
    assert table.buckets.version == "00000000000000"
    laws(table)


def test_a_plain_bucket_table_is_upgraded_without_rewriting(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 4)
    files = sorted(str(file) for file in Path(table.path).rglob("*.parquet"))
    table.buckets.set(CONFIG)
    assert sorted(str(file) for file in Path(table.path).rglob("*.parquet")) == files
    table.upsert(rows(range(9), "2026-06-17"))
    assert numbers(table) == {SALE: 4, PLAIN: 4, "2026-06-17": 256}
    laws(table)


def test_filters_are_pushed_down_partition_by_partition(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    found = table.scan(where="id = 7")
    assert sum(len(split.paths) for split in found.plan().tasks) == 2  # one bucket of each
    assert found.count() == 2
