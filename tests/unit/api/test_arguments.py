"""What callers without a type checker give to the services: refused in words, not by Python."""

from collections.abc import Callable
from itertools import count

import pytest

from lakewright.api.table import Table
from lakewright.model.errors import Invalid, InvalidOption
from lakewright.storage.memory import MemoryStorage
from support.service_scenarios import prepare_for

_NUMBERS = count()
Call = Callable[[Table], object]
WRONG: dict[str, Call] = {
    "False is no text. Options are texts. Allowed: true, false": lambda t: t.clean(
        options={"hoodie.clean.incremental.enabled": False}  # type: ignore[dict-item]
    ),
    "None is no text": lambda t: t.clean(
        options={"hoodie.clean.commits.retained": None}  # type: ignore[dict-item]
    ),
    "grace: 900 is no text. .* a duration": lambda t: t.clean(grace=900),  # type: ignore[arg-type]
    "policy=5 is no text": lambda t: t.clean(policy=5),  # type: ignore[arg-type]
    r"sort_by\[0\]=5 is no text": lambda t: t.cluster(sort_by=[5]),  # type: ignore[list-item]
    "sort_by=5 is no list": lambda t: t.cluster(sort_by=5),  # type: ignore[arg-type]
    r"partitions\[0\]=5 is no": lambda t: t.compact(partitions=[5]),  # type: ignore[list-item]
    "partitions='p=x' is no list": lambda t: t.compact(partitions="p=x"),
    "5 is no instant time": lambda t: t.schedule_cleaning(instant=5),  # type: ignore[arg-type]
    "'6' is no version": lambda t: t.downgrade("6"),  # type: ignore[call-overload]
    "note=5 is no text": lambda t: t.savepoint(note=5),  # type: ignore[arg-type]
    "by=5 is no text": lambda t: t.savepoint(by=5),  # type: ignore[arg-type]
    "instant=5 is no text": lambda t: t.restore(5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_text_is_refused_by_name(message: str) -> None:
    storage = MemoryStorage(f"memory://arguments-{next(_NUMBERS)}/t", {})
    table = prepare_for("clean", storage, mor=True, version=9, buckets=None)
    before = {file.path for file in storage.list("", recursive=True)}
    with pytest.raises((Invalid, InvalidOption), match=message):
        WRONG[message](table)
    assert {file.path for file in storage.list("", recursive=True)} == before


@pytest.mark.parametrize("version", [9, 6])
def test_times_before_all_calendars_keep_everything(version: int) -> None:
    storage = MemoryStorage(f"memory://calendars-{version}/t", {})
    table = prepare_for("clean", storage, mor=False, version=version, buckets=None)
    assert table.clean(policy="hours", retain=10**9).instant is None
    assert table.clean(policy="commits", retain=1, grace="99999999999999d").instant is None
    assert table.clean(policy="commits", retain=1).instant is not None
