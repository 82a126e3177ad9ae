"""The door to a lake: the one place that gives a Lake its catalog and its SQL."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakewright.api.lake import Lake
from lakewright.catalog.filesystem import FilesystemCatalog
from lakewright.interfaces.sql.run import SqlStatements
from lakewright.model.errors import Unsupported

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession


def connect(
    place: str | os.PathLike[str],
    *,
    token: str | None = None,
    options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
) -> Lake:
    """Open the lake in a folder; the folder need not exist yet.

    ``options`` are storage settings. With a Spark session queries and writes run on Spark, and
    ``sql()`` answers with DataFrames. ``token`` is for the address of a metastore server, which
    is refused: this build has none to talk to.
    """
    server = isinstance(place, str) and place.lower().startswith(("http://", "https://"))
    if server or token is not None:
        raise Unsupported(
            f"{place!r} is to be a metastore server: those are not known yet.",
            next_step="Open the lake's folder or URI: lakewright.connect('./lake').",
        )
    catalog = FilesystemCatalog(place, options or {})
    return Lake(catalog, spark=spark, statements=SqlStatements())
