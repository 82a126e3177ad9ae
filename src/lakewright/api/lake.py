"""Lake: a catalog and the tables in it."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, Unpack

import pyarrow as pa

from lakewright.api.arguments import text_of
from lakewright.api.creating import CreateOptions, plan_table
from lakewright.api.table import Table
from lakewright.catalog.filesystem import parse_table_name
from lakewright.catalog.port import Catalog
from lakewright.lifecycle.plans.records import PlanRecord
from lakewright.model.errors import AlreadyExists, Unsupported

if TYPE_CHECKING:
    from lakewright.engine.spark.names import DataFrame, SparkSession


class Statements(Protocol):
    """Runs SQL over a lake."""

    def run(self, lake: "Lake", text: str) -> "pa.Table | DataFrame":
        """Carry out one statement or several; return the answer of the last."""
        ...


class Lake:
    """Tables by name."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        spark: "SparkSession | None" = None,
        statements: Statements | None = None,
    ) -> None:
        self._catalog = catalog
        self._spark = spark
        self._statements = statements

    @property
    def spark(self) -> "SparkSession | None":
        """The Spark session that the lake was opened with."""
        return self._spark

    def sql(self, text: str) -> "pa.Table | DataFrame":
        """Carry out SQL: statements about tables, queries, CALL; several with ``;`` between.

        The answer of the last statement is an Arrow table, or a Spark DataFrame where the lake
        has a session. Each statement sees what was committed before it.
        """
        if self._statements is None:
            raise Unsupported(
                "this lake was made without SQL.", next_step="Open it with lakewright.connect()."
            )
        return self._statements.run(self, text_of("text", text))

    def create_table(
        self,
        name: str,
        *,
        schema: object,
        key: str | Sequence[str] | None,
        if_not_exists: bool = False,
        location: str | os.PathLike[str] | None = None,
        **details: Unpack[CreateOptions],
    ) -> Table:
        """Create an empty table; the arguments are those of ``lakewright.create_table``.

        With ``if_not_exists`` a table of this name is returned as it is. ``location`` is where
        the table lies, if not in the lake's own folder.
        """
        table = parse_table_name(name)
        plan = plan_table(table, schema, key, details)
        try:
            self._catalog.create_table(table, plan, None if location is None else _place(location))
        except AlreadyExists:
            if not if_not_exists:
                raise
        return self.table(name)

    def register_table(self, name: str, location: str | os.PathLike[str]) -> Table:
        """Give a name in this lake to a table that lies elsewhere."""
        self._catalog.register_table(parse_table_name(name), _place(location))
        return self.table(name)

    def table(self, name: str) -> Table:
        """Open the table of this name; ``TableNotFound`` names the known ones."""
        table = parse_table_name(name)
        return Table(self._catalog.open(table), name=str(table), spark=self._spark)

    def tables(self) -> list[str]:
        """Return the names of all tables, in order."""
        return [str(table) for table in self._catalog.list_tables()]

    def drop_table(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Forget a table; with ``cascade`` its data and metadata are deleted too."""
        self._catalog.drop_table(parse_table_name(name), cascade=cascade, if_exists=if_exists)

    def plans(self) -> Iterator[PlanRecord]:
        """Stream the plans of all tables with what came of them, table by table, newest first."""
        for name in self.tables():
            yield from self.table(name).plans()

    def databases(self) -> list[str]:
        """Return the names of all databases, in order."""
        return list(self._catalog.list_databases())

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create an empty database; tables also bring theirs into being."""
        self._catalog.create_database(name, if_not_exists=if_not_exists)

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database; one that holds tables only with ``cascade``, which deletes them."""
        self._catalog.drop_database(name, if_exists=if_exists, cascade=cascade)


def _place(location: object) -> str:
    path = os.fspath(location) if isinstance(location, os.PathLike) else location
    return text_of("location", path)
