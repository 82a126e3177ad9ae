"""Scan: one query over one snapshot of a table, run when its rows are asked for."""

import html
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan
from lakewright.engine.local.count import count_rows
from lakewright.engine.local.scan import scan_batches
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.extras import load_extra
from lakewright.model.lazy import lazy
from lakewright.model.logs import facts
from lakewright.table.state import TableState

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

    from lakewright.engine.spark.names import DataFrame, SparkSession

log = logging.getLogger(__name__)


class Scan:
    """A query that has not run yet.

    It is pinned to the timeline as it stood when the scan was made: however often and however
    late its rows are asked for, they are those of that moment.
    """

    def __init__(
        self, state: TableState, request: ScanRequest, *, name: str, spark: "SparkSession | None"
    ) -> None:
        self._state = state
        self._request = request
        self._name = name
        self._spark = spark

    @lazy
    def _plan(self) -> ScanPlan:
        plan = plan_scan(self._state, self._request)
        done = facts(table=self._name, query=self._request.describe(), slices=len(plan.tasks))
        log.info("scan planned", extra=done)
        return plan

    def plan(self) -> ScanPlan:
        """Return the file splits that will be read, and what was pruned, as a value."""
        return self._plan

    def explain(self) -> str:
        """Say in words which partitions and files are read, which were pruned, and why."""
        return self._plan.explain()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return to_arrow_schema(self._plan.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows as Arrow batches, in bounded memory; their order is not promised."""
        return scan_batches(self._plan)

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the rows as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows to any library that knows Arrow's stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Read all rows into one Arrow table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self) -> "pandas.DataFrame":
        """Read all rows into a pandas frame."""
        load_extra("pandas", "pandas", "to_pandas()")
        rows = self.to_arrow()
        shape = _for_pandas(rows.schema)
        frame: pandas.DataFrame = (rows if shape == rows.schema else rows.cast(shape)).to_pandas()
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """Read all rows into a polars frame."""
        module = load_extra("polars", "polars", "to_polars()")
        frame: polars.DataFrame = module.from_arrow(self.to_arrow())
        return frame

    def to_duckdb(
        self, connection: "duckdb.DuckDBPyConnection | None" = None
    ) -> "duckdb.DuckDBPyRelation":
        """Return the rows as a DuckDB relation over an Arrow table.

        DuckDB needs the package ``pytz`` to make Python values of times with a zone, as in
        ``fetchall()``; it does not bring it along.
        """
        module = load_extra("duckdb", "duckdb", "to_duckdb()")
        relation: duckdb.DuckDBPyRelation = (connection or module).from_arrow(self.to_arrow())
        return relation

    def to_spark(self, spark: "SparkSession | None" = None) -> "DataFrame":
        """Return the rows as one Spark DataFrame; nothing is read until Spark runs it.

        Without ``spark`` the session that the table was opened with is used, or the active one.
        """
        load_extra("pyspark", "spark", "to_spark()")
        from lakewright.engine.spark.scan import to_spark
        from lakewright.engine.spark.session import session_or_active

        return to_spark(self._plan, session_or_active(spark or self._spark))

    def count(self) -> int:
        """Count the rows, from file footers alone where that is exact."""
        return count_rows(self._plan)

    def __repr__(self) -> str:
        return f"Scan({self._name}, {self._request.describe()})"

    def _repr_html_(self) -> str:
        head = html.escape(f"{self._name}: {self._request.describe()}")
        return f"<b>Scan</b> {head}<pre>{html.escape(self.explain())}</pre>"


def _for_pandas(schema: pa.Schema) -> pa.Schema:
    """Return the columns with bytes of any length where they were fixed: the values are the same.

    Arrow makes no pandas column of a list of fixed ones.
    """
    return pa.schema([field.with_type(_any_length(field.type)) for field in schema])


def _any_length(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_any_length(kind.value_type)))
    if pa.types.is_map(kind):
        item = kind.item_field.with_type(_any_length(kind.item_type))
        return pa.map_(kind.key_field, item)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_any_length(field.type)) for field in kind])
    return kind
