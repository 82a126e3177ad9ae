"""What every table service works with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.actions.executor import Executor
from lakewright.actions.write.progress import Progress
from lakewright.table.state import TableState
from lakewright.timeline.committing import Committer
from lakewright.timeline.upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class Servicing:
    """A table as it stands, who does the work, and by which settings.

    ``options`` are the caller's over the table's properties over the storage's. ``name`` is what
    the user calls the table.
    """

    name: str
    state: TableState
    executor: Executor[Any]
    committer: Committer
    upkeep: Upkeep
    options: Mapping[str, str]
    progress: Progress
