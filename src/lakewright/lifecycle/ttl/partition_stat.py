"""What is known of each partition: the values, and the JSON text that keeps them with the table.

The text has one line per partition with three members: ``RelativePath``, ``LastModifiedTime`` (an
instant) and ``PartitionTotalFileSize``. Before them it says which instants it accounts for, so that
whoever refreshes it reads the others alone.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakewright.model.errors import Corrupt
from lakewright.model.instant import is_instant_time

#: How many partitions are written at a time.
_LINES = 4096


@dataclass(frozen=True, slots=True)
class PartitionStat:
    """One partition that holds files.

    ``last_modified`` is the requested time of the newest completed write that changed its rows;
    ``bytes`` counts base files and logs of the latest slices, and nothing that is older.
    """

    path: str
    last_modified: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """All partitions that hold files, by path, as of an instant."""

    instant: str
    partitions: Mapping[str, PartitionStat]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Statistics with what they account for.

    ``seen`` names the completed instants of the timeline that had been looked at, ``pending`` the
    writes that were under way then; both as ``<requested>_<completed>.<action>``, without the
    completed time for what is pending.
    """

    stats: PartitionStats
    seen: frozenset[str]
    pending: frozenset[str]


def encode(gathered: Gathered) -> Iterator[bytes]:
    """Write statistics as text, a piece at a time; partitions are sorted by path."""
    head = {"Instant": gathered.stats.instant, "Seen": sorted(gathered.seen)}
    text = json.dumps({**head, "Pending": sorted(gathered.pending)})
    yield f'{text[:-1]}, "Partitions": ['.encode()
    quote = json.JSONEncoder().encode
    lines: list[str] = []
    before = "\n"
    partitions = gathered.stats.partitions
    for path in sorted(partitions):
        stat = partitions[path]
        lines.append(
            f'{before}{{"RelativePath": {quote(path)}, '
            f'"LastModifiedTime": "{stat.last_modified}", '
            f'"PartitionTotalFileSize": {stat.bytes}}}'
        )
        before = ",\n"
        if len(lines) == _LINES:
            yield "".join(lines).encode()
            lines.clear()
    yield ("".join(lines) + "\n]}\n").encode()


def decode(data: bytes, path: str) -> Gathered:
    """Read statistics; ``Corrupt`` says what is wrong with the text."""
    # Very many partitions share very few times.
    times: dict[str, str] = {}

    def read(pairs: list[tuple[str, object]]) -> object:
        match held := dict(pairs):
            case {
                "RelativePath": str(partition),
                "LastModifiedTime": str(time),
                "PartitionTotalFileSize": int(size),
            } if size >= 0 and size is not True and size is not False:
                if time not in times:
                    if not is_instant_time(time):
                        raise ValueError(f"{time!r} is no instant")
                    times[time] = time
                return PartitionStat(partition, times[time], size)
        return held

    try:
        body = json.loads(data, object_pairs_hook=read)
    except (ValueError, RecursionError) as cause:
        raise _damaged(path, str(cause)) from cause
    match body:
        case {
            "Instant": str(instant),
            "Seen": list(seen),
            "Pending": list(pending),
            "Partitions": list(found),
        } if is_instant_time(instant) and all(isinstance(name, str) for name in (*seen, *pending)):
            partitions = {stat.path: stat for stat in found if isinstance(stat, PartitionStat)}
            if len(partitions) < len(found):
                raise _damaged(path, "a partition is named twice, or lacks one of its three facts")
            stats = PartitionStats(instant, partitions)
            return Gathered(stats, frozenset(seen), frozenset(pending))
    raise _damaged(path, "Instant, Seen, Pending and Partitions are expected")


def _damaged(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path}: the partition statistics cannot be read ({why}).",
        next_step="Gather them again; nothing is lost with the file.",
        path=path,
    )
