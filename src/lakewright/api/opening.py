"""Opening a table by its path, without any catalog."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakewright.api.table import Table
from lakewright.storage.open import open_storage

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession


def open_table(
    uri: str | os.PathLike[str],
    *,
    options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
) -> Table:
    """Open the table at a path or URI.

    ``options`` are storage settings (credentials, endpoint); ``spark`` is the session that
    ``to_spark()`` uses when it is given none. ``TableNotFound`` where the path holds no table.
    """
    return Table(open_storage(uri, options or {}), spark=spark)
