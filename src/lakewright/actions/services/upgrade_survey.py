"""Planning a change of a table's version: what is there to be done, and what is in the way."""

import time
from collections.abc import Iterator, Mapping

from lakewright.actions.disable_metadata import find_metadata
from lakewright.actions.services.compaction_scope import partitions_with_logs
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import list_slices
from lakewright.actions.services.upgrade_logs import plan_renames
from lakewright.actions.services.upgrade_plan import Obstacle, UpgradePlan, UpgradeStep
from lakewright.actions.write.admission import check_config
from lakewright.format.hudi.config import LAYOUT, LAYOUTS, TableConfig
from lakewright.format.hudi.history import read_history
from lakewright.format.hudi.index_defs import INDEX_DEFS_PATH, IndexDefinition, decode_index_defs
from lakewright.format.hudi.version_properties import VersionedProperties, at_version
from lakewright.model.errors import Invalid, LakewrightError, NotFound
from lakewright.model.instant import Action
from lakewright.model.table import TableType
from lakewright.storage.port import Storage
from lakewright.table.state import TableState
from lakewright.timeline.plans import is_plan
from lakewright.timeline.recovery import pending_failed
from lakewright.timeline.view import TimelineView

_BOOTSTRAP = "hoodie.bootstrap.base.path"
_TO_LATER = (
    "changes are asked for by completion time from now on: those after the time of an instant "
    "include that instant, those after its completion time do not"
)
_TO_SIX = (
    "completion times are gone: changes are asked for by the time of an instant, and what "
    "overlapped counts in the order in which it began"
)


def plan_upgrade(work: Servicing, version: int) -> UpgradePlan:
    """Say what a change to ``version`` does, and what stands in its way; nothing is written."""
    state = work.state.refresh()
    config = state.config
    check_version(version)
    if config.version == version:
        return UpgradePlan(work.name, version, version, ())
    found = at_version(config, version)
    relaid = LAYOUTS[version] != config.layout
    steps = list(_timeline_steps(work, state, version)) if relaid else []
    steps += _definition_steps(state.storage, version)
    changes = found.changes(config.properties)
    steps.append(
        UpgradeStep("properties are replaced", "this is the change, in one step", len(changes))
    )
    if relaid:
        steps.append(UpgradeStep("the old timeline is removed", "nobody reads it any more"))
    told = [*found.changed_meaning, *((_TO_SIX if version == 6 else _TO_LATER,) if relaid else ())]
    return UpgradePlan(
        work.name,
        config.version,
        version,
        tuple(steps),
        tuple(obstacles(state, found, work.options, logged=needs_compaction(state, relaid))),
        changes,
        tuple(told),
    )


def check_version(version: object) -> None:
    """Refuse a version that is not known here."""
    if not isinstance(version, int) or version not in LAYOUTS:
        raise Invalid(
            f"{version!r} is no version that a table can be given here.",
            next_step=f"Allowed: {', '.join(map(str, LAYOUTS))}.",
            version=version,
        )


def needs_compaction(state: TableState, relaid: bool) -> bool:
    """Say whether some slice has logs that must be compacted first, or a compaction waits."""
    if not relaid or state.config.table_type is not TableType.MERGE_ON_READ:
        return False
    return (
        bool(state.timeline.pending_compactions())
        or next(slices_with_logs(state), None) is not None
    )


def slices_with_logs(state: TableState) -> Iterator[int]:
    """Stream, for every newest slice that has logs, how many."""
    if not state.timeline.instants:
        return
    known = partitions_with_logs(state.timeline)
    for _, pieces in list_slices(state, None if known is None else sorted(known)):
        yield from (len(piece.logs) for piece in pieces if piece.logs)


def obstacles(
    state: TableState, found: VersionedProperties, options: Mapping[str, str], *, logged: bool
) -> Iterator[Obstacle]:
    """Stream what stands in the way, each with the way out."""
    relaid = found.values[LAYOUT] != str(state.config.layout)
    if find_metadata(state.storage):
        yield Obstacle(
            "the table has a metadata table, which would not change with it.",
            "Run `lakewright table disable-metadata PATH --apply` first.",
        )
    for refused in found.refused:
        yield Obstacle(f"{refused}.", "The version stays, or the table is written anew.")
    if relaid and state.config.properties.get(_BOOTSTRAP):
        yield Obstacle(
            "the table was bootstrapped: some rows lie in files outside of it.",
            "Change its version with Hudi.",
        )
    yield from _unfinished(state.timeline, options, relaid=relaid)
    if logged:
        yield from _not_compactable(state.config)


def _not_compactable(config: TableConfig) -> Iterator[Obstacle]:
    try:
        check_config(compacting_config(config))
    except LakewrightError as error:
        yield Obstacle(
            f"logs must be compacted, and {error.message}",
            "Compact the table with Hudi first, or change its version there.",
        )


def compacting_config(config: TableConfig) -> TableConfig:
    """Return the configuration in which logs are compacted: version 8 is not written here, so
    that such a table becomes one of version 9 first."""
    return TableConfig.of(at_version(config, 9).values) if config.version == 8 else config


def _unfinished(
    view: TimelineView, options: Mapping[str, str], *, relaid: bool
) -> Iterator[Obstacle]:
    dead = set(pending_failed(view, time.time(), options))
    for entry in view.entries:
        instant = entry.instant
        if instant.is_completed or entry.archived or instant in dead:
            continue
        if entry.planned is Action.COMPACTION or (not relaid and is_plan(view, entry)):
            continue
        if is_plan(view, entry):
            yield Obstacle(
                f"the {entry.planned} {instant.requested} is planned and not carried out.",
                "Carry it out, or roll it back.",
            )
        elif instant.action.completes_as.writes_data or relaid:
            yield Obstacle(
                f"the {instant.action} {instant.requested} is under way.",
                "Wait for it; once its writer is dead, it is rolled back or can be run again.",
            )


def _timeline_steps(work: Servicing, state: TableState, version: int) -> Iterator[UpgradeStep]:
    view, config = state.timeline, state.config
    failed = pending_failed(view, time.time(), work.options)
    if failed:
        yield UpgradeStep("failed writes are rolled back", "nobody works on them", len(failed))
    if config.table_type is TableType.MERGE_ON_READ:
        yield from _log_steps(work, state, version)
    target = "names without completion times, bodies in JSON"
    if version != 6:
        target = "names with completion times, bodies in Avro"
    yield UpgradeStep("instants are written anew", target, len(view.entries))
    archived = sum(1 for _ in read_history(state.storage, config))
    if archived:
        kind = (
            "a log, as version 6 keeps it" if version == 6 else "sorted files, as since version 8"
        )
        yield UpgradeStep("archived instants are written anew", f"into {kind}", archived)


def _log_steps(work: Servicing, state: TableState, version: int) -> Iterator[UpgradeStep]:
    pending = len(state.timeline.pending_compactions())
    if pending:
        yield UpgradeStep("planned compactions are carried out", "logs wait for them", pending)
    work.progress.stage("looking for slices with logs")
    logged = sum(1 for _ in slices_with_logs(state))
    if logged:
        if state.config.version == 8:
            yield UpgradeStep("the properties of version 9", "version 8 is not written here")
        why = "logs are named and assigned otherwise in the other layout"
        yield UpgradeStep("slices are compacted", why, logged)
    if version == 6 and state.timeline.instants:
        renamed = len(plan_renames(state))
        if renamed:
            why = "version 6 finds the slice of a log by its name; history stays readable"
            yield UpgradeStep("logs are renamed", why, renamed)


def _definition_steps(storage: Storage, version: int) -> Iterator[UpgradeStep]:
    known, wanted = index_definitions(storage, version)
    if wanted is None or wanted == known:
        return
    why = "version 9 wants their version" if version == 9 else "only version 9 knows them"
    yield UpgradeStep("index definitions are replaced", why, len(known))


def index_definitions(
    storage: Storage, version: int
) -> tuple[list[IndexDefinition], list[IndexDefinition] | None]:
    """Return the definitions of indexes that the table has, and those it has at a version.

    The second is None where the file stays as it is. Without a metadata table none of them is in
    use.
    """
    try:
        known = list(decode_index_defs(storage.read(INDEX_DEFS_PATH)).values())
    except NotFound:
        return [], None
    if version == 9:
        return known, [_at_first_version(definition) for definition in known]
    return known, [d for d in known if d.version in (None, "V1")]


def _at_first_version(definition: IndexDefinition) -> IndexDefinition:
    if definition.version is not None:
        return definition
    return IndexDefinition(
        definition.name,
        definition.type,
        definition.function,
        definition.source_fields,
        definition.options,
        "V1",
    )
