"""The class behind ``format("lakewright")``."""

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from lakewright.actions.scan import ScanPlan, plan_scan, result_schema
from lakewright.engine.spark.schema import nullable, to_spark_schema
from lakewright.interfaces.spark_source.options import read_request, shape_request
from lakewright.interfaces.spark_source.reader import LakewrightReader
from lakewright.interfaces.spark_source.stream_reader import PlainStreamReader, Source
from lakewright.interfaces.spark_source.write_options import WriteOptions
from lakewright.model.errors import InvalidOption
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state


class LakewrightSource(DataSource):
    """A table by its path, as a batch or a stream."""

    @classmethod
    def name(cls) -> str:
        """The word that goes into ``format(...)``."""
        return "lakewright"

    def schema(self) -> StructType:
        """Return the columns of the rows; Spark asks before it says what for."""
        told, request = shape_request(self.options)
        state = open_state(open_storage(told.path, told.storage))
        request = request.timed(state.config.timezone)
        return to_spark_schema(nullable(result_schema(state, request)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the table as it stands now."""
        return LakewrightReader(plan_from_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of what is new in the table."""
        source = Source.of(self.options)
        try:
            from lakewright.interfaces.spark_source.stream_admission import AdmittingStreamReader
        except ImportError:
            if source.follow.limit is not None:
                raise InvalidOption(
                    "max_instants needs Spark 4.2 or later.",
                    next_step="Leave it out: every micro-batch takes all there is.",
                    option="max_instants",
                ) from None
            return PlainStreamReader(source, schema)
        return AdmittingStreamReader(source, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of one batch; options and columns are checked before it begins."""
        from lakewright.interfaces.spark_source.writer import open_writer

        return open_writer(WriteOptions.of(self.options, overwrite=overwrite), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of micro-batches."""
        from lakewright.interfaces.spark_source.sink import StreamSink

        options = WriteOptions.of(self.options, overwrite=overwrite, append="insert")
        return StreamSink(options, schema)


def plan_from_options(options: Mapping[str, str]) -> ScanPlan:
    """Plan the scan that the options of a Spark reader describe."""
    told, request = read_request(options)
    state = open_state(open_storage(told.path, told.storage))
    return plan_scan(state, request.timed(state.config.timezone))
