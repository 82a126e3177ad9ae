"""Reading base files: batches of the wanted columns and row groups."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.failures import arrow_failures
from lakewright.format.hudi.base_footer import BaseFooter, read_footer
from lakewright.model.errors import Corrupt
from lakewright.model.schema import RECORD_KEY
from lakewright.storage.port import Storage

#: Rows per batch where the caller does not say.
BATCH_ROWS = 64 << 10
_CODED = pa.dictionary(pa.int32(), pa.string())


def open_base(
    storage: Storage, path: str, size: int = -1, *, coded: Collection[str] = ()
) -> "BaseFileReader":
    """Read a base file's footer and stand ready to read its rows.

    Of the columns named ``coded`` those come as dictionaries that the file keeps as codes.
    """
    footer = read_footer(storage, path, size)
    return BaseFileReader(storage, footer, footer.kept_as_codes(coded) if coded else ())


class BaseFileReader:
    """An open base file. The file itself is opened with the first batch; close it, or use with."""

    def __init__(self, storage: Storage, footer: BaseFooter, coded: Sequence[str] = ()) -> None:
        self._storage = storage
        self._parquet: pq.ParquetFile | None = None
        self._coded = coded
        self.footer = footer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._parquet is not None:
            self._parquet.close(force=True)
            self._parquet = None

    @property
    def path(self) -> str:
        """The path relative to the table."""
        return self.footer.path

    @property
    def schema(self) -> pa.Schema:
        """The schema of all rows, with every type in its normal form."""
        return self.footer.schema

    @property
    def num_rows(self) -> int:
        """The number of rows of the whole file."""
        return self.footer.num_rows

    @property
    def num_row_groups(self) -> int:
        """The number of row groups."""
        return int(self.footer.metadata.num_row_groups)

    def row_group_rows(self, group: int) -> int:
        """Return the number of rows of one row group."""
        return int(self.footer.metadata.row_group(group).num_rows)

    def iter_batches(
        self,
        columns: Sequence[str] | None = None,
        row_groups: Sequence[int] | None = None,
        filter: pc.Expression | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
        use_threads: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Stream rows in file order, one row group after another, so that memory stays bounded.

        ``columns`` names the columns wanted, in the order wanted; names that the file lacks are
        passed over. ``filter`` may name the wanted columns only. A batch without columns still
        knows its number of rows.
        """
        names = self.schema.names
        wanted = list(names if columns is None else (c for c in columns if c in names))
        keys = self._keys_within(wanted)
        asked = [name for name in wanted if keys is None or name != RECORD_KEY]
        whole = self._shape(wanted)
        target = self._shape(asked)
        groups = range(self.num_row_groups) if row_groups is None else row_groups
        for group in groups:
            if not wanted:
                yield from _bare_batches(self.row_group_rows(group), batch_rows)
                continue
            with self._failures(group):
                batches = self._file().iter_batches(
                    batch_size=batch_rows,
                    row_groups=[group],
                    columns=asked,
                    use_threads=use_threads,
                )
            missing = self.row_group_rows(group)
            while (batch := self._next(batches, group, missing)) is not None:
                missing -= len(batch)
                with self._failures(group):
                    self._check_codes(batch, group)
                    made = conform(batch, target)
                if keys is not None:
                    made = _with_keys(made, whole, made.column(keys))
                yield made if filter is None else made.filter(filter)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows as one table."""
        batches = list(self.iter_batches(columns))
        names = self.schema.names if columns is None else columns
        target = self._shape([name for name in names if name in self.schema.names])
        return pa.Table.from_batches(batches, target)

    def _shape(self, names: Sequence[str]) -> pa.Schema:
        fields = (self.schema.field(name) for name in names)
        return pa.schema([f.with_type(_CODED) if f.name in self._coded else f for f in fields])

    def _keys_within(self, wanted: Sequence[str]) -> str | None:
        """Return the column to take record keys from where both are wanted: one decoding less."""
        name = self.footer.key_column
        both = name is not None and name in wanted and RECORD_KEY in wanted
        return name if both and name not in self._coded else None

    def _next(
        self, batches: Iterator[pa.RecordBatch], group: int, missing: int
    ) -> pa.RecordBatch | None:
        """Return a batch; None at the end, where no row may be missing that the footer claims."""
        with self._failures(group):
            batch = next(batches, None)
        if batch is None and missing:
            raise Corrupt(
                f"{self.path} claims {self.row_group_rows(group)} rows in row group {group}; "
                f"{missing} of them are not there.",
                path=self.path,
                offset=self.footer.group_offset(group),
            )
        return batch

    def _check_codes(self, batch: pa.RecordBatch, group: int) -> None:
        """Refuse codes of texts that the dictionary lacks: Arrow hands them on as they are."""
        for name in self._coded:
            if name in batch.schema.names:
                column = batch.column(name)
                low, high = pc.min_max(column.indices).values()
                if low.is_valid and not 0 <= low.as_py() <= high.as_py() < len(column.dictionary):
                    raise Corrupt(
                        f"{self.path} is damaged: column {name} has codes of texts that its "
                        "dictionary lacks.",
                        path=self.path,
                        offset=self.footer.group_offset(group),
                    )

    def _failures(self, group: int) -> AbstractContextManager[None]:
        return arrow_failures(self.path, lambda: self.footer.group_offset(group))

    def _file(self) -> pq.ParquetFile:
        if self._parquet is None:
            file = self._storage.open(self.path)
            with arrow_failures(self.path):
                self._parquet = pq.ParquetFile(
                    file,
                    metadata=self.footer.metadata,
                    coerce_int96_timestamp_unit="us",
                    read_dictionary=list(self._coded),
                )
        return self._parquet


def _with_keys(batch: pa.RecordBatch, wanted: pa.Schema, keys: pa.Array) -> pa.RecordBatch:
    """Return the wanted columns, the record keys in the memory of the column that holds them."""
    columns = [keys if name == RECORD_KEY else batch.column(name) for name in wanted.names]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _bare_batches(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    while rows > 0:
        some = min(rows, batch_rows)
        yield pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), some, [None]))
        rows -= some
