"""Shared by every test: fixture tables, one Spark session, hypothesis profiles, the skip policy."""

import gc
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from fixture_tables import ABSENT, fixtures_root, unzip_table
from skip_policy import SkipPolicy, is_strict, read_patterns
from spark_together import scheduler
from told import Told

settings.register_profile("dev", deadline=None)
# Of ``./dev test unit``: a part of the cases each time, others each time.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    patterns = read_patterns(Path(__file__).parent / "allowed_skips.txt")
    config.pluginmanager.register(SkipPolicy(patterns, strict=is_strict()), "skip-policy")
    config.pluginmanager.register(Told(), "told")


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over thousands of tests, which stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process have all tests of Spark."""
    return scheduler(config, log)


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """Put the logger of the package back: the command line sets it for its whole process."""
    logger = logging.getLogger("lakewright")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.fixture(scope="session")
def fixtures_dir() -> Path:
    """The folder of fixture tables and their recorded rows."""
    root = fixtures_root()
    if root is None:
        pytest.skip(ABSENT)
    return root


@pytest.fixture(scope="session")
def own_table(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function from the name of a table in the repository to its unpacked root."""
    into = tmp_path_factory.mktemp("tables")
    return lambda name: unzip_table("own", name, into)


@pytest.fixture(scope="session")
def golden_table(
    fixtures_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A function from the name of a golden table to its unpacked root; do not write there."""
    into = tmp_path_factory.mktemp("tables")
    return lambda name: unzip_table("golden", name, into)


@pytest.fixture(scope="session")
def hudi_table(
    fixtures_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The same for the sample tables, by the name of their zip."""
    into = tmp_path_factory.mktemp("tables")
    return lambda name: unzip_table("hudi", name, into)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One small local Spark session, in UTC, for the whole run."""
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("no Java; run the tests through ./dev")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    folder = tmp_path_factory.mktemp("spark")
    builder = sql.SparkSession.builder.master("local[2]").appName("lakewright-tests")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
