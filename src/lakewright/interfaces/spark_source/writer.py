"""``df.write.format("lakewright")``: which way the rows of a write go."""

from dataclasses import replace

from pyspark.sql.datasource import DataSourceWriter
from pyspark.sql.types import StructType

from lakewright.actions.tasks.write_settings import SortMode, WriteSettings
from lakewright.actions.write.admission import admit
from lakewright.actions.write.begun import begin_write
from lakewright.actions.write.intake import write_options
from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.rows import ArrowRows
from lakewright.engine.spark.schema import from_spark_schema
from lakewright.index.layout import IndexLayout
from lakewright.interfaces.spark_source.direct import DirectWriter
from lakewright.interfaces.spark_source.staged import StagedWriter
from lakewright.interfaces.spark_source.write_options import WriteOptions
from lakewright.lifecycle.tending import wishes_after_write
from lakewright.model.schema import META_COLUMNS, Struct
from lakewright.model.writing import Operation
from lakewright.table.evolution import stored_schema, written_schema
from lakewright.table.state import TableState, open_state
from lakewright.timeline.storage_committer import StorageCommitter


def open_writer(options: WriteOptions, schema: StructType) -> DataSourceWriter:
    """Check table and columns, and return the writer; only then anything is begun.

    Inserts that need not know of each other's rows are written by the tasks themselves. All else
    is staged.
    """
    state = open_state(options.open_storage())
    request: WriteRequest[ArrowRows] = WriteRequest(options.operation, options=options.settings)
    layout, target = check_table(state, request, schema)
    wanted = write_options(state, request)
    settings = WriteSettings.of(wanted)
    wishes_after_write(wanted)  # what they cannot mean is refused before anything is begun
    if target is None or not _divides_freely(layout, settings, request):
        return StagedWriter(options)
    committer = StorageCommitter(state.storage, state.config, options.settings)
    begun = begin_write(state, request, target, committer, detached=True)
    # Tasks that know nothing of each other must not fill up the same small file.
    spec = replace(begun.spec, settings=replace(begun.spec.settings, small_file=0))
    return DirectWriter(replace(begun, spec=spec), dict(options.settings))


def check_table(
    state: TableState, request: WriteRequest[ArrowRows], schema: StructType
) -> tuple[IndexLayout, Struct | None]:
    """Refuse a table that cannot be written and columns that do not fit it.

    Returned are its index and the columns that it will have; None for deletes, which bring none.
    """
    layout = admit(state, request.options)
    if request.operation is Operation.DELETE:
        return layout, None
    columns = from_spark_schema(schema).without(frozenset(META_COLUMNS))
    return layout, written_schema(stored_schema(state), columns, state.config)


def _divides_freely(
    layout: IndexLayout, settings: WriteSettings, request: WriteRequest[ArrowRows]
) -> bool:
    gathers = request.operation is Operation.BULK_INSERT and settings.sort_mode is not SortMode.NONE
    return (
        layout.buckets is None
        and not request.looks_up
        and not settings.combine_on_insert
        and not gathers
    )
