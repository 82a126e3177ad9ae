"""What no cleaning may take: collected from savepoints, undo pins and unfinished plans."""

from collections.abc import Iterable

from lakewright.actions.services.clean_choice import Shield
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.format.hudi.metadata.restore import SavepointMetadata
from lakewright.model.errors import Corrupt
from lakewright.model.instant import Action
from lakewright.storage.paths import split
from lakewright.storage.port import Storage
from lakewright.table.pins import load_pins
from lakewright.timeline.view import TimelineView


def shield_of(storage: Storage, view: TimelineView, now: float) -> Shield:
    """Return what is protected at ``now``, by the timeline and the pins as they are."""
    saved: dict[str, set[str]] = {}
    planned: dict[str, set[str]] = {}
    merging: dict[str, dict[str, str]] = {}
    for instant in view.by_action(Action.SAVEPOINT):
        if instant.is_completed:
            _add_savepoint(saved, view.metadata(instant), str(instant))
    for instant in view.pending():
        match view.plan(instant):
            case CompactionPlan(operations=operations):
                for operation in operations:
                    group = merging.setdefault(operation.partition, {})
                    since = operation.base_instant or ""
                    group[operation.file_id] = min(since, group.get(operation.file_id, since))
                    files = (operation.base_file, *operation.log_files)
                    _add(planned, operation.partition, files)
            case ReplacePlan(clustering=clustering) if clustering is not None:
                for group_plan in clustering.groups:
                    for piece in group_plan.slices:
                        _add(planned, piece.partition, (piece.base_file, *piece.log_files))
            case _:
                pass
    return Shield(_frozen(saved), load_pins(storage, now), _frozen(planned), merging)


def _add_savepoint(saved: dict[str, set[str]], body: object, name: str) -> None:
    if not isinstance(body, SavepointMetadata):
        raise Corrupt(
            f"The savepoint {name} cannot be read, so that nothing is known of what it holds.",
            next_step="Delete the savepoint, or restore its file from a copy.",
            instant=name,
        )
    for partition, held in body.partitions.items():
        _add(saved, partition, held.files)


def _add(found: dict[str, set[str]], partition: str, files: Iterable[str | None]) -> None:
    names = found.setdefault(partition, set())
    names.update(split(file)[1] for file in files if file)


def _frozen(found: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    return {partition: frozenset(names) for partition, names in found.items()}
