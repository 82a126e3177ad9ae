"""The file by which Java finds a partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.partition_metadata import (
    PartitionMetadata,
    decode_partition_metadata,
    encode_partition_metadata,
    encode_partition_metadata_parquet,
)
from lakewright.model.errors import Corrupt

METADATA = st.builds(
    PartitionMetadata, st.from_regex(r"[0-9]{17}", fullmatch=True), st.integers(0, 9999)
)


@given(METADATA)
def test_both_forms_round_trip(metadata: PartitionMetadata) -> None:
    for data in (encode_partition_metadata(metadata), encode_partition_metadata_parquet(metadata)):
        assert decode_partition_metadata(data, "p") == metadata


def test_text_of_real_hudi() -> None:
    text = (
        b"#partition metadata\n#Sun Jul 13 01:05:36 UTC 2025\n"
        b"commitTime=20250713010535797\npartitionDepth=2\n"
    )
    assert decode_partition_metadata(text, "p") == PartitionMetadata("20250713010535797", 2)
    assert encode_partition_metadata(PartitionMetadata("1", 0)).startswith(
        b"#partition metadata\n#"
    )


@pytest.mark.parametrize(("partition", "depth"), [("", 0), ("a", 1), ("a=1/b=2/c", 3)])
def test_the_depth_is_the_number_of_levels(partition: str, depth: int) -> None:
    assert PartitionMetadata.of(partition, "1") == PartitionMetadata("1", depth)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"commitTime=1",
        b"partitionDepth=1",
        b"commitTime=1\npartitionDepth=x",
        b"commitTime=1\npartitionDepth=-1",
        b"commitTime=1\npartitionDepth=99999999999999999999",
        b"PAR1",
        b"PAR1" + b"\xff" * 40 + b"PAR1",
    ],
)
def test_anything_else_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        decode_partition_metadata(data, "a/.hoodie_partition_metadata")
    assert caught.value.facts["path"] == "a/.hoodie_partition_metadata"
