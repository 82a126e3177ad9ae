"""The identifier and the calculator of the seed: cache, rule on a miss, comparison on a hit."""

import pickle
import random

import pyarrow as pa
import pytest

from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.format.hudi.simple_hash_meta import PartitionHashInfo
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.index.identifier import BucketCalculator, SimpleBucketIdentifier
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.errors import Conflict, Invalid
from support.tiny_tables import TinyTable, at

SEED = r"""{
    "expressions": [
        {
            "expression": "\\d{4}-(06-(01|17|18)|11-(01|10|11))",
            "bucketNumber": 256,
            "rule": "regex"
        }
    ],
  "defaultBucketNumber": 10
}"""


@pytest.mark.parametrize(
    ("partition", "number"),
    [
        ("2026-06-01", 256),
        ("2026-06-17", 256),
        ("1999-06-18", 256),
        ("2026-11-01", 256),
        ("2026-11-10", 256),
        ("2026-11-11", 256),
        ("dt=2026-11-11", 256),
        ("2026-11-12", 10),
        ("2026-06-02", 10),
        ("202-06-01", 10),
        ("2026-12-01", 10),
        ("٢٠٢٦-06-01", 10),
        ("", 10),
    ],
)
def test_the_example_of_the_seed(partition: str, number: int) -> None:
    calculator = BucketCalculator.of(SEED)
    assert calculator.calculate_bucket_number(partition) == number
    identifier = SimpleBucketIdentifier(calculator)
    assert identifier.get_bucket_number(partition) == number
    key = "334e26e9-8355-45cc-97c6-c31daf0df330"
    assert identifier.get_bucket_id(key, "uuid", partition) == 1880221155 % number


def test_load_config_reads_every_form_and_refuses_the_rest() -> None:
    rules = BucketRules((BucketRule(r"\d{4}-(06-(01|17|18)|11-(01|10|11))", 256),), 10)
    assert BucketCalculator.load_config(SEED) == rules
    assert BucketCalculator.load_config("a,3;b,4") == BucketRules(
        (BucketRule("a", 3), BucketRule("b", 4)), 256
    )
    assert BucketCalculator.load_config(7) == BucketRules(default=7)
    for wrong in ("{", '{"expressions": 3}', "(,3", "a,0", '{"defaultBucketNumber": 0}'):
        with pytest.raises(Invalid):
            BucketCalculator.load_config(wrong)


def test_a_hit_is_compared_with_the_rule() -> None:
    counts = BucketCounts(BucketRules((BucketRule("x", 3),), 2), {"p=9": 8}, at(5))
    fixed = {
        "x": PartitionHashInfo(3, at(7)),
        "y": PartitionHashInfo(9, at(7)),
        "z": PartitionHashInfo(9, at(4)),
    }
    identifier = SimpleBucketIdentifier(BucketCalculator(counts), fixed)
    assert identifier.get_bucket_number("x") == 3
    assert identifier.get_bucket_number("new x") == 3
    assert identifier.get_bucket_number("p=9") == 8
    assert identifier.get_bucket_number("z") == 2, "rules that are newer describe what is there"
    with pytest.raises(Conflict, match=r"'y' has 9 buckets since the write .* but 2 by the rules"):
        identifier.get_bucket_id("k", "id", "y")


def test_a_new_rule_that_meets_a_historic_partition_fails_fast() -> None:
    """A job that was given rules of its own, without a version of the table's."""
    fixed = {"p=1": PartitionHashInfo(10, at(1))}
    identifier = SimpleBucketIdentifier(BucketCalculator.of("p=1,20"), fixed)
    with pytest.raises(Conflict, match="10 buckets since the write"):
        identifier.get_bucket_number("p=1")


def test_it_is_loaded_from_a_table_and_goes_to_tasks() -> None:
    made = TinyTable().commit(1, action="replacecommit")
    store = HashingStore(made.storage)
    plain = SimpleBucketIdentifier.load(store, made.state().timeline, 4)
    assert plain.get_bucket_number("any") == 4
    store.write_config(FIRST_INSTANT, BucketRules((BucketRule("dt=1", 3),), 2), {})
    store.write_meta(at(1), {"dt=1": 3}, made.state().timeline)
    found = SimpleBucketIdentifier.load(store, made.state().timeline, 4)
    assert found.fixed == {"dt=1": PartitionHashInfo(3, at(1))}
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert [again.get_bucket_number(p) for p in ("dt=1", "dt=2")] == [3, 2]
    assert again.calculator.counts.version == FIRST_INSTANT


def test_single_records_and_columns_agree() -> None:
    draw = random.Random(89)
    identifier = SimpleBucketIdentifier(BucketCalculator.of("a,1000;b,7"))
    keys = [f"id:{draw.random()},name:é{n},x:__null__" for n in range(200)]
    for partition, count in (("a", 1000), ("b", 7), ("c", 256)):
        for fields in ("id", "name,id", "x", ""):
            column = bucket_of(pa.array(keys), [f for f in fields.split(",") if f], count)
            each = [identifier.get_bucket_id(key, fields, partition) for key in keys]
            assert each == column.tolist()
