"""A wrong option of a service is refused before anything is written, wherever it is read."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.model.errors import InvalidOption
from lakewright.model.options import Option, declared
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from support.service_scenarios import EAGER, prepare_for

#: One of them is refused by every option that refuses anything.
_BAD = ("abc", "-1", "", "[", "0")
_NUMBERS = count()

Call = Callable[[Table, Mapping[str, str]], object]
#: By name: the scenario that the table is prepared for, whether it is merge-on-read, its version,
#: the call, and options that it must refuse: those that tasks read are among them.
CALLS: dict[str, tuple[str, bool, int, Call, set[str]]] = {
    "compact": (
        "compact",
        True,
        9,
        lambda t, o: t.compact(options=o),
        {"hoodie.compaction.target.io", "hoodie.parquet.max.file.size"},
    ),
    "log_compact": (
        "log_compact",
        True,
        9,
        lambda t, o: t.log_compact(options={**EAGER, **o}),
        {"hoodie.logfile.data.block.format", "hoodie.log.compaction.blocks.threshold"},
    ),
    "cluster": (
        "cluster",
        False,
        9,
        lambda t, o: t.cluster(options=o),
        {"lakewright.clustering.copied-row-group-bytes", "hoodie.clustering.plan.strategy.class"},
    ),
    "cluster by a curve": (
        "cluster",
        False,
        6,
        lambda t, o: t.cluster(sort_by=["n", "ts"], layout="zorder", options=o),
        {"hoodie.layout.optimize.build.curve.sample.size", "lakewright.write.spill-bytes"},
    ),
    "carry out a clustering": (
        "carry_out_clustering",
        False,
        9,
        lambda t, o: t.cluster(options=o),
        {"lakewright.clustering.copied-row-group-bytes"},
    ),
    "clean": (
        "clean",
        False,
        9,
        lambda t, o: t.clean(options=o),
        {"hoodie.clean.policy", "lakewright.clean.grace", "hoodie.clean.hours.retained"},
    ),
    "archive": (
        "archive",
        False,
        9,
        lambda t, o: t.archive(min_commits=1, max_commits=2, options=o),
        {"lakewright.archive.files-per-level", "hoodie.archive.beyond.savepoint"},
    ),
    "archive version 6": (
        "archive",
        False,
        6,
        lambda t, o: t.archive(min_commits=1, max_commits=2, options=o),
        {"lakewright.archive.entries-per-block"},
    ),
    "downgrade": (
        "archive",
        False,
        9,
        lambda t, o: t.upgrade(6, options=o),
        {"lakewright.archive.entries-per-block"},
    ),
}


def refused_by(option: Option[Any]) -> str | None:
    for text in _BAD:
        try:
            option.parse(text)
        except ValueError:
            return text
    return None


def memory() -> MemoryStorage:
    return MemoryStorage(f"memory://settings-{next(_NUMBERS)}/t", {})


def files(storage: Storage) -> dict[str, bytes]:
    return {file.path: storage.read(file.path) for file in storage.list("", recursive=True)}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_written_where_an_option_is_wrong(name: str) -> None:
    scenario, mor, version, call, known = CALLS[name]
    origin = memory()
    prepare_for(scenario, origin, mor=mor, version=version, buckets=None)
    before = files(origin)
    refused = set()
    storage: MemoryStorage | None = None
    for option in declared():
        bad = refused_by(option)
        if bad is None:
            continue
        if storage is None:
            storage = memory()
            for path, data in before.items():
                storage.write(path, data)
        try:
            call(Table(storage), {option.key: bad})
        except InvalidOption as error:
            assert option.key in str(error)
            after = files(storage)
            changed = [p for p in before | after if before.get(p) != after.get(p)]
            assert (option.key, changed) == (option.key, [])
            refused.add(option.key)
        else:
            storage = None  # the option is none of this service's, which was done
    assert refused >= known
