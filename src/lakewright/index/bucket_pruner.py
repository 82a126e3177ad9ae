"""Leaving out the buckets that cannot hold a record, by the hash of what a filter pins down."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import pyarrow as pa

from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.config import KeyGenerator, TableConfig
from lakewright.format.hudi.hashing_config import CONFIGS_FOLDER
from lakewright.format.hudi.key_text import complex_key
from lakewright.index.layout import BUCKETS, IndexLayout
from lakewright.model.errors import Invalid
from lakewright.model.expression.analyse import equal_values
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.files import FileSlice, PartitionDescriptor
from lakewright.model.schema import BOOLEAN, DATE, INT, LONG, STRING, Struct
from lakewright.storage.port import Storage
from lakewright.table.footers import key_candidates

#: A conjunction of long IN lists is not worth its product.
_MOST_KEYS = 1_000
#: Types whose values have one text in keys, and no comma or colon in it.
_CLOSED_TYPES = frozenset({INT, LONG, BOOLEAN, DATE})
_ENGINE = "hoodie.index.bucket.engine"
_NAMED = frozenset({KeyGenerator.COMPLEX, KeyGenerator.NON_PARTITION, KeyGenerator.CUSTOM})


@dataclass(frozen=True, slots=True)
class BucketPruner:
    """Keeps the slices of the buckets that the hash fields of a filter lead to."""

    config: TableConfig
    schema: Struct
    layout: IndexLayout

    def keep(
        self,
        partition: PartitionDescriptor,
        slices: Sequence[FileSlice],
        filters: Sequence[BoundExpression],
    ) -> Sequence[FileSlice]:
        """Return the slices that may hold matching rows; all where the filters leave it open."""
        wanted = _buckets(self, tuple(filters))
        if wanted is None:
            return slices
        count = self.layout.buckets or 0
        numbers = [bucket_number(piece.group.file_id) for piece in slices]
        if any(number is None or number >= count for number in numbers):
            return slices  # written with other buckets than the table names
        return [piece for piece, n in zip(slices, numbers, strict=True) if n in wanted]


def bucket_pruner(storage: Storage, config: TableConfig, schema: Struct) -> BucketPruner | None:
    """Return the pruner of a table; None unless it stores one number of buckets for all of it."""
    layout = IndexLayout.of(config.properties, {})
    if not layout.stored or layout.buckets is None or not BUCKETS.given(config.properties):
        return None
    if (config.properties.get(_ENGINE) or "SIMPLE").upper() != "SIMPLE":
        return None
    if next(iter(storage.list(CONFIGS_FOLDER)), None) is not None:
        return None
    return BucketPruner(config, schema, layout)


@lru_cache(maxsize=64)
def _buckets_of(keys: tuple[str, ...], fields: tuple[str, ...], count: int) -> frozenset[int]:
    return frozenset(bucket_of(pa.array(keys, pa.string()), fields, count).tolist())


def _buckets(pruner: BucketPruner, filters: tuple[BoundExpression, ...]) -> frozenset[int] | None:
    """Return the buckets of every key that a matching row can have; None where it is open."""
    config, layout = pruner.config, pruner.layout
    if not filters:
        return None
    keys = key_candidates(config, pruner.schema, filters)
    if keys is None and layout.hash_fields:
        keys = _partial_keys(config, pruner.schema, layout.hash_fields, filters)
    if keys is None:
        return None
    return _buckets_of(keys, layout.hash_fields or config.record_key, layout.buckets or 1)


def _partial_keys(
    config: TableConfig,
    schema: Struct,
    hashed: tuple[str, ...],
    filters: Sequence[BoundExpression],
) -> tuple[str, ...] | None:
    """Return keys that hash like those of matching rows, where only hash fields are pinned.

    The bucket is cut out of the key's text, so that a comma or colon in any other part could
    lead elsewhere: the other parts must be of types that cannot hold one.
    """
    names = config.record_key
    partition = {field.name for field in config.partition_fields}
    if len(names) < 2 or config.key_generator not in _NAMED or not partition.isdisjoint(names):
        return None
    choices: list[list[object]] = []
    for name in names:
        kind = schema.field(name).type if name in schema else None
        if name not in hashed:
            if kind not in _CLOSED_TYPES:
                return None
            choices.append([None])
            continue
        values = _pinned(filters, name)
        if values is None or kind not in {*_CLOSED_TYPES, STRING}:
            return None
        choices.append(sorted(values, key=repr))
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > _MOST_KEYS:
        return None
    try:
        return tuple(complex_key(names, row) for row in product(*choices))
    except Invalid:
        return None


def _pinned(filters: Sequence[BoundExpression], name: str) -> frozenset[object] | None:
    found = (equal_values(condition, tuple(name.split("."))) for condition in filters)
    return next((values for values in found if values is not None), None)
