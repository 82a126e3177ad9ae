"""Creating tables: what the user says, turned into a checked plan."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from lakewright.actions.create import CreatePlan, plan_create
from lakewright.actions.create import create_table as create_at
from lakewright.actions.create_keys import CLASSES
from lakewright.api.schemas import read_schema
from lakewright.api.table import Table
from lakewright.format.hudi.config import KeyGenerator
from lakewright.index.layout import BUCKETS, IndexKind
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import parse_rules
from lakewright.model.errors import Invalid
from lakewright.model.table import MergeMode, TableDescriptor, TableId, TableType
from lakewright.storage.open import open_storage

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession

Choice = TypeVar("Choice", TableType, MergeMode, KeyGenerator, IndexKind)


class CreateOptions(TypedDict, total=False):
    """What may be said of a new table beside its schema and key."""

    #: Columns whose values make the partition path, outermost first; default none.
    #: ``column:TIMESTAMP`` formats its values by the properties ``hoodie.keygen.timebased.*``.
    partition_by: str | Sequence[str]
    #: Columns that decide which of two versions of a record is newer; default none.
    order_by: str | Sequence[str] | None
    #: ``COPY_ON_WRITE`` (default) or ``MERGE_ON_READ``.
    type: str
    #: Buckets, and so file groups, per partition; makes the index a bucket index. Rules give
    #: partitions different numbers: JSON, as text or dict, or ``pattern,count;pattern,count``.
    buckets: int | str | Mapping[str, object] | None
    #: The key columns that choose the bucket; default all of them.
    hash_by: str | Sequence[str] | None
    #: ``SIMPLE`` (default), ``BLOOM``, their ``GLOBAL_`` forms, or ``BUCKET``.
    index: str | None
    #: 9 (default), or 6, which the most readers know.
    version: int
    #: ``EVENT_TIME_ORDERING`` (default with ``order_by``) or ``COMMIT_TIME_ORDERING``.
    merge_mode: str | None
    #: Whether partition folders are named ``column=value``; default True. Without it readers
    #: show ``b`` for a value ``a=b``.
    hive_style: bool | None
    #: Whether values in partition paths are escaped as Hive does; default False. Without it
    #: readers show what the folder says, as Hudi's do: ``a/b`` for ``a%2Fb``.
    url_encode: bool | None
    #: ``SIMPLE``, ``COMPLEX``, ``NON_PARTITION``, ``TIMESTAMP`` or ``CUSTOM``; default by columns.
    key_generator: str | None
    #: Further entries for ``hoodie.properties``.
    properties: Mapping[str, str]


def create_table(
    path: str | os.PathLike[str],
    *,
    schema: object,
    key: str | Sequence[str] | None,
    options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
    **details: Unpack[CreateOptions],
) -> Table:
    """Create an empty table at a path, without any catalog; its name is the path's last segment.

    ``schema`` is Arrow, Spark, Avro JSON or DDL text; ``key`` names the record key columns,
    members of structs as ``a.b``; with ``key=None`` keys are generated, and rows can be added but
    not upserted. ``options`` are settings of storage and of what is done through the table that
    is returned; those that choose what it is are refused. The details are those of
    ``CreateOptions``. ``AlreadyExists`` where a table is already.

    One key column together with several partition columns gives record keys of the form
    ``id:42``, and otherwise ``42``, as in Hudi.
    """
    storage = open_storage(path, options or {})
    name = storage.uri.rstrip("/").rpartition("/")[2]
    create_at(storage, plan_table(TableId("", name), schema, key, details))
    return Table(storage, spark=spark)


def plan_table(
    table: TableId, schema: object, key: str | Sequence[str] | None, details: CreateOptions
) -> CreatePlan:
    """Check what the user said of a new table; nothing is written."""
    if unknown := sorted(set(details) - set(CreateOptions.__annotations__)):
        raise Invalid(
            f"unknown: {', '.join(unknown)}.",
            next_step=f"Allowed: {', '.join(CreateOptions.__annotations__)}.",
        )
    if key is not None and not key:
        raise Invalid(
            f"key={key!r} names no column.",
            next_step="Name the key columns, or give key=None to have keys generated.",
        )
    descriptor = TableDescriptor(
        table_id=table,
        schema=read_schema(schema),
        record_key=_names(key, "key"),
        table_type=_choice(TableType, "type", details.get("type", "COPY_ON_WRITE")),
        partition_by=_names(details.get("partition_by"), "partition_by"),
        ordering=_names(details.get("order_by"), "order_by"),
        properties=_properties(details.get("properties")),
    )
    return plan_create(
        descriptor,
        version=details.get("version", 9),
        merge_mode=_optional(MergeMode, "merge_mode", details.get("merge_mode")),
        hive_style=details.get("hive_style"),
        url_encode=details.get("url_encode"),
        key_generator=_optional(
            KeyGenerator, "key_generator", details.get("key_generator"), tuple(CLASSES)
        ),
        index=_optional(IndexKind, "index", details.get("index")),
        buckets=_buckets(details.get("buckets"), descriptor.properties),
        hash_by=_names(details.get("hash_by"), "hash_by"),
    )


def _buckets(
    value: int | str | Mapping[str, object] | None, properties: Mapping[str, str]
) -> BucketRules | int | None:
    if value is None or isinstance(value, int):
        return value
    default = BUCKETS.read(properties) if BUCKETS.given(properties) else None
    rules = parse_rules(value, default)
    is_number = isinstance(value, str) and value.strip().isdigit()
    return rules.default if is_number else rules


# What follows takes anything: these are values that a user typed.


def _properties(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise Invalid(
        f"properties={value!r} is no mapping from names to texts.",
        next_step="Give properties={'hoodie.parquet.small.file.limit': '0'}, say.",
    )


def _names(value: object, role: str) -> tuple[str, ...]:
    if value is None:
        return ()
    names = tuple(value) if isinstance(value, Iterable) and not _is_text(value) else (value,)
    if not all(name and isinstance(name, str) for name in names):
        raise Invalid(f"{role}={value!r} names no column.", next_step="Give names of columns.")
    return tuple(name for name in names if isinstance(name, str))


def _is_text(value: object) -> bool:
    return isinstance(value, str | bytes | Mapping)


def _optional(
    kind: type[Choice], name: str, value: object, allowed: Sequence[Choice] = ()
) -> Choice | None:
    return None if value is None else _choice(kind, name, value, allowed)


def _choice(kind: type[Choice], name: str, value: object, allowed: Sequence[Choice] = ()) -> Choice:
    """Return the choice of this name; ``allowed`` are those to tell of where not all can be."""
    chosen = next((one for one in kind if isinstance(value, str) and one == value.upper()), None)
    if chosen is None:
        raise Invalid(
            f"{name}={value!r} is not known.",
            next_step=f"Allowed: {', '.join(allowed or tuple(kind))}.",
        )
    return chosen
