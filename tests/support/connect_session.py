"""Do several things over one session of Spark Connect and print what came; run as a script.

The argument is JSON: the name of each part of ``PARTS``, and the list of its arguments. What is
printed is JSON, too: by the name of a part what it found, or how it failed. A Connect session
cannot live in a process that has a classic one, and each has a server of its own, which takes
longer to start than the parts to run; so tests start this once, for all of them.
"""

import json
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from support import connect_executor, connect_reads, connect_writes

PARTS: dict[str, Callable[..., Any]] = {
    "reads": connect_reads.found,
    "writes": connect_writes.found,
    "executor": connect_executor.found,
}
ZONE = "spark.sql.session.timeZone"
#: Parts whose session is not in UTC.
ZONES = {"executor": "America/New_York"}


def main(wanted: dict[str, list[Any]]) -> None:
    warnings.simplefilter("ignore")
    # Tasks that fail are tried again, which the session of the other tests does not do.
    builder = SparkSession.builder.remote("local[2,3]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    found: dict[str, Any] = {}
    for name, arguments in wanted.items():
        spark.conf.set(ZONE, ZONES.get(name, "UTC"))
        try:
            found[name] = PARTS[name](spark, *arguments)
        except Exception:  # noqa: BLE001  (told, and the other parts go on)
            found[name] = {"failed": traceback.format_exc()}
    print(json.dumps(found))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
