"""Leaving out the buckets that cannot hold a record, by the hash of what a filter pins down."""

import logging
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import pyarrow as pa

from lakewright.format.hudi.bucket_hash import key_hashes
from lakewright.format.hudi.config import KeyGenerator, TableConfig
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.format.hudi.key_text import complex_key
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import BUCKETS, HASH_FIELDS, IndexLayout
from lakewright.model.errors import Corrupt, Invalid, Unsupported
from lakewright.model.expression.analyse import equal_values
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.files import FileSlice, PartitionDescriptor
from lakewright.model.logs import facts
from lakewright.model.schema import BOOLEAN, DATE, INT, LONG, STRING, Struct
from lakewright.table.footers import key_candidates
from lakewright.table.state import TableState
from lakewright.timeline.moments import whole_second

log = logging.getLogger(__name__)

#: A conjunction of long IN lists is not worth its product.
_MOST_KEYS = 1_000
#: Types whose values have one text in keys, and no comma or colon in it.
_CLOSED_TYPES = frozenset({INT, LONG, BOOLEAN, DATE})
_ENGINE = "hoodie.index.bucket.engine"
_NAMED = frozenset({KeyGenerator.COMPLEX, KeyGenerator.NON_PARTITION, KeyGenerator.CUSTOM})


class BucketPruner:
    """Keeps the slices of the buckets that the hash fields of a filter lead to.

    ``counts`` are those of the moment that is read. It serves one listing: what the filters lead
    to is worked out once.
    """

    def __init__(
        self, config: TableConfig, schema: Struct, counts: BucketCounts, fields: tuple[str, ...]
    ) -> None:
        self._config = config
        self._schema = schema
        self._counts = counts
        self._fields = fields
        self._asked: Sequence[BoundExpression] = ()
        self._hashes: tuple[int, ...] | None = None
        self._wanted: dict[int, frozenset[str]] = {}

    def keep(
        self,
        partition: PartitionDescriptor,
        slices: Sequence[FileSlice],
        filters: Sequence[BoundExpression],
    ) -> Sequence[FileSlice]:
        """Return the slices that may hold matching rows; all where the filters leave it open."""
        if filters is not self._asked:
            self._asked, self._hashes = filters, self._hashes_of(tuple(filters))
            self._wanted = {}
        if self._hashes is None:
            return slices
        count = self._counts.number_of(partition.path)
        wanted = self._wanted.get(count)
        if wanted is None:
            wanted = frozenset(f"{number % count:08d}" for number in self._hashes)
            self._wanted[count] = wanted
        numbers = [piece.group.file_id[:8] for piece in slices]
        if not _are_buckets(numbers) or max(numbers, default="") >= f"{count:08d}":
            return slices  # written with other buckets than the table names
        return [piece for piece, n in zip(slices, numbers, strict=True) if n in wanted]

    def _hashes_of(self, filters: tuple[BoundExpression, ...]) -> tuple[int, ...] | None:
        """Return the hash of every key that a matching row can have; None where it is open."""
        config = self._config
        if not filters:
            return None
        keys = key_candidates(config, self._schema, filters)
        if keys is None and self._fields:
            keys = _partial_keys(config, self._schema, self._fields, filters)
        if keys is None:
            return None
        return _key_hashes(keys, self._fields or config.record_key)


def bucket_pruner(
    state: TableState, schema: Struct, *, as_of: str | None = None, upto: str | None = None
) -> BucketPruner | None:
    """Return the pruner of a table at a time; None where its buckets are not known for sure.

    ``as_of`` and ``upto`` are times as ``see_at`` and ``see_until`` take them. A table that does
    not name its index may hash a part of its key, if the key has parts.
    """
    config = state.config
    layout = IndexLayout.of(config.properties, {})
    if layout.stored and layout.buckets is None:
        return None
    if (config.properties.get(_ENGINE) or "SIMPLE").upper() != "SIMPLE":
        return None
    known = len(config.record_key) == 1 or HASH_FIELDS.given(config.properties)
    if not (layout.stored or known):
        return None
    try:
        counts = _counts_at(state, as_of, upto)
        if counts is not None:
            counts.numbers_of(())  # patterns that are not understood are refused here
    except (Corrupt, Invalid, Unsupported) as error:
        log.warning("buckets are not pruned: %s", error, extra=facts(table=state.storage.uri))
        return None
    if counts is None and layout.stored and BUCKETS.given(config.properties):
        counts = layout.buckets
    fields = HASH_FIELDS.read(config.properties)
    return None if counts is None else BucketPruner(config, schema, counts, fields)


def _counts_at(state: TableState, as_of: str | None, upto: str | None) -> BucketCounts | None:
    """Return the numbers of buckets by partition of a time; None where there are none."""
    store, timeline = HashingStore(state.storage), state.timeline
    if as_of is None and upto is None:
        return store.load(timeline)
    seen = [c for c in store.history(timeline) if _is_seen(state, c.instant, as_of, upto)]
    if not seen:
        return None
    return BucketCounts(seen[-1].rules, seen[-1].pins, seen[-1].instant)


def _is_seen(state: TableState, instant: str, as_of: str | None, upto: str | None) -> bool:
    if instant == FIRST_INSTANT:
        return True
    if as_of is not None:
        return instant <= whole_second(as_of)
    bound = whole_second(upto or "")
    if state.config.layout == 1:
        return instant <= bound
    return (state.timeline.completion_of(instant) or instant) <= bound


def _are_buckets(numbers: Sequence[str]) -> bool:
    digits = "".join(numbers)
    return len(digits) == 8 * len(numbers) and digits.isascii() and digits.isdigit()


@lru_cache(maxsize=64)
def _key_hashes(keys: tuple[str, ...], fields: tuple[str, ...]) -> tuple[int, ...]:
    hashes = key_hashes(pa.array(keys, pa.string()), fields) & np.uint32(0x7FFFFFFF)
    return tuple(hashes.tolist())


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
