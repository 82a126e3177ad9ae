"""Heartbeats: whether the writer of a pending instant is still at work.

``.hoodie/.heartbeat/<instant>`` is written again and again while the write goes on; Hudi looks at
its modification time alone and leaves it empty. Here its content names the writer, so that one
whose process has ended counts as dead at once, and it holds what a publication needs to survive
its writer: the name that the completed file will have, fixed before the first attempt, and the
time until which such an attempt may still take effect.
"""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import TracebackType

from lakewright.model.errors import LakewrightError, NotFound
from lakewright.model.options import declare, parse_positive
from lakewright.storage.fleeting import fleeting
from lakewright.storage.port import FileStat, Storage
from lakewright.timeline.owner import Owner
from lakewright.timeline.pulse import Pulse

FOLDER = ".hoodie/.heartbeat"


class FailedWrites(StrEnum):
    """What happens to writes of others that seem to have failed; the names are Hudi's."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


def _interval(text: str) -> int:
    value = int(text)
    if value < 1_000:
        raise ValueError(text)
    return value


INTERVAL = declare(
    "hoodie.client.heartbeat.interval_in_ms",
    _interval,
    60_000,
    doc="Milliseconds between heartbeats of a write.",
    since="0.1",
    allowed="a whole number from 1000",
)
MISSES = declare(
    "hoodie.client.heartbeat.tolerable.misses",
    parse_positive,
    2,
    doc="After so many missed heartbeats a write counts as failed, and the next writer rolls it "
    "back. Writes of ended processes of this machine count as failed at once.",
    since="0.1",
    allowed="a whole number from 1",
)
FAILED_WRITES = declare(
    "hoodie.cleaner.policy.failed.writes",
    lambda text: FailedWrites(text.strip().upper()),
    FailedWrites.LAZY,
    doc="EAGER: a pending write without a heartbeat has failed, as Hudi takes it for single "
    "writers. LAZY: only when its heartbeat, or its age without one, is beyond the tolerance. "
    "NEVER: nothing is rolled back. A write whose heart beats is left alone in any case.",
    since="0.1",
    allowed=", ".join(FailedWrites),
    old_keys=("hoodie.clean.failed.writes.policy",),
)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When a silent writer counts as dead; times in seconds."""

    interval: float
    silence: float
    policy: FailedWrites

    @staticmethod
    def of(options: Mapping[str, str]) -> "Tolerance":
        """Read the options."""
        interval = INTERVAL.read(options) / 1000
        return Tolerance(interval, interval * MISSES.read(options), FAILED_WRITES.read(options))


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a heartbeat of ours.

    ``pending`` are the writes that were under way when this one began. ``completion`` is the
    completion time under which it will be published, ``until`` (seconds since the epoch) when an
    attempt at that has either taken effect or never will. ``closed`` says that the write is being
    taken back.
    """

    owner: Owner
    pending: tuple[str, ...] = ()
    completion: str | None = None
    until: float = 0.0
    closed: bool = False

    def encode(self) -> bytes:
        """Write the content."""
        fields = {
            "owner": str(self.owner),
            "pending": list(self.pending),
            "completion": self.completion,
            "until": self.until,
            "closed": self.closed,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def parse(data: bytes) -> "Record | None":
        """Read the content; None where other software wrote the heartbeat."""
        try:
            found = json.loads(data)
            owner = Owner.parse(found["owner"])
            pending = tuple(map(str, found["pending"]))
            until = float(found["until"])
            completion = found["completion"]
            closed = found["closed"] is True
        except (ValueError, KeyError, TypeError):
            return None
        if owner is None:
            return None
        return Record(
            owner, pending, None if completion is None else str(completion), until, closed
        )


def path_of(instant: str) -> str:
    """Return the path of a heartbeat."""
    return f"{FOLDER}/{instant}"


def read_record(storage: Storage, instant: str) -> Record | None:
    """Return the content of a heartbeat; None where it is gone, or not ours."""
    try:
        return Record.parse(storage.read(path_of(instant)))
    except NotFound:
        return None


def beat(storage: Storage, instant: str) -> None:
    """Keep a write alive that was begun detached; call it more often than the tolerance.

    The content stays as it is: a beat that meets another change of the file gives way to it.
    """
    stat = storage.stat(path_of(instant))
    record = read_record(storage, instant)
    if record is not None and stat is not None and stat.version is not None:
        storage.replace_if(path_of(instant), record.encode(), stat.version)


def is_open(storage: Storage, instant: str) -> bool:
    """Say whether files that are written now can still become part of the write.

    False once its publication is tried, or it is being taken back: whoever still writes files for
    it deletes them.
    """
    record = read_record(storage, instant)
    return record is not None and record.completion is None and not record.closed


def close(storage: Storage, instant: str, record: Record) -> None:
    """Say that no further file counts, before the write's markers are looked at."""
    fleeting(storage).write(path_of(instant), replace(record, closed=True).encode())


def drop_heartbeats(storage: Storage, *instants: str) -> None:
    """Delete heartbeats, the last trace of writes that are settled."""
    fleeting(storage).delete([path_of(instant) for instant in instants])


def list_heartbeats(storage: Storage) -> dict[str, FileStat]:
    """Return the heartbeats by instant."""
    return {file.path.rpartition("/")[2]: file for file in storage.list(FOLDER)}


_LIVE: set[str] = set()
"""Tokens of the hearts that beat in this process; one that is missing here was given up."""


def is_given_up(record: Record) -> bool:
    """Say whether the writer has certainly ended, or stopped its work within this process."""
    owner = record.owner
    return owner.is_dead or (owner.is_here and owner.token not in _LIVE)


@dataclass(slots=True)
class Heartbeat:
    """The heartbeat of a write of this process: beats until it is stopped."""

    storage: Storage
    instant: str
    record: Record
    tolerance: Tolerance
    last: float = 0.0
    _pulse: Pulse | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Write the first beat, and go on beating unless the work belongs to no process."""
        if not self.record.owner.pid:
            self._beat()
            return
        _LIVE.add(self.record.owner.token)
        try:
            self._beat()
            self._pulse = Pulse("heartbeat", self._beat_on, self.tolerance.interval)
        except BaseException:
            self.stop()
            raise

    def fix(self, completion: str, until: float) -> Record:
        """Write down the name of the publication that is about to be tried; return what was there.

        Where that fails nothing was tried, and others need not wait until ``until``: what the
        heartbeat said before is written again, if that can be done.
        """
        with self._lock:
            before = self.record
            self.record = replace(before, completion=completion, until=until)
        try:
            self._beat()
        except LakewrightError:
            self.unfix(before)
            raise
        return before

    def unfix(self, before: Record) -> None:
        """Write again, if that can be done, what stood there before a publication not tried."""
        with self._lock:
            self.record = before
        with suppress(LakewrightError):
            self._beat()

    def __enter__(self) -> "Heartbeat":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def is_valid(self) -> bool:
        """Whether nobody can have taken the write for dead."""
        return time.monotonic() - self.last < self.tolerance.silence

    def stop(self) -> None:
        """Beat no more; the file stays."""
        if self._pulse is not None:
            self._pulse.stop()
            self._pulse = None
        _LIVE.discard(self.record.owner.token)

    def _beat_on(self) -> None:
        # A heart that stood still for too long stays so: another one may beat in its place.
        if self.is_valid:
            self._beat()

    def _beat(self) -> None:
        with self._lock:
            begun = time.monotonic()
            fleeting(self.storage).write(path_of(self.instant), self.record.encode())
            self.last = begun
