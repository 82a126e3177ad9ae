"""Procedures of clustering."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakewright.actions.services.clustering_options import PATTERN
from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.interfaces.sql.procedures.registry import Arguments, Kind, Parameter, procedure
from lakewright.interfaces.sql.procedures.services import (
    ALL,
    INSTANTS,
    SHOWN,
    chosen_plans,
    operation_of,
    planned,
)
from lakewright.interfaces.sql.procedures.tables import (
    INT,
    OPTIONS,
    PATH,
    TABLE,
    TEXT,
    Row,
    limited,
    named_table,
    settings_of,
    text_of,
)
from lakewright.model.errors import Invalid
from lakewright.model.expression.analyse import references
from lakewright.model.expression.bind import bind
from lakewright.model.expression.parse import parse_expression
from lakewright.model.options import parse_names
from lakewright.model.shown import Shown

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table

INVOLVED = Parameter(
    "show_involved_partition", Kind.FLAG, False, doc="Name the partitions instead of *."
)
_CLUSTERING = pa.schema(
    [
        ("timestamp", TEXT),
        ("input_group_size", INT),
        ("state", TEXT),
        ("involved_partitions", TEXT),
    ]
)


def _operation(arguments: Arguments) -> str:
    named = text_of(arguments, "instants") is not None
    return operation_of(arguments, "run" if named else "scheduleandexecute")


def _planning(table: "Table", arguments: Arguments) -> dict[str, Any]:
    pattern = text_of(arguments, "partition_regex_pattern")
    options = settings_of(arguments)
    return {
        "partitions": _partitions(table, arguments),
        "sort_by": text_of(arguments, "order"),
        "layout": text_of(arguments, "order_strategy"),
        "options": options if pattern is None else {**options, PATTERN.key: pattern},
    }


def _plan_clustering(lake: "Lake", arguments: Arguments) -> Iterator[Shown | None]:
    table, operation = named_table(lake, arguments), _operation(arguments)
    if operation != "run":
        yield table.schedule_clustering(**_planning(table, arguments), dry_run=True)
    if operation != "schedule":
        waiting = chosen_plans(table.clusterings(), arguments)
        yield from planned(table.clusterings(), waiting)


@procedure(
    "run_clustering",
    _CLUSTERING,
    TABLE,
    PATH,
    Parameter("predicate", default=None, doc="A condition on the partition columns."),
    Parameter("order", default=None, doc="Columns to sort by, commas between."),
    INVOLVED,
    Parameter("op", default=None, doc="schedule, execute or scheduleAndExecute."),
    Parameter("order_strategy", default=None, doc="linear, zorder or hilbert."),
    OPTIONS,
    INSTANTS,
    Parameter("selected_partitions", default=None, doc="The only ones, commas between."),
    Parameter("partition_regex_pattern", default=None, doc="Partitions whose path matches."),
    ALL,
    writes=True,
    plan=_plan_clustering,
)
def run_clustering(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Plan clusterings, carry out those that wait, or both."""
    table, operation = named_table(lake, arguments), _operation(arguments)
    if operation != "run":
        plan = table.schedule_clustering(**_planning(table, arguments))
    if operation == "schedule":
        plans = [] if plan is None or plan.instant is None else [plan.instant.requested]
    else:
        plans = chosen_plans(table.clusterings(), arguments)
        for waiting in plans:
            table.cluster(waiting, options=settings_of(arguments))
    return limited(_clusterings(table, plans, arguments), arguments)


@procedure("show_clustering", _CLUSTERING, TABLE, PATH, SHOWN, INVOLVED)
def show_clustering(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the clusterings of a table: planned, begun and done."""
    return limited(_clusterings(named_table(lake, arguments), None, arguments), arguments)


def _clusterings(table: "Table", only: list[str] | None, arguments: Arguments) -> Iterator[Row]:
    for found in table.clusterings() if only is None or only else ():
        if only is None or found.instant.requested in only:
            named = ",".join(found.partitions) if arguments["show_involved_partition"] else "*"
            yield {
                "timestamp": found.instant.requested,
                "input_group_size": found.groups,
                "state": found.instant.state.value.upper(),
                "involved_partitions": named,
            }


def _partitions(table: "Table", arguments: Arguments) -> list[str] | None:
    """Return the partitions that a call names, by path or by condition; None for all."""
    selected = text_of(arguments, "selected_partitions")
    predicate = text_of(arguments, "predicate")
    if predicate is None:
        return None if selected is None else list(parse_names(selected))
    if selected is not None:
        raise Invalid(
            "give predicate or selected_partitions, and one of them.",
            next_step="Leave one of them out.",
        )
    bound = bind(parse_expression(predicate), from_arrow_schema(table.schema))
    by = table.definition.partition_by
    other = sorted({".".join(path) for path in references(bound)}.difference(by))
    if other:
        raise Invalid(
            f"predicate: {', '.join(other)} is no partition column.",
            next_step=f"Partition columns: {', '.join(by) or 'none'}.",
        )
    return [partition.path for partition in table.files.partitions([bound])]
