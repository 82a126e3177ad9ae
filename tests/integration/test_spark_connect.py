"""The same rows over Spark Connect, where there is no JVM to reach into."""

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

SUPPORT = Path(__file__).parents[1] / "support"


def run(script: str, *arguments: str) -> Any:
    """Run a script with a Connect session of its own; return what its last line says."""
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, str(SUPPORT / script), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_rows_over_connect(golden_table: Callable[[str], Path], spark: Any) -> None:
    reads = [
        ("auto", "cow_nested_v9"),
        ("workers", "mor_basic_v9"),
        ("overlay", "mor_basic_v9"),
        ("auto", "cow_odd_partitions_plain_v9"),
    ]
    arguments = [word for merging, name in reads for word in (merging, str(golden_table(name)))]
    root = fixtures_root()
    assert root is not None
    expected = json.loads((root / "golden-expected.json").read_text())
    found = run("connect_reads.py", *arguments)
    assert found == [expected[name]["snapshot"] for _, name in reads]


def test_writes_and_streams_over_connect(tmp_path: Path, spark: Any) -> None:
    """A task fails once, a stream goes from table to table twice, and by ``foreachBatch``."""
    found = run("connect_writes.py", str(tmp_path))
    rows = [["a", 1], ["b", 2], ["c", 2]]
    clean = {"pending": 0, "left": []}
    assert found["append"] == {"rows": [["a", 1], ["b", 1]], "commits": 1, **clean}
    assert found["sink"] == {"rows": rows, "commits": 2, **clean}
    assert found["foreachBatch"] == {"rows": rows, "commits": 1, **clean}
