"""What a table's own settings say about changing its rows, and how its rows are read for it."""

from lakewright.actions.rowlevel.arrow import IDENTITY
from lakewright.actions.rowlevel.plan import Rules
from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan
from lakewright.actions.write.admission import admit
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.expression.nodes import Expression
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
    return Rules(
        columns=columns,
        key=config.record_key,
        partition_by=tuple(field.name for field in config.partition_fields),
        ordering=config.ordering if ordered else (),
        identity=() if config.record_key else IDENTITY,
        global_keys=layout.kind.is_global,
    )


def scan_for_change(state: TableState, rules: Rules, where: Expression | None) -> ScanPlan:
    """Plan to read rows with everything that changing them needs."""
    columns = (*rules.columns.names, *rules.identity)
    return plan_scan(state, ScanRequest(where=where, columns=columns))
