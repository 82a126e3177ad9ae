"""What is known of each partition: the values, and the JSON text that keeps them with the table.

The text has one line per partition with three members: ``RelativePath``, ``LastModifiedTime`` (an
instant) and ``PartitionTotalFileSize``. Before them it says which instants it accounts for, so that
whoever refreshes it reads the others alone.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from lakewright.lifecycle.ttl.uncollected import uncollected
from lakewright.model.errors import Corrupt
from lakewright.model.instant import is_instant_time

#: How many partitions are written at a time.
_LINES = 4096
_OPENING = '"Partitions": ['
_CLOSING = "\n]}\n"
_LINE = re.compile(
    r',?\n\{"RelativePath": ("(?:[^"\\\x00-\x1f]|\\.)*"), "LastModifiedTime": "([0-9]+)", '
    r'"PartitionTotalFileSize": ([0-9]{1,19})\}',
    re.ASCII,
)


#: Characters of a line beside its three values and the comma before it.
_FRAME = len('\n{"RelativePath": , "LastModifiedTime": "", "PartitionTotalFileSize": }')


class PartitionStat(NamedTuple):
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
    yield f"{text[:-1]}, {_OPENING}".encode()
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
    try:
        text = data.decode()
        head, mark, lines = text.partition(_OPENING)
        partitions = _read_lines(lines) if mark else None
        # What is laid out in another way, by a hand for example, is read as any JSON.
        body = json.loads(text if partitions is None else f"{head}{_OPENING}]}}")
        stats = _read_objects(body) if partitions is None else partitions
    except (ValueError, RecursionError, KeyError, TypeError) as cause:
        raise _damaged(path, str(cause)) from cause
    match body:
        case {"Instant": str(instant), "Seen": list(seen), "Pending": list(pending)} if (
            is_instant_time(instant) and all(isinstance(name, str) for name in (*seen, *pending))
        ):
            return Gathered(PartitionStats(instant, stats), frozenset(seen), frozenset(pending))
    raise _damaged(path, "Instant, Seen, Pending and Partitions are expected")


@uncollected()
def _read_lines(text: str) -> dict[str, PartitionStat] | None:
    """Read partitions that are laid out as ``encode`` does it; None where they are not."""
    lines = _LINE.findall(text)
    # Whatever lies between two lines, or after the last, makes the text longer than they are.
    values = sum(map(len, chain.from_iterable(lines)))
    between = max(len(lines) - 1, 0) * len(",")
    if values + len(lines) * _FRAME + between + len(_CLOSING) != len(text):
        return None
    if not text.endswith(_CLOSING):
        return None
    times = _Times()
    found = {}
    for quoted, time, size in lines:
        path = json.loads(quoted) if "\\" in quoted else quoted[1:-1]
        found[path] = PartitionStat(path, times[time], int(size))
    if len(found) != len(lines):
        raise ValueError("a partition is named twice")
    return found


def _read_objects(body: object) -> dict[str, PartitionStat]:
    if not isinstance(body, dict):
        raise TypeError("it is no object")
    found: dict[str, PartitionStat] = {}
    times = _Times()
    for held in body["Partitions"]:
        match held:
            case {
                "RelativePath": str(path),
                "LastModifiedTime": str(time),
                "PartitionTotalFileSize": int(size),
            } if size >= 0 and not isinstance(size, bool) and path not in found:
                found[path] = PartitionStat(path, times[time], size)
            case _:
                raise ValueError("a partition is named twice, or lacks one of its three facts")
    return found


class _Times(dict[str, str]):
    """Times that were looked at, each kept once: very many partitions share very few."""

    def __missing__(self, time: str) -> str:
        if not is_instant_time(time):
            raise ValueError(f"{time!r} is no instant")
        self[time] = time
        return time


def _damaged(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path}: the partition statistics cannot be read ({why}).",
        next_step="Gather them again; nothing is lost with the file.",
        path=path,
    )
