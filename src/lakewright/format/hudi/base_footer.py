"""The footer of a base file: what it says before any row is read, in one read of its tail."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.format.arrow.failures import arrow_failures
from lakewright.format.arrow.parquet_nan import trusted_about_nan
from lakewright.format.arrow.parquet_statistics import (
    ColumnStatistics,
    read_group_offset,
    read_statistics,
)
from lakewright.format.arrow.schema import MAX_DEPTH, normalised
from lakewright.model.errors import Corrupt, NotFound, Unsupported
from lakewright.model.lazy import lazy
from lakewright.model.schema import RECORD_KEY
from lakewright.storage.port import Storage

AVRO_SCHEMA = "parquet.avro.schema"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
BLOOM_KIND = "hoodie_bloom_filter_type_code"
BLOOM = "org.apache.hudi.bloomfilter"
OLD_BLOOM = "com.uber.hoodie.bloomfilter"
#: Names the column whose texts are the record keys of the file, in all rows.
KEY_COLUMN = "lakewright.key-column"

# Footers that Hudi writes hold a bloom filter of 430 kB. Far away one large read beats two;
# on a local disk a small read that mostly suffices beats a large one.
_LOCAL_TAIL = 64 << 10
_REMOTE_TAIL = 512 << 10
#: What follows the footer: its length and the magic.
_ENDING = 8
_FORMATS = {"orc": "ORC", "hfile": "HFile", "lance": "Lance", "vortex": "Vortex"}


@dataclass(frozen=True)
class BaseFooter:
    """A base file's own description of itself; ``raw`` are the bytes it was read from."""

    path: str
    size: int
    metadata: pq.FileMetaData
    raw: bytes = field(default=b"", repr=False)
    _known: dict[frozenset[int], list[dict[int, ColumnStatistics]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def offset(self) -> int:
        """Where the footer begins in the file."""
        return self.size - len(self.raw) - _ENDING

    @lazy
    def values(self) -> Mapping[str, str]:
        """The footer's key-values that are text."""
        found = {}
        for key, value in (self.metadata.metadata or {}).items():
            if key != b"ARROW:schema":
                found[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        return found

    @lazy
    def file_schema(self) -> pa.Schema:
        """The Arrow schema exactly as the file has it."""
        with arrow_failures(self.path, self.offset):
            return self.metadata.schema.to_arrow_schema()

    @lazy
    def schema(self) -> pa.Schema:
        """The Arrow schema with every type in its normal form; rows are returned in it."""
        columns = self.metadata.schema
        old = [columns.column(i).physical_type == "INT96" for i in range(len(columns))]
        if not any(old):
            return normalised(self.file_schema)
        return normalised(pa.schema(_moments(self.file_schema, iter(old))))

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.metadata.num_rows)

    @lazy
    def created_by(self) -> str:
        """The software that wrote the file, as it calls itself."""
        with arrow_failures(self.path, self.offset):
            return str(self.metadata.created_by or "")

    @property
    def bounds_rule_out_nan(self) -> bool:
        """Whether a column chunk that has bounds holds no NaN; Arrow alone leaves NaN out."""
        return trusted_about_nan(self.created_by, self.values)

    @property
    def avro_schema(self) -> str | None:
        """The Avro schema with meta columns; files of Spark's row writer have none."""
        return self.values.get(AVRO_SCHEMA)

    @property
    def key_range(self) -> tuple[str, str] | None:
        """The least and the greatest record key in Java's string order, where the file says."""
        low, high = self.values.get(MIN_KEY), self.values.get(MAX_KEY)
        return None if low is None or high is None else (low, high)

    @property
    def bloom(self) -> tuple[str, str] | None:
        """The kind and the base64 text of the bloom filter over record keys."""
        text = self.values.get(BLOOM) or self.values.get(OLD_BLOOM)
        return (self.values.get(BLOOM_KIND, "SIMPLE"), text) if text else None

    @property
    def key_column(self) -> str | None:
        """The column of the file that holds what the column of record keys does, if it says so."""
        name = self.values.get(KEY_COLUMN)
        if name is None or not {name, RECORD_KEY} <= set(self.schema.names):
            return None
        types = {self.schema.field(column).type for column in (name, RECORD_KEY)}
        return name if types == {pa.string()} else None

    def kept_as_codes(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the named text columns whose values are codes of far fewer texts.

        Told by their size: a text that stands in its place takes four bytes and its letters.
        """
        texts = {field.name for field in self.file_schema if field.type == pa.string()}
        # Arrow is told paths, in which a dot in a name cannot be told from a member of a struct.
        return tuple(n for n in names if n in texts and "." not in n and self._is_coded(n))

    def _is_coded(self, name: str) -> bool:
        leaf = self.leaves[(name,)]
        groups = (self.metadata.row_group(at) for at in range(self.metadata.num_row_groups))
        chunks = (group.column(leaf) for group in groups)
        return all(
            chunk.has_dictionary_page and chunk.total_uncompressed_size < 3 * chunk.num_values
            for chunk in chunks
        )

    def statistics(self, columns: frozenset[int]) -> list[dict[int, ColumnStatistics]]:
        """Return the statistics of some parquet columns, for each row group; read once."""
        if columns not in self._known:
            found = read_statistics(self.raw, columns, self.path, self.offset)
            if len(found) != self.metadata.num_row_groups:
                raise Corrupt(
                    f"the footer of {self.path} is ambiguous.", path=self.path, offset=self.offset
                )
            self._known[columns] = found
        return self._known[columns]

    def group_offset(self, group: int) -> int:
        """Return where the pages of a row group begin; those of a forged one lie at the footer."""
        found = read_group_offset(self.raw, group)
        return self.offset if found is None or not 0 <= found < self.size else found

    @lazy
    def leaves(self) -> Mapping[tuple[str, ...], int]:
        """The parquet column of every leaf that is reached through structs alone."""
        found = {}
        for number, path in enumerate(_leaves(self.file_schema)):
            if path is not None:
                found[path] = number
        return found


def read_footer(storage: Storage, path: str, size: int = -1) -> BaseFooter:
    """Read the footer of a parquet base file; ``size`` saves a question where it is known."""
    refuse_unknown_format(path)
    if size < 0:
        stat = storage.stat(path)
        if stat is None:
            raise NotFound(
                f"there is no file {storage.locate(path)}.",
                next_step="Open the table anew: a cleaning may have taken the file away.",
                path=path,
            )
        size = stat.size
    tail_size = min(size, _REMOTE_TAIL if "://" in storage.uri else _LOCAL_TAIL)
    tail = storage.read_range(path, size - tail_size, tail_size)
    length = _footer_length(tail, size, path)
    if length + 8 > len(tail):
        missing = length + 8 - len(tail)
        tail = storage.read_range(path, size - length - 8, missing) + tail
    return parse_footer(tail[len(tail) - length - 8 :], size, path)


def parse_footer(tail: bytes, size: int, path: str) -> BaseFooter:
    """Return the footer from the last bytes of a file of ``size`` bytes."""
    with arrow_failures(path, size - len(tail)):
        # Bounds for the footer's thrift: no text or list in it is larger than itself.
        metadata = pq.ParquetFile(
            pa.BufferReader(tail),
            thrift_string_size_limit=len(tail),
            thrift_container_size_limit=len(tail),
        ).metadata
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if metadata.num_rows != sum(groups) or min(groups, default=0) < 0:
        raise Corrupt(
            f"{path} claims {metadata.num_rows} rows, and {sum(groups)} in its row groups.",
            path=path,
            offset=size - len(tail),
        )
    return BaseFooter(path, size, metadata, tail[:-_ENDING])


def refuse_unknown_format(path: str) -> None:
    """Raise ``Unsupported`` for base files of another format than parquet."""
    ending = PurePosixPath(path).suffix.lower().lstrip(".")
    if ending in _FORMATS:
        raise Unsupported(
            f"{path} is a base file in the {_FORMATS[ending]} format; parquet is read.",
            next_step="Rewrite the table with hoodie.table.base.file.format=PARQUET.",
            path=path,
            format=_FORMATS[ending],
        )


def _footer_length(tail: bytes, size: int, path: str) -> int:
    if len(tail) < 12 or tail[-4:] != b"PAR1":
        raise Corrupt(
            f"{path} is no parquet file: it does not end with PAR1.", path=path, offset=size
        )
    length = int.from_bytes(tail[-8:-4], "little")
    if length + 12 > size:
        raise Corrupt(
            f"{path} claims a footer of {length} bytes in a file of {size}.",
            path=path,
            offset=size - 8,
        )
    return length


def _moments(fields: pa.Schema | pa.StructType, old: Iterator[bool]) -> list[pa.Field]:
    """Return the fields with old 96-bit times as moments in UTC, which is what writers meant."""
    return [member.with_type(_moment(member.type, old)) for member in fields]


def _moment(kind: pa.DataType, old: Iterator[bool]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_moments(kind, old))
    if pa.types.is_map(kind):
        key = _moment(kind.key_type, old)
        return pa.map_(key, kind.item_field.with_type(_moment(kind.item_type, old)))
    if pa.types.is_nested(kind):
        return pa.list_(kind.value_field.with_type(_moment(kind.value_type, old)))
    return pa.timestamp("us", tz="UTC") if next(old) else kind


def _leaves(fields: pa.Schema | pa.StructType) -> Iterator[tuple[str, ...] | None]:
    """Yield one entry per parquet column, in file order: its path, or None inside a list or map."""
    for top in fields:
        yield from _leaf((top.name,), top.type, 1)


def _leaf(
    path: tuple[str, ...] | None, kind: pa.DataType, depth: int
) -> Iterator[tuple[str, ...] | None]:
    if depth > MAX_DEPTH:
        raise Unsupported(
            f"column {path} is nested deeper than {MAX_DEPTH} levels.",
            next_step="Read it with the software that wrote it, and flatten it.",
        )
    if pa.types.is_struct(kind):
        for member in kind:
            inner = None if path is None else (*path, member.name)
            yield from _leaf(inner, member.type, depth + 1)
    elif pa.types.is_map(kind):
        yield from _leaf(None, kind.key_type, depth + 1)
        yield from _leaf(None, kind.item_type, depth + 1)
    elif pa.types.is_nested(kind):
        yield from _leaf(None, kind.value_type, depth + 1)
    else:
        yield path
