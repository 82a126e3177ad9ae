"""The same rows, writes and tasks over Spark Connect, where there is no JVM to reach into."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixture_tables import fixtures_root

pytest.importorskip("pyspark.sql.connect", reason="PySpark is not installed")
pytest.importorskip("grpc", reason="Spark Connect's packages are not installed")

pytestmark = pytest.mark.spark

TESTS = Path(__file__).parents[1]
#: Merging plans, and the tables that are read by them.
READS = [
    ("auto", "cow_nested_v9"),
    ("workers", "mor_basic_v9"),
    ("overlay", "mor_basic_v9"),
    ("auto", "cow_odd_partitions_plain_v9"),
]


@pytest.fixture(scope="module")
def came(
    golden_table: Callable[[str], Path], spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What each part of the script found, in one session."""
    wanted = {
        "reads": [(merging, str(golden_table(name))) for merging, name in READS],
        "writes": [str(tmp_path_factory.mktemp("writes"))],
        "executor": [],
    }
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(TESTS),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, str(TESTS / "support" / "connect_session.py"), json.dumps(wanted)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_rows_over_connect(came: dict[str, Any]) -> None:
    root = fixtures_root()
    assert root is not None
    expected = json.loads((root / "golden-expected.json").read_text())
    assert came["reads"] == [expected[name]["snapshot"] for _, name in READS]


def test_writes_and_streams_over_connect(came: dict[str, Any]) -> None:
    """A task fails once, a stream goes from table to table twice, and by ``foreachBatch``."""
    found = came["writes"]
    rows = [["a", 1], ["b", 2], ["c", 2]]
    clean = {"pending": 0, "left": []}
    assert found.get("failed") is None, found
    assert found["append"] == {"rows": [["a", 1], ["b", 1]], "commits": 1, **clean}
    assert found["sink"] == {"rows": rows, "commits": 2, **clean}
    assert found["foreachBatch"] == {"rows": rows, "commits": 1, **clean}


def test_the_executor_over_connect(came: dict[str, Any]) -> None:
    assert came["executor"] == {
        "told": [True, 4, True],
        "few": [10, "2020-01-02 08:04:05+00:00", list(range(10))],
        "same": True,
        "many": True,
        "items": True,
        "elsewhere": True,
        "refused": {"item": 3},
        "groups": {"native": 1000, "python": 1000},
    }
