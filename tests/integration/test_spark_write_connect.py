"""The Spark executor over Spark Connect, where there is no JVM to reach into."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.connect", reason="PySpark is not installed")
pytest.importorskip("grpc", reason="Spark Connect's packages are not installed")

pytestmark = pytest.mark.spark

TESTS = Path(__file__).parents[1]


def run(script: str, *arguments: str) -> object:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(TESTS),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, str(TESTS / "support" / script), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_executor_over_connect() -> None:
    assert run("connect_executor.py") == {
        "told": [True, 4, True],
        "few": [10, "2020-01-02 08:04:05+00:00", list(range(10))],
        "same": True,
        "many": True,
        "items": True,
        "elsewhere": True,
        "refused": {"item": 3},
        "groups": {"native": 1000, "python": 1000},
    }
