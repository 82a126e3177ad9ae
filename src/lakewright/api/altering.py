"""The verbs that change what a table is; ``Table`` has them."""

from collections.abc import Mapping

from lakewright.actions.alter import commit_schema, extended, set_properties, widened
from lakewright.api.arguments import text_of
from lakewright.api.schemas import read_schema
from lakewright.api.writing import Writable
from lakewright.model.errors import Invalid
from lakewright.model.instant import Instant
from lakewright.model.schema import Struct
from lakewright.table.state import TableState
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.storage_committer import StorageCommitter


class Alterable(Writable):
    """Columns and settings of a table that exists.

    Columns can be added, and their types widened; to drop or rename one needs files to be
    rewritten, which is a new table.
    """

    def add_columns(self, columns: object) -> Instant:
        """Add nullable columns at the end; ``columns`` is Arrow, Spark, Avro or DDL text.

        Rows that are there have null in them. Rows that bring new columns add them too.
        """
        state = self._state()
        return self._commit_schema(state, extended(state, tuple(read_schema(columns))))

    def widen_column(self, column: str, to: object) -> Instant:
        """Give a column a wider type: int to long, float to double, a number to text, and so on.

        ``to`` is SQL's name of the type, or a schema of this one column.
        """
        state = self._state()
        quoted = text_of("column", column).replace("`", "``")
        wanted = read_schema(f"`{quoted}` {to}" if isinstance(to, str) else to)
        return self._commit_schema(state, widened(state, column, wanted.fields[0].type))

    def set_properties(self, changes: Mapping[str, str | None], *, if_exists: bool = True) -> None:
        """Change stored settings of the table; None removes one. What files depend on is fixed."""
        _check_mapping(changes)
        state = self._state()
        lock = open_lock(state.storage, {**state.storage.options, **state.config.properties})
        set_properties(state, changes, lock, if_exists=if_exists)

    def _commit_schema(self, state: TableState, schema: Struct) -> Instant:
        options = {**state.storage.options, **state.config.properties}
        return commit_schema(state, schema, StorageCommitter(state.storage, state.config, options))


def _check_mapping(changes: object) -> None:
    if not (isinstance(changes, Mapping) and all(isinstance(key, str) for key in changes)):
        raise Invalid(
            f"changes={changes!r} is no mapping from names to texts.",
            next_step="Give {'hoodie.parquet.small.file.limit': '0'}, say.",
        )
