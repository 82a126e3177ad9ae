"""The base file that a write builds on, read as the new one will be written."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa

from lakewright.actions.tasks.write_spec import WriteSpec
from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.base_file import BaseFileReader, open_base
from lakewright.format.hudi.base_write import key_bounds, wider_bounds
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.format.hudi.config import TableConfig
from lakewright.model.errors import Corrupt, Unsupported
from lakewright.model.files import BaseFile
from lakewright.model.schema import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY, STRING, Field, Struct
from lakewright.table.merge.combine import ordering_columns
from lakewright.table.merge.ordering import Columns
from lakewright.table.reader.keys import key_columns, record_keys
from lakewright.table.reader.names import FileNames

#: Rows of one batch: no more than a row group has, so that memory holds one of them.
_ROWS = 1 << 20
_KEPT = tuple(Field(name, STRING) for name in (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY))


@dataclass(frozen=True, slots=True, eq=False)
class OldBase:
    """An open base file whose rows go by the schema of the write; a context manager."""

    reader: BaseFileReader
    names: FileNames
    schema: pa.Schema
    config: TableConfig

    @staticmethod
    def open(spec: WriteSpec, base: BaseFile) -> "OldBase":
        """Open the file; its rows are read later."""
        reader = open_base(spec.open_storage(), base.path, base.size)
        names = spec.pinned.names.at(base.instant)
        return OldBase(reader, names, OldBase.schema_of(spec), spec.config)

    @staticmethod
    def schema_of(spec: WriteSpec) -> pa.Schema:
        """Return the columns of ``batches``: what a row keeps of Hudi's own, then the table's."""
        kept = _KEPT if spec.config.populate_meta_fields else ()
        return to_arrow_schema(Struct((*kept, *spec.schema.fields)))

    def __enter__(self) -> "OldBase":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.reader.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Stream all rows, a row group at a time."""
        columns = self.schema.names
        found = self.names.in_file(columns)
        for batch in self.reader.iter_batches(found, batch_rows=_ROWS):
            named = self.names.in_table(batch, columns)
            yield conform(named, self.schema, self.names.inner)

    def key_batches(self, more: tuple[str, ...] = ()) -> Iterator[pa.RecordBatch]:
        """Stream the columns that hold keys, and some more."""
        return self.column_batches((*key_columns(self.config), *more))

    def column_batches(self, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Stream some columns of all rows."""
        columns = tuple(dict.fromkeys(names))
        found = self.names.in_file(columns)
        for batch in self.reader.iter_batches(found, batch_rows=_ROWS):
            yield self.names.in_table(batch, columns)

    def ordering_values(self, batch: pa.RecordBatch, fields: tuple[str, ...]) -> Columns:
        """Return the ordering values of rows of this file, of the types that the write has."""
        names = dict.fromkeys(name.split(".")[0] for name in fields)
        schema = pa.schema([self.schema.field(name) for name in names])
        return ordering_columns(conform(batch, schema, self.names.inner), fields)

    def keys(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the record keys of rows of this file."""
        return record_keys(batch, self.config, self.reader.path)

    def bounds_with(self, rows: pa.Table | None) -> tuple[str, str] | None:
        """Return a range that holds the keys of this file and of these rows, if the file has one.

        Keys that were deleted may leave it wider than need be.
        """
        found = self.reader.footer.key_range
        if found is None or rows is None or not rows.num_rows:
            return found
        return wider_bounds(found, key_bounds(rows.column(RECORD_KEY).combine_chunks()))

    def filter_for(self, rows: pa.Table | None) -> tuple[str, str] | None:
        """Return a bloom filter for this file with these rows, made of its own; None if none is.

        A filter has no memory: whether a key was put into it, or only seems to be in it,
        the filter serves the new file as well as the old. Few new keys are put into it.
        """
        found = self.reader.footer.bloom
        if found is None:
            return None
        if rows is None or not rows.num_rows:
            return found
        try:
            bloom = parse_bloom(*found, self.reader.path, self.reader.footer.offset)
        except (Corrupt, Unsupported):
            return None
        keys = rows.column(RECORD_KEY).combine_chunks()
        known = bloom.contains(keys)
        if known.all():
            return found
        grown = bloom.grown(keys.filter(pa.array(~known)))
        return None if grown is None else (grown.kind, grown.encode())
