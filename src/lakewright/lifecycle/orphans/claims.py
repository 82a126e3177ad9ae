"""Who may claim a data file: the timeline, writers at work, and whatever holds files.

A file is an orphan when nobody does. Whatever leaves a doubt keeps it: it may be the only copy.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakewright.actions.services.clean_shield import shield_of
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.format.hudi.metadata.clean import CleanPlan
from lakewright.format.hudi.metadata.rollback import RollbackPlan
from lakewright.format.hudi.partition_metadata import PARTITION_METADATA_NAMES
from lakewright.format.hudi.properties import PROPERTIES_PATH
from lakewright.lifecycle.plans.options import span_text
from lakewright.model.errors import Corrupt, Invalid, NotFound, Unsupported
from lakewright.model.files import BaseFile, LogFile
from lakewright.model.instant import Action, instant_datetime
from lakewright.storage.paths import split
from lakewright.storage.port import FileStat
from lakewright.table.state import TableState
from lakewright.timeline.heartbeats import list_heartbeats
from lakewright.timeline.markers import TEMPORARY
from lakewright.timeline.recovery import rollback_targets
from lakewright.timeline.view import TimelineView

#: How writers name their attempts; foreign files that look like ours seldom do.
_TOKEN = re.compile(r"[0-9]+-[0-9]+-[0-9]+", re.ASCII)

NO_WRITE = "the table has no completed write that could tell what belongs to it"
COMMITTED = "it is older than the timeline, so that readers take it for committed"
NAMED_OTHERWISE = "it is not named as writers of tables name their files"
SAVED = "a savepoint holds it"
PINNED = "it is pinned, because an undo may need it"
PLANNED = "a service that is planned, or at work, names it"
MERGING = "a compaction of its file group is planned, or at work"
HEARTBEAT = "the heart of its write has beaten since"
MARKED = "its write has made markers since"
BLOCKS = "it holds blocks of instants that the table knows"
UNREADABLE = "it cannot be read whose blocks it holds"
NO_PARTITION = "its folder is no partition: it has no .hoodie_partition_metadata"
NESTED = "it lies in another table, which lies in this one"
GONE = "it is gone"


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that nobody claims, as storage tells of it; times are in UTC."""

    path: str
    instant: str
    size: int
    begun: datetime
    modified: datetime
    version: str | None


class Claims:
    """All that may claim files of a table, looked at once.

    ``now`` is the clock, ``older_than`` the age below which nothing is an orphan. The archived
    history is read to its end: ``Corrupt`` where it, a savepoint or a pin cannot be read, since
    nobody knows then what it claims.
    """

    def __init__(self, state: TableState, now: datetime, older_than: timedelta) -> None:
        self._storage = state.storage
        self._layout = state.config.layout
        self._zone = state.config.timezone
        self._view = view = state.timeline
        self._known = frozenset(i.requested for i in view.with_history().instants)
        self._unsettled = _unsettled(view)
        self._undoing = frozenset(rollback_targets(view))
        self._taken = _taken(view)
        self._shield = shield_of(state.storage, view, now.timestamp())
        self._beats = list_heartbeats(state.storage)
        self._before = now - older_than
        self._young = f"than {span_text(older_than)}"
        self._instants: dict[str, str | None] = {}
        self._folders: dict[str, str | None] = {}
        self._tables: dict[str, bool] = {}

    def candidate(self, folder: str, name: str) -> BaseFile | LogFile | None:
        """Return what a name says of a data file whose instant the table does not know.

        None for every other file: those of the table, and those that are no data files.
        """
        file = base_file(folder, name) or log_file(folder, name)
        return None if file is None or file.instant in self._known else file

    def look(self, file: BaseFile | LogFile) -> Orphan | str:
        """Return the orphan that a candidate is, or say why it is kept. Threads may call it."""
        why = self._why_named(file) or self._why_instant(file.instant) or self._why_held(file)
        why = why or self._why_folder(file.partition)
        if why is not None:
            return why
        stat = self._storage.stat(file.path)
        if stat is None:
            return GONE
        why = self._why_young(stat) or (
            self._why_blocks(file, stat) if isinstance(file, LogFile) else None
        )
        if why is not None:
            return why
        assert stat.modified is not None
        return Orphan(
            path=file.path,
            instant=file.instant,
            size=stat.size,
            begun=instant_datetime(file.instant, self._zone).astimezone(UTC),
            modified=datetime.fromtimestamp(stat.modified, UTC),
            version=stat.version,
        )

    def would_show(self, instant: str) -> bool:
        """Whether readers take files of an instant for committed, though nobody claims them."""
        return instant not in self._known and self._view.is_committed(instant)

    def _why_named(self, file: BaseFile | LogFile) -> str | None:
        if not _TOKEN.fullmatch(file.write_token):
            return NAMED_OTHERWISE
        try:
            instant_datetime(file.instant, self._zone)
        except Invalid:
            return NAMED_OTHERWISE
        return None

    def _why_instant(self, instant: str) -> str | None:
        if instant not in self._instants:
            self._instants[instant] = self._judge(instant)
        return self._instants[instant]

    def _judge(self, instant: str) -> str | None:
        """Say why files of an instant are kept that is neither on the timeline nor archived."""
        if self._view.start is None:
            return NO_WRITE
        if self._unsettled is not None:
            return self._unsettled
        if self._view.is_committed(instant):
            return COMMITTED
        # Instants that lie ahead are younger, too: such are the logs that hold folders.
        if instant_datetime(instant, self._zone) > self._before:
            return f"its instant is younger {self._young}"
        if instant in self._undoing:
            return "its write is being taken back"
        beat = self._beats.get(instant)
        if beat is not None and self._is_young(beat):
            return HEARTBEAT
        markers = self._storage.list(f"{TEMPORARY}/{instant}", recursive=True)
        return MARKED if any(self._is_young(marker) for marker in markers) else None

    def _why_held(self, file: BaseFile | LogFile) -> str | None:
        partition, name, shield = file.partition, file.name, self._shield
        if name in shield.saved.get(partition, ()):
            return SAVED
        if name in shield.pins.names(partition):
            return PINNED
        if name in shield.planned.get(partition, ()) or (partition, name) in self._taken:
            return PLANNED
        return MERGING if file.file_id in shield.merging.get(partition, ()) else None

    def _why_folder(self, folder: str) -> str | None:
        if folder not in self._folders:
            self._folders[folder] = self._judge_folder(folder)
        return self._folders[folder]

    def _judge_folder(self, folder: str) -> str | None:
        names = folder.split("/") if folder else []
        if any(self._is_table("/".join(names[:end])) for end in range(1, len(names) + 1)):
            return NESTED
        prefix = f"{folder}/" if folder else ""
        marks = (self._storage.stat(f"{prefix}{name}") for name in PARTITION_METADATA_NAMES)
        return NO_PARTITION if all(mark is None for mark in marks) else None

    def _is_table(self, folder: str) -> bool:
        if folder not in self._tables:
            found = self._storage.stat(f"{folder}/{PROPERTIES_PATH}")
            self._tables[folder] = found is not None
        return self._tables[folder]

    def _why_young(self, stat: FileStat) -> str | None:
        if stat.modified is None:
            return "its storage does not say when it was changed"
        return f"it was changed more recently {self._young} ago" if self._is_young(stat) else None

    def _is_young(self, stat: FileStat) -> bool:
        return stat.modified is None or stat.modified > self._before.timestamp()

    def _why_blocks(self, log: LogFile, stat: FileStat) -> str | None:
        """Look whose blocks a log holds.

        In layout 1 its name tells the slice that it belongs to, not who wrote into it, and in
        any layout logs may have come from older ones.
        """
        try:
            with self._storage.open(log.path) as file:
                for block in scan_blocks(file, stat.size, log.path):
                    told = (block.instant, *block.compacted_instants)
                    if any(i is not None and self._is_claimed(i) for i in told):
                        return BLOCKS
                    if block.instant is None and self._is_doubtful(block.kind):
                        return UNREADABLE
        except NotFound:
            return GONE
        except (Corrupt, Unsupported):
            return UNREADABLE if self._layout == 1 else None
        return None

    def _is_claimed(self, instant: str) -> bool:
        return instant in self._known or self._view.is_committed(instant)

    def _is_doubtful(self, kind: BlockKind) -> bool:
        """Whether a block without an instant may be of anybody.

        What a writer that died left behind is cut off; in layout 2 its name tells whose it is.
        """
        return self._layout == 1 or kind is not BlockKind.CORRUPT


def _unsettled(view: TimelineView) -> str | None:
    """Say what is under way of which nobody can tell whose files it is about."""
    for instant in view.pending():
        if instant.action is Action.RESTORE:
            return f"the restore {instant.requested} has not finished"
        if instant.action is Action.ROLLBACK:
            plan = view.plan(instant)
            if not isinstance(plan, RollbackPlan) or plan.instant is None:
                return f"the rollback {instant.requested} does not tell what it takes back"
    return None


def _taken(view: TimelineView) -> frozenset[tuple[str, str]]:
    """Return the files that unfinished cleanings and rollbacks are about to delete."""
    found: set[tuple[str, str]] = set()
    for instant in view.pending():
        match view.plan(instant):
            case CleanPlan(files=by_partition, old_files=by_name):
                for partition, files in by_partition.items():
                    found.update((partition, split(file.path or "")[1]) for file in files)
                for partition, names in by_name.items():
                    found.update((partition, split(name)[1]) for name in names)
            case RollbackPlan(requests=requests):
                for one in requests:
                    paths = (*one.files, *one.log_blocks)
                    found.update((one.partition, split(path)[1]) for path in paths)
            case _:
                pass
    return frozenset(found)
