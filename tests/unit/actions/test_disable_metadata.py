"""Taking the metadata table away, from the command line and after a crash."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakewright.actions.disable_metadata import disable_metadata, find_metadata
from lakewright.actions.write.admission import admit
from lakewright.format.hudi.properties import load_properties
from lakewright.interfaces.cli.main import app
from lakewright.model.errors import Unsupported
from lakewright.storage.local import LocalStorage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.locks.choose import open_lock
from support.tiny_tables import TinyTable

NAMED = {
    "hoodie__table__metadata__partitions": "files,column_stats",
    "hoodie__table__metadata__partitions__inflight": "",
}


def with_metadata(storage: Storage | None = None) -> Storage:
    tiny = TinyTable(storage=storage, **NAMED)
    tiny.storage.write(".hoodie/metadata/.hoodie/hoodie.properties", b"x")
    tiny.storage.write(".hoodie/metadata/files/f.hfile", b"yz")
    return tiny.storage


def test_the_table_can_be_written_afterwards() -> None:
    storage = with_metadata()
    with pytest.raises(Unsupported, match="disable-metadata"):
        admit(open_state(storage), {})
    found = disable_metadata(storage, open_lock(storage, {}))
    assert (found.partitions, found.files, found.bytes) == (("files", "column_stats"), 2, 3)
    assert not find_metadata(storage)
    assert not [k for k in load_properties(storage) if "metadata" in k]
    admit(open_state(storage), {})


def test_a_removal_that_was_cut_off_is_finished() -> None:
    storage = with_metadata()
    disable_metadata(storage, open_lock(storage, {}))
    storage.write(".hoodie/metadata/files/left.hfile", b"")
    assert disable_metadata(storage, open_lock(storage, {})).files == 1
    assert not find_metadata(storage)
    assert not disable_metadata(storage, open_lock(storage, {}))


def test_the_command_shows_a_plan_first(tmp_path: Path) -> None:
    storage = with_metadata(LocalStorage(str(tmp_path / "t"), {}))
    plan = CliRunner().invoke(app, ["table", "disable-metadata", storage.uri])
    assert plan.exit_code == 0, plan.output
    assert plan.output.splitlines()[0].endswith("nothing is changed")
    assert plan.output.rstrip().endswith("--apply")
    assert find_metadata(storage)
    done = CliRunner().invoke(
        app, ["table", "disable-metadata", storage.uri, "--apply", "-o", "json"]
    )
    assert done.exit_code == 0, done.output
    assert '"applied": true' in done.output
    assert not find_metadata(storage)
