"""Where partition statistics are kept: one file per gathering, named after its instant.

Files are written whole or not at all, and say themselves what they account for. So nothing that
happens between two calls does harm: a crash leaves the file of before, and of two gatherings at
once the last one stands, which the next refresh continues whichever it is.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from lakewright.lifecycle.ttl.partition_stat import Gathered, decode, encode
from lakewright.model.errors import Corrupt, NotFound
from lakewright.model.instant import is_instant_time
from lakewright.model.logs import facts
from lakewright.storage.port import Storage

log = logging.getLogger(__name__)

STATISTICS_FOLDER = ".hoodie/.lakewright/partition_stats"
#: How many files are kept: one that is being read may be the one before the newest.
KEPT = 2

_ENDING = ".json"


@dataclass(slots=True)
class StatisticsStore:
    """The partition statistics of one table; ``damaged`` are files that could not be read."""

    storage: Storage
    damaged: list[str] = field(default_factory=list)

    def instants(self) -> list[str]:
        """Return the instants of the files there are, newest first."""
        prefix = len(STATISTICS_FOLDER) + 1
        names = (f.path[prefix:] for f in self.storage.list(STATISTICS_FOLDER, stats=False))
        found = (name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))
        return sorted((name for name in found if is_instant_time(name)), reverse=True)

    def load(self) -> Iterator[Gathered]:
        """Stream what is kept, newest first; what cannot be read is passed over and said."""
        for instant in self.instants():
            path = self.path(instant)
            try:
                data = self.storage.read(path)
            except NotFound:
                continue  # another gathering has taken its place
            try:
                yield decode(data, path)
            except Corrupt as damage:
                self.damaged.append(path)
                log.warning(
                    "partition statistics cannot be read and are gathered again",
                    extra=facts(path=path, why=str(damage)),
                )

    def save(self, gathered: Gathered) -> None:
        """Keep statistics, and remove those that nobody needs any more."""
        instant = gathered.stats.instant
        with self.storage.writer(self.path(instant)) as file:
            for piece in encode(gathered):
                file.write(piece)
        others = [self.path(other) for other in self.instants() if other != instant]
        sound = [path for path in others if path not in self.damaged]
        self.storage.delete([*sound[KEPT - 1 :], *(p for p in others if p in self.damaged)])
        self.damaged.clear()

    @staticmethod
    def path(instant: str) -> str:
        """Return where the statistics of an instant lie."""
        return f"{STATISTICS_FOLDER}/{instant}{_ENDING}"
