"""The bucket index of a table as it stands, for those who look at it and change nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewright.actions.buckets.showing import RulesVersion
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import BUCKETS, IndexKind, IndexLayout
from lakewright.model.errors import Invalid, Unsupported
from lakewright.table.state import TableState

_ENGINE = "hoodie.index.bucket.engine"


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Numbers of buckets, hash fields, the versions of the rules (newest first), and the numbers
    that the hashing metadata names, which are not compared with the others.
    """

    state: TableState
    counts: BucketCounts
    hash_fields: tuple[str, ...]
    versions: tuple[RulesVersion, ...]
    fixed: Mapping[str, int]
    meta: str | None = None


def look_at(name: str, state: TableState, options: Mapping[str, str]) -> BucketIndex:
    """Return the bucket index of a table; ``Invalid`` where it has none."""
    config, view = state.config, state.timeline
    layout = IndexLayout.of(config.properties, options)
    store = HashingStore(state.storage)
    if layout.stored and layout.kind is not IndexKind.BUCKET:
        raise _none(name, layout.kind)
    counts = store.load(view, verified=False)
    if counts is None and layout.kind is not IndexKind.BUCKET:
        raise _none(name, layout.kind)
    values = {**options, **config.properties}
    engine = (values.get(_ENGINE) or "SIMPLE").upper()
    if engine != "SIMPLE":
        raise Unsupported(
            f"{_ENGINE} of {name} is {engine}: its buckets follow from a ring of hashes.",
            next_step="Look at its file groups with `lakewright files`.",
            table=name,
        )
    if counts is None and not BUCKETS.given(values):
        raise Unsupported(
            f"{name} does not say how many buckets it has: {BUCKETS.key} is missing.",
            next_step=f"Give {BUCKETS.key} as its writers have it.",
            table=name,
        )
    counts = counts or layout.buckets or BucketCounts.plain(BUCKETS.read(values))
    fields = layout.hash_fields or config.record_key
    if counts.version is None:
        return BucketIndex(state, counts, fields, (), {})
    versions = tuple(
        RulesVersion(one.instant, one.rules, len(one.pins), one.archived)
        for one in reversed(store.history(view))
    )
    fixed = store.fixed(view)
    numbers = {partition: info.bucket_number for partition, info in fixed.items()}
    meta = max((info.instant for info in fixed.values()), default=None)
    return BucketIndex(state, counts, fields, versions, numbers, meta)


def _none(name: str, kind: IndexKind) -> Invalid:
    return Invalid(
        f"{name} has no buckets: its index is {kind}.",
        next_step="Create a table with buckets=…, and copy the rows into it.",
        table=name,
    )
