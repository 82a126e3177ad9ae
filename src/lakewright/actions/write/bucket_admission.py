"""How the records of a table are spread: what it stores, what its files say, what a caller says."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.file_names import base_file
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.layout import (
    BUCKETS,
    HASH_FIELDS,
    INDEX_TYPE,
    PARTITION_RULES,
    RULE_TYPE,
    IndexKind,
    IndexLayout,
    layout_of,
)
from lakewright.model.bucket_rules.text import parse_rules
from lakewright.model.errors import Invalid, NotFound, Unsupported
from lakewright.model.options import Option
from lakewright.table.state import TableState
from lakewright.timeline.view import TimelineView

BUCKET_ENGINE = "hoodie.index.bucket.engine"
#: A random id begins with so small a number once in forty thousand times.
_MOST_BUCKETS = 100_000
#: So many files, and so many commits, are looked at to check what a caller says of buckets.
_LOOKED_AT = 20


def admit_index(state: TableState, options: Mapping[str, str]) -> IndexLayout:
    """Return the index of a table; one that is not written here, or not so, is refused.

    ``stored`` is False in the answer where the write must store what a caller gave.
    """
    properties = state.config.properties
    for option in (INDEX_TYPE, HASH_FIELDS):
        _check_agreement(option, properties, options)
    layout = layout_of(state, options)
    if layout.buckets is not None:
        _check_engine({**options, **properties})
        _check_rules(layout.buckets, properties, options)
        if layout.buckets.version is not None:
            _check_partition_level(state, layout, options)
            return layout
    _check_kind(state, layout, options)
    if layout.buckets is None:
        return layout
    _check_number(state, options)
    _check_fields(state, layout, counted=BUCKETS.given(properties))
    return replace(layout, stored=layout.stored and BUCKETS.given(properties))


def settled_layout(
    state: TableState, layout: IndexLayout, options: Mapping[str, str]
) -> IndexLayout:
    """Return an index that was admitted, with the buckets that the table has now.

    They are looked at anew once a write has begun: what changed before is built on, and what
    changes later is found when the write is published.
    """
    if layout.buckets is None:
        return layout
    now = layout_of(state, options).buckets
    if now is None or now == layout.buckets:
        return layout
    _check_rules(now, state.config.properties, options)
    return replace(layout, buckets=now)


def _check_kind(state: TableState, layout: IndexLayout, options: Mapping[str, str]) -> None:
    """Refuse a kind of index that the file ids of the table speak against."""
    sample = None if layout.stored else _newest_file(state.timeline)
    if sample is None:
        return
    bucket = _bucket(sample)
    if (bucket is not None) == (layout.kind is IndexKind.BUCKET):
        return
    given = INDEX_TYPE.given(options)
    if bucket is not None:
        raise Unsupported(
            f"the table is a bucket table by its file ids ({sample.file_id}), and "
            + (f"{INDEX_TYPE.key}={layout.kind} was given." if given else "does not say so."),
            next_step=f"Give {INDEX_TYPE.key}=BUCKET and {BUCKETS.key} (and {HASH_FIELDS.key}) as "
            "its other writers have them; they are stored with the table then.",
        )
    raise Unsupported(
        f"{INDEX_TYPE.key}=BUCKET was given, but the file ids of the table ({sample.file_id}) are "
        "not those of buckets.",
        next_step=f"Give {INDEX_TYPE.key}=SIMPLE or BLOOM, as its other writers have it.",
    )


def _check_agreement(
    option: Option[Any], properties: Mapping[str, str], options: Mapping[str, str]
) -> None:
    if not (option.given(properties) and option.given(options)):
        return
    stored, asked = option.read(properties), option.read(options)
    if stored != asked:
        raise Invalid(
            f"{option.key} is {_plain(stored)} in the table, but {_plain(asked)} was given.",
            next_step="Leave the option out: the table's own value counts.",
            key=option.key,
        )


def _plain(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _check_engine(values: Mapping[str, str]) -> None:
    engine = values.get(BUCKET_ENGINE, "SIMPLE").upper()
    if engine != "SIMPLE":
        raise Unsupported(
            f"{BUCKET_ENGINE} is {engine}; buckets of a fixed number are written here.",
            next_step="Write the table with Hudi, or copy it into one with SIMPLE buckets.",
        )


def _check_rules(
    counts: BucketCounts, properties: Mapping[str, str], options: Mapping[str, str]
) -> None:
    """Refuse a number or rules of the caller that are not the table's own.

    Rules of other software that are not understood here are refused too.
    """
    counts.numbers_of(())
    stored, asked = counts.rules, BUCKETS.read(options)
    by_rules = counts.version is not None
    known = {stored.default, *((BUCKETS.read(properties),) if BUCKETS.given(properties) else ())}
    if BUCKETS.given(options) and asked not in known:
        where = ", where its rules say nothing else" if by_rules else ""
        raise Invalid(
            f"{BUCKETS.key} is {stored.default} in the table{where}, but {asked} was given.",
            next_step="Leave the option out: the table's own value counts.",
            key=BUCKETS.key,
        )
    if not PARTITION_RULES.given(options):
        return
    if not by_rules:
        raise Invalid(
            f"{PARTITION_RULES.key} was given, but the table has {stored.default} buckets in each "
            "partition, and a write does not change that.",
            next_step="Set the rules first: table.buckets.set(rules), or ALTER TABLE … SET "
            f"TBLPROPERTIES ('{PARTITION_RULES.key}'='…').",
            key=PARTITION_RULES.key,
        )
    RULE_TYPE.read(options)
    text = PARTITION_RULES.read(options)
    if parse_rules(text, asked if BUCKETS.given(options) else stored.default) != stored:
        raise Invalid(
            f"the table's bucket rules, set by {counts.version}, are not those that were given: "
            f"{PARTITION_RULES.key}={text!r}.",
            next_step="Leave the option out: the table's own rules count. They change by "
            "table.buckets.set(rules) or ALTER TABLE, and not by what a write says.",
            key=PARTITION_RULES.key,
        )


def _check_partition_level(
    state: TableState, layout: IndexLayout, options: Mapping[str, str]
) -> None:
    kind = INDEX_TYPE.read(options) if INDEX_TYPE.given(options) else IndexKind.BUCKET
    if kind is not IndexKind.BUCKET:
        raise Invalid(
            f"the table has rules for the buckets of its partitions, but {INDEX_TYPE.key}={kind} "
            "was given.",
            next_step="Leave the option out.",
            key=INDEX_TYPE.key,
        )
    _check_fields(state, layout, counted=True)


def _check_number(state: TableState, options: Mapping[str, str]) -> None:
    if not BUCKETS.given({**options, **state.config.properties}):
        raise Unsupported(
            f"the table is a bucket table that does not say how many: {BUCKETS.key} is missing.",
            next_step=f"Give {BUCKETS.key} (and {HASH_FIELDS.key}) as its other writers have "
            "them; a wrong number makes duplicates.",
        )


def _check_fields(state: TableState, layout: IndexLayout, *, counted: bool) -> None:
    """Refuse hash fields that are not the table's; ``counted`` says that its numbers are known."""
    config = state.config
    if not config.record_key:
        raise Invalid(
            "a table without key columns has no buckets.",
            next_step=f"Give {INDEX_TYPE.key}=SIMPLE.",
        )
    if strange := [name for name in layout.hash_fields if name not in config.record_key]:
        raise Invalid(
            f"{HASH_FIELDS.key} names {', '.join(strange)}, not of the record key.",
            next_step=f"Allowed: some of {', '.join(config.record_key)}.",
        )
    if not (INDEX_TYPE.given(config.properties) and counted):
        _check_against_files(state, layout)
    elif not HASH_FIELDS.given(config.properties) and (
        layout.hash_fields and set(layout.hash_fields) != set(config.record_key)
    ):
        raise Invalid(
            f"the table's buckets follow from its whole key ({', '.join(config.record_key)}), "
            f"but {HASH_FIELDS.key}={','.join(layout.hash_fields)} was given.",
            next_step="Leave the option out.",
            key=HASH_FIELDS.key,
        )


def _check_against_files(state: TableState, layout: IndexLayout) -> None:
    """Compare what the caller says of buckets with where some stored keys lie."""
    if layout.buckets is None:
        return
    fields = layout.hash_fields or state.config.record_key
    since = layout.buckets.version or ""
    for stat in islice(_newest_bases(state.timeline, since), _LOOKED_AT):
        try:
            keys = read_footer(state.storage, stat.path or "").key_range
        except NotFound:
            continue  # cleaned since
        if keys is None:
            continue
        count = layout.buckets.number_of(stat.partition_path or "")
        found = bucket_of(pa.array(keys, pa.string()), fields, count).tolist()
        for key, bucket in zip(keys, found, strict=True):
            if bucket != _bucket(stat):
                raise Invalid(
                    f"with {count} buckets and the hash fields {', '.join(fields)} the key "
                    f"{key!r} belongs to bucket {bucket}, but it lies in {stat.file_id}.",
                    next_step=f"Give {BUCKETS.key} and {HASH_FIELDS.key} as the table's writers "
                    "have them.",
                )


def _newest_bases(timeline: TimelineView, since: str) -> Iterator[WriteStat]:
    """Stream the base files of the newest writes; those before ``since`` had other buckets."""
    newest = (i for i in reversed(timeline.data()) if i.requested >= since)
    for instant in islice(newest, _LOOKED_AT):
        for stats in timeline.commit_metadata(instant).write_stats.values():
            for stat in stats:
                folder, _, name = (stat.path or "").rpartition("/")
                if base_file(folder, name) is not None:
                    yield stat


def _newest_file(timeline: TimelineView) -> WriteStat | None:
    """Return a file of the newest write that made any; each commit body is small or read anyway."""
    for instant in reversed(timeline.data()):
        for stats in timeline.commit_metadata(instant).write_stats.values():
            for stat in stats:
                if stat.file_id:
                    return stat
    return None


def _bucket(stat: WriteStat) -> int | None:
    number = bucket_number(stat.file_id or "")
    return number if number is not None and number < _MOST_BUCKETS else None
