"""The door to a lake: the one place that gives a Lake its catalog and its SQL."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakewright.api.lake import Lake
from lakewright.catalog.filesystem import FilesystemCatalog
from lakewright.interfaces.sql.run import SqlStatements

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession


def connect(
    place: str | os.PathLike[str],
    *,
    options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
) -> Lake:
    """Open the lake in a folder; the folder need not exist yet.

    ``options`` are storage settings. With a Spark session queries and writes run on Spark, and
    ``sql()`` answers with DataFrames.
    """
    catalog = FilesystemCatalog(os.fspath(place), options or {})
    return Lake(catalog, spark=spark, statements=SqlStatements())
