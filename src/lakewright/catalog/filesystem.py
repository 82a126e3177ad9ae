"""A catalog that is a folder: databases are folders in it, tables are folders in those."""

import re
from collections.abc import Iterator, Mapping

from lakewright.actions.create import CreatePlan, create_table
from lakewright.format.hudi.properties import PROPERTIES_PATH
from lakewright.model.errors import Invalid, TableNotFound
from lakewright.model.table import TableDef, TableId
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state, table_def

DEFAULT_DATABASE = "default"
_DROPPED = ".lakewright/dropped"
_NAME = re.compile(r"[^\W][\w-]*")


def parse_table_name(name: str) -> TableId:
    """Read ``database.table``, or ``table`` in the default database."""
    database, _, table = name.rpartition(".")
    table_id = TableId(database or DEFAULT_DATABASE, table)
    for part in (table_id.database, table_id.name):
        if not _NAME.fullmatch(part):
            raise Invalid(
                f"{name!r} is no table name.",
                next_step="Write 'database.table' with letters, digits, '_' and '-'.",
                name=name,
            )
    return table_id


class FilesystemCatalog:
    """Tables below one root, found by their place: ``<root>/<database>/<table>``.

    Dropping without cascade leaves the files and puts a mark beside them, so that the name is
    free of the table while its path still opens.
    """

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        self._root = open_storage(root, options)
        self._options = options

    def create_table(self, table: TableId, plan: CreatePlan) -> TableDef:
        """See Catalog.create_table."""
        storage = self._place(table)
        create_table(storage, plan)
        self._root.delete([self._mark(table)])
        return table_def(open_state(storage))

    def load_table(self, table: TableId) -> TableDef:
        """See Catalog.load_table."""
        return table_def(open_state(self.open(table)))

    def open(self, table: TableId) -> Storage:
        """See Catalog.open."""
        place = f"{table.database}/{table.name}"
        if self._root.stat(f"{place}/{PROPERTIES_PATH}") is None:
            known = [str(t) for t in self.list_tables()]
            raise TableNotFound(
                f"no table {table} in {self._root.uri}.",
                next_step=f"Known: {', '.join(known[:20]) or 'none'}.",
                table=str(table),
            )
        if self._root.stat(self._mark(table)) is not None:
            raise TableNotFound(
                f"table {table} was dropped; its files are still there.",
                next_step=f"Read them with lakewright.open_table({self._root.locate(place)!r}).",
                table=str(table),
            )
        return self._place(table)

    def list_tables(self) -> Iterator[TableId]:
        """See Catalog.list_tables."""
        for database in self._root.folders():
            if database.startswith("."):
                continue
            for folder in self._root.folders(database):
                table = TableId(database, folder.rpartition("/")[2])
                if self._root.stat(f"{folder}/{PROPERTIES_PATH}") and not self._is_dropped(table):
                    yield table

    def drop_table(self, table: TableId, *, cascade: bool) -> None:
        """See Catalog.drop_table.

        The mark comes first: a crash in the middle leaves a dropped table with files to
        delete, never a table with files missing; dropping it again goes on.
        """
        if not self._is_dropped(table):
            self.open(table)
        self._root.write(self._mark(table), b"")
        if cascade:
            place = f"{table.database}/{table.name}"
            self._root.delete(f.path for f in self._root.list(place, recursive=True))
            self._root.delete([self._mark(table)])

    def _place(self, table: TableId) -> Storage:
        return open_storage(self._root.locate(f"{table.database}/{table.name}"), self._options)

    def _mark(self, table: TableId) -> str:
        return f"{_DROPPED}/{table.database}/{table.name}"

    def _is_dropped(self, table: TableId) -> bool:
        return self._root.stat(self._mark(table)) is not None
