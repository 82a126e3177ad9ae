"""A process that dies before any storage call of a write leaves the table as it was, or written."""

from collections import Counter
from pathlib import Path

import pytest

from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from support import write_deaths
from support.table_files import strays
from support.write_machine import by_hudi
from support.write_scenarios import VERBS, after, content, go_on, prepare, seen

pytest.importorskip("hudi", reason="the hudi package is not installed")

#: Of version 6 every so many-th call; of version 9 every one.
SAMPLED = 4
POINTS: Counter[str] = Counter()
CASES = [
    pytest.param(verb, mor, version, buckets, id=f"{verb}-{kind}-v{version}-{index}")
    for verb in VERBS
    for mor, kind in ((False, "cow"), (True, "mor"))
    for version, buckets, index in ((9, None, "lookup"), (9, 2, "bucket"), (6, None, "lookup"))
    if verb in {"upsert", "delete"} or not mor
]


@pytest.fixture(scope="module", autouse=True)
def told(request: pytest.FixtureRequest):
    """Say at the end how many points there were."""
    yield
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and POINTS:
        reporter.write_line(f"\ncrash points: {POINTS.total()}, of them {dict(POINTS)}")


@pytest.mark.parametrize(("verb", "mor", "version", "buckets"), CASES)
def test_a_killed_writer_leaves_before_or_after(
    tmp_path: Path, verb: str, mor: bool, version: int, buckets: int | None
) -> None:
    prepare(open_storage(tmp_path / "template"), mor=mor, version=version, buckets=buckets)
    old, new = after(""), after(verb)
    assert seen(open_storage(tmp_path / "template")) == old
    count = write_deaths.run(tmp_path, verb, SAMPLED if version == 6 else 1)
    assert count > 3
    POINTS[f"v{version}"] += count
    outcomes = set()
    for folder in sorted(tmp_path.iterdir()):
        if folder.name == "template":
            continue
        storage = open_storage(folder)
        found = seen(storage)
        assert found in (old, new), folder.name
        assert content(by_hudi(folder)) == found, folder.name
        outcomes.add(found == new)
        go_on(storage, found)
        assert strays(storage) == [], folder.name
        assert Table(storage).fsck(deep=True).problems == (), folder.name
    assert outcomes == {False, True} or version == 6
