"""What heartbeats say when writing them fails."""

import itertools
import time

import pytest

from lakewright.model.errors import Unavailable
from lakewright.storage.memory import MemoryStorage
from lakewright.timeline.heartbeats import Heartbeat, Record, Tolerance, read_record
from lakewright.timeline.owner import Owner
from support.faulty_storage import Outage

INSTANT = "20260101000000000"
NUMBERS = itertools.count()


@pytest.mark.parametrize("done", [False, True], ids=["failed", "done"])
def test_a_publication_that_was_not_tried_is_waited_for_by_nobody(done: bool) -> None:
    storage = Outage(MemoryStorage(f"memory://hearts-{next(NUMBERS)}/t"), length=1, done=done)
    tried = Record(Owner.here(), completion="20260101000000005", until=time.time() + 60)
    for before in (Record(Owner.here()), tried):
        storage.start = -1
        with Heartbeat(storage, INSTANT, before, Tolerance.of({})) as heart:
            storage.start, storage.made = 0, 0
            with pytest.raises(Unavailable):
                heart.fix("20260101000000009", time.time() + 600)
            assert heart.record == before
            assert read_record(storage, INSTANT) == before
            heart.fix("20260101000000009", 1.0)
            assert read_record(storage, INSTANT) == heart.record != before
