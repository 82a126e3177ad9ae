"""The rows of a write as Arrow batches, in the one form of types that files hold.

Large and view strings, dictionaries, narrow and unsigned integers, seconds and nanoseconds become
what a Hudi table can hold. What has no such form (64-bit unsigned integers, nanoseconds that
would be cut off, text that is not UTF-8, a key twice in one map) is refused with the column's
name, before or while the rows are read.
"""

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import normalised
from lakewright.format.arrow.soundness import check_sound
from lakewright.model.errors import Invalid

Batches: TypeAlias = Iterable[pa.RecordBatch]

#: Rows in a batch: small enough to be divided on several threads, large enough for numpy.
_MOST_ROWS = 256 << 10


class ArrowRows:
    """Rows that can be gone through more than once.

    ``open`` gives the batches, whatever their exact types. A source that can be opened only once
    is put into a temporary file when its first pass is not announced as the last; the file
    goes with this object. ``nbytes`` is None where it is not known. A column of Arrow's null type
    is a column of nulls of the type that it has in ``like``. Rows that come from the table itself
    are ``sound``: their values are taken as they are.
    """

    def __init__(
        self,
        schema: pa.Schema,
        open: Callable[[], Batches],
        *,
        nbytes: int | None = None,
        once: bool = False,
        like: pa.Schema | None = None,
        sound: bool = False,
    ) -> None:
        known = {} if like is None else {field.name: field.type for field in like}
        given = [field.with_type(_told(field.type, known.get(field.name))) for field in schema]
        kept = [field for field in given if not pa.types.is_null(field.type)]
        _check_nulls(kept)
        #: The columns, every type in its normal form; columns of which nobody knows the type are
        #: left out: they hold nothing but null.
        self.schema: pa.Schema = normalised(pa.schema(kept))
        self.nbytes = nbytes
        self._open = open
        self._once = once
        self._sound = sound
        self._used = False
        self._begun: Iterator[pa.RecordBatch] | None = None

    @staticmethod
    def of(table: pa.Table, like: pa.Schema | None = None) -> "ArrowRows":
        """Take the rows of a table."""
        return ArrowRows(table.schema, table.to_batches, nbytes=table.nbytes, like=like)

    def batches(self, *, last: bool = False) -> Iterator[pa.RecordBatch]:
        """Go through the rows; ``last`` promises that they will not be asked for again."""
        if self._once and last:
            return self._first_pass()
        if self._once:
            self._keep(_spilled(self._first_pass(), self.schema))
        return self._stream()

    def few(self, limit: int) -> pa.Table | None:
        """Return all rows where they take at most ``limit`` bytes, None where they are more.

        What was looked at is not lost: the next pass goes on from it, so that nothing is read
        twice.
        """
        if self.nbytes is not None and self.nbytes > 2 * limit:
            return None
        taken: list[pa.RecordBatch] = []
        size = 0
        stream = self._first_pass() if self._once else self._stream()
        for batch in stream:
            taken.append(batch)
            size += batch.nbytes
            if size > limit:
                self._begun, self._used = _resumed(taken, stream), False
                return None
        table = pa.Table.from_batches(taken, self.schema)
        if self._once:
            self._keep(table.to_batches)
        return table

    def _first_pass(self) -> Iterator[pa.RecordBatch]:
        if self._used:
            raise Invalid(
                "the rows were gone through already, and their source can be opened only once.",
                next_step="Give a table, a dataset or a file instead of a reader.",
            )
        self._used = True
        return self._stream()

    def _stream(self) -> Iterator[pa.RecordBatch]:
        begun, self._begun = self._begun, None
        return self._normal(self._open()) if begun is None else begun

    def _keep(self, again: Callable[[], Batches]) -> None:
        self._open, self._once, self._sound = again, False, True

    def _normal(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            whole = conform(batch, self.schema)
            for start in range(0, whole.num_rows, _MOST_ROWS):
                part = whole.slice(start, _MOST_ROWS)
                if not self._sound:
                    check_sound(part)
                yield part


def _resumed(
    taken: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    taken.reverse()
    while taken:
        yield taken.pop()
    yield from rest


def _told(kind: pa.DataType, like: pa.DataType | None) -> pa.DataType:
    """Return a type in which Arrow's null, at every level, is what another type says there."""
    if like is None or not _has_null(kind):
        return kind
    if pa.types.is_null(kind):
        return like
    if pa.types.is_struct(kind) and pa.types.is_struct(like):
        inner = {field.name: field.type for field in like}
        return pa.struct([f.with_type(_told(f.type, inner.get(f.name))) for f in kind])
    if pa.types.is_map(kind) and pa.types.is_map(like):
        return pa.map_(_told(kind.key_type, like.key_type), _told(kind.item_type, like.item_type))
    if _is_list(kind) and _is_list(like):
        return pa.list_(kind.value_field.with_type(_told(kind.value_type, like.value_type)))
    return kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _check_nulls(fields: Iterable[pa.Field]) -> None:
    for field in fields:
        if _has_null(field.type):
            raise Invalid(
                f"column {field.name} is a {field.type}, whose inner type is not known.",
                next_step="Give the rows with a schema: no value of the batch tells the type.",
                column=field.name,
            )


def _has_null(kind: pa.DataType) -> bool:
    if pa.types.is_null(kind):
        return True
    if isinstance(kind, pa.DictionaryType | pa.BaseExtensionType):
        return False
    return any(_has_null(kind.field(i).type) for i in range(kind.num_fields))


def _spilled(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Callable[[], Batches]:
    """Put rows into a temporary file and return how they are read from it."""
    folder = tempfile.TemporaryDirectory(prefix="lakewright-rows-")
    path = str(Path(folder.name) / "rows.arrow")
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    except BaseException:
        folder.cleanup()
        raise

    def again() -> Iterator[pa.RecordBatch]:
        with pa.memory_map(path) as source, pa.ipc.open_file(source) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    weakref.finalize(again, folder.cleanup)
    return again
