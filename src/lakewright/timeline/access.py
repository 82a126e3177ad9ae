"""A table's timeline under its lock, sound and repaired: where every change of it starts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.properties import (
    CHECKSUM,
    NAME,
    PROPERTIES_PATH,
    load_properties,
    parse_properties,
    recover_properties,
    table_checksum,
)
from lakewright.model.errors import Conflict, NotFound
from lakewright.model.instant import Action
from lakewright.storage.port import Storage
from lakewright.timeline.heartbeats import Tolerance
from lakewright.timeline.load import load_timeline
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.locks.port import Lease, TableLock
from lakewright.timeline.recovery import Recovery
from lakewright.timeline.view import TimelineView


class TimelineAccess:
    """The timeline of the table in ``storage`` for those who change it.

    ``config`` is the table's as the caller knows it; ``options`` are the caller's, over the
    table's properties.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        options: Mapping[str, str],
        lock: TableLock | None = None,
    ) -> None:
        self.storage = storage
        self.config = config
        self.options: Mapping[str, str] = {**config.properties, **options}
        self.lock = lock or open_lock(storage, self.options)
        self.tolerance = Tolerance.of(self.options)

    @contextmanager
    def repaired(self) -> Iterator[tuple[TimelineView, Lease]]:
        """Hold the lock over a timeline on which nothing dead is left.

        ``Conflict`` where the table is not what the caller knows any more, or another one is
        about to restore it.
        """
        with self.lock.acquire() as lease:
            self._check_properties()
            view = self.recovery(load_timeline(self.storage, self.config)).run()
            _check_unrestored(view)
            yield view, lease

    @contextmanager
    def loaded(self) -> Iterator[tuple[TimelineView, Lease]]:
        """Hold the lock over the timeline as it is."""
        with self.lock.acquire() as lease:
            yield load_timeline(self.storage, self.config), lease

    def recovery(self, view: TimelineView) -> Recovery:
        """Return what repairs the timeline; the lock is held while it works."""
        return Recovery(self.storage, self.config, view, self.tolerance)

    def _check_properties(self) -> None:
        """Mend properties that a crash left half-replaced; refuse a table that was changed."""
        values = self._sound_properties()
        if values is None:
            recover_properties(self.storage)
            values = load_properties(self.storage)
        config = TableConfig.of(values)
        known = self.config
        same = (config.version, config.timeline_folder, config.metadata_partitions) == (
            known.version,
            known.timeline_folder,
            known.metadata_partitions,
        )
        if not same:
            raise Conflict(
                f"The table was changed since it was opened: it has version {config.version} now, "
                f"and the metadata partitions {', '.join(config.metadata_partitions) or '(none)'}.",
                next_step="Open it again.",
                version=config.version,
            )

    def _sound_properties(self) -> Mapping[str, str] | None:
        try:
            values = parse_properties(self.storage.read(PROPERTIES_PATH))
        except NotFound:
            return None
        sealed = values.get(CHECKSUM) in (None, str(table_checksum(values)))
        return values if sealed and NAME in values else None


def _check_unrestored(view: TimelineView) -> None:
    for instant in view.pending():
        if instant.action is Action.RESTORE:
            raise Conflict(
                f"The restore {instant.requested} has not finished.",
                next_step="Wait for it, or run again the software that began it.",
                instant=str(instant),
            )
