"""A catalog that is a folder: databases are folders in it, tables are folders in those."""

import os
import re
from collections.abc import Iterator, Mapping

from lakewright.actions.create import CreatePlan, check_vacant, create_table
from lakewright.format.hudi.properties import PROPERTIES_PATH
from lakewright.model.errors import AlreadyExists, Invalid, NotFound, TableNotFound
from lakewright.model.table import TableDef, TableId
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state, table_def

DEFAULT_DATABASE = "default"
_DROPPED = ".lakewright/dropped"
_DATABASES = ".lakewright/databases"
_LINKS = ".lakewright/links"
_NAME = re.compile(r"[^\W][\w-]*")


def parse_table_name(name: str) -> TableId:
    """Read ``database.table``, or ``table`` in the default database."""
    database, dot, table = _text(name).rpartition(".")
    table_id = TableId(database if dot else DEFAULT_DATABASE, table)
    for part in (table_id.database, table_id.name):
        if not _NAME.fullmatch(part):
            raise Invalid(
                f"{name!r} is no table name.",
                next_step="Write 'database.table' with letters, digits, '_' and '-'.",
                name=name,
            )
    return table_id


def parse_database_name(name: str) -> str:
    """Return the name of a database where it is one."""
    if not _NAME.fullmatch(_text(name)):
        raise Invalid(
            f"{name!r} is no database name.", next_step="Use letters, digits, '_' and '-'."
        )
    return name


def _text(name: object) -> str:
    """Return a name as it is; what is no text is no name."""
    return name if isinstance(name, str) else ""


class FilesystemCatalog:
    """Tables below one root, found by their place: ``<root>/<database>/<table>``.

    A database is there because a table is, or because a mark says so: object stores know no
    empty folders. Dropping without cascade leaves the files and puts a mark beside them, so that
    the name is free of the table while its path still opens. A table elsewhere is known by a file
    that holds its location.
    """

    def __init__(self, root: str | os.PathLike[str], options: Mapping[str, str]) -> None:
        self._root = open_storage(root, options)
        self._options = options

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """See Catalog.create_database."""
        known = parse_database_name(name) in self.list_databases()
        # The mark decides between two creators; folders come from tables as well.
        if (known or not self._root.create(f"{_DATABASES}/{name}", b"")) and not if_not_exists:
            raise AlreadyExists(
                f"there is a database {name} in {self._root.uri} already.",
                next_step="Use it, or choose another name.",
                database=name,
            )

    def list_databases(self) -> Iterator[str]:
        """See Catalog.list_databases."""
        marks = {mark.path.rpartition("/")[2] for mark in self._root.list(_DATABASES)}
        # A dropped database may leave folders behind, which hold nothing.
        there = (
            name
            for name in self._names_of_databases()
            if name in marks or self._holds_files(name) or self._holds_files(f"{_LINKS}/{name}")
        )
        return iter(sorted({DEFAULT_DATABASE, *marks, *there}))

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """See Catalog.drop_database."""
        if parse_database_name(name) == DEFAULT_DATABASE:
            raise Invalid(f"the database {name} cannot be dropped.", next_step="Drop its tables.")
        if name not in self.list_databases():
            if if_exists:
                return
            raise NotFound(
                f"no database {name} in {self._root.uri}.",
                next_step=f"Known: {', '.join(self.list_databases())}.",
                database=name,
            )
        for table in list(self.list_tables(name)):
            if not cascade:
                raise Invalid(
                    f"the database {name} holds tables, such as {table}.",
                    next_step="Drop them first, or drop the database with cascade.",
                    database=name,
                )
            self.drop_table(table, cascade=True)
        if self._holds_files(name):
            raise Invalid(
                f"the folder of the database {name} holds files that belong to none of its tables.",
                next_step=f"Look into {self._root.locate(name)} and remove them.",
                database=name,
            )
        self._root.delete([f"{_DATABASES}/{name}"])

    def create_table(
        self, table: TableId, plan: CreatePlan, location: str | None = None
    ) -> TableDef:
        """See Catalog.create_table."""
        if self._link(table) is not None:
            raise self._taken(table)
        if location is not None:
            self._check_free(table)
            create_table(open_storage(location, self._options), plan)
            return self.register_table(table, location)
        storage = self._place(table)
        if self._is_dropped(table):
            if storage.stat(PROPERTIES_PATH) is not None:
                raise AlreadyExists(
                    f"the files of the dropped table {table} are still there.",
                    next_step="Drop it with cascade, which deletes them, or choose another name.",
                    table=str(table),
                )
            # Before the table is there, so that it never stands under the mark of the old one;
            # but not while files of the old one are left, which a drop still has to find.
            check_vacant(storage)
            self._root.delete([self._mark(table)])
        create_table(storage, plan)
        return table_def(open_state(storage))

    def register_table(self, table: TableId, location: str) -> TableDef:
        """See Catalog.register_table."""
        self._check_free(table)
        storage = open_storage(location, self._options)
        found = table_def(open_state(storage))
        if not self._root.create(f"{_LINKS}/{table.database}/{table.name}", storage.uri.encode()):
            raise self._taken(table)
        return found

    def load_table(self, table: TableId) -> TableDef:
        """See Catalog.load_table."""
        return table_def(open_state(self.open(table)))

    def open(self, table: TableId) -> Storage:
        """See Catalog.open."""
        place = f"{table.database}/{table.name}"
        if self._root.stat(f"{place}/{PROPERTIES_PATH}") is None:
            location = self._link(table)
            if location is not None:
                return open_storage(location, self._options)
            known = [str(t) for t in self.list_tables()]
            raise TableNotFound(
                f"no table {table} in {self._root.uri}.",
                next_step=f"Known: {', '.join(known[:20]) or 'none'}.",
                table=str(table),
            )
        if self._is_dropped(table):
            raise TableNotFound(
                f"table {table} was dropped; its files are still there.",
                next_step=f"Read them with lakewright.open_table({self._root.locate(place)!r}).",
                table=str(table),
            )
        return self._place(table)

    def list_tables(self, database: str | None = None) -> Iterator[TableId]:
        """See Catalog.list_tables."""
        for name in [database] if database else self._names_of_databases():
            linked = {f.path.rpartition("/")[2] for f in self._root.list(f"{_LINKS}/{name}")}
            folders = {f.rpartition("/")[2] for f in self._root.folders(name)}
            # A folder whose name is none for a table (a dot in it, say) could not be opened by it.
            names = sorted(found for found in linked | folders if _NAME.fullmatch(found))
            for table in (TableId(name, found) for found in names):
                path = f"{name}/{table.name}/{PROPERTIES_PATH}"
                if table.name in linked or (
                    self._root.stat(path) is not None and not self._is_dropped(table)
                ):
                    yield table

    def drop_table(self, table: TableId, *, cascade: bool, if_exists: bool = False) -> None:
        """See Catalog.drop_table.

        The mark comes first: a crash in the middle leaves a dropped table with files to
        delete, never a table with files missing; dropping it again with cascade goes on. A
        table elsewhere keeps its name until its files are gone.
        """
        location = self._link(table)
        if location is not None:
            if cascade:
                storage = open_storage(location, self._options)
                storage.delete(f.path for f in storage.list(recursive=True))
            self._root.delete([f"{_LINKS}/{table.database}/{table.name}"])
            return
        if not (cascade and self._is_dropped(table)):
            try:
                self.open(table)
            except TableNotFound:
                if if_exists:
                    return
                raise
        self._root.write(self._mark(table), b"")
        if cascade:
            place = f"{table.database}/{table.name}"
            self._root.delete(f.path for f in self._root.list(place, recursive=True))
            self._root.delete([self._mark(table)])

    def _check_free(self, table: TableId) -> None:
        path = f"{table.database}/{table.name}/{PROPERTIES_PATH}"
        if self._link(table) is not None or self._root.stat(path) is not None:
            raise self._taken(table)

    def _taken(self, table: TableId) -> AlreadyExists:
        return AlreadyExists(
            f"there is a table {table} in {self._root.uri} already.",
            next_step="Open it, or choose another name.",
            table=str(table),
        )

    def _link(self, table: TableId) -> str | None:
        try:
            return self._root.read(f"{_LINKS}/{table.database}/{table.name}").decode()
        except NotFound:
            return None

    def _names_of_databases(self) -> list[str]:
        folders = {name for name in self._root.folders() if _NAME.fullmatch(name)}
        links = {path.rpartition("/")[2] for path in self._root.folders(_LINKS)}
        return sorted(folders | links)

    def _place(self, table: TableId) -> Storage:
        return open_storage(self._root.locate(f"{table.database}/{table.name}"), self._options)

    def _mark(self, table: TableId) -> str:
        return f"{_DROPPED}/{table.database}/{table.name}"

    def _is_dropped(self, table: TableId) -> bool:
        return self._root.stat(self._mark(table)) is not None

    def _holds_files(self, folder: str) -> bool:
        return any(True for _ in self._root.walk(folder, sizes=False))
