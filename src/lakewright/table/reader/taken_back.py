"""Logs that are gone because the write that made them was taken back.

In layout 1 the name of a log does not tell its write. A reader that was planned while a write was
under way, or dead, may have its log on the list; none of its blocks count for that reader, and
whoever rolls the write back deletes the file.
"""

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.metadata.rollback import RollbackPlan
from lakewright.model.errors import Corrupt, NotFound
from lakewright.model.files import LogFile
from lakewright.model.instant import Action
from lakewright.storage.port import Storage
from lakewright.table.reader.instants import SeenInstants
from lakewright.timeline.load import load_timeline


def was_taken_back(storage: Storage, config: TableConfig, log: LogFile, seen: SeenInstants) -> bool:
    """Say whether a rollback, as its plan tells, deletes a log that holds nothing for a reader.

    False where the write counts for the reader, and where no rollback that is still on the
    timeline names the file.
    """
    if config.layout != 1:
        return False
    view = load_timeline(storage, config)
    for instant in reversed(view.by_action(Action.ROLLBACK)):
        try:
            plan = view.plan(instant)
        except (Corrupt, NotFound):
            continue
        if not isinstance(plan, RollbackPlan) or plan.instant is None:
            continue
        if seen.shows(plan.instant.time):
            continue
        for request in plan.requests:
            names = {path.rpartition("/")[2] for path in request.files}
            if request.partition == log.partition and log.name in names:
                return True
    return False
