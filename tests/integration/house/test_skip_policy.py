"""The judge of skips is itself judged, by small runs of pytest in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
SMALL = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
CONFTEST = """
from pathlib import Path
from skip_policy import SkipPolicy, is_strict, read_patterns

def pytest_configure(config):
    patterns = read_patterns(Path(__file__).with_name("allowed.txt"))
    config.pluginmanager.register(SkipPolicy(patterns, strict=is_strict()), "skip-policy")
"""


def run(folder: Path, test: str, allowed: str, **environment: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "allowed.txt").write_text(allowed)
    (folder / "test_sample.py").write_text("import pytest\n" + test)
    clean = {k: v for k, v in os.environ.items() if k not in {"CI", "LAKEWRIGHT_STRICT_SKIPS"}}
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(TESTS), **SMALL, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.returncode, answer.stdout


SKIPPED = "def test_a():\n    pytest.skip('no moon tonight')\n"
WHOLE_MODULE = "pytest.skip('no moon tonight', allow_module_level=True)\n"
EXPECTED = "@pytest.mark.xfail(reason='known')\ndef test_a():\n    assert False\n"


@pytest.mark.parametrize(
    ("test", "allowed", "environment", "code"),
    [
        (SKIPPED, "", {"CI": "true"}, 1),
        (SKIPPED, "", {"LAKEWRIGHT_STRICT_SKIPS": "1"}, 1),
        (SKIPPED, "# no moon*\n", {"CI": "true"}, 1),
        (SKIPPED, "", {}, 0),
        (SKIPPED, "no moon*\n", {"CI": "true"}, 0),
        (SKIPPED, "test_sample.py::test_a\n", {"CI": "true"}, 0),
        (WHOLE_MODULE + SKIPPED, "", {"CI": "true"}, 1),
        (EXPECTED, "", {"CI": "true"}, 0),
    ],
)
def test_a_strict_run_fails_on_an_unlisted_skip(
    tmp_path: Path, test: str, allowed: str, environment: dict[str, str], code: int
) -> None:
    answered, output = run(tmp_path, test, allowed, **environment)
    assert answered == code, output
    assert ("no moon tonight" in output) == (code == 1 or not environment)
