"""A million keys have the buckets that real Hudi gave them.

The digests were taken from Hudi's own function; ``tests/interop`` compares key by key.
"""

import numpy as np
import pytest

from lakewright.format.hudi.bucket_hash import hash_values
from support.million_keys import KeyGroup, digest, key_groups

HUDI = {
    "ascii": "132f6877d4317f23",
    "wide": "bc98d7ced22e3989",
    "any characters": "61283c57ed0f53e0",
    "numbers": "946cc2661d32ad83",
    "two columns": "e12d30c60b415306",
    "one of three": "4fff221e5af11f98",
    "all of three": "b2e90a3bf9e05efe",
    "hard to part": "659417fd8a66040a",
    "named otherwise": "5b1fe847cb9a4b43",
    "typed": "fdfda5bd1e3f9702",
}


@pytest.fixture(scope="module")
def million() -> list[KeyGroup]:
    return list(key_groups())


def test_a_million_keys_have_the_buckets_of_hudi(million: list[KeyGroup]) -> None:
    assert {group.name: digest(group.judged()) for group in million} == HUDI
    assert sum(len(group.keys) for group in million) == 1_000_000


def test_the_million_has_what_it_says(million: list[KeyGroup]) -> None:
    keys = {group.name: group.keys.to_pylist() for group in million}
    assert "" in keys["ascii"]
    assert any(ord(char) > 0xFFFF for key in keys["wide"] for char in key)
    parted = [hash_values(key, ("a", "b")) for key in keys["two columns"]]
    assert any(None in values for values in parted)
    assert any("" in values for values in parted)
    assert any(value and "," in value and ":" in value for v in parted for value in v)
    # Of every type, alone and together.
    assert len([key for key in keys["typed"] if key.startswith("c0:")]) > 1000
    buckets = {group.name: len(np.unique(group.judged())) for group in million}
    assert buckets["numbers"] == 1
    assert all(count > 1 for name, count in buckets.items() if name != "numbers")
