"""The catalog port: a table's life by name."""

from collections.abc import Iterator
from typing import Protocol

from lakewright.actions.create import CreatePlan
from lakewright.model.table import TableDef, TableId
from lakewright.storage.port import Storage


class Catalog(Protocol):
    """Creates, finds and drops tables by name."""

    def create_table(self, table: TableId, plan: CreatePlan) -> TableDef:
        """Create a table where the catalog keeps its tables; ``AlreadyExists`` where one is."""
        ...

    def load_table(self, table: TableId) -> TableDef:
        """Return the definition of a table; ``TableNotFound`` where there is none."""
        ...

    def open(self, table: TableId) -> Storage:
        """Return the storage that holds a table."""
        ...

    def list_tables(self) -> Iterator[TableId]:
        """Stream the names of the tables, in order."""
        ...

    def drop_table(self, table: TableId, *, cascade: bool) -> None:
        """Forget a table; with ``cascade`` delete its data and metadata too."""
        ...
