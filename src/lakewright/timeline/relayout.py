"""A timeline in the other layout: written completely beside the one that counts.

Nothing here changes what readers see: the properties of the table say which of the two counts,
and whoever replaces them does so after ``prepare`` and before ``remove_old``. All steps may be
done twice.
"""

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.history import ArchivedInstant, append_history, read_history
from lakewright.format.hudi.history_log import archive_number
from lakewright.format.hudi.instant_names import instant_file_name, parse_instant_name
from lakewright.format.hudi.metadata.commit import (
    CommitMetadata,
    WriteStat,
    decode_commit,
    encode_commit,
)
from lakewright.format.hudi.metadata.compaction import (
    decode_compaction_plan,
    encode_compaction_plan,
)
from lakewright.format.hudi.metadata.replace_plan import (
    ReplacePlan,
    decode_replace_plan,
    encode_replace_plan,
)
from lakewright.format.hudi.metadata.restore import (
    SavepointMetadata,
    decode_savepoint,
    encode_savepoint,
)
from lakewright.model.errors import Corrupt
from lakewright.model.instant import Action, Instant, State, instant_datetime, is_instant_time
from lakewright.storage.paths import join, split
from lakewright.storage.port import Storage
from lakewright.timeline.clock import time_text
from lakewright.timeline.entries import Entry
from lakewright.timeline.load import load_timeline
from lakewright.timeline.view import TimelineView

#: Instants of the history that are carried over at a time, by count and by the size of bodies.
_BATCH = 500
_BATCH_BYTES = 64 << 20
_MILLISECOND = dt.timedelta(milliseconds=1)
_META = ".hoodie"


@dataclass(frozen=True, slots=True)
class RenamedLog:
    """What a log file is called in the other layout, and the slice it lies in there.

    ``path`` and ``new_path`` are relative to the table; ``base_file`` is empty where the slice
    has none.
    """

    path: str
    new_path: str
    base_instant: str
    base_file: str


@dataclass(frozen=True, slots=True)
class Relayout:
    """The timeline of a table in the layout of ``new``, made from the one of ``old``.

    ``renamed`` holds log files by their old path: bodies that name them name the new ones then.
    """

    storage: Storage
    old: TableConfig
    new: TableConfig
    renamed: Mapping[str, RenamedLog] = field(default_factory=dict)

    def prepare(self, view: TimelineView) -> None:
        """Write the whole timeline and its history in the new layout, and read it back.

        ``Corrupt`` where something is missing then; nothing has changed for readers.
        """
        archived = self._carry_history()
        completed = completion_times(view) if self.new.layout == 2 else {}
        for entry in view.entries:
            if not entry.archived:
                self._carry(view, entry, completed.get((entry.instant.requested, entry.planned)))
        self._check(view, archived)

    def leftovers(self) -> list[str]:
        """Return the paths of what an earlier attempt left in the place of the new timeline.

        The archive of layout 1 is not among them: what is there already is not written again.
        """
        if self.new.layout == 2:
            found = self.storage.list(self.new.timeline_folder, recursive=True, stats=False)
            return [file.path for file in found]
        return list(_instant_files(self.storage))

    def remove_old(self) -> int:
        """Delete the files of the layout that does not count any more; return how many."""
        return remove_layout(self.storage, self.old)

    # ------------------------------------------------------------------- instants

    def _carry(self, view: TimelineView, entry: Entry, completed: str | None) -> None:
        planned = self._planned(view, entry)
        for state, name in entry.files.items():
            data = self.storage.read(f"{self.old.timeline_folder}/{name}")
            done = completed if state is State.COMPLETED else None
            instant = Instant(entry.instant.requested, planned, state, done)
            target = f"{self.new.timeline_folder}/{instant_file_name(instant, self.new.layout)}"
            self.storage.write(target, self._body(entry, state, data, name))

    def _planned(self, view: TimelineView, entry: Entry) -> Action:
        """Return under which action the pending files stand in the new layout."""
        if self.new.layout == 1:
            return Action.REPLACECOMMIT if entry.planned is Action.CLUSTERING else entry.planned
        if entry.planned is Action.REPLACECOMMIT:
            plan = view.plan(entry.instant)
            if isinstance(plan, ReplacePlan) and plan.is_service:
                return Action.CLUSTERING
        return entry.planned

    def _body(self, entry: Entry, state: State, data: bytes, name: str) -> bytes:
        if not data:
            return data
        if state is State.REQUESTED:
            return self._plan(entry.planned, data, name) if self.renamed else data
        action = entry.instant.action.completes_as
        if state is State.INFLIGHT:
            # Services leave the file of their work empty, or put into it what only they read.
            return self._commit(data, name, replace=False) if entry.planned.writes_data else data
        if action.writes_data:
            return self._commit(data, name, replace=action is Action.REPLACECOMMIT)
        if action is Action.SAVEPOINT and self.renamed:
            return encode_savepoint(self._renamed_savepoint(decode_savepoint(data, name)))
        return data

    def _plan(self, action: Action, data: bytes, path: str) -> bytes:
        """Return a plan that names the new logs: going back asks it what was built on."""
        if action in (Action.COMPACTION, Action.LOGCOMPACTION):
            plan = decode_compaction_plan(data, path)
            operations = tuple(
                replace(one, log_files=self._new_paths(one.partition, one.log_files))
                for one in plan.operations
            )
            return encode_compaction_plan(replace(plan, operations=operations))
        if action is Action.CLUSTERING:
            return encode_replace_plan(self._renamed_clustering(decode_replace_plan(data, path)))
        return data

    def _commit(self, data: bytes, path: str, *, replace: bool) -> bytes:
        metadata = self._renamed_commit(decode_commit(data, path))
        return encode_commit(metadata, self.new.layout, replace=replace)

    # ---------------------------------------------------------------- renamed logs

    def _renamed_commit(self, metadata: CommitMetadata) -> CommitMetadata:
        if not self.renamed:
            return metadata
        stats = {
            partition: tuple(self._renamed_stat(stat) for stat in of_partition)
            for partition, of_partition in metadata.write_stats.items()
        }
        return replace(metadata, write_stats=stats)

    def _renamed_stat(self, stat: WriteStat) -> WriteStat:
        found = self.renamed.get(stat.path or "")
        if found is None:
            return stat
        folder = split(found.path)[0]
        return replace(
            stat,
            path=found.new_path,
            prev_commit=found.base_instant,
            base_file=found.base_file,
            log_files=tuple(self._new_name(folder, name) for name in stat.log_files),
        )

    def _renamed_savepoint(self, metadata: SavepointMetadata) -> SavepointMetadata:
        kept = {
            partition: replace(
                held, files=tuple(self._new_name(partition, name) for name in held.files)
            )
            for partition, held in metadata.partitions.items()
        }
        return replace(metadata, partitions=kept)

    def _renamed_clustering(self, plan: ReplacePlan) -> ReplacePlan:
        if plan.clustering is None:
            return plan
        groups = tuple(
            replace(
                group,
                slices=tuple(
                    replace(one, log_files=self._new_paths(one.partition, one.log_files))
                    for one in group.slices
                ),
            )
            for group in plan.clustering.groups
        )
        return replace(plan, clustering=replace(plan.clustering, groups=groups))

    def _new_paths(self, folder: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Return names, or whole paths, with the names of now."""
        found = ((split(path)[0], split(path)[1]) for path in paths)
        return tuple(join(head, self._new_name(folder, name)) for head, name in found)

    def _new_name(self, folder: str, name: str) -> str:
        found = self.renamed.get(f"{folder}/{name}" if folder else name)
        return name if found is None else split(found.new_path)[1]

    # -------------------------------------------------------------------- history

    def _carry_history(self) -> frozenset[tuple[str, Action]]:
        """Carry archived instants over, those left out that are there; return all of them."""
        known = set(_keys(self.storage, self.new)) if self.new.layout == 1 else set()
        seen: set[tuple[str, Action]] = set()
        batch: list[ArchivedInstant] = []
        size = 0
        for past in read_history(self.storage, self.old):
            key = (past.instant.requested, past.instant.action.completes_as)
            seen.add(key)
            if key in known:
                continue
            batch.append(self._archived(past))
            size += len(past.metadata or b"") + len(past.plan or b"")
            if len(batch) >= _BATCH or size > _BATCH_BYTES:
                append_history(self.storage, self.new, batch)
                batch, size = [], 0
        append_history(self.storage, self.new, batch)
        return frozenset(seen)

    def _archived(self, past: ArchivedInstant) -> ArchivedInstant:
        action = past.instant.action.completes_as
        if past.metadata is None or not self.renamed or not action.writes_data:
            return past
        metadata = self._renamed_commit(decode_commit(past.metadata, str(past.instant)))
        data = encode_commit(metadata, 2, replace=action is Action.REPLACECOMMIT)
        return replace(past, metadata=data)

    # -------------------------------------------------------------------- checking

    def _check(self, view: TimelineView, archived: frozenset[tuple[str, Action]]) -> None:
        """Read the new timeline back: every instant must be there, in the same state."""
        made = load_timeline(self.storage, self.new)
        before = {_identity(entry) for entry in view.entries if not entry.archived}
        wrong = before ^ {_identity(entry) for entry in made.entries}
        lost = archived - set(_keys(self.storage, self.new)) if archived else frozenset()
        if wrong or lost:
            first = min(str(one) for one in (*wrong, *lost))
            raise Corrupt(
                f"the new timeline differs from the old one in {len(wrong) + len(lost)} instants, "
                f"the first is {first}.",
                next_step="Nothing was changed. Check the table with fsck, and try again.",
            )


def completion_times(view: TimelineView) -> dict[tuple[str, Action], str]:
    """Return completion times for a timeline of layout 1, by requested time and planned action.

    They are the times at which the files were written, as in Hudi, as long as those keep the
    order in which layout 1 counts: a write completes before the next instant is requested. Where
    the files were copied since, or writers overlapped, a write completes just after its request.
    A savepoint has the time of its write and is made whenever its user likes; its completion is
    moved on where something else has that time, which a store with coarse times makes likely.
    """
    folder = view.config.timeline_folder
    modified = {file.path: file.modified for file in view.storage.list(folder)}
    requested = sorted({entry.instant.requested for entry in view.entries})
    following = dict(itertools.pairwise(requested))
    found: dict[tuple[str, Action], str] = {}
    for entry in view.entries:
        name = entry.files.get(State.COMPLETED)
        if name is None:
            continue
        instant = entry.instant
        seconds = modified.get(f"{folder}/{name}")
        end = "" if seconds is None else time_text(seconds, view.config.timezone)
        limit = following.get(instant.requested)
        if instant.action is Action.SAVEPOINT:
            limit = None
        if end <= instant.requested or (limit is not None and end >= limit):
            end = _just_after(instant.requested)
            end = instant.requested if limit is not None and end >= limit else end
        found[instant.requested, entry.planned] = end
    taken = {end for (_, action), end in found.items() if action is not Action.SAVEPOINT}
    taken.update(requested)
    for (time, action), end in found.items():
        if action is Action.SAVEPOINT:
            while end in taken and is_instant_time(end):
                end = _just_after(end)
            taken.add(end)
            found[time, action] = end
    return found


def _just_after(requested: str) -> str:
    if len(requested) == 14:
        return f"{requested}000"
    if not is_instant_time(requested):
        return requested
    moment = instant_datetime(requested) + _MILLISECOND
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}".zfill(17)


def remove_layout(storage: Storage, config: TableConfig) -> int:
    """Delete the timeline and the history of a layout that does not count; return how many.

    ``config`` says where they lie.
    """
    if config.layout == 2:
        files = storage.list(config.timeline_folder, recursive=True, stats=False)
        gone = [file.path for file in files]
    else:
        archive = (f.path for f in storage.list(config.history_folder, stats=False))
        old = [path for path in archive if archive_number(path)]
        gone = [*_instant_files(storage), *old, *map(_crc, old)]
    storage.delete(gone)
    return len(gone)


def instants_in(storage: Storage, config: TableConfig) -> set[tuple[str, Action]]:
    """Return the instants whose files lie in the place of a layout, by time and action."""
    prefix = len(config.timeline_folder) + 1
    names = (file.path[prefix:] for file in storage.list(config.timeline_folder, stats=False))
    found = (parse_instant_name(name, config.layout) for name in names)
    return {(i.requested, i.action.completes_as) for i in found if i is not None}


def _instant_files(storage: Storage) -> Iterator[str]:
    """Stream the instants' files of layout 1, with the checksums that Hadoop lays beside them."""
    for file in storage.list(_META, stats=False):
        name = split(file.path)[1]
        plain = name[1:].removesuffix(".crc") if name.startswith(".") else name
        if parse_instant_name(plain, 1) is not None:
            yield file.path


def _crc(path: str) -> str:
    folder, name = split(path)
    return f"{folder}/.{name}.crc"


def _keys(storage: Storage, config: TableConfig) -> Iterator[tuple[str, Action]]:
    for past in read_history(storage, config):
        yield past.instant.requested, past.instant.action.completes_as


def _identity(entry: Entry) -> tuple[str, Action, State]:
    return entry.instant.requested, entry.instant.action.completes_as, entry.instant.state
