"""Creating tables: what the user says, turned into a checked plan."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from lakewright.actions.create import CreatePlan, plan_create
from lakewright.actions.create import create_table as create_at
from lakewright.api.schemas import read_schema
from lakewright.api.table import Table
from lakewright.model.errors import Invalid
from lakewright.model.table import MergeMode, TableDescriptor, TableId, TableType
from lakewright.storage.open import open_storage

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession

Choice = TypeVar("Choice", TableType, MergeMode)


class CreateOptions(TypedDict, total=False):
    """What may be said of a new table beside its schema and key."""

    #: Columns whose values make the partition path, outermost first; default none.
    partition_by: str | Sequence[str]
    #: Columns that decide which of two versions of a record is newer; default none.
    order_by: str | Sequence[str] | None
    #: ``COPY_ON_WRITE`` (default) or ``MERGE_ON_READ``.
    type: str
    #: 9 (default), or 6, which the most readers know.
    version: int
    #: ``EVENT_TIME_ORDERING`` (default with ``order_by``) or ``COMMIT_TIME_ORDERING``.
    merge_mode: str | None
    #: Whether partition folders are named ``column=value``; default True.
    hive_style: bool
    #: Further entries for ``hoodie.properties``.
    properties: Mapping[str, str]


def create_table(
    path: str | os.PathLike[str],
    *,
    schema: object,
    key: str | Sequence[str],
    options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
    **details: Unpack[CreateOptions],
) -> Table:
    """Create an empty table at a path, without any catalog; its name is the path's last segment.

    ``schema`` is Arrow, Spark, Avro JSON or DDL text; ``key`` names the record key columns;
    ``options`` are storage settings; the details are those of ``CreateOptions``.
    ``AlreadyExists`` where a table is already.
    """
    storage = open_storage(path, options or {})
    name = storage.uri.rstrip("/").rpartition("/")[2]
    create_at(storage, plan_table(TableId("", name), schema, key, details))
    return Table(storage, spark=spark)


def plan_table(
    table: TableId, schema: object, key: str | Sequence[str], details: CreateOptions
) -> CreatePlan:
    """Check what the user said of a new table; nothing is written."""
    if unknown := sorted(set(details) - set(CreateOptions.__annotations__)):
        raise Invalid(
            f"unknown: {', '.join(unknown)}.",
            next_step=f"Allowed: {', '.join(CreateOptions.__annotations__)}.",
        )
    descriptor = TableDescriptor(
        table_id=table,
        schema=read_schema(schema),
        record_key=_names(key),
        table_type=_choice(TableType, "type", details.get("type", "COPY_ON_WRITE")),
        partition_by=_names(details.get("partition_by", ())),
        ordering=_names(details.get("order_by") or ()),
        properties=details.get("properties", {}),
    )
    mode = details.get("merge_mode")
    return plan_create(
        descriptor,
        version=details.get("version", 9),
        merge_mode=_choice(MergeMode, "merge_mode", mode) if mode else None,
        hive_style=details.get("hive_style", True),
    )


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _choice(kind: type[Choice], name: str, value: str) -> Choice:
    try:
        return kind(value.upper())
    except ValueError as cause:
        raise Invalid(
            f"{name}={value!r} is not known.", next_step=f"Allowed: {', '.join(kind)}."
        ) from cause
