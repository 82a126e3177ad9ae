"""A run on several processes starts one Spark session; judged by small runs of pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_together import WORD

TESTS = Path(__file__).parents[2]
CONFTEST = """
import spark_together

def pytest_xdist_make_scheduler(config, log):
    return spark_together.scheduler(config, log)
"""
SAMPLE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(40))
def test_{name}(number):
    who = os.environ["PYTEST_XDIST_WORKER"]
    pathlib.Path(__file__).with_name(f"{name}-{{who}}").touch()
"""
SPARK = "import pytest\npytestmark = pytest.mark.spark\n"


def run(folder: Path, **files: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = spark: needs a session\n")
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", folder],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.returncode, answer.stdout


def test_one_process_has_all_tests_of_spark(tmp_path: Path) -> None:
    code, told = run(
        tmp_path,
        test_one_spark=SPARK + SAMPLE.format(name="first"),
        test_plain=SAMPLE.format(name="plain"),
        test_two_spark=SPARK + SAMPLE.format(name="second"),
    )
    assert code == 0, told
    (first,) = tmp_path.glob("first-*")
    (second,) = tmp_path.glob("second-*")
    assert first.name.partition("-")[2] == second.name.partition("-")[2]
    assert list(tmp_path.glob("plain-*"))


def test_a_file_of_unit_tests_stays_together(tmp_path: Path) -> None:
    names = [f"file{number}" for number in range(6)]
    files = {f"tests/unit/test_{name}": SAMPLE.format(name=name) for name in names}
    code, told = run(tmp_path, **files)
    assert code == 0, told
    assert f"{40 * len(names)} passed" in told
    marks = [path.name.partition("-") for path in tmp_path.glob("tests/unit/file*-*")]
    assert sorted(name for name, _, _ in marks) == names
    assert len({who for _, _, who in marks}) == 2


def test_every_test_of_spark_says_so_in_its_id(request: pytest.FixtureRequest) -> None:
    marked = [item for item in request.session.items if item.get_closest_marker("spark")]
    silent = [item.nodeid for item in marked if WORD not in item.nodeid]
    assert not silent, f"rename these tests or their files, so that {WORD!r} is in their ids"
