"""Exactly once: which batches of which streams a table holds.

A batch is recorded in the commit that wrote it, under the name and in the form of Hudi's own
streaming sink, so that the record takes effect with the rows or not at all. Beside it one small
file per stream says where to look from: without it, a stream that slept while other writers
filled the timeline would find its last commit archived.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.model.errors import AlreadyExists, Corrupt, LakewrightError, NotFound
from lakewright.model.instant import BEGINNING, Instant
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.table.horizon import window
from lakewright.table.state import TableState
from lakewright.table.undone import undone_by
from lakewright.timeline.committing import Rivals

log = logging.getLogger(__name__)

#: The entry of a commit's extra metadata: a JSON object of stream -> batch.
CHECKPOINT = "_hudi_streaming_sink_checkpoint"
_FOLDER = ".hoodie/.aux/lakewright/streams"


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """One batch of one stream; batches of a stream are numbered, and written in that order.

    ``stream`` names the query over all its restarts; two streams never share a name.
    """

    stream: str
    number: int

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the commit of the batch carries."""
        return {CHECKPOINT: json.dumps({self.stream: str(self.number)})}

    def check(self, state: TableState) -> None:
        """Raise ``AlreadyExists`` where the table holds the batch, or a later one."""
        record = _load(state.storage, self.stream)
        timeline = state.timeline
        if record is None:
            instants = timeline.data()
        elif record.number < self.number:
            instants = window(state, record.since, None)
        elif undone_by(state, record.since) is None:
            raise self._there(record.since)
        else:
            # The note outlived its commit: what stands of the stream, the timeline alone tells.
            timeline = timeline.with_history()
            instants = timeline.data()
        for instant, body in timeline.commits(reversed(instants)):
            self._refuse(instant, body)

    def guard(self, rivals: Rivals) -> None:
        """Raise ``AlreadyExists`` where another run of the stream wrote the batch meanwhile."""
        for instant, body in rivals:
            self._refuse(instant, body)

    def begin(self, state: TableState) -> None:
        """Check, and note that the stream writes to the table before its first batch does.

        From here on its batches are found, whatever is archived before the next note.
        """
        self.check(state)
        if _load(state.storage, self.stream) is None:
            since = state.timeline.latest_completion() or BEGINNING
            _Record(self.stream, self.number - 1, since).store(state.storage)

    def done(self, storage: Storage, instant: Instant) -> None:
        """Note that the batch is in the table; where that fails, the commit still tells."""
        end = instant.completed or instant.requested
        try:
            _Record(self.stream, self.number, end).store(storage)
        except LakewrightError as error:
            told = facts(stream=self.stream, batch=self.number, error=str(error))
            log.warning("the note of a stream's batch could not be written", extra=told)

    def is_in(self, state: TableState) -> bool:
        """Whether the table holds the batch: asked after a failure, of whatever kind."""
        try:
            self.check(state)
        except AlreadyExists:
            log.info("the batch is there", extra=facts(stream=self.stream, batch=self.number))
            return True
        return False

    def _refuse(self, instant: Instant, body: CommitMetadata) -> None:
        number = _recorded(body, self.stream)
        if number is not None and number >= self.number:
            raise self._there(instant.requested)

    def _there(self, instant: str) -> AlreadyExists:
        return AlreadyExists(
            f"batch {self.number} of stream {self.stream} is in the table since {instant}.",
            next_step="Nothing is to be done: it is not written twice.",
            stream=self.stream,
            batch=self.number,
            instant=instant,
        )


def _recorded(body: CommitMetadata, stream: str) -> int | None:
    """Return the batch of the stream that a commit wrote; None where it wrote none."""
    text = body.extra.get(CHECKPOINT)
    if not text:
        return None
    try:
        number = json.loads(text)[stream]
        return int(number)
    except (ValueError, TypeError, KeyError):  # another stream's, or another writer's idea of it
        return None


@dataclass(frozen=True, slots=True)
class _Record:
    stream: str
    number: int
    since: str

    def store(self, storage: Storage) -> None:
        told = {"stream": self.stream, "batch": self.number, "since": self.since}
        storage.write(_path(self.stream), json.dumps(told).encode())


def _path(stream: str) -> str:
    return f"{_FOLDER}/{hashlib.sha256(stream.encode()).hexdigest()[:32]}.json"


def _load(storage: Storage, stream: str) -> _Record | None:
    path = _path(stream)
    try:
        data = storage.read(path)
    except NotFound:
        return None
    try:
        told = json.loads(data)
        return _Record(stream, int(told["batch"]), str(told["since"]))
    except (ValueError, TypeError, KeyError) as cause:
        raise Corrupt(
            f"{path} is no note of a stream.",
            next_step="Delete it if all its commits are on the active timeline.",
            path=path,
        ) from cause
