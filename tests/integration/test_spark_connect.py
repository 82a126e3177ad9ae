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

SUPPORT = Path(__file__).parents[1] / "support" / "connect_reads.py"


def test_rows_over_connect(golden_table: Callable[[str], Path], spark: Any) -> None:
    reads = [
        ("auto", "cow_nested_v9"),
        ("workers", "mor_basic_v9"),
        ("overlay", "mor_basic_v9"),
        ("auto", "cow_odd_partitions_plain_v9"),
    ]
    arguments = [word for merging, name in reads for word in (merging, str(golden_table(name)))]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, str(SUPPORT), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    root = fixtures_root()
    assert root is not None
    expected = json.loads((root / "golden-expected.json").read_text())
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == [expected[name]["snapshot"] for _, name in reads]
