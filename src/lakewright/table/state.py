"""A table as it stands at one moment: where it is, how it is set up, what has happened to it."""

from dataclasses import dataclass

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.properties import load_properties
from lakewright.model.schema import Struct
from lakewright.model.table import TableDef, TableId
from lakewright.storage.port import Storage
from lakewright.table.schemas import resolve_schema
from lakewright.timeline.load import load_timeline
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True)
class TableState:
    """Storage, configuration and timeline of a table, taken together; it does not change.

    Reading through one state is consistent whatever writers do meanwhile; ``refresh`` opens
    the table again.
    """

    storage: Storage
    config: TableConfig
    timeline: TimelineView

    def refresh(self) -> "TableState":
        """Take a new picture of the same table."""
        return open_state(self.storage)


def open_state(storage: Storage) -> TableState:
    """Open the table at the root of ``storage``; ``TableNotFound`` where there is none."""
    config = TableConfig.of(load_properties(storage))
    return TableState(storage, config, load_timeline(storage, config))


def table_schema(state: TableState, as_of: str | None = None) -> Struct:
    """Return the columns of the table, Hudi's own left out, as its readers see them.

    The newest completed write (up to ``as_of``) that carries a schema decides; maintenance
    carries copies and is asked last. Without any: a base file's footer, a log block, or the
    schema with which the table was created. A column that a key generator formats as a time
    is text to readers, as in Spark, whatever type its files have.
    """
    return resolve_schema(state.storage, state.config, state.timeline, as_of)


def table_def(state: TableState) -> TableDef:
    """Return the definition of the table: identity, place, schema, kind, keys, properties."""
    config = state.config
    return TableDef(
        table_id=TableId(config.database, config.name),
        base_path=state.storage.uri,
        schema=table_schema(state),
        table_type=config.table_type,
        version=config.version,
        record_key=config.record_key,
        partition_by=tuple(field.name for field in config.partition_fields),
        ordering=config.ordering,
        merge_mode=config.merge_mode,
        properties=config.properties,
    )
