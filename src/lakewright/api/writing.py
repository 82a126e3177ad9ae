"""The verbs that write; ``Table`` has them."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from lakewright.actions.services.inline import write_and_serve
from lakewright.actions.tasks.write_settings import SORT_MODE
from lakewright.actions.write.intake import write_options
from lakewright.actions.write.locate import deletes_where
from lakewright.actions.write.overwrite import partition_paths
from lakewright.actions.write.request import WriteRequest
from lakewright.api.engines import choose_engine
from lakewright.api.keys import key_rows
from lakewright.api.progress import task_watcher, watch
from lakewright.api.rows import no_rows
from lakewright.lifecycle.tending import wishes_after_write
from lakewright.model.errors import Invalid
from lakewright.model.expression.nodes import Expression
from lakewright.model.instant import is_instant_time, parse_point_in_time
from lakewright.model.writing import Operation, WriteResult
from lakewright.storage.port import Storage
from lakewright.table.state import TableState, open_state
from lakewright.timeline.storage_committer import StorageCommitter

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession


class WriteOptions(TypedDict, total=False):
    """What may be said of any write."""

    #: Settings of this write, under the names of the options page; they win over the table's.
    options: Mapping[str, str]
    #: The instant of the write, 17 digits or a time; default is the clock's.
    instant: str | dt.datetime
    #: Further entries for the commit's extra metadata.
    metadata: Mapping[str, str]
    #: How often the write runs again, on the table as it is then, after another writer was first.
    retry: int


class Writable:
    """The verbs that write. Each one is a commit, or nothing where there is nothing to write.

    Rows are an Arrow table, batch, reader or dataset, a pandas, polars or Spark DataFrame,
    anything that knows Arrow's stream interface, or a list of dicts. A Spark DataFrame is written
    by its session; anything else by this process, which leaves the files of a small batch to the
    session that the table was opened with, if any. ``Invalid`` says what is wrong with rows before
    anything is written, ``Conflict`` that another writer was first and nothing of this write is
    left.
    """

    _storage: Storage
    _spark: "SparkSession | None"
    _name: str

    def _state(self) -> TableState:
        return open_state(self._storage)

    def insert(
        self, rows: object, *, dedupe: bool = False, **how: Unpack[WriteOptions]
    ) -> WriteResult:
        """Add rows, without a look at what is stored: a key that is there already is there twice.

        Rows of one batch that share a key are all added too. With ``dedupe=True`` they are
        combined, and rows whose key is stored already are left out; use ``upsert`` to update
        those.
        """
        return self._write(Operation.INSERT, rows, how, dedupe=dedupe)

    def bulk_insert(
        self, rows: object, *, sort_mode: str | None = None, **how: Unpack[WriteOptions]
    ) -> WriteResult:
        """Add many rows: as ``insert``, but always into new files where the table has no buckets.

        ``sort_mode`` is ``NONE`` (default), ``PARTITION_SORT``, ``GLOBAL_SORT``, or one of Hudi's
        two ways to bring the rows of a partition together (``PARTITION_PATH_REPARTITION``,
        ``PARTITION_PATH_REPARTITION_AND_SORT``).
        """
        if sort_mode is not None:
            how["options"] = {**_texts("options", how.get("options")), SORT_MODE.key: sort_mode}
        return self._write(Operation.BULK_INSERT, rows, how)

    def upsert(self, rows: object, **how: Unpack[WriteOptions]) -> WriteResult:
        """Add rows, or update those whose key is stored.

        Of rows that share a key the one with the greatest ordering value is written, the later
        one where they are equal. It replaces the stored row where its ordering value is not
        smaller, or always in a table that orders by commit time.
        """
        return self._write(Operation.UPSERT, rows, how)

    def delete(
        self,
        what: object = None,
        *,
        where: Expression | str | None = None,
        **how: Unpack[WriteOptions],
    ) -> WriteResult:
        """Delete rows by key or by condition, whatever their ordering values.

        ``what`` is an expression or SQL text (as ``where``); or a list of key values (tuples
        in the order of the key columns where they are several, or dicts); or rows that have the
        key columns. Rows that lack the partition columns, and lists of values, are looked for in
        all partitions. Keys that are not stored are no error.
        """
        if (what is None) == (where is None):
            raise Invalid(
                "delete() takes keys, rows or a condition, and one of them.",
                next_step="Try delete(['a', 'b']) or delete(where=\"n > 5\").",
            )
        condition = where if where is not None else what
        if isinstance(condition, Expression | str):
            return self._delete_where(condition, how)
        return self._delete_rows(key_rows(what, self._state()), how)

    def insert_overwrite(self, rows: object, **how: Unpack[WriteOptions]) -> WriteResult:
        """Put rows into the place of everything that is in the partitions that they touch.

        Without rows nothing happens. Nothing is looked up: keys that are twice in the rows stay
        so.
        """
        return self._write(Operation.INSERT_OVERWRITE, rows, how)

    def insert_overwrite_table(self, rows: object, **how: Unpack[WriteOptions]) -> WriteResult:
        """Put rows into the place of the whole table; no rows empty it."""
        return self._write(Operation.INSERT_OVERWRITE_TABLE, rows, how)

    def delete_partitions(
        self, partitions: Iterable[str | Mapping[str, object]], **how: Unpack[WriteOptions]
    ) -> WriteResult:
        """Delete whole partitions, given by paths or by the values of the partition columns.

        Those that are not there are told in ``absent`` of the result, and are no error. Files
        stay until the table is cleaned.
        """
        state = self._state()
        paths = partition_paths(state, partitions)
        request = self._request(state, Operation.DELETE_PARTITION, how, partitions=paths)
        return self._run(state, None, request)

    # ------------------------------------------------------------------- support

    def _write(
        self, operation: Operation, rows: object, how: WriteOptions, *, dedupe: bool = False
    ) -> WriteResult:
        if rows is None:
            raise no_rows(rows)
        state = self._state()
        return self._run(state, rows, self._request(state, operation, how, dedupe=dedupe))

    def _delete_rows(self, rows: object, how: WriteOptions) -> WriteResult:
        return self._write(Operation.DELETE, rows, how)

    def _delete_where(self, where: Expression | str, how: WriteOptions) -> WriteResult:
        state = self._state()
        plain = self._request(state, Operation.DELETE, how)
        engine, _ = choose_engine(state, None, plain, session=self._spark)
        return self._run(state, None, replace(plain, change=deletes_where(engine, where)))

    def _request(
        self,
        state: TableState,
        operation: Operation,
        how: WriteOptions,
        **more: Any,  # noqa: ANN401 - the fields of a request, checked by it
    ) -> WriteRequest[Any]:
        if unknown := sorted(set(how) - set(WriteOptions.__annotations__)):
            raise Invalid(
                f"unknown: {', '.join(unknown)}.",
                next_step=f"Allowed: {', '.join(WriteOptions.__annotations__)}.",
            )
        return WriteRequest(
            operation,
            options=_texts("options", how.get("options")),
            instant=_instant(how.get("instant"), state.config.timezone),
            metadata=_texts("metadata", how.get("metadata")),
            retry=_count("retry", how.get("retry", 0)),
            **more,
        )

    def _run(
        self,
        state: TableState,
        rows: object,
        request: WriteRequest[Any],
        spark: "SparkSession | None" = None,
    ) -> WriteResult:
        """Run a write on the engine that its rows choose, or on ``spark`` where it makes them."""
        options = write_options(state, request)
        progress = watch(self._name, options)
        executor, given = choose_engine(
            state, rows, request, session=self._spark, makes=spark, told=task_watcher(progress)
        )
        committer = StorageCommitter(state.storage, state.config, options)
        return write_and_serve(
            self._name, state, executor, given, request, committer, progress, wishes_after_write
        )


def _texts(name: str, value: object) -> dict[str, str]:
    """Return what is said of a write by name; a request looks at the texts."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(
            f"{name} is a {type(value).__name__}: {value!r}.",
            next_step=f"Give a mapping from names to texts: {name}={{'name': 'value'}}.",
        )
    return dict(value)


def _count(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Invalid(f"{name} is {value!r}.", next_step="Give a whole number, 0 or more.")


def _instant(value: str | dt.datetime | None, zone: dt.tzinfo) -> str | None:
    if value is None or (isinstance(value, str) and is_instant_time(value)):
        return value
    if isinstance(value, dt.datetime):
        return parse_point_in_time(value, zone)
    raise Invalid(
        f"instant={value!r} is no instant time.",
        next_step="Give 17 digits (yyyyMMddHHmmssSSS) or a datetime.",
    )
