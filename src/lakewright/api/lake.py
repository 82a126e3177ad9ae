"""Lake: a catalog and the tables in it."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from lakewright.api.creating import CreateOptions, plan_table
from lakewright.api.table import Table
from lakewright.catalog.filesystem import FilesystemCatalog, parse_table_name
from lakewright.catalog.port import Catalog

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession


class Lake:
    """Tables by name."""

    def __init__(self, catalog: Catalog, *, spark: "SparkSession | None" = None) -> None:
        self._catalog = catalog
        self._spark = spark

    def create_table(
        self,
        name: str,
        *,
        schema: object,
        key: str | Sequence[str],
        **details: Unpack[CreateOptions],
    ) -> Table:
        """Create an empty table; the arguments are those of ``lakewright.create_table``."""
        table = parse_table_name(name)
        self._catalog.create_table(table, plan_table(table, schema, key, details))
        return self.table(name)

    def table(self, name: str) -> Table:
        """Open the table of this name; ``TableNotFound`` names the known ones."""
        table = parse_table_name(name)
        return Table(self._catalog.open(table), name=str(table), spark=self._spark)

    def tables(self) -> list[str]:
        """Return the names of all tables, in order."""
        return [str(table) for table in self._catalog.list_tables()]

    def drop_table(self, name: str, *, cascade: bool = False) -> None:
        """Forget a table; with ``cascade`` its data and metadata are deleted too."""
        self._catalog.drop_table(parse_table_name(name), cascade=cascade)


def connect(
    place: str | os.PathLike[str],
    *,
    options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
) -> Lake:
    """Open the lake in a folder; the folder need not exist yet."""
    return Lake(FilesystemCatalog(os.fspath(place), options or {}), spark=spark)
