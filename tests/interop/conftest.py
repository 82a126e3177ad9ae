"""A session of Spark 3.5 that holds real Hudi; ``./dev interop`` says where its jar lies."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import quick_hadoop

HUDI = "hudi-spark3.5-bundle_2.12"
NEWEST = "1.2.0"
# Hundreds of jobs over a handful of rows each: to compile their plans never pays.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # A young generation of the usual size is full, and collected, several times a second; room for
    # compiled code is short without the optimising compiler, and swept; and one class of Hudi
    # starts two JVMs to learn how large objects are.
    "spark.driver.extraJavaOptions": "-Xmn1g -XX:ReservedCodeCacheSize=256m "
    "-Djol.skipHotspotSAAttach=true",
}
# By default the filter of each file has room for 60,000 keys, which is most of the file.
DEFAULTS = {
    "hoodie.index.bloom.num_entries": "64",
    "hoodie.bloom.index.filter.dynamic.max.entries": "256",
}


def release() -> str:
    """The release of Hudi that the run asks for."""
    return os.environ.get("LAKEWRIGHT_HUDI", NEWEST)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In CI, older releases meet the first case of every test, the newest all but the rest.

    ``./dev interop`` elsewhere leaves nothing out.
    """
    if "CI" not in os.environ:
        return
    here = Path(__file__).parent
    met: set[tuple[Path, str]] = set()
    kept, left = [], []
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        again = test in met if release() != NEWEST else item.get_closest_marker("rest")
        (left if here in item.path.parents and again else kept).append(item)
        met.add(test)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


@pytest.fixture(scope="session")
def hudi_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark with the Hudi release that the run asks for."""
    jars = os.environ.get("LAKEWRIGHT_JARS")
    if jars is None:
        pytest.skip("no Hudi jar; run ./dev interop")
    import pyspark
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    defaults = "".join(f"{key}={value}\n" for key, value in DEFAULTS.items())
    (folder / "hudi-defaults.conf").write_text(defaults)
    os.environ["HUDI_CONF_DIR"] = str(folder)
    quick_hadoop.shorten_settings(Path(pyspark.__file__).parent / "jars", folder)
    jar = Path(jars) / f"{HUDI}-{release()}.jar"
    builder = SparkSession.builder.master("local[2]").appName("lakewright-interop")
    for key, value in {
        **QUICK,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": str(folder),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.jars": str(jar),
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.local.dir": str(folder / "local"),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    quick_hadoop.use_quick_files(session)
    yield session
    session.stop()
