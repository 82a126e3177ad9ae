"""What a table's own settings say about changing its rows, and how its rows are read for it."""

from collections.abc import Iterable
from dataclasses import replace

from lakewright.actions.rowlevel.arrow import IDENTITY
from lakewright.actions.rowlevel.names import own_names, resolved, target_side
from lakewright.actions.rowlevel.plan import Rules
from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan, readable_columns
from lakewright.actions.tasks.read import ReadTask, Task, run_task
from lakewright.actions.write.admission import admit
from lakewright.format.hudi.partition_paths import leads_back
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.expression.bind import bind
from lakewright.model.expression.nodes import Expression
from lakewright.model.schema import Struct
from lakewright.model.table import MergeMode
from lakewright.table.evolution import stored_schema
from lakewright.table.state import TableState, table_schema


def rules_of(state: TableState) -> Rules:
    """Return the rules of a table; ``Invalid`` where it holds nothing that could be changed."""
    config = state.config
    columns = stored_schema(state)
    if columns is None:
        raise Invalid(f"the table {config.name} has no schema yet.", next_step="Write rows first.")
    shown = table_schema(state)
    if formatted := [f.name for f in columns if shown.field(f.name).type != f.type]:
        raise Unsupported(
            f"column {', '.join(formatted)} is shown as its partition's text, so that its values "
            "cannot be kept.",
            next_step="Write the changed rows with upsert().",
            columns=formatted,
        )
    layout = admit(state, {})
    ordered = config.merge_mode is MergeMode.EVENT_TIME_ORDERING
    # Of a member of a struct the whole column is guarded; its order cannot be compared here.
    return Rules(
        columns=columns,
        key=_columns(config.record_key, columns),
        partition_by=_columns([field.name for field in config.partition_fields], columns),
        ordering=tuple(n for n in config.ordering if n in columns) if ordered else (),
        identity=() if config.record_key else IDENTITY,
        global_keys=layout.kind.is_global,
    )


def _columns(names: Iterable[str], columns: Struct) -> tuple[str, ...]:
    whole = (name if name in columns else name.partition(".")[0] for name in names)
    return tuple(dict.fromkeys(whole))


def own_condition(state: TableState, rules: Rules, where: Expression) -> Expression:
    """Return a condition on the table under its own names; ``t.`` and ``target.`` may be written.

    ``UnknownColumn`` names the nearest columns.
    """
    side = target_side(readable_columns(state, rules.columns))
    own = own_names(resolved(where, (side,)))
    bind(own, side.schema)
    return own


def scan_for_change(state: TableState, rules: Rules, where: Expression | None) -> ScanPlan:
    """Plan to read rows with everything that changing them needs.

    ``Unsupported`` where a changed row would not lie where it lay.
    """
    columns = (*rules.columns.names, *rules.identity)
    return in_place(plan_scan(state, ScanRequest(where=where, columns=columns)), rules)


def in_place(plan: ScanPlan, rules: Rules) -> ScanPlan:
    """Return the plan without the partitions whose path does not show the values that made it.

    ``Unsupported`` where one of them holds a row of the plan: written back with the values that it
    shows it would be in another partition, beside what it was. Where an index finds a key in every
    partition, or the rows carry their partition, they are found all the same.
    """
    if rules.identity or rules.global_keys or not rules.partition_by:
        return plan
    known: dict[str, bool] = {}
    kept: list[Task] = []
    for task in plan.tasks:
        if not isinstance(task, ReadTask):
            kept.append(task)
            continue
        at, values = task.partition.path, task.partition.values
        if at not in known:
            known[at] = leads_back(at, values, plan.spec.config, rules.columns)
        if known[at]:
            kept.append(task)
        elif any(batch.num_rows for batch in run_task(plan.spec, task)):
            shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
            raise Unsupported(
                f"rows of partition {at!r} show {shown}, which they were not written with: once "
                "changed, they would be in another partition, beside what they were.",
                next_step="Give rows with the values of before to upsert() or delete(); or keep "
                "them in a table with url encoding, which shows what was written.",
                partition=at,
            )
    return replace(plan, tasks=tuple(kept))
