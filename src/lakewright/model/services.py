"""Table services: what they are called, and what one of them did."""

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.model.instant import Instant


class Service(StrEnum):
    """What can be done for a table; all but archiving and TTL waits on the timeline as a plan."""

    COMPACTION = "compaction"
    LOG_COMPACTION = "log compaction"
    CLUSTERING = "clustering"
    CLEANING = "cleaning"
    ARCHIVING = "archiving"
    TTL = "ttl"


@dataclass(frozen=True, slots=True)
class PartitionServed:
    """What a service did to one partition."""

    groups: int = 0
    files_read: int = 0
    files_written: int = 0
    files_deleted: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_deleted: int = 0
    rows: int = 0

    def __add__(self, other: "PartitionServed") -> "PartitionServed":
        pairs = zip(self.counts(), other.counts(), strict=True)
        return PartitionServed(*(mine + theirs for mine, theirs in pairs))

    def counts(self) -> tuple[int, ...]:
        """The counts in the order of the fields."""
        return tuple(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """What a service did; ``instant`` is None where there was nothing to do."""

    service: Service
    instant: Instant | None
    partitions: Mapping[str, PartitionServed] = field(default_factory=dict)

    @property
    def total(self) -> PartitionServed:
        """The sums over all partitions."""
        return sum(self.partitions.values(), PartitionServed())

    def __str__(self) -> str:
        if self.instant is None:
            return f"{self.service}: nothing to do"
        sums = self.total
        done = (
            f"{sums.files_deleted} files deleted, {sums.bytes_deleted} bytes"
            if self.service is Service.CLEANING
            else f"{sums.groups} groups, {sums.files_read} files of {sums.bytes_read} bytes into "
            f"{sums.files_written} of {sums.bytes_written}, {sums.rows} rows"
        )
        return f"{self.service} {self.instant.requested}: {done}; {len(self.partitions)} partitions"

    def __rich_repr__(self) -> Iterator[tuple[object, ...]]:
        yield "service", self.service.value
        yield "instant", None if self.instant is None else self.instant.requested
        sums = self.total
        yield from ((name, getattr(sums, name), 0) for name in PartitionServed.__slots__)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{n.replace('_', ' ')}</th>" for n in PartitionServed.__slots__)
        rows = "".join(
            f"<tr><td>{html.escape(path) or '(table)'}</td>"
            + "".join(f"<td>{count}</td>" for count in served.counts())
            + "</tr>"
            for path, served in sorted(self.partitions.items())
        )
        when = "nothing to do" if self.instant is None else self.instant.requested
        return f"<b>{self.service}</b> {when}<table><tr><th>partition</th>{head}</tr>{rows}</table>"


class Outcome(StrEnum):
    """What became of a service that ran by itself."""

    DONE = "done"
    PLANNED = "planned"
    DUE = "due"
    NOTHING = "nothing to do"
    NOT_DUE = "not due"
    LEFT = "left to others"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServiceRun:
    """What a service that runs by itself did for a table, or why it did not.

    ``service`` is None where the whole table was left alone, or could not be opened. ``why`` is
    what made it due, or what kept it. ``did`` says what was done, ``counts`` has the sums, and
    ``instant`` is where it stands on the timeline.
    """

    table: str
    service: Service | None
    outcome: Outcome
    why: str
    instant: Instant | None = None
    did: str = ""
    counts: PartitionServed = PartitionServed()
    seconds: float = 0.0

    def __str__(self) -> str:
        what = "services" if self.service is None else self.service.value
        said = "; ".join(part for part in (self.did, self.why) if part)
        return f"{self.table}: {what} {self.outcome}{': ' if said else ''}{said}"

    def facts(self) -> dict[str, object]:
        """Return it for programs: names and plain values, counts of 0 left out."""
        found: dict[str, object] = {
            "table": self.table,
            "service": None if self.service is None else self.service.value,
            "outcome": self.outcome.value,
            "why": self.why,
            "instant": None if self.instant is None else self.instant.requested,
            "did": self.did,
            "seconds": round(self.seconds, 3),
        }
        counts = ((name, getattr(self.counts, name)) for name in PartitionServed.__slots__)
        return {**found, **{name: count for name, count in counts if count}}

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(self.facts(), ensure_ascii=False)
