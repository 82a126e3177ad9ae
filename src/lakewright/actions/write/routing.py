"""Which rows of a large write must reach the same task."""

import zlib
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.actions.executor import Spread
from lakewright.actions.tasks.write_settings import SortMode
from lakewright.actions.tasks.write_spec import WriteSpec, looks_up
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.bucket_routing import route_to_buckets
from lakewright.model.writing import Operation


@dataclass(frozen=True, slots=True)
class GroupRoute:
    """Numbers rows by partition and, with ``buckets``, by bucket; it pickles."""

    keys: KeyMaker
    buckets: BucketCounts | None = None
    hash_fields: tuple[str, ...] = ()

    def __call__(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the number of each row."""
        paths = self.keys.partitions(batch)
        sums = [zlib.crc32(path.encode()) for path in paths.dictionary.to_pylist()]
        numbers: npt.NDArray[np.int64] = np.array(sums, np.int64)[np.asarray(paths.indices)]
        if self.buckets is not None:
            keys = self.keys.keys(batch)
            numbers += route_to_buckets(keys, paths, self.hash_fields, self.buckets)
        return numbers


def spread_of(spec: WriteSpec) -> tuple[WriteSpec, Spread]:
    """Say how the rows of a write are divided; the spec is changed where that asks for it.

    The rows of a bucket stay together, so do those of a partition whose keys are looked up or
    sorted, or where that is asked for, and all rows where keys are unique in the whole table.
    Other inserts are divided freely; several tasks must then not fill up the same small file, so
    that none does.
    """
    layout, settings, lookup = spec.layout, spec.settings, looks_up(spec)
    bulk = spec.operation is Operation.BULK_INSERT
    gathers = not bulk or settings.sort_mode is not SortMode.NONE
    alone = lookup or settings.combine_on_insert or (bulk and settings.sort_mode.by_key)
    if layout.buckets is not None:
        return spec, _sorted(spec, _by_group(spec, layout.buckets))
    if lookup and layout.kind.is_global:
        return spec, Spread(together=True, lookup=True)
    if spec.config.partition_fields and (alone or gathers):
        return spec, _sorted(spec, replace(_by_group(spec, None), lookup=lookup))
    if alone:
        return spec, _sorted(spec, Spread(together=True, lookup=lookup))
    return replace(spec, settings=replace(settings, small_file=0)), Spread()


def _by_group(spec: WriteSpec, buckets: BucketCounts | None) -> Spread:
    keys = KeyMaker.of(spec.config, spec.schema)
    fields = spec.config.partition_fields
    plain = all(field.kind == "SIMPLE" for field in fields)
    hashed = (spec.layout.hash_fields or spec.config.record_key) if buckets is not None else ()
    return Spread(
        columns=tuple(field.name for field in fields) if plain else (),
        buckets=buckets,
        hash_fields=hashed,
        key_fields=() if keys.named else spec.config.record_key,
        route=GroupRoute(keys, buckets, hashed),
    )


def _sorted(spec: WriteSpec, spread: Spread) -> Spread:
    mode = spec.settings.sort_mode
    if spec.operation is not Operation.BULK_INSERT or not mode.by_key:
        return spread
    fields = tuple(field.name for field in spec.config.partition_fields)
    return replace(
        spread,
        sort_by=(*fields, *spec.config.record_key),
        sort_all=mode is SortMode.GLOBAL_SORT,
    )
