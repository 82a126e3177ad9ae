"""Clustering without a sort: row groups are copied as they are, and one footer written for all.

Of the rows only the column of the file's name is written anew, as in Hudi's own binary copy. The
key range and the bloom filter are put together from those of the files; where they do not fit
together, the keys alone are read.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import IO, NamedTuple

import pyarrow as pa

from lakewright.actions.tasks.cluster_files import NewGroups
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.format.arrow.parquet_splice import OneValue, SpliceSource, splice, why_apart
from lakewright.format.arrow.schema import normalised, to_arrow_schema
from lakewright.format.hudi.base_file import BaseFileReader
from lakewright.format.hudi.base_footer import (
    AVRO_SCHEMA,
    BLOOM,
    BLOOM_KIND,
    MAX_KEY,
    MIN_KEY,
    BaseFooter,
    read_footer,
)
from lakewright.format.hudi.base_write import key_bounds, wider_bounds
from lakewright.format.hudi.bloom import BloomBuilder, BloomFilter, joined, parse_bloom
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.errors import Unsupported
from lakewright.model.files import FileSlice
from lakewright.model.logs import facts
from lakewright.model.options import declare, parse_count
from lakewright.model.schema import FILE_NAME, META_COLUMNS, RECORD_KEY
from lakewright.storage.port import Storage
from lakewright.table.reader.names import SAME

log = logging.getLogger(__name__)

_MODEL = "writer.model.name"


COPIED = declare(
    "lakewright.clustering.copied-row-group-bytes",
    parse_count,
    1 << 20,
    doc="Row groups of at least this size, on the average of a task, are copied unread by a "
    "clustering that does not sort; smaller ones are read and put together.",
    since="0.1",
    allowed="a whole number of bytes",
)


def copied(
    place: NewGroups, pieces: Sequence[FileSlice], outputs: int
) -> tuple[WriteStat, ...] | None:
    """Write about so many files of the row groups of all slices; None where they must be read."""
    spec = place.spec
    storage = spec.open_storage()
    inputs, why = _inputs(spec, storage, pieces)
    if why is None:
        why = _why_read(spec, inputs)
    if why is not None:
        told = facts(partition=place.partition, files=len(pieces), why=why)
        log.info("rows are read, not copied", extra=told)
        return None
    return tuple(place.write(_Copy(storage, part)) for part in _divided(inputs, outputs))


class _Input(NamedTuple):
    """A file whose row groups are copied."""

    footer: BaseFooter
    source: SpliceSource


def _inputs(
    spec: ServiceSpec, storage: Storage, pieces: Sequence[FileSlice]
) -> tuple[list[_Input], str | None]:
    found: list[_Input] = []
    for piece in pieces:
        base = piece.base
        if base is None or piece.logs:
            return found, "a slice has logs"
        if spec.pinned.names.at(base.instant) is not SAME:
            return found, "columns were renamed"
        try:
            footer = read_footer(storage, base.path, base.size)
        except Unsupported as error:
            return found, str(error)
        if footer.num_rows:
            opening = partial(storage.open, footer.path)
            knows_nan = footer.bounds_rule_out_nan
            source = SpliceSource(footer.path, footer.raw, footer.size, opening, knows_nan)
            found.append(_Input(footer, source))
    return found, None


def _why_read(spec: ServiceSpec, inputs: Sequence[_Input]) -> str | None:
    """Say why row groups cannot be copied, or had better not be."""
    if not inputs:
        return "the files hold no rows"
    meta = META_COLUMNS if spec.config.populate_meta_fields else ()
    table = normalised(to_arrow_schema(spec.schema))
    columns = [*((name, pa.string()) for name in meta), *_columns(table)]
    if any(_columns(one.footer.schema) != columns for one in inputs):
        return "a file has other columns than the table"
    groups = sum(one.footer.metadata.num_row_groups for one in inputs)
    size = sum(one.footer.size for one in inputs)
    least = COPIED.read(spec.settings)
    if size < groups * least:
        return f"row groups of {size // groups} bytes on the average, less than {least}"
    replaced = OneValue(FILE_NAME, "") if meta else None
    return why_apart([one.source for one in inputs], replaced)


def _columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Return names and types; whether values may be null is for the file's own schema to say."""
    return [(field.name, _nullable(field.type)) for field in schema]


def _nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(member.name, _nullable(member.type)) for member in kind])
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_type))
    return kind


def _divided(inputs: Sequence[_Input], outputs: int) -> Iterator[list[_Input]]:
    """Put files together up to an equal share each, in their order."""
    share = -(-sum(one.footer.size for one in inputs) // max(outputs, 1))
    part: list[_Input] = []
    size = 0
    for one in inputs:
        if part and size + one.footer.size > share:
            yield part
            part, size = [], 0
        part.append(one)
        size += one.footer.size
    if part:
        yield part


class _Copy:
    """Fills a file with the row groups of others."""

    def __init__(self, storage: Storage, inputs: Sequence[_Input]) -> None:
        self._storage = storage
        self._footers = [one.footer for one in inputs]
        self._sources = [one.source for one in inputs]

    def __call__(self, sink: IO[bytes], name: str) -> int:
        has_name = FILE_NAME in self._footers[0].schema.names
        replaced = OneValue(FILE_NAME, name) if has_name else None
        # Filters are put together last, while the disk takes in what was copied: in a thread
        # beside the copying they held it up.
        return splice(sink, self._sources, replaced, partial(self._values, keyed=has_name))

    def _values(self, *, keyed: bool) -> Mapping[str, bytes]:
        shared = {key: value.encode() for key, value in _shared(self._footers)}
        return {**shared, **self._key_values()} if keyed else shared

    def _key_values(self) -> Mapping[str, bytes]:
        """Return bloom filter and key range of all keys."""
        bloom = _joined_bloom(self._footers)
        bounds: tuple[str, str] | None = None
        ranges = [footer.key_range for footer in self._footers]
        if bloom is None or None in ranges:
            bloom, bounds = self._from_keys()
        else:
            for one in ranges:
                bounds = wider_bounds(bounds, one)
        found = {BLOOM_KIND: bloom.kind.encode(), BLOOM: bloom.encoded()}
        if bounds is not None:
            found |= {MIN_KEY: bounds[0].encode(), MAX_KEY: bounds[1].encode()}
        return found

    def _from_keys(self) -> tuple[BloomFilter, tuple[str, str] | None]:
        builder = BloomBuilder()
        bounds: tuple[str, str] | None = None
        for footer in self._footers:
            with BaseFileReader(self._storage, footer) as opened:
                for batch in opened.iter_batches([RECORD_KEY]):
                    keys = batch.column(0).cast(pa.string())
                    builder.add(keys)
                    bounds = wider_bounds(bounds, key_bounds(keys))
        return builder.build(), bounds


def _joined_bloom(footers: Sequence[BaseFooter]) -> BloomFilter | None:
    found = []
    for footer in footers:
        if footer.bloom is None:
            return None
        found.append(parse_bloom(*footer.bloom, footer.path, footer.offset))
    return joined(found)


def _shared(footers: Sequence[BaseFooter]) -> Iterator[tuple[str, str]]:
    """Stream what all files say of their columns; readers go by parquet's own schema without."""
    for key in (AVRO_SCHEMA, _MODEL):
        said = {footer.values.get(key) for footer in footers}
        if len(said) == 1:
            (value,) = said
            if value is not None:
                yield key, value
