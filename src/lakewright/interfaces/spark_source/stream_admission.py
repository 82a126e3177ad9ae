"""The stream reader for Spark 4.2 and later, which says how much a micro-batch may take."""

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from lakewright.actions.follow import LATEST, first_offset
from lakewright.interfaces.spark_source.stream_reader import StreamReader, offset_of


class AdmittingStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """Takes ``max_instants`` commits per micro-batch.

    Spark knows limits of rows, bytes and files only; a commit travels as one of its files.
    """

    _target: str | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set."""
        limit = self._source.follow.limit
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """Return the end of the next micro-batch; ``start`` where nothing is new."""
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        return offset_of(self._next(start["completed"], most, self._target))

    def reportLatestOffset(self) -> dict[str, str] | None:
        """Return the end of all there is, for the progress of the query."""
        return offset_of(self._newest())

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of a query that reads what is available now."""
        self._target = first_offset(self._source.state(), LATEST)
