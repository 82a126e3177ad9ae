"""Sessions, seen through small stand-ins: no JVM is started here."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.engine.spark.session import changed_settings, ensure_workers, parallelism
from lakewright.model.errors import Unsupported


class Settings:
    """Stands in for ``spark.conf``."""

    def __init__(self, **values: str) -> None:
        self.values = {key.replace("_", "."): value for key, value in values.items()}

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def unset(self, key: str) -> None:
        self.values.pop(key, None)


def session(python: str = sys.executable, **settings: str) -> Any:
    return SimpleNamespace(
        conf=Settings(**settings), sparkContext=SimpleNamespace(pythonExec=python)
    )


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        ({"spark_master": "local"}, 1),
        ({"spark_master": "local[3]"}, 3),
        ({"spark_master": "local[3, 4]"}, 3),
        ({"spark_master": "local-cluster[2,4,1024]"}, 8),
        (
            {"spark_master": "yarn", "spark_executor_instances": "5", "spark_executor_cores": "4"},
            20,
        ),
        ({"spark_master": "spark://host:7077"}, 16),
        ({"spark_master": "local[3]", "spark_default_parallelism": "9"}, 9),
    ],
)
def test_parallelism_is_read_from_settings(settings: dict[str, str], width: int) -> None:
    assert parallelism(session(**settings)) == width


def test_workers_left_to_the_default_are_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    spark = session("no-such-python3", spark_master="local[2]")
    ensure_workers(spark)
    assert spark.sparkContext.pythonExec == sys.executable


def test_workers_that_somebody_chose_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/sh")
    spark = session("/bin/sh", spark_master="local[2]")
    with pytest.raises(Unsupported, match=f"PYSPARK_PYTHON={sys.executable}"):
        ensure_workers(spark)


def test_workers_of_this_environment_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = session(spark_master="local[2]")
    ensure_workers(spark)
    assert spark.sparkContext.pythonExec == sys.executable


def test_workers_elsewhere_are_not_looked_at() -> None:
    ensure_workers(session("/opt/python3", spark_master="yarn"))


def test_settings_come_back_after_an_error() -> None:
    spark = session(a_kept="1", a_changed="2")
    with pytest.raises(KeyError), changed_settings(spark, {"a.changed": "3", "a.new": "4"}):
        assert spark.conf.values == {"a.kept": "1", "a.changed": "3", "a.new": "4"}
        raise KeyError
    assert spark.conf.values == {"a.kept": "1", "a.changed": "2"}
