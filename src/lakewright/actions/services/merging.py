"""Carrying out a plan of a compaction or a log compaction: a task per slice, then one commit."""

import logging
from collections.abc import Iterator

from lakewright.actions.executor import ItemFunction
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.taking import Taken
from lakewright.actions.tasks.compact import Compacted, CompactWork
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.metadata.compaction import CompactionOperation, CompactionPlan
from lakewright.model.errors import Corrupt
from lakewright.model.files import FileGroupId, FileSlice
from lakewright.model.logs import facts
from lakewright.model.services import PartitionServed, Service, ServiceResult
from lakewright.storage.port import Storage
from lakewright.table.slicing import log_order
from lakewright.table.visibility import Visibility

log = logging.getLogger(__name__)


def carry_out(
    work: Servicing,
    taken: Taken,
    service: Service,
    function: ItemFunction[ServiceSpec, CompactWork, Compacted | None],
) -> ServiceResult:
    """Run the tasks of a taken plan and publish what they made; None of one is nothing."""
    plan = taken.plan
    if not isinstance(plan, CompactionPlan):
        raise Corrupt(f"{taken.ticket.plan} is no plan of a {service}.")
    items = list(_items(plan, taken))
    work.progress.stage(service.value, len(items))
    stats = []
    served: dict[str, PartitionServed] = {}
    for made in work.executor.map(function, taken.spec, items, size=lambda item: item.size):
        if made is None:
            work.progress.advance()
            log.warning(
                "a slice of a %s is left as it is: its records cannot be merged, or are gone",
                service,
            )
            continue
        stat = made.stat
        work.progress.advance(rows=stat.num_writes, files=1)
        stats.append(stat)
        partition = stat.partition_path or ""
        served[partition] = served.get(partition, PartitionServed()) + PartitionServed(
            groups=1,
            files_read=made.files_read,
            files_written=1,
            bytes_read=made.bytes_read,
            bytes_written=stat.total_write_bytes,
            rows=stat.num_writes,
        )
    work.progress.stage("publishing")
    metadata = taken.metadata(taken.ticket.operation, stats, compacted=True)
    done = work.committer.publish(taken.ticket, metadata)
    result = ServiceResult(service, done, dict(sorted(served.items())))
    sums = result.total
    told = facts(
        table=taken.spec.uri,
        instant=done.requested,
        groups=sums.groups,
        rows=sums.rows,
        bytes_read=sums.bytes_read,
        bytes_written=sums.bytes_written,
    )
    log.info("%s done", service, extra=told)
    return result


def _items(plan: CompactionPlan, taken: Taken) -> Iterator[CompactWork]:
    visible = taken.spec.pinned.visible
    replaced = _Replaced(taken.spec.open_storage(), taken.ticket.instant, visible)
    for operation in plan.operations:
        piece = planned_slice(operation)
        is_replaced = operation.file_id in visible.replaced.get(operation.partition, {})
        if is_replaced and not replaced.is_wanted(piece):
            continue
        metrics = operation.metrics
        size = int(metrics.get("TOTAL_IO_MB", 0.0)) << 20
        size += int(metrics.get("TOTAL_LOG_FILES_SIZE", 0.0))
        yield CompactWork(piece, size, may_go=is_replaced)


class _Replaced:
    """Judges groups of a plan that were replaced since: who reads the past still needs some.

    In layout 1 the logs that were written after the plan carry its instant, and lie on a base
    file of that instant for every reader once the plan is carried out. Nothing else of a
    replaced group is worth merging, and its files may be gone.
    """

    def __init__(self, storage: Storage, instant: str, visible: Visibility) -> None:
        self._storage = storage
        self._instant = instant
        self._layout = visible.layout
        self._names: dict[str, frozenset[str]] = {}

    def is_wanted(self, piece: FileSlice) -> bool:
        """Whether the group got logs after the plan, and the files to merge are there."""
        if self._layout != 1:
            return False
        partition, file_id = piece.group.partition, piece.group.file_id
        names = self._listed(partition)
        later = f".{file_id}_{self._instant}.log."
        own = (path.rpartition("/")[2] for path in piece.paths)
        return any(name.startswith(later) for name in names) and names.issuperset(own)

    def _listed(self, partition: str) -> frozenset[str]:
        if partition not in self._names:
            found = self._storage.list(partition, stats=False)
            self._names[partition] = frozenset(file.path.rpartition("/")[2] for file in found)
        return self._names[partition]


def planned_slice(operation: CompactionOperation) -> FileSlice:
    """Return the slice that a plan names, its logs in the order in which they merge.

    Plans of version 1 name files by their paths, later ones by names alone.
    """
    partition = operation.partition
    base = None
    if operation.base_file:
        name = operation.base_file.rpartition("/")[2]
        base = base_file(partition, name)
        if base is None:
            raise _unreadable(name)
    logs = []
    for path in operation.log_files:
        name = path.rpartition("/")[2]
        found = log_file(partition, name)
        if found is None:
            raise _unreadable(name)
        logs.append(found)
    ordered = sorted(logs, key=log_order)
    group = FileGroupId(partition, operation.file_id)
    first = base.instant if base is not None else (operation.base_instant or ordered[0].instant)
    return FileSlice(group, first, base, tuple(ordered))


def _unreadable(name: str) -> Corrupt:
    return Corrupt(f"the plan names {name!r}, which is no name of a file of Hudi's.", path=name)
