"""Names of base and log files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.file_names import base_file, base_file_name, log_file, log_file_name
from lakewright.model.files import BaseFile, LogFile

IDS = st.from_regex(r"[0-9a-f]{8}(-[0-9a-z]{1,12}){0,5}", fullmatch=True)
TOKENS = st.from_regex(r"[0-9]{1,4}-[0-9]{1,4}-[0-9]{1,4}", fullmatch=True)
INSTANTS = st.from_regex(r"[0-9]{14,20}", fullmatch=True)
ID, T = "30969e0f-7e7d-44ea-a91d-c58dd75c33a1-0", "20261115103313001"


@given(IDS, TOKENS, INSTANTS, st.sampled_from(["parquet", "orc", "hfile", "lance"]))
def test_base_names_round_trip(file_id: str, token: str, instant: str, ending: str) -> None:
    name = base_file_name(file_id, token, instant, ending)
    assert base_file("p", name, 7) == BaseFile("p", name, file_id, token, instant, 7)
    assert log_file("p", name) is None


@given(IDS, INSTANTS, st.integers(0, 999_999), TOKENS, st.booleans())
def test_log_names_round_trip(
    file_id: str, instant: str, version: int, token: str, cdc: bool
) -> None:
    name = log_file_name(file_id, instant, version, token, cdc=cdc)
    found = log_file("", name, 7)
    assert found == LogFile("", name, file_id, instant, version, token, cdc, 7)
    assert base_file("", name) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{ID}_0-325-540_{T}.parquet", (ID, "0-325-540", T)),
        ("files-0000-0_0-1-2_00000000000000000.hfile", ("files-0000-0", "0-1-2", "0" * 17)),
        (
            "00000001-0eb4-4290-827b-c58e99f2de63_1-2-3_20261115104822923.parquet",
            ("00000001-0eb4-4290-827b-c58e99f2de63", "1-2-3", "20261115104822923"),
        ),
    ],
)
def test_real_base_names(name: str, expected: tuple[str, str, str]) -> None:
    found = base_file("", name)
    assert found is not None
    assert (found.file_id, found.write_token, found.instant) == expected
    assert found.size == -1


def test_a_log_name_without_a_token() -> None:
    found = log_file("a=1", f".{ID}_{T}.log.12")
    assert found == LogFile("a=1", f".{ID}_{T}.log.12", ID, T, 12, "")
    assert log_file_name(ID, T, 12, "") == f".{ID}_{T}.log.12"
    assert found.path == f"a=1/.{ID}_{T}.log.12"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        ".hoodie_partition_metadata",
        "_SUCCESS",
        "random.parquet",
        f"{ID}_0-1-2_{T}.parquet.crc",
        f".{ID}_0-1-2_{T}.parquet.crc",
        f"{ID}_0-1-2_{T}.txt",
        f"{ID}_0-1-2_x.parquet",
        f"a_b_c_{T}.parquet",
        f".{ID}_{T}.log.1_0-1",
        f".{ID}_{T}.log.1_0-1-2.crc",
        f"..{ID}_{T}.log.1_0-1-2.crc",
        f".{ID}_{T}.archive.1_0-1-2",
        f"{ID}_{T}.log.1_0-1-2",
        f".{ID}_{T}.log.{'9' * 30}_0-1-2",
        f"{ID}_0-1-2_{T}.parquet\n",
    ],
)
def test_other_names_are_none(name: str) -> None:
    assert base_file("p", name) is None
    assert log_file("p", name) is None


@given(st.text(alphabet="._-019abclogcdparquet\n"))
def test_any_text_is_a_name_or_none(text: str) -> None:
    base, log = base_file("", text), log_file("", text)
    assert base is None or base.name == text
    assert (
        log is None
        or log_file_name(log.file_id, log.instant, log.version, log.write_token, cdc=log.cdc)
        == text
        or text.split(".log.")[1].startswith("0")
    )
