"""A unit test with many commits or processes fails; judged by a small run of pytest."""

import os
import subprocess
import sys
from pathlib import Path

from quick_units import COMMITS, PROCESSES

TESTS = Path(__file__).parents[2]
SAMPLE = """
import subprocess, sys
import pytest
import lakewright as lw

@pytest.fixture
def table(tmp_path):
    table = lw.create_table(tmp_path / "t", schema="id string", key="id")
    table.upsert([{"id": "first"}])
    return table

def write(table, times):
    for number in range(times):
        table.upsert([{"id": str(number)}])

def test_few_commits(table):
    write(table, 2)

def test_many_commits(table):
    write(table, MANY)

def start(times):
    for _ in range(times):
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)

def test_few_processes():
    start(1)

def test_many_processes():
    start(PROCESSES)

def test_after_all_of_them(table):
    write(table, 1)
"""


def test_what_a_unit_test_does_is_counted(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "unit" / "conftest.py").read_text())
    sample = SAMPLE.replace("MANY", str(COMMITS)).replace("PROCESSES", str(PROCESSES + 1))
    (tmp_path / "test_sample.py").write_text(sample)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sample.py"],
        cwd=tmp_path,
        env={**clean, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = answer.stdout
    assert answer.returncode == 1, told
    assert "2 failed, 3 passed" in told
    assert f"Failed: a unit test with {COMMITS + 1} commits" in told
    assert f"Failed: a unit test with {PROCESSES + 1} processes" in told
