"""What writers are told of a partition."""

from pathlib import Path

import lakewright as lw
from lakewright.storage.open import open_storage
from lakewright.table.pinned import PinnedTable
from lakewright.table.state import open_state


def test_base_files_have_their_sizes_and_logs_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = lw.create_table(
        path, schema="id string, n int", key="id", type="MERGE_ON_READ", buckets=1
    )
    for number in range(3):
        table.upsert([{"id": "a", "n": number}])
    (piece,) = PinnedTable(open_state(open_storage(str(path)))).slices("")
    assert piece.base is not None
    assert piece.base.size == (path / piece.base.path).stat().st_size
    assert len(piece.logs) == 2
