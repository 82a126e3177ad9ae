"""Orphan files of tables on every kind of storage go into quarantine and come back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewright.lifecycle.plans.quarantine import QUARANTINE_FOLDER, list_quarantined, purge
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.dropping import seen
from support.faulty_storage import Fault, FaultyStorage
from support.orphaned import applied, old_table, planned, strewn, targets, tree, undone
from support.s3_server import S3Server, running_s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with running_s3_server() as running:
        running.make_bucket("lake")
        yield running


def there_and_back(storage: Storage) -> None:
    old_table(storage, mor=True)
    found = strewn(storage)
    before, content = tree(storage), seen(storage)
    plan = planned(storage)
    assert targets(plan) == sorted(found)
    assert applied(storage, plan).done == tuple(sorted(found))
    assert not [path for path in found if storage.stat(path) is not None]
    assert seen(storage) == content
    undone(storage, plan)
    assert tree(storage) == before and list(list_quarantined(storage)) == []
    again = planned(storage)
    faulty = FaultyStorage(storage, [Fault("move", at=1)])
    with pytest.raises(Exception, match="told to fail"):
        applied(faulty, again)
    assert applied(storage, again).done == tuple(sorted(found))
    assert len(purge(storage, again.id).files) == 4
    assert not list(storage.list(QUARANTINE_FOLDER, recursive=True))
    assert seen(storage) == content


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_orphans_elsewhere(tmp_path: Path, kind: str) -> None:
    uri = f"{kind}://{tmp_path}/t" if kind == "file" else f"{kind}://{tmp_path.name}/t"
    there_and_back(open_storage(uri))


@pytest.mark.service
def test_orphans_on_s3(server: S3Server) -> None:
    there_and_back(open_storage("s3://lake/orphaned", server.options))
