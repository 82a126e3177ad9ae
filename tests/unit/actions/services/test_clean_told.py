"""What a cleaning tells other software: never that a replaced group is gone whose files stay.

Hudi archives every write that replaced something before the instant which the last cleaning
retained, or before the cleaning itself where it counted versions. Files of replaced groups that
stay would be live again.
"""

import time
from collections.abc import Mapping

import pytest

from lakewright.actions.services.cleaning import clean
from lakewright.model.errors import HistoryGone
from lakewright.storage.port import Storage
from lakewright.table.horizon import check_retained, last_cleaning, readable_from
from lakewright.table.pins import Pin, add_pin, drop_pins
from lakewright.table.state import open_state
from support.servicing import servicing
from support.tiny_tables import TinyTable, at, base_name

COMMITS = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "2"}
VERSIONS = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
FILTER = {
    "hoodie.clean.partition.filter.selected": "dt=1",
    "hoodie.clean.incremental.enabled": "false",
}


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest) -> TinyTable:
    """A partition dropped by the second write, and another that was written since."""
    made = TinyTable(request.param)
    made.commit(1, {"dt=9": {base_name("a", 1): b""}})
    made.commit(2, {}, replaced={"dt=9": ["a"]})
    for minute in (3, 4, 5, 6):
        made.commit(minute, {"dt=1": {base_name("b", minute): b""}})
    return made


def retained(storage: Storage) -> str:
    body = last_cleaning(open_state(storage).timeline)
    assert body is not None
    return body.earliest_to_retain


@pytest.mark.parametrize("policy", [COMMITS, VERSIONS], ids=["commits", "versions"])
def test_what_a_filter_leaves_is_not_told_to_be_gone(
    table: TinyTable, policy: Mapping[str, str]
) -> None:
    clean(servicing(table.storage, **policy, **FILTER))
    assert [*table.storage.list("dt=9")], "the filter leaves it out"
    assert retained(table.storage) == at(2)
    clean(servicing(table.storage, **policy))
    assert not [*table.storage.list("dt=9")]


@pytest.mark.parametrize("policy", [COMMITS, VERSIONS], ids=["commits", "versions"])
def test_nor_what_is_pinned_for_an_undo(table: TinyTable, policy: Mapping[str, str]) -> None:
    names = {"dt=9": frozenset({base_name("a", 1)})}
    add_pin(table.storage, Pin("p", time.time() + 3600, "undo", names))
    clean(servicing(table.storage, **policy))
    assert retained(table.storage) == at(2)
    # What can be read is told here: the files of the other partition are gone.
    view = open_state(table.storage).timeline
    body = last_cleaning(view)
    assert body is not None and readable_from(body) > at(2)
    with pytest.raises(HistoryGone):
        check_retained(view, at(3))
    drop_pins(table.storage, "p")
    table.commit(7, {"dt=1": {base_name("b", 7): b""}})
    clean(servicing(table.storage, **policy))
    assert not [*table.storage.list("dt=9")]
    assert retained(table.storage) != at(2)


def test_it_goes_on_as_before_where_nothing_is_left(table: TinyTable) -> None:
    clean(servicing(table.storage, **COMMITS))
    assert retained(table.storage) == at(5)
