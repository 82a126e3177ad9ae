"""Which slices a compaction takes, by Hudi's strategies, out of a stream of any length.

What is held is bounded by the plan that comes out: a slice that could not be in it any more is
forgotten as soon as that is known.
"""

import datetime as dt
import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from lakewright.actions.services.compaction_options import PlanSettings, Strategy
from lakewright.format.hudi.metadata.compaction import CompactionOperation
from lakewright.model.files import FileSlice

_DATE = re.compile(r"([0-9]{4})[-/]?([0-9]{2})[-/]?([0-9]{2})(?![0-9])", re.ASCII)
_KEYS = re.compile(r"(^|/)[^/=]*=")
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice that has logs; ``new_base`` is how large a base file of a group without one gets."""

    piece: FileSlice
    new_base: int

    @property
    def log_bytes(self) -> int:
        """Bytes of the logs."""
        return sum(log.size for log in self.piece.logs if log.size > 0)

    @property
    def base_bytes(self) -> int:
        """Bytes of the base file, 0 where there is none."""
        base = self.piece.base
        return base.size if base is not None and base.size > 0 else 0

    @property
    def bytes_in(self) -> int:
        """Bytes to read."""
        return self.base_bytes + self.log_bytes

    @property
    def bytes_out(self) -> int:
        """Bytes to write, about: as many as the old base file, else the most that one may have."""
        return self.base_bytes if self.piece.base is not None else self.new_base

    @property
    def io_bytes(self) -> int:
        """Bytes to read and write, about."""
        return self.bytes_in + self.bytes_out

    def operation(self) -> CompactionOperation:
        """Return what a plan says of the slice, with the figures that Hudi writes there."""
        piece = self.piece
        read, written = self.bytes_in // _MB, self.bytes_out // _MB
        return CompactionOperation(
            base_instant=piece.base_instant,
            log_files=tuple(log.name for log in piece.logs),
            base_file=None if piece.base is None else piece.base.name,
            file_id=piece.group.file_id,
            partition=piece.group.partition,
            metrics={
                "TOTAL_IO_READ_MB": float(read),
                "TOTAL_IO_WRITE_MB": float(written),
                "TOTAL_IO_MB": float(read + written),
                "TOTAL_LOG_FILES_SIZE": float(self.log_bytes),
                "TOTAL_LOG_FILES": float(len(piece.logs)),
            },
        )


@dataclass(slots=True)
class Choice:
    """The slices chosen so far, and what was passed over.

    ``missing`` are partitions in which slices with logs were passed over: a plan names them, so
    that Hudi, which looks at partitions written since the last plan, comes back to them.
    """

    settings: PlanSettings
    new_base: int
    today: dt.date
    passed_over: Counter[str] = field(default_factory=Counter)
    missing: set[str] = field(default_factory=set)
    _heap: list[tuple[tuple[int, str, int], Candidate]] = field(default_factory=list)
    _arrived: int = 0
    _bytes: int = 0
    _partitions: Counter[str] = field(default_factory=Counter)

    def add(self, piece: FileSlice) -> None:
        """Consider a slice that has logs."""
        found = Candidate(piece, self.new_base)
        why = self._refusal(found)
        if why is not None:
            self.pass_over(piece.group.partition, why)
            return
        self._arrived += 1
        heapq.heappush(self._heap, (self._rank(found), found))
        self._bytes += found.io_bytes
        self._partitions[piece.group.partition] += 1
        self._shrink()

    def pass_over(self, partition: str, why: str) -> None:
        """Leave a slice with logs out of the plan."""
        self.passed_over[why] += 1
        self.missing.add(partition)

    def forget(self, partitions: Collection[str]) -> None:
        """Drop what was chosen of these partitions: they are looked at again."""
        self._drop(lambda piece: piece.group.partition in partitions)
        self.missing -= set(partitions)

    def leave(self, groups: Collection[tuple[str, str]], why: str) -> None:
        """Pass over what was chosen of these groups."""
        gone = self._drop(lambda piece: (piece.group.partition, piece.group.file_id) in groups)
        for found in gone:
            self.pass_over(found.piece.group.partition, why)

    def chosen(self) -> list[Candidate]:
        """Return the slices of the plan, the most worthwhile first."""
        return [found for _, found in sorted(self._heap, key=lambda held: held[0], reverse=True)]

    def settled(self) -> "Choice":
        """Return what the strategies after the first one leave of it; itself without such."""
        choice = self
        for strategy in self.settings.then:
            settings = replace(self.settings, strategy=strategy, then=())
            later = Choice(
                settings,
                self.new_base,
                self.today,
                Counter(choice.passed_over),
                set(choice.missing),
            )
            for found in choice.chosen():
                later.add(found.piece)
            choice = later
        return choice

    # ------------------------------------------------------------------- support

    def _drop(self, condition: Callable[[FileSlice], bool]) -> list[Candidate]:
        gone = [found for _, found in self._heap if condition(found.piece)]
        if gone:
            self._heap = [held for held in self._heap if not condition(held[1].piece)]
            heapq.heapify(self._heap)
            for found in gone:
                self._count_out(found)
        return gone

    def _count_out(self, found: Candidate) -> None:
        self._bytes -= found.io_bytes
        partition = found.piece.group.partition
        self._partitions[partition] -= 1
        if not self._partitions[partition]:
            del self._partitions[partition]

    def _refusal(self, found: Candidate) -> str | None:
        settings, partition = self.settings, found.piece.group.partition
        match settings.strategy:
            case Strategy.LOG_FILE_SIZE if found.log_bytes < settings.least_log_bytes:
                return f"logs of less than {settings.least_log_bytes} bytes"
            case Strategy.LOG_FILE_NUM if len(found.piece.logs) < settings.least_logs:
                return f"less than {settings.least_logs} logs"
            case Strategy.PARTITION_REGEX:
                if re.fullmatch(settings.partition_pattern, partition) is None:
                    return f"the partition does not match {settings.partition_pattern}"
            case Strategy.BOUNDED_PARTITIONS | Strategy.UNBOUNDED_PARTITIONS:
                return self._age_refusal(partition)
            case _:
                pass
        return None

    def _age_refusal(self, partition: str) -> str | None:
        day = partition_day(partition)
        if day is None:
            return "the partition's path is no date"
        days = self.settings.target_partitions
        recent = day >= self.today - dt.timedelta(days=days)
        if self.settings.strategy is Strategy.BOUNDED_PARTITIONS:
            return None if recent else f"older than {days} days"
        return f"of the last {days} days" if recent else None

    def _rank(self, found: Candidate) -> tuple[int, str, int]:
        """Return what sorts the most worthwhile slices last, and equal ones by arrival."""
        early = -self._arrived
        match self.settings.strategy:
            case Strategy.LOG_FILE_SIZE:
                return found.log_bytes, "", early
            case Strategy.LOG_FILE_NUM:
                return len(found.piece.logs), "", early
            case Strategy.DAY_BASED:
                partition = found.piece.group.partition
                day = partition_day(partition)
                return (0, partition, early) if day is None else (day.toordinal(), "", early)
            case _:
                return 0, "", early

    def _shrink(self) -> None:
        settings = self.settings
        budget = settings.target_io * _MB
        while True:
            if len(self._heap) > settings.most_groups:
                why = f"beyond {settings.most_groups} groups of one plan"
            elif (
                settings.strategy.bounds_io
                and len(self._heap) > 1
                and self._bytes - self._heap[0][1].io_bytes >= budget
            ):
                why = f"beyond {settings.target_io} MB of one plan"
            elif (
                settings.strategy is Strategy.DAY_BASED
                and len(self._partitions) > settings.target_partitions
            ):
                why = f"not in the newest {settings.target_partitions} partitions"
            else:
                return
            _, found = heapq.heappop(self._heap)
            self._count_out(found)
            self.pass_over(found.piece.group.partition, why)


def partition_day(partition: str) -> dt.date | None:
    """Return the day with which a partition's path begins, ``name=`` left out; None without."""
    match = _DATE.match(_KEYS.sub(r"\1", partition))
    if match is None:
        return None
    try:
        return dt.date(*(int(part) for part in match.groups()))
    except ValueError:
        return None
