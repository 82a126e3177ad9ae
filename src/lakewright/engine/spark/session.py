"""Spark sessions: which one, what its workers run, how wide it is, and settings put back."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lakewright.model.errors import Invalid, Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL_MASTER = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")
#: How wide a cluster is taken to be that does not say.
_UNKNOWN_WIDTH = 16


def session_or_active(spark: "SparkSession | None") -> "SparkSession":
    """Return the session given, else the active one; ``Invalid`` where there is neither."""
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        raise Invalid(
            "there is no active Spark session.",
            next_step="Pass one: to_spark(spark), with spark = SparkSession.builder.getOrCreate().",
        )
    return active


def is_connect(spark: "SparkSession") -> bool:
    """Whether the session is a Spark Connect client, which has no JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def spark_version(spark: "SparkSession") -> tuple[int, int]:
    """Return the major and minor version of Spark."""
    major, minor = re.findall(r"\d+", spark.version)[:2]
    return int(major), int(minor)


def setting(spark: "SparkSession", key: str) -> str | None:
    """Return a setting of the session; None where it is not set or not known."""
    try:
        return spark.conf.get(key, None)
    except PySparkException:  # a key without a default that this version does not know
        return None


def session_zone(spark: "SparkSession") -> str:
    """Return the time zone of the session, in which its SQL reads and shows times."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


@contextmanager
def changed_settings(spark: "SparkSession", values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session, and put back what was there, come what may."""
    before: dict[str, str | None] = {}
    try:
        for key, value in values.items():
            before[key] = setting(spark, key)
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def parallelism(spark: "SparkSession") -> int:
    """Return how many tasks run at once, as far as the settings tell; no job is run."""
    for key in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"):
        told = setting(spark, key)
        if told is not None and told.isdigit() and int(told) > 0:
            return int(told)
    return _width(
        setting(spark, "spark.master") or "",
        setting(spark, "spark.executor.instances")
        or setting(spark, "spark.dynamicAllocation.maxExecutors"),
        setting(spark, "spark.executor.cores"),
    )


def _width(master: str, executors: str | None, cores: str | None) -> int:
    if found := _LOCAL_MASTER.fullmatch(master):
        told = found.group(1)
        return (os.cpu_count() or 1) if told == "*" else int(told or 1)
    if found := _LOCAL_CLUSTER.fullmatch(master):
        return int(found.group(1)) * int(found.group(2))
    if executors is not None and executors.isdigit() and int(executors) > 0:
        return int(executors) * (int(cores) if cores is not None and cores.isdigit() else 1)
    return _UNKNOWN_WIDTH


def ensure_workers(spark: "SparkSession") -> None:
    """See to it that Python workers on this machine run the Python of this process.

    A session whose workers would start another interpreter (``PYSPARK_PYTHON`` not set in a
    virtual environment) is mended where it was left to the default, and refused where somebody
    chose it. Workers on other machines cannot be looked at from here; a task that does not find
    Lakewright there says so itself.
    """
    if is_connect(spark) or not (setting(spark, "spark.master") or "").startswith("local"):
        return
    context = spark.sparkContext
    chosen = context.pythonExec
    if _same_python(chosen):
        return
    if "PYSPARK_PYTHON" not in os.environ and setting(spark, "spark.pyspark.python") is None:
        context.pythonExec = sys.executable
        return
    raise Unsupported(
        f"Spark's Python workers would run {chosen}, this process runs {sys.executable}.",
        next_step=f"Set PYSPARK_PYTHON={sys.executable} before the Spark session is made.",
        worker=chosen,
        driver=sys.executable,
    )


def _same_python(command: str) -> bool:
    """Whether a command starts an interpreter of this very environment."""
    found = shutil.which(command)
    if found is None:
        return False
    return Path(found).absolute().parent == Path(sys.executable).absolute().parent
