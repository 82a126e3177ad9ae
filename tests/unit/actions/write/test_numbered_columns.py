"""Tables whose columns are numbered keep their numbers: old files are read by them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakewright as lw
from lakewright.table.schemas import LATEST_SCHEMA


@pytest.mark.parametrize("name", ["renamed_cow", "renamed_mor"])
def test_renamed_columns_survive_a_write(
    own_table: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    shutil.copytree(own_table(name), tmp_path / "t")
    table = lw.open_table(tmp_path / "t")
    before = table.scan().to_arrow()
    result = table.upsert(before.filter(pc.equal(before.column("id"), 3)))
    assert result.instant is not None
    assert LATEST_SCHEMA in table.timeline.commit_metadata(result.instant).extra
    after = table.scan().to_arrow()
    assert sorted(map(str, after.to_pylist())) == sorted(map(str, before.to_pylist()))
    with pytest.raises(lw.Unsupported, match=r"numbers its columns.*extra"):
        table.upsert(before.append_column("extra", pa.nulls(before.num_rows, pa.int64())))
