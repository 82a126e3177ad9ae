"""A driver in a virtual environment whose workers would start another Python."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import lakewright as lw
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
print(lw.open_table(sys.argv[1]).scan().to_spark(spark).count())
"""


def run(table: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script where ``python3`` on the path is of no use to Spark's workers."""
    stranger = folder / "python3"
    stranger.write_text("#!/bin/sh\necho this is another python >&2\nexit 3\n")
    stranger.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK")}
    environment = {**kept, **variables, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(table)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )


def test_the_default_is_mended(golden_table: Callable[[str], Path], tmp_path: Path) -> None:
    done = run(golden_table("mor_basic_v9"), tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 0


def test_a_choice_is_refused_before_the_first_job(
    golden_table: Callable[[str], Path], tmp_path: Path
) -> None:
    done = run(golden_table("mor_basic_v9"), tmp_path, PYSPARK_PYTHON=str(tmp_path / "python3"))
    assert done.returncode == 1
    assert f"Set PYSPARK_PYTHON={sys.executable} before" in done.stderr
    assert "this is another python" not in done.stderr
