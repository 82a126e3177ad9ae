"""Advice by sizes: powers of two, a cap, numbers that stay, skew that is told; and its pictures."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.actions.buckets.advise import BucketAdvice, PartitionAdvice, _advice, power_of_two
from lakewright.actions.buckets.rule_writing import compact_rules
from lakewright.actions.buckets.showing import BucketsShown, PartitionBuckets
from lakewright.actions.buckets.sizes import PartitionSize, measured, shown_bytes, strip
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.files import BaseFile, FileGroupId, FileSlice

MB = 1 << 20


def slices(sizes: dict[int, int], partition: str = "p") -> list[FileSlice]:
    found = []
    for bucket, size in sizes.items():
        file_id = f"{bucket:08d}-x-0"
        base = BaseFile(partition, f"{file_id}_0-0-0_1.parquet", file_id, "0-0-0", "1", size)
        found.append(FileSlice(FileGroupId(partition, file_id), "1", base))
    return found


def even(total: int, buckets: int) -> PartitionSize:
    return measured("p", slices(dict.fromkeys(range(buckets), total // buckets)), buckets)


@pytest.mark.parametrize(
    ("total", "buckets", "advised"),
    [
        (100 * MB, 1, 1),
        (10 * MB, 1, 1),
        (129 * MB, 1, 2),
        (1000 * MB, 4, 8),
        (1000 * MB, 64, 8),
        (1000 * MB, 8, 8),
        (1000 * MB, 10, 10),  # not a power of two, and as good as one
        (1000 * MB, 15, 15),
        (1000 * MB, 16, 8),  # buckets of less than half the target
        (10**6 * MB, 4, 1024),
        (10**6 * MB, 1024, 1024),
        (10**6 * MB, 2000, 2000),
        (10**6 * MB, 10**5, 1024),
    ],
)
def test_numbers_by_bytes(total: int, buckets: int, advised: int) -> None:
    assert _advice(even(total, buckets), 128 * MB, 1024).advised == advised


@given(st.integers(1, 10**15), st.integers(1, 5000), st.integers(1, 1 << 40), st.integers(1, 10**5))
def test_advice_is_stable_and_never_too_large(
    total: int, buckets: int, target: int, most: int
) -> None:
    first = _advice(measured("p", slices({0: total}), buckets), target, most)
    assert first.advised <= max(most, buckets)
    again = _advice(measured("p", slices({0: total}), first.advised), target, most)
    assert again.advised == first.advised
    if first.changes:
        assert first.advised in (power_of_two(first.advised), most)


def test_skew_that_no_number_mends_is_told() -> None:
    size = measured("p", slices({0: 900 * MB, 1: MB, 2: MB, 3: MB, 4: MB, 5: MB, 6: MB, 7: MB}), 8)
    told = _advice(size, 128 * MB, 1024)
    assert size.skew > 7 and "no number mends" in told.why
    assert size.strip == "█▁▁▁▁▁▁▁"


def test_strips() -> None:
    assert strip([]) == ""
    assert strip([0, 0]) == "  "
    assert strip([1, 2, 4, 8]) == "▁▂▄█"
    assert strip([0, 1, 1000]) == " ▁█"
    assert len(strip(list(range(1000)))) == 32
    assert strip([1] * 63 + [9], 8)[-1] == "█"  # of neighbours the largest is drawn
    lonely = measured("p", slices({99_999: 5}), 100_000)
    assert lonely.strip == " " * 31 + "█"
    assert (lonely.used, lonely.groups, lonely.bytes) == (1, 1, 5)


def test_bytes_for_people() -> None:
    shown = [shown_bytes(n) for n in (0, 1023, 1024, 3.5 * MB, 1 << 30, 1 << 50)]
    assert shown == ["0 B", "1023 B", "1.0 KB", "3.5 MB", "1.0 GB", "1024.0 TB"]


def advice(partitions: list[str]) -> BucketAdvice:
    items = tuple(
        PartitionAdvice(
            measured(path, slices({0: 300 * MB}, path), 1), 4, "buckets of 300.0 MB are too large"
        )
        for path in partitions
    )
    return BucketAdvice("t", 128 * MB, 1024, items, compact_rules(dict.fromkeys(partitions, 4)))


def test_advice_is_shown_in_every_form() -> None:
    made = advice(["dt=<1>", *(f"dt={n}" for n in range(2, 40))])
    lines = str(made).splitlines()
    assert lines[0].startswith("buckets of t: 39 of 39 partitions should change")
    assert lines[1] == ("  dt=<1>: 1 -> 4 buckets, 300.0 MB, |█| buckets of 300.0 MB are too large")
    assert lines[-2] == "  … and 19 more"
    assert lines[-1] == '  rules: {"expressions": [], "defaultBucketNumber": 4}'
    assert repr(made) == str(made)
    page = made._repr_html_()
    assert "dt=&lt;1&gt;" in page and "dt=<1>" not in page and "<code>█</code>" in page
    value = json.loads(made.to_json())
    assert value["rules"] == {"expressions": [], "defaultBucketNumber": 4}
    assert value["partitions"][0]["advised"] == 4


def test_an_index_is_shown_in_every_form() -> None:
    size = measured("dt=<1>", slices({0: 10, 1: 20}, "dt=<1>"), 4)
    shown = BucketsShown(
        table="t",
        rules=BucketRules((BucketRule("<1>", 8),), 2),
        version="20260101000000000",
        meta=None,
        hash_fields=("id",),
        versions=(),
        partitions=(PartitionBuckets(size, "pinned", 8),),
    )
    assert str(shown).splitlines() == [
        "buckets of t by id: rules of 20260101000000000, 1 partitions, 1 pinned, 2 file groups, "
        "30 B",
        "  rule 1: regex <1> -> 8",
        "  default -> 2",
        "  dt=<1>: 4 buckets (pinned, rules give 8), 2 file groups, 30 B |▄█  |",
    ]
    assert "dt=&lt;1&gt;" in shown._repr_html_() and "<1>" not in shown._repr_html_()
    value = json.loads(shown.to_json())
    assert value["partitions"][0]["by"] == "pinned"
    assert value["rules"]["expressions"][0]["expression"] == "<1>"
