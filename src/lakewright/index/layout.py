"""How the records of a table are spread over file groups, as its properties say."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.model.options import declare, parse_bool, parse_names
from lakewright.table.state import TableState


class IndexKind(StrEnum):
    """How a record finds its file group; the names are Hudi's."""

    BUCKET = "BUCKET"
    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, and not only in its partition."""
        return self in (IndexKind.GLOBAL_SIMPLE, IndexKind.GLOBAL_BLOOM)


def _kind(text: str) -> IndexKind:
    return IndexKind(text.strip().upper())


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number < 10**8:
        raise ValueError(text)
    return number


def _rule_type(text: str) -> str:
    if text.strip().lower() != "regex":
        raise ValueError(text)
    return "regex"


INDEX_TYPE = declare(
    "hoodie.index.type",
    _kind,
    IndexKind.SIMPLE,
    doc="How a record finds its file group: by its bucket, or by looking up keys within its "
    "partition or (GLOBAL) in the whole table. Stored with the table; SIMPLE and BLOOM look up "
    "in the same way here, and differ for other software.",
    since="0.1",
    allowed=", ".join(IndexKind),
)
BUCKETS = declare(
    "hoodie.bucket.index.num.buckets",
    _count,
    256,
    doc="Buckets, and so file groups, per partition of a bucket table. Stored with the table; "
    "it cannot change by setting it.",
    since="0.1",
    allowed="a whole number from 1",
)
_ALL_FIELDS: tuple[str, ...] = ()
HASH_FIELDS = declare(
    "hoodie.bucket.index.hash.field",
    parse_names,
    _ALL_FIELDS,
    doc="The key columns whose values choose the bucket; empty for all of them.",
    since="0.1",
    allowed="some of the key columns, with commas between",
)
#: The record key once more, under the name that writers give it. Hudi's procedures that are told
#: a path, and no table, take what a bucket table's properties say for a writer's options, and
#: fail where those name no key.
WRITERS_KEY = "hoodie.datasource.write.recordkey.field"
PARTITION_RULES = declare(
    "hoodie.bucket.index.partition.expressions",
    str,
    "",
    doc="How many buckets which partitions have: JSON with expressions and defaultBucketNumber, "
    "or pattern,count;pattern,count. A table keeps its rules; they change by ALTER TABLE or "
    "table.buckets, and not by what a write says.",
    since="0.1",
    allowed="rules as JSON, or pattern,count;pattern,count",
)
RULE_TYPE = declare(
    "hoodie.bucket.index.partition.rule.type",
    _rule_type,
    "regex",
    doc="How the expressions of bucket rules are read where they do not say it themselves.",
    since="0.1",
    allowed="regex",
)
UPDATE_PARTITION = declare(
    "hoodie.simple.index.update.partition.path",
    parse_bool,
    True,
    doc="With a global index: whether a record that comes with another partition moves there "
    "(the old row is deleted), or is updated where it lies.",
    since="0.1",
    allowed="true or false",
    old_keys=("hoodie.bloom.index.update.partition.path",),
)


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The index of a table: its kind, and the buckets of a bucket table.

    ``buckets`` says how many each partition has. ``hash_fields`` is empty where the whole key is
    hashed. ``stored`` says whether the table's own properties name the kind.
    """

    kind: IndexKind
    buckets: BucketCounts | None = None
    hash_fields: tuple[str, ...] = ()
    update_partition: bool = True
    stored: bool = True

    @staticmethod
    def of(properties: Mapping[str, str], options: Mapping[str, str]) -> "IndexLayout":
        """Read the index of a table; its own properties win over ``options``.

        Of buckets it knows the number that properties and options name: ``layout_of`` knows the
        numbers of partitions.
        """
        values = {**options, **properties}
        kind = INDEX_TYPE.read(values)
        bucket = kind is IndexKind.BUCKET
        return IndexLayout(
            kind=kind,
            buckets=BucketCounts.plain(BUCKETS.read(values)) if bucket else None,
            hash_fields=HASH_FIELDS.read(values) if bucket else (),
            update_partition=UPDATE_PARTITION.read({**properties, **options}),
            stored=INDEX_TYPE.given(properties),
        )


def layout_of(state: TableState, options: Mapping[str, str]) -> IndexLayout:
    """Return the index of a table as it is now, with the numbers of buckets of its partitions.

    Numbers by partition make a bucket table, whether its properties say so or not.
    """
    layout = IndexLayout.of(state.config.properties, options)
    if layout.stored and layout.kind is not IndexKind.BUCKET:
        return layout
    counts = HashingStore(state.storage).load(state.timeline)
    if counts is None:
        return layout
    fields = HASH_FIELDS.read({**options, **state.config.properties})
    return replace(layout, kind=IndexKind.BUCKET, buckets=counts, hash_fields=fields)
