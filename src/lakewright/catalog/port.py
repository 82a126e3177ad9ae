"""The catalog port: a table's life by name."""

from collections.abc import Iterator
from typing import Protocol

from lakewright.actions.create import CreatePlan
from lakewright.model.table import TableDef, TableId
from lakewright.storage.port import Storage


class Catalog(Protocol):
    """Creates, finds and drops databases and the tables in them."""

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create an empty database; ``AlreadyExists`` where there is one of this name."""
        ...

    def list_databases(self) -> Iterator[str]:
        """Stream the names of the databases, in order; ``default`` is always there."""
        ...

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database; one that holds tables only with ``cascade``, which deletes them."""
        ...

    def create_table(
        self, table: TableId, plan: CreatePlan, location: str | None = None
    ) -> TableDef:
        """Create a table where the catalog keeps its tables, or at a location of its own.

        ``AlreadyExists`` where there is a table of this name, or at this location. A database
        that is not there yet comes into being with its first table.
        """
        ...

    def register_table(self, table: TableId, location: str) -> TableDef:
        """Give a name to a table that is there already; ``AlreadyExists`` where it is taken."""
        ...

    def load_table(self, table: TableId) -> TableDef:
        """Return the definition of a table; ``TableNotFound`` where there is none."""
        ...

    def open(self, table: TableId) -> Storage:
        """Return the storage that holds a table."""
        ...

    def list_tables(self, database: str | None = None) -> Iterator[TableId]:
        """Stream the names of the tables, in order, of one database or of all."""
        ...

    def drop_table(self, table: TableId, *, cascade: bool, if_exists: bool = False) -> None:
        """Forget a table; with ``cascade`` delete its data and metadata too, wherever they lie.

        ``TableNotFound`` where there is none, unless ``if_exists``.
        """
        ...
