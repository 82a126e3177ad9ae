"""Columns that files call otherwise than the table does now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.format.arrow.evolve import Renames
from lakewright.format.arrow.nested import Rows
from lakewright.format.hudi.internal_schema import InternalSchema, load_history, renames, schema_at
from lakewright.model.lazy import lazy
from lakewright.table.state import TableState

#: Under this key a commit of a table with schema-on-read carries its numbered schema.
_NUMBERED = "latest_schema"


@dataclass(frozen=True)
class FileNames:
    """The names that one file has for the columns of the table; alike where nothing is said.

    A column that the file does not have has the empty name there, even if the file has one of
    the table's name: that one was dropped, and another column has its name now.
    """

    renamed: Renames = field(default_factory=dict)

    @lazy
    def _top(self) -> Mapping[str, str]:
        return {path[0]: name for path, name in self.renamed.items() if len(path) == 1}

    @lazy
    def inner(self) -> Renames:
        """The renamed members of structs, by their path in the table."""
        return {path: name for path, name in self.renamed.items() if len(path) > 1}

    def knows(self, path: tuple[str, ...]) -> bool:
        """Whether the file has a column at this path, under this very path."""
        return not any(path[:end] in self.renamed for end in range(1, len(path) + 1))

    def in_file(self, columns: Sequence[str]) -> Sequence[str]:
        """Return what the file calls these columns of the table."""
        if not self._top:
            return columns
        return [found for name in columns if (found := self._top.get(name, name))]

    def in_table(self, rows: Rows, columns: Sequence[str]) -> Rows:
        """Return rows read by ``in_file(columns)`` under the names that the table has."""
        if not self._top:
            return rows
        back = {self._top.get(name, name): name for name in columns}
        return rows.rename_columns([back[name] for name in rows.schema.names])


SAME = FileNames()


@dataclass(frozen=True, slots=True)
class NameHistory:
    """The numbered schemas of a table, oldest first, and the one that rows are read under."""

    schemas: tuple[InternalSchema, ...] = ()
    table: InternalSchema | None = None

    def at(self, instant: str) -> FileNames:
        """Return the names in a file that an instant wrote."""
        if self.table is None:
            return SAME
        there = schema_at(self.schemas, instant)
        if there is None or there.version == self.table.version:
            return SAME
        return FileNames(renames(self.table, there))


def name_history(state: TableState, as_of: str | None = None) -> NameHistory:
    """Find the numbered schemas of a table; most tables have none, and cost nothing here."""
    timeline = state.timeline
    newest = timeline.latest_data()
    if newest is None or _NUMBERED not in timeline.commit_metadata(newest).extra:
        return NameHistory()
    schemas = load_history(state.storage, timeline.is_committed)
    if not schemas:
        return NameHistory()
    return NameHistory(schemas, schemas[-1] if as_of is None else schema_at(schemas, as_of))
