"""What ``pip install`` brings: the package with its types, and the module that Spark looks for."""

import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_both_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert {"lakewright/py.typed", "lakewright/__init__.py", "pyspark_lakewright/__init__.py"} <= {
        *names
    }
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "lakewright",
        "pyspark_lakewright",
    }


def test_a_bare_install_asks_for_neither_spark_nor_pandas(wheel: zipfile.ZipFile) -> None:
    (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    required = metadata.get_all("Requires-Dist") or []
    bare = {line for line in required if "extra ==" not in line}
    assert bare
    assert not [line for line in bare if line.startswith(("pyspark", "pandas", "polars", "boto3"))]
    assert {"spark", "s3", "duckdb", "pandas", "polars"} <= {
        *(metadata.get_all("Provides-Extra") or [])
    }


def test_the_command_line_is_installed(wheel: zipfile.ZipFile) -> None:
    (name,) = (n for n in wheel.namelist() if n.endswith("entry_points.txt"))
    assert "lakewright = lakewright.interfaces.cli.main:run" in wheel.read(name).decode()
