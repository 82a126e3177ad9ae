"""What the services read of their options, all of it, so that nothing begins that a slip would end.

An option is read where it is obeyed: some by whoever plans, some by tasks, long after the plan was
put on the timeline. A plan that cannot be carried out would stand in the way of writers, so that
every service reads all of its options before it writes anything.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from lakewright.actions.services.archive_choice import ArchiveSettings
from lakewright.actions.services.clean_options import CleanSettings
from lakewright.actions.services.clustering_options import ClusteringSettings
from lakewright.actions.services.compaction_options import LOG_COMPACTION_BLOCKS, PlanSettings
from lakewright.actions.tasks.cluster_copy import COPIED
from lakewright.actions.tasks.cluster_order import LAYOUT, SAMPLE
from lakewright.actions.tasks.write_settings import BLOCK_FORMAT, MAX_FILE, SPILL_BYTES
from lakewright.format.hudi.history import check_history_options
from lakewright.model.services import Service
from lakewright.table.reader.logs import LOG_MEMORY

_Read: TypeAlias = Callable[[Mapping[str, str]], object]

#: What is read when a plan is made, and when one is carried out.
_PLANNING: Mapping[Service, tuple[_Read, ...]] = {
    Service.COMPACTION: (PlanSettings.of, MAX_FILE.read),
    Service.LOG_COMPACTION: (PlanSettings.of, LOG_COMPACTION_BLOCKS.read, MAX_FILE.read),
    Service.CLUSTERING: (ClusteringSettings.of, MAX_FILE.read),
    Service.CLEANING: (CleanSettings.of,),
    Service.ARCHIVING: (ArchiveSettings.of,),
}
_CARRYING_OUT: Mapping[Service, tuple[_Read, ...]] = {
    Service.COMPACTION: (LOG_MEMORY.read,),
    Service.LOG_COMPACTION: (LOG_MEMORY.read, BLOCK_FORMAT.read),
    Service.CLUSTERING: (
        LOG_MEMORY.read,
        LAYOUT.read,
        SAMPLE.read,
        SPILL_BYTES.read,
        COPIED.read,
    ),
    Service.CLEANING: (),
    Service.ARCHIVING: (check_history_options,),
}


def check_settings(service: Service, options: Mapping[str, str], *, planning: bool = True) -> None:
    """Raise ``InvalidOption`` where an option of a service is wrong, wherever it is read.

    Without ``planning`` those alone count that carrying out a plan needs: the plan may be Hudi's,
    made by a strategy that is unknown here.
    """
    for read in (*(_PLANNING[service] if planning else ()), *_CARRYING_OUT[service]):
        read(options)
