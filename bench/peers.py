"""The peers that run on Spark: where they are, and a session that has them loaded."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]


def peers(names: Sequence[str]) -> tuple[str | None, list[Path]]:
    """Return the interpreter with PySpark 3.5 and the jars of the peers, as far as there are."""
    python = os.environ.get("LAKEWRIGHT_INTEROP_PYTHON")
    folder = Path(os.environ.get("LAKEWRIGHT_JARS", ROOT / ".dev" / "jars"))
    jars = [folder / name for name in names if (folder / name).exists()]
    for name in names:
        if folder / name not in jars:
            print(f"PEER LEFT OUT: {name} is not in {folder}", file=sys.stderr)
    if python is None:
        print("PEERS LEFT OUT: no environment with PySpark 3.5", file=sys.stderr)
    return python, jars


def figures_of(python: str, script: str, arguments: Sequence[object]) -> dict[str, Any]:
    """Run a script of this folder in another interpreter; return the JSON of its last line."""
    command = [python, str(Path(__file__).with_name(script)), *map(str, arguments)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK")}
    # Workers are woken by a function of a module in this folder.
    paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def session(
    jars: Sequence[Path], folder: Path, iceberg: Path, more: Mapping[str, str]
) -> "SparkSession":
    """Return a session of two cores, with the peers' jars in it.

    ``iceberg`` is the folder of Iceberg's tables; ``more`` are further settings.
    """
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **more,
    }
    extensions = []
    names = " ".join(jar.name for jar in jars)
    if "hudi" in names:
        extensions.append("org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        settings["spark.serializer"] = "org.apache.spark.serializer.KryoSerializer"
        settings["spark.kryo.registrator"] = "org.apache.spark.HoodieSparkKryoRegistrar"
    if "iceberg" in names:
        extensions.append("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        settings["spark.sql.catalog.ice"] = "org.apache.iceberg.spark.SparkCatalog"
        settings["spark.sql.catalog.ice.type"] = "hadoop"
        settings["spark.sql.catalog.ice.warehouse"] = str(iceberg)
    if "delta" in names:
        extensions.append("io.delta.sql.DeltaSparkSessionExtension")
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        settings["spark.sql.catalog.spark_catalog"] = catalog
    if jars:
        settings["spark.jars"] = ",".join(map(str, jars))
        settings["spark.sql.extensions"] = ",".join(extensions)
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
