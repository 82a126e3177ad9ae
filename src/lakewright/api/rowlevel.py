"""The verbs that change rows by what they hold; ``Table`` has them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from lakewright.actions.rowlevel.arrow import IDENTITY, change_schema, changes
from lakewright.actions.rowlevel.clauses import (
    ClauseForms,
    read_clauses,
    read_expression,
    read_values,
)
from lakewright.actions.rowlevel.covering import whole_partitions
from lakewright.actions.rowlevel.merge import merge_rows
from lakewright.actions.rowlevel.narrow import known_values, narrowing
from lakewright.actions.rowlevel.plan import MergePlan, Rules, plan_merge, plan_update
from lakewright.actions.rowlevel.rules import in_place, own_condition, rules_of, scan_for_change
from lakewright.actions.rowlevel.update import update_rows
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.actions.write.intake import write_options
from lakewright.actions.write.request import Change, WriteRequest
from lakewright.actions.write.rows import ArrowRows
from lakewright.api.rows import arrow_rows, is_spark_frame
from lakewright.api.writing import Writable, WriteOptions
from lakewright.engine.local.scan import scan_batches
from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.model.errors import Invalid
from lakewright.model.expression.nodes import Expression
from lakewright.model.schema import Struct
from lakewright.model.writing import Operation, WriteResult
from lakewright.table.evolution import stored_schema
from lakewright.table.state import TableState

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession


class Editable(Writable):
    """The verbs that change rows by what they hold: each is one commit, or none."""

    def update(
        self,
        set: Mapping[str, object],
        where: Expression | str | None = None,
        **how: Unpack[WriteOptions],
    ) -> WriteResult:
        """Give columns new values in the rows for which ``where`` holds; in all without it.

        ``set`` has an expression, SQL text or a constant for each column: ``{"qty": "qty + 1"}``;
        a text constant is ``lit("text")`` or ``"'text'"``. Columns of the record key cannot be
        set. A row whose partition column changes moves to its new partition. A row that would
        get a lower ordering value than it has is refused, since the table would keep the old one.
        """
        values = read_values(set)
        if values is None:
            raise Invalid("set='*' has no source to take values from.", next_step="Name columns.")
        state = self._state()
        rules = rules_of(state)
        plan_update(rules, values)  # what is wrong with it is said before anything begins
        condition = None if where is None else own_condition(state, rules, read_expression(where))

        def local(now: TableState) -> Change[Any]:
            rules = rules_of(now)
            step = plan_update(rules, values)
            batches = scan_batches(scan_for_change(now, rules, condition))
            return Change(_rows(changes(update_rows(step, batches, rules), rules), rules))

        def on_spark(now: TableState) -> Change[Any]:
            from lakewright.engine.spark.rowlevel import updated_frame

            rules = rules_of(now)
            assert spark is not None
            step = plan_update(rules, values)
            return Change(updated_frame(spark, scan_for_change(now, rules, condition), step, rules))

        spark = self._spark
        return self._change(state, on_spark if spark is not None else local, spark, how)

    def merge(
        self,
        source: object,
        on: Expression | str,
        *,
        when_matched: ClauseForms = None,
        when_not_matched: ClauseForms = None,
        when_not_matched_by_source: ClauseForms = None,
        **how: Unpack[WriteOptions],
    ) -> WriteResult:
        """Change rows by those of a source that they match, in one commit.

        ``source`` is what ``insert`` takes. ``on`` says which rows match; it and all other
        expressions name columns as ``t.column`` (or ``target.``) and ``s.column`` (``source.``).
        Each ``when_…`` is ``"update"``, ``"delete"``, ``"insert"`` or ``"ignore"``; or a mapping
        with one of ``{"set": {column: expression} or "*"}``, ``{"insert": … or "*"}``,
        ``{"delete": True}``, ``{"ignore": True}`` and perhaps ``"where"``; or a list of these, of
        which the first that holds for a row counts. ``"update"`` and ``"insert"`` take each column
        from the one of the same name in the source.

        Several source rows that would change one row are refused with a sample. A row with a
        lower ordering value than the stored one loses against it, as in ``upsert``.
        """
        condition = read_expression(on)
        clauses = {
            "when_matched": read_clauses("when_matched", when_matched),
            "when_not_matched": read_clauses("when_not_matched", when_not_matched),
            "when_not_matched_by_source": read_clauses(
                "when_not_matched_by_source", when_not_matched_by_source
            ),
        }

        def planned(now: TableState, columns: Struct) -> MergePlan:
            return plan_merge(rules_of(now), columns, condition, clauses)

        state = self._state()
        if is_spark_frame(source):
            from lakewright.engine.spark.rowlevel import kept, merged_frame
            from lakewright.engine.spark.schema import from_spark_schema, told_voids

            frame: Any = told_voids(source, stored_schema(state))
            given = from_spark_schema(frame.schema)
            planned(state, given)
            with kept(frame) as held:
                return self._change(
                    state,
                    lambda now: Change(merged_frame(held, planned(now, given), now)),
                    held.sparkSession,
                    how,
                )
        rows = arrow_rows(source, stored_schema(state), typed=False)
        columns = from_arrow_schema(rows.schema)
        planned(state, columns)
        whole = pa.Table.from_batches(rows.batches(last=True), rows.schema)

        def local(now: TableState) -> Change[Any]:
            plan = planned(now, columns)
            wanted = narrowing(plan, known_values(plan, whole))
            batches = scan_batches(scan_for_change(now, plan.rules, wanted))
            return Change(_rows(changes(merge_rows(plan, batches, whole), plan.rules), plan.rules))

        return self._change(state, local, None, how)

    def _delete_where(self, where: Expression | str, how: WriteOptions) -> WriteResult:
        state = self._state()
        rules = rules_of(state)
        condition = own_condition(state, rules, read_expression(where))
        whole = whole_partitions(state, condition)
        if whole is not None:
            request = self._request(state, Operation.DELETE_PARTITION, how, partitions=whole)
            return self._run(state, None, request)
        if self._spark is None:
            return super()._delete_where(condition, how)
        return self._delete_on_spark(state, self._spark, rules, condition, how)

    def _delete_rows(self, rows: object, how: WriteOptions) -> WriteResult:
        if not is_spark_frame(rows):
            return super()._delete_rows(rows, how)
        from lakewright.engine.spark.estimate import estimate

        state = self._state()
        frame: Any = rows
        names, config = frozenset(frame.columns), state.config
        placed = all(field.name in names for field in config.partition_fields)
        plain = self._request(state, Operation.DELETE, how)
        limit = WriteSettings.of(write_options(state, plain)).driver_bytes
        named = bool(config.record_key) and names.issuperset(config.record_key)
        if placed or not named or estimate(frame).size <= limit:
            return super()._delete_rows(rows, how)
        return self._delete_joined(frame, plain)

    def _delete_joined(self, frame: Any, request: WriteRequest[Any]) -> WriteResult:  # noqa: ANN401 - a DataFrame
        """Delete the keys of many rows without their partitions: Spark finds where they lie."""
        from lakewright.engine.spark.rowlevel import located
        from lakewright.engine.spark.schema import told_voids

        def keys(now: TableState) -> Change[Any]:
            names = now.config.record_key
            scan = plan_scan(now, ScanRequest(columns=(*names, *IDENTITY)))
            return Change(located(told_voids(frame, stored_schema(now)), scan, names))

        return self._run(
            self._state(), None, replace(request, change=keys, prepared=True), frame.sparkSession
        )

    def _delete_on_spark(
        self,
        state: TableState,
        spark: "SparkSession",
        rules: Rules,
        where: Expression,
        how: WriteOptions,
    ) -> WriteResult:
        from lakewright.engine.spark.scan import to_spark

        columns = tuple(dict.fromkeys((*rules.key, *rules.partition_by, *rules.identity)))

        def keys(now: TableState) -> Change[Any]:
            scan = in_place(plan_scan(now, ScanRequest(where=where, columns=columns)), rules)
            return Change(to_spark(scan, spark))

        prepared = bool(rules.identity)
        request = self._request(state, Operation.DELETE, how, change=keys, prepared=prepared)
        return self._run(state, None, request, spark)

    def _change(
        self,
        state: TableState,
        change: Callable[[TableState], Change[Any]],
        spark: "SparkSession | None",
        how: WriteOptions,
    ) -> WriteResult:
        prepared = bool(rules_of(state).identity)
        request: WriteRequest[Any] = self._request(
            state, Operation.UPSERT, how, change=change, prepared=prepared
        )
        if spark is None:
            return self._run(state, None, request)
        from lakewright.engine.spark.assign import refusals

        with refusals():
            return self._run(state, None, request, spark)


def _rows(batches: Iterator[pa.RecordBatch], rules: Rules) -> ArrowRows:
    return ArrowRows(change_schema(rules), lambda: batches, once=True, sound=True)
