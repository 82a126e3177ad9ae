"""When partitions were made: by their metadata files, and later where they were dropped since.

A partition that was dropped keeps its metadata file until it is cleaned. Rows that came to it since
made it anew, so that the old time does not count for them, and so did the commit of an undo.
"""

import logging
from collections.abc import Iterable

from lakewright.format.hudi.metadata.commit import UNDO_ENTRY, CommitMetadata
from lakewright.format.hudi.partition_metadata import (
    PARTITION_METADATA_NAME,
    PARTITION_METADATA_PARQUET_NAME,
    decode_partition_metadata,
)
from lakewright.lifecycle.ttl.last_changes import changes_rows, written_partitions
from lakewright.model.errors import Corrupt, NotFound
from lakewright.model.logs import facts
from lakewright.storage.streams import map_bounded
from lakewright.table.state import TableState

log = logging.getLogger(__name__)

#: Files that are read at the same time.
_READS = 16
_NAMES = (PARTITION_METADATA_NAME, PARTITION_METADATA_PARQUET_NAME)


def creation_times(state: TableState, partitions: Iterable[str]) -> dict[str, str | None]:
    """Return the instant that made each of the partitions; None where nobody knows it any more."""
    paths = list(partitions)

    def read(partition: str) -> str | None:
        return _recorded(state, partition)

    made = dict(zip(paths, map_bounded(read, paths, threads=_READS), strict=True))
    _count_drops(state, made)
    return made


def _recorded(state: TableState, partition: str) -> str | None:
    for name in _NAMES:
        path = f"{partition}/{name}" if partition else name
        try:
            return decode_partition_metadata(state.storage.read(path), path).commit_time
        except NotFound:
            continue
        except Corrupt as damage:
            log.warning(
                "when a partition was made cannot be read",
                extra=facts(partition=partition, why=str(damage)),
            )
            return None
    return None


def _count_drops(state: TableState, made: dict[str, str | None]) -> None:
    """Put in the time of the first write after the last drop, where a partition was dropped."""
    dropped: set[str] = set()
    for instant, body in state.timeline.commits(state.timeline.data()):
        if UNDO_ENTRY in body.extra:
            dropped.update(partition for partition in body.write_stats if partition in made)
        gone = _dropped_by(body) if changes_rows(body) else frozenset()
        for partition in written_partitions(body):
            if partition not in made:
                continue
            if partition in gone:
                dropped.add(partition)
            elif partition in dropped:
                dropped.discard(partition)
                made[partition] = max(made[partition] or "", instant.requested)


def _dropped_by(body: CommitMetadata) -> frozenset[str]:
    """Return the partitions that a commit emptied."""
    return frozenset(
        partition
        for partition, groups in body.replaced.items()
        if groups and not any(stat.path for stat in body.write_stats.get(partition, ()))
    )
