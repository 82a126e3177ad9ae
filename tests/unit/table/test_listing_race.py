"""Listing while others commit and archive: every picture is whole."""

import random
import threading
from pathlib import Path

import pytest

from lakewright.format.hudi.archived_instant import ArchivedInstant
from lakewright.format.hudi.history import append_history
from lakewright.model.errors import LakewrightError
from lakewright.storage.open import open_storage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import open_state
from support.tiny_tables import TinyTable, base_name

COMMITS = 12
KEPT_ACTIVE = 3


class Others:
    """A writer that rewrites one group in each of two partitions, and archives as it goes."""

    def __init__(self, table: TinyTable) -> None:
        self.table = table
        self.failed: list[LakewrightError] = []
        self.finished = False
        self._order = random.Random(7)

    def run(self) -> None:
        try:
            for number in range(2, COMMITS):
                self.commit(number)
                self.archive()
            self.finished = True
        except LakewrightError as error:
            self.failed.append(error)

    def commit(self, number: int) -> None:
        files = {f"dt={part}": {base_name(part, number): b"x"} for part in ("a", "b")}
        self.table.commit(number, files)

    def archive(self) -> None:
        state = self.table.state()
        old = state.timeline.data()[:-KEPT_ACTIVE]
        bodies = [
            ArchivedInstant(entry.instant, self._body(entry.files))  # type: ignore[arg-type]
            for entry in state.timeline.entries
            if entry.instant in old
        ]
        append_history(self.table.storage, state.config, bodies)
        names = [n for e in state.timeline.entries if e.instant in old for n in e.files.values()]
        self._order.shuffle(names)
        for name in names:
            self.table.storage.delete([f"{self.table.timeline}/{name}"])

    def _body(self, files: dict[str, str]) -> bytes:
        return self.table.storage.read(f"{self.table.timeline}/{files['completed']}")


@pytest.mark.parametrize("version", [6, 9])
def test_a_listing_is_one_consistent_picture_whatever_others_do(
    version: int, tmp_path: Path
) -> None:
    table = TinyTable(version, storage=open_storage(tmp_path))
    others = Others(table)
    others.commit(1)
    worker = threading.Thread(target=others.run)
    worker.start()
    pictures = 0
    while worker.is_alive() or pictures == 0:
        state = open_state(table.storage)
        latest = state.timeline.latest_data()
        assert latest is not None
        parts = list(FileIndex(state).list_files_at())
        seen = {p.descriptor.path: [s.base_instant for s in p.file_slices] for p in parts}
        assert seen == {"dt=a": [latest.requested], "dt=b": [latest.requested]}
        pictures += 1
        worker.join(0.001)
    worker.join()
    assert others.failed == []
    assert others.finished
    history = open_state(table.storage).timeline.with_history()
    assert len(history.data()) == COMMITS - 1
