"""A process that dies before any storage call of a write leaves the table as it was, or written."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.format.hudi.simple_hash_meta import SIMPLE_FOLDER
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support import write_deaths
from support.rescaling import check_law
from support.table_files import strays
from support.write_machine import by_hudi
from support.write_scenarios import VERBS, after, content, go_on, prepare, seen
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

#: Of version 6 every so many-th call; of version 9 every one.
SAMPLED = 4
#: Run always; the others take minutes.
QUICK = {
    "insert-cow-v9-lookup",
    "upsert-cow-v9-lookup",
    "upsert-mor-v9-bucket",
    "overwrite-cow-v9-bucket",
    "delete_partitions-cow-v9-lookup",
    "upsert-mor-v6-lookup",
    "overwrite-cow-v6-lookup",
    "upsert-cow-v6-lookup-changes",
    "upsert-mor-v9-rules",
}
#: The table keeps change files.
CHANGES = {"hoodie.table.cdc.enabled": "true"}


#: Partitions that differ in their number of buckets; one of them the write brings.
RULES = rules_json(BucketRules((BucketRule("p=x$", 3), BucketRule("p=z$", 5)), 2))


def _case(
    verb: str, mor: bool, version: int, buckets: int | str | None, changes: bool = False
) -> Any:
    index = "lookup" if buckets is None else "rules" if buckets == RULES else "bucket"
    name = f"{verb}-{'mor' if mor else 'cow'}-v{version}-{index}{'-changes' * changes}"
    marks = () if name in QUICK else pytest.mark.slow
    return pytest.param(verb, mor, version, buckets, changes, id=name, marks=marks)


CASES = [
    *(
        _case(verb, mor, version, buckets)
        for verb in VERBS
        for mor in (False, True)
        for version, buckets in ((9, None), (9, 2), (6, None), (6, 2))
    ),
    *(_case(verb, False, v, None, changes=True) for verb in ("upsert", "delete") for v in (9, 6)),
    *(_case(verb, True, v, RULES) for verb in ("upsert", "overwrite") for v in (9, 6)),
]


@pytest.mark.parametrize(("verb", "mor", "version", "buckets", "changes"), CASES)
def test_a_killed_writer_leaves_before_or_after(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    verb: str,
    mor: bool,
    version: int,
    buckets: int | str | None,
    changes: bool,
) -> None:
    template = open_storage(tmp_path / "template")
    kept = CHANGES if changes else {}
    prepare(template, mor=mor, version=version, buckets=buckets, properties=kept)
    old, new = after(""), after(verb)
    assert seen(open_storage(tmp_path / "template")) == old
    count = write_deaths.run(tmp_path, verb, SAMPLED if version == 6 else 1)
    assert count > 3
    tell(request, Counter({f"points of version {version}": count}), "crashes")
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
        if buckets == RULES:
            _check_rules(storage, written=found == new)
    assert outcomes == {False, True} or version == 6


def _check_rules(storage: Storage, *, written: bool) -> None:
    """Every row lies in its bucket, and what a dead writer fixed is gone with it."""
    assert check_law(storage) == {"p=x": 3, "p=y": 2, **({"p=z": 5} if written else {})}
    names = [file.path.rpartition("/")[2] for file in storage.list(SIMPLE_FOLDER)]
    fixed = {name.split(".")[0] for name in names if name.endswith(".hashing_meta")}
    done = {instant.requested for instant in Table(storage).timeline.data()}
    assert fixed
    assert fixed <= done
    assert set(HashingStore(storage).fixed(Table(storage).timeline)) >= {"p=x", "p=y"}
