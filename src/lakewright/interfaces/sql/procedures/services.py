"""Procedures that keep a table fast and small: compaction, cleaning, archiving."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakewright.actions.services.clean_options import COMMITS, HOURS, POLICY, TRIGGER, VERSIONS
from lakewright.actions.services.cleaning import cleaning_due
from lakewright.interfaces.sql.procedures.registry import Arguments, Kind, Parameter, procedure
from lakewright.interfaces.sql.procedures.tables import (
    INT,
    LONG,
    OPTIONS,
    PATH,
    TABLE,
    TEXT,
    Row,
    limited,
    named_table,
    settings_of,
    text_of,
    whole_of,
)
from lakewright.model.errors import InstantNotFound, Invalid
from lakewright.model.shown import Shown

if TYPE_CHECKING:
    from lakewright.actions.services.views import Cleaning, PlannedService
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table

ALL = Parameter("limit", Kind.WHOLE, None, doc="At most so many rows.", least=0)
SHOWN = Parameter("limit", Kind.WHOLE, 20, doc="At most so many rows.", least=0)
INSTANTS = Parameter("instants", default=None, doc="The plans to carry out, commas between.")
_OPERATIONS = ("run", "execute", "schedule", "scheduleandexecute")

_COMPACTION = pa.schema([("timestamp", TEXT), ("operation_size", INT), ("state", TEXT)])


def operation_of(arguments: Arguments, default: str) -> str:
    """Return what is to be done: ``run``, ``schedule`` or ``scheduleandexecute``.

    Only what runs plans takes ``instants`` of plans.
    """
    given = (text_of(arguments, "op") or default).lower()
    if given not in _OPERATIONS:
        raise Invalid(
            f"op is {given!r}.", next_step="Allowed: run, execute, schedule, scheduleAndExecute."
        )
    operation = "run" if given == "execute" else given
    named = text_of(arguments, "instants")
    if named is not None and operation != "run":
        raise Invalid(
            f"instants is {named!r}, and op {given} makes a plan of its own.",
            next_step="Leave instants out, or give op => 'run'.",
            parameter="instants",
            value=named,
        )
    return operation


def chosen_plans(
    waiting: Iterable["PlannedService"], arguments: Arguments, *also: str | None
) -> list[str]:
    """Return the instants of plans to carry out, oldest first; those that the call names, or all.

    ``InstantNotFound`` where one that it names does not wait.
    """
    found = sorted(plan.instant.requested for plan in waiting if not plan.instant.is_completed)
    named = [text.strip() for text in (text_of(arguments, "instants") or "").split(",")]
    wanted = [text for text in (*named, *also) if text]
    for text in wanted:
        if text not in found:
            raise InstantNotFound(
                f"no plan {text} waits.",
                next_step=f"Waiting: {', '.join(found) or 'none'}.",
                instant=text,
            )
    return [text for text in found if text in wanted] if wanted else found


def planned(services: Iterable["PlannedService"], only: list[str]) -> Iterator[Shown]:
    """Stream the plans of these instants, oldest first."""
    found = (service for service in services if service.instant.requested in only)
    return iter(sorted(found, key=lambda service: service.instant))


def _plan_compaction(lake: "Lake", arguments: Arguments) -> Iterator[Shown | None]:
    table, at = named_table(lake, arguments), text_of(arguments, "timestamp")
    if operation_of(arguments, "run") == "run":
        yield from planned(table.compactions(), chosen_plans(table.compactions(), arguments, at))
        return
    yield table.schedule_compaction(instant=at, dry_run=True, options=settings_of(arguments))


@procedure(
    "run_compaction",
    _COMPACTION,
    Parameter("op", doc="run, schedule or scheduleAndExecute."),
    TABLE,
    PATH,
    Parameter("timestamp", default=None, doc="A plan to run, or the instant of a new one."),
    OPTIONS,
    INSTANTS,
    ALL,
    writes=True,
    plan=_plan_compaction,
)
def run_compaction(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Plan compactions, carry them out, or both."""
    table, options = named_table(lake, arguments), settings_of(arguments)
    operation, at = operation_of(arguments, "run"), text_of(arguments, "timestamp")
    if operation == "run":
        plans = chosen_plans(table.compactions(), arguments, at)
    else:
        made = table.schedule_compaction(instant=at, options=options)
        plans = [] if made is None or made.instant is None else [made.instant.requested]
    if operation != "schedule":
        for plan in plans:
            table.compact(plan, options=options)
    return limited(_compactions(table, plans), arguments)


@procedure("show_compaction", _COMPACTION, TABLE, PATH, SHOWN, aliases=("show_compactions",))
def show_compaction(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the compactions of a table: planned, begun and done."""
    return limited(_compactions(named_table(lake, arguments), None), arguments)


def _compactions(table: "Table", only: list[str] | None) -> Iterator[Row]:
    for found in table.compactions() if only is None or only else ():
        if only is None or found.instant.requested in only:
            yield {
                "timestamp": found.instant.requested,
                "operation_size": found.groups,
                "state": found.instant.state.value.upper(),
            }


def _plan_clean(lake: "Lake", arguments: Arguments) -> Iterator[Shown | None]:
    table = named_table(lake, arguments)
    yield from sorted(_waiting(table), key=lambda cleaning: cleaning.instant)
    if arguments["schedule_in_line"] and _is_due(table, arguments):
        yield table.schedule_cleaning(dry_run=True, options=_settings(arguments))


@procedure(
    "run_clean",
    pa.schema(
        [
            ("start_clean_time", TEXT),
            ("time_taken_in_millis", LONG),
            ("total_files_deleted", INT),
            ("earliest_commit_to_retain", TEXT),
            ("bootstrap_part_metadata", TEXT),
            ("version", INT),
        ]
    ),
    TABLE,
    Parameter("schedule_in_line", Kind.FLAG, True, doc="Plan one; else run those that wait."),
    Parameter("clean_policy", default=None, doc="KEEP_LATEST_COMMITS, …"),
    Parameter("retain_commits", Kind.WHOLE, None, doc="With KEEP_LATEST_COMMITS."),
    Parameter("hours_retained", Kind.WHOLE, None, doc="With KEEP_LATEST_BY_HOURS."),
    Parameter("file_versions_retained", Kind.WHOLE, None, doc="With KEEP_LATEST_FILE_VERSIONS."),
    Parameter("trigger_strategy", default=None, doc="NUM_COMMITS."),
    Parameter("trigger_max_commits", Kind.WHOLE, None, doc="Commits after which one is due."),
    OPTIONS,
    PATH,
    Parameter("skip_locking", Kind.FLAG, False, doc="Accepted; the table's lock is always taken."),
    writes=True,
    plan=_plan_clean,
)
def run_clean(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Delete files that no reader of the retained history needs."""
    table, options = named_table(lake, arguments), _settings(arguments)
    known = {c.instant.requested for c in table.cleanings() if c.done is not None}
    if arguments["schedule_in_line"] and _is_due(table, arguments):
        table.clean(options=options)
    else:
        for waiting in sorted(cleaning.instant for cleaning in _waiting(table)):
            table.clean(waiting, options=options)
    for cleaned in table.cleanings():
        if cleaned.done is not None and cleaned.instant.requested not in known:
            yield {
                "start_clean_time": cleaned.done.start,
                "time_taken_in_millis": cleaned.done.millis,
                "total_files_deleted": cleaned.done.total_deleted,
                "earliest_commit_to_retain": cleaned.done.earliest_to_retain,
                "bootstrap_part_metadata": str(dict(cleaned.done.bootstrap_partitions)),
                "version": cleaned.done.version,
            }


def _waiting(table: "Table") -> Iterator["Cleaning"]:
    return (cleaning for cleaning in table.cleanings() if cleaning.done is None)


def _is_due(table: "Table", arguments: Arguments) -> bool:
    """Say whether a new cleaning is planned: always, unless the call names a trigger."""
    given = _settings(arguments)
    if not TRIGGER.given(given):
        return True
    return cleaning_due(table.timeline, {**table.definition.properties, **given}) is not None


def _settings(arguments: Arguments) -> dict[str, str]:
    return {**settings_of(arguments), **_cleaning(arguments)}


def _cleaning(arguments: Arguments) -> dict[str, str]:
    strategy = text_of(arguments, "trigger_strategy")
    if strategy is not None and strategy.upper() != "NUM_COMMITS":
        raise Invalid(f"trigger_strategy is {strategy!r}.", next_step="Allowed: NUM_COMMITS.")
    given = {
        POLICY.key: text_of(arguments, "clean_policy"),
        COMMITS.key: whole_of(arguments, "retain_commits"),
        HOURS.key: whole_of(arguments, "hours_retained"),
        VERSIONS.key: whole_of(arguments, "file_versions_retained"),
        TRIGGER.key: whole_of(arguments, "trigger_max_commits"),
    }
    return {key: str(value) for key, value in given.items() if value is not None}


def _archiving(arguments: Arguments) -> dict[str, Any]:
    return {
        "min_commits": whole_of(arguments, "min_commits"),
        "max_commits": whole_of(arguments, "max_commits"),
        "options": settings_of(arguments),
    }


def _plan_archive(lake: "Lake", arguments: Arguments) -> Iterator[Shown | None]:
    yield named_table(lake, arguments).plan_archive(**_archiving(arguments))


@procedure(
    "archive_commits",
    pa.schema([("result", INT), ("instants", INT)]),
    TABLE,
    PATH,
    Parameter("min_commits", Kind.WHOLE, 20, doc="Commits that stay on the active timeline."),
    Parameter("max_commits", Kind.WHOLE, 30, doc="Commits from which on the oldest go."),
    Parameter(
        "retain_commits",
        Kind.WHOLE,
        10,
        doc="Accepted; what cleaning needs always stays.",
        least=1,
    ),
    Parameter("enable_metadata", Kind.FLAG, False, doc="Accepted; no metadata table is written."),
    OPTIONS,
    writes=True,
    plan=_plan_archive,
)
def archive_commits(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Move the oldest instants into the archived history; 0 is success."""
    done = named_table(lake, arguments).archive(**_archiving(arguments))
    yield {"result": 0, "instants": len(done.instants)}
