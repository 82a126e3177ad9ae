"""Updates and merges with DataFrames, by the same plans that run over Arrow rows.

A row that is to be stored and a stored row that is to go both come out of one join: a row that
moves to another partition is both, and is doubled.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions

from lakewright.actions.rowlevel.arrow import IDENTITY
from lakewright.actions.rowlevel.clauses import Act
from lakewright.actions.rowlevel.merge import refuse_twice
from lakewright.actions.rowlevel.names import source_name, target_name
from lakewright.actions.rowlevel.narrow import LISTED, Known, narrowable, narrowing
from lakewright.actions.rowlevel.plan import MergePlan, Rules, Step
from lakewright.actions.rowlevel.rules import scan_for_change
from lakewright.actions.rowlevel.update import SAMPLE, refuse_lowered
from lakewright.actions.scan import ScanPlan
from lakewright.actions.tasks.write_spec import ROUTE_DELETE
from lakewright.engine.spark.assign import assigned_sql
from lakewright.engine.spark.expression import spark_sql
from lakewright.engine.spark.scan import to_spark
from lakewright.model.schema import DATE, INT, LONG, STRING
from lakewright.table.state import TableState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_IN_TARGET, _IN_SOURCE, _STEP, _PLACE = "_lw_t", "_lw_s", "_lw_step", "_lw_place"
_NO_STEP = -1
#: Types whose values come to the driver as the expressions know them.
_PLAIN = (INT, LONG, STRING, DATE)


def updated_frame(spark: "SparkSession", scan: ScanPlan, step: Step, rules: Rules) -> "DataFrame":
    """Return the changes of an update of all rows of a scan."""
    rows = _prefixed(to_spark(scan, spark), target_name)
    _refuse_lowered(rows, step, rules)
    return _changes(rows.withColumn(_STEP, functions.lit(0)), [step], rules)


def merged_frame(source: "DataFrame", plan: MergePlan, state: TableState) -> "DataFrame":
    """Return the changes of a merge; ``source`` may be computed more than once."""
    spark = source.sparkSession
    other = _prefixed(source, source_name)
    wanted = narrowing(plan, _known(plan, other))
    rows = to_spark(scan_for_change(state, plan.rules, wanted), spark)
    target = _prefixed(rows, target_name)
    _refuse_twice(target, other, plan)
    steps = [*plan.matched, *plan.not_matched, *plan.by_source]
    joined = target.withColumn(_IN_TARGET, functions.lit(True)).join(
        other.withColumn(_IN_SOURCE, functions.lit(True)), functions.expr(_on(plan)), _how(plan)
    )
    return _changes(joined.withColumn(_STEP, functions.expr(_chosen(plan))), steps, plan.rules)


@contextmanager
def kept(source: "DataFrame") -> Iterator["DataFrame"]:
    """Keep the rows of a source while it is used, so that each look at them sees the same."""
    held = source.persist()
    try:
        yield held
    finally:
        held.unpersist()


def _prefixed(frame: "DataFrame", name: Callable[[str], str]) -> "DataFrame":
    return frame.toDF(*(name(column) for column in frame.columns))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _on(plan: MergePlan) -> str:
    parts = [f"({spark_sql(left)} = {spark_sql(right)})" for left, right in plan.pairs]
    if plan.residual is not None:
        parts.append(f"({spark_sql(plan.residual)})")
    return " AND ".join(parts) or "true"


def _how(plan: MergePlan) -> str:
    inserts = any(step.act is Act.INSERT for step in plan.not_matched)
    if plan.moot:
        return "right" if inserts else "inner"
    return "full" if inserts else "left"


def _chosen(plan: MergePlan) -> str:
    """Return the number of the step that a joined row meets, ``_NO_STEP`` for none."""
    first = len(plan.matched)
    second = first + len(plan.not_matched)
    return (
        f"CASE WHEN {_IN_TARGET} AND {_IN_SOURCE} THEN {_first(plan.matched, 0)} "
        f"WHEN {_IN_SOURCE} THEN {_first(plan.not_matched, first)} "
        f"ELSE {_first(plan.by_source, second)} END"
    )


def _first(steps: Sequence[Step], start: int) -> str:
    whens = ""
    for number, step in enumerate(steps, start):
        claimed = _NO_STEP if step.act is Act.IGNORE else number
        where = "true" if step.where is None else spark_sql(step.where)
        whens += f"WHEN {where} THEN {claimed} "
    return f"CASE {whens}ELSE {_NO_STEP} END" if whens else f"{_NO_STEP}"


def _changes(rows: "DataFrame", steps: Sequence[Step], rules: Rules) -> "DataFrame":
    """Return whole rows with the mark of those that are to be deleted."""
    acting = rows.where(f"{_STEP} >= 0")
    marked = acting.withColumn(
        ROUTE_DELETE, functions.explode(functions.expr(_marks(steps, rules)))
    )
    values: list[Column] = []
    for place, column in enumerate(rules.columns):
        old = _quoted(target_name(column.name))
        made = "".join(
            f"WHEN {number} THEN {assigned_sql(step.values[place])} "
            for number, step in enumerate(steps)
            if step.values
        )
        new = f"CASE {_STEP} {made}END" if made else old
        whole = f"CASE WHEN {ROUTE_DELETE} THEN {old} ELSE {new} END"
        values.append(functions.expr(whole).alias(column.name))
    for name in rules.identity:
        values.append(functions.col(_quoted(target_name(name))).alias(name))
    return marked.select(*values, functions.col(ROUTE_DELETE))


def _marks(steps: Sequence[Step], rules: Rules) -> str:
    """Return which rows a step makes of one: a new one, a deleted one, or both."""
    whens = ""
    for number, step in enumerate(steps):
        if step.act is Act.DELETE:
            whens += f"WHEN {_STEP} = {number} THEN array(true) "
        elif step.moves:
            same = " AND ".join(
                f"({assigned_sql(assigned)} <=> {_quoted(target_name(assigned.column.name))})"
                for assigned in step.values
                if assigned.column.name in rules.partition_by
            )
            whens += f"WHEN {_STEP} = {number} AND NOT ({same}) THEN array(true, false) "
    return f"CASE {whens}ELSE array(false) END" if whens else "array(false)"


def _refuse_lowered(rows: "DataFrame", step: Step, rules: Rules) -> None:
    by_name = {assigned.column.name: assigned for assigned in step.values}
    lower, tie = "false", "true"
    for name in rules.ordering:
        new, old = assigned_sql(by_name[name]), _quoted(target_name(name))
        if new == old:
            continue
        less = f"coalesce({new} < {old}, {new} IS NULL AND {old} IS NOT NULL)"
        lower = f"({lower} OR ({tie} AND {less}))"
        tie = f"({tie} AND ({new} <=> {old}))"
    if lower == "false":
        return
    names = [*(rules.key or rules.identity), *rules.ordering]
    low = rows.where(functions.expr(lower)).select(
        *(functions.col(_quoted(target_name(n))) for n in names)
    )
    sample: list[object] = [
        dict(zip(names, row, strict=True)) for row in low.limit(SAMPLE).collect()
    ]
    if sample:
        raise refuse_lowered(rules, low.count(), sample)


def _refuse_twice(target: "DataFrame", source: "DataFrame", plan: MergePlan) -> None:
    """Refuse several source rows for one row; a source with one row per key cannot have them."""
    if not any(step.act is Act.UPDATE for step in plan.matched):
        return
    if plan.pairs and not _repeats(source, plan):
        return
    rules = plan.rules
    names = rules.key or rules.identity
    acting = f"{_first(plan.matched, 0)} >= 0"
    numbered = target.withColumn(_PLACE, functions.monotonically_increasing_id())
    shown = [
        functions.first(_quoted(target_name(n))).alias(f"_lw_k{i}") for i, n in enumerate(names)
    ]
    twice = (
        numbered.join(source, functions.expr(_on(plan)), "inner")
        .where(functions.expr(acting))
        .groupBy(_PLACE)
        .agg(functions.count(functions.lit(1)).alias("_lw_n"), *shown)
        .where("_lw_n > 1")
    )
    sample = twice.limit(SAMPLE).collect()
    if sample:
        keys = [tuple(row[f"_lw_k{i}"] for i in range(len(names))) for row in sample]
        raise refuse_twice(twice.count(), keys)


def _repeats(source: "DataFrame", plan: MergePlan) -> bool:
    keys = [
        functions.expr(spark_sql(right)).alias(f"_lw_k{i}")
        for i, (_, right) in enumerate(plan.pairs)
    ]
    there = " AND ".join(f"_lw_k{i} IS NOT NULL" for i in range(len(keys)))
    names = [f"_lw_k{i}" for i in range(len(keys))]
    counted = source.select(*keys).where(there).groupBy(*names).count()
    return bool(counted.where("count > 1").limit(1).collect())


def _known(plan: MergePlan, source: "DataFrame") -> dict[int, Known]:
    """Ask the source for its least and greatest values, or for all where they are few."""
    places = [p for p, right in narrowable(plan).items() if right.type in _PLAIN]
    if not places:
        return {}
    sides = {place: functions.expr(spark_sql(plan.pairs[place][1])) for place in places}
    asked = [
        column
        for place, side in sides.items()
        for column in (
            functions.min(side).alias(f"min{place}"),
            functions.max(side).alias(f"max{place}"),
            functions.approx_count_distinct(side).alias(f"n{place}"),
        )
    ]
    (told,) = source.agg(*asked).collect()
    found: dict[int, Known] = {}
    for place, side in sides.items():
        if told[f"min{place}"] is None:
            found[place] = Known(())
        elif told[f"n{place}"] <= LISTED // 2:
            values = source.select(side.alias("v")).where("v IS NOT NULL").distinct().collect()
            found[place] = Known(tuple(row["v"] for row in values))
        else:
            found[place] = Known((told[f"min{place}"], told[f"max{place}"]), ends=True)
    return found


def located(frame: "DataFrame", scan: ScanPlan, names: Sequence[str]) -> "DataFrame":
    """Return record keys and partition paths of the rows of a scan whose keys a frame names.

    ``names`` are the key columns, which the scan reads beside both.
    """
    stored = to_spark(scan, frame.sparkSession)
    types = {field.name: field.dataType for field in stored.schema.fields}
    columns = [functions.col(_quoted(name)).cast(types[name]) for name in names]
    wanted = frame.select(*(column.alias(f"wanted_{i}") for i, column in enumerate(columns)))
    # A null is part of a key where others are beside it.
    same = [stored[n].eqNullSafe(wanted[f"wanted_{i}"]) for i, n in enumerate(names)]
    return stored.join(wanted, reduce(and_, same), "left_semi").select(*IDENTITY)
