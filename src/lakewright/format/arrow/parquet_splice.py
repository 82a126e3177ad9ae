"""One parquet file made of the row groups of others, whose pages are copied as they are.

What changes are the places that the footer names, and one column of one value, which is
written anew. Page indexes go along; parquet's own bloom filters are left out, and so are bounds
of floating-point columns by a writer that may have passed over NaN.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from lakewright.format.arrow.parquet_footer import (
    MAGIC,
    MOST_ORDINALS,
    SUMMED,
    ChunkField,
    ColumnField,
    FileField,
    GroupField,
    add,
    extent,
    footer_parts,
    move,
)
from lakewright.format.arrow.parquet_nan import KNOWS_NAN, floating_columns, without_bounds
from lakewright.format.arrow.parquet_one_value import one_value_chunk
from lakewright.format.arrow.thrift_compact import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    Fields,
    Forged,
    Raw,
    binary,
    join,
    join_list,
    packed,
    split,
    split_list,
    text_bytes,
    unpacked,
)
from lakewright.model.errors import Corrupt
from lakewright.model.lazy import lazy

_PIECE = 8 << 20
#: What is read at a time from a file of this machine, and reused: it stays in the cache.
_ROOM = 1 << 20
_PAGE = 4096
#: Column chunks of less than this are not worth the room that aligning them takes.
_ALIGNED = 1 << 20
_MOST_ROWS = 1 << 31
_OPTIONAL = 1
_BYTE_ARRAY = 6

#: What a footer that cannot be true leads to.
_BROKEN = (IndexError, KeyError, ValueError, Forged)

#: Where a chunk names its page indexes.
_INDEXES = (
    ChunkField.OFFSET_INDEX,
    ChunkField.OFFSET_INDEX_SIZE,
    ChunkField.COLUMN_INDEX,
    ChunkField.COLUMN_INDEX_SIZE,
)


@dataclass(frozen=True)
class SpliceSource:
    """A file to take row groups from: its footer's bytes, its size, and how to open it.

    Without ``knows_nan`` its bounds of floating-point columns may pass over NaN.
    """

    path: str
    footer: bytes
    size: int
    open: Callable[[], IO[bytes]]
    knows_nan: bool = False

    @lazy
    def fields(self) -> Fields:
        """The footer taken apart, once."""
        return split(self.footer)

    @lazy
    def doubtful(self) -> frozenset[int]:
        """The columns whose bounds say nothing about NaN."""
        return frozenset() if self.knows_nan else floating_columns(self.fields)


@dataclass(frozen=True, slots=True)
class OneValue:
    """A top-level column of text that has one value in all rows of the new file."""

    column: str
    value: str


def why_apart(sources: Sequence[SpliceSource], replaced: OneValue | None) -> str | None:
    """Say why these files cannot be spliced; None where they can.

    They need the same columns in the same form; compression and encodings may differ.
    """
    try:
        files = [source.fields for source in sources]
        if any(FileField.ENCRYPTION in file for file in files):
            return "a file is encrypted"
        shapes = {_shape(file) for file in files}
        if len(shapes) > 1:
            return "the files differ in their columns"
        if len({file.get(FileField.ORDERS) for file in files}) > 1:
            return "the files order values differently"
        if replaced is not None and not _is_plain_text(files[0], replaced.column):
            return f"{replaced.column} is no plain column of text"
    except _BROKEN as cause:
        raise Corrupt(f"bad parquet footer: {cause}.") from cause
    return None


def splice(
    sink: IO[bytes],
    sources: Sequence[SpliceSource],
    replaced: OneValue | None,
    values: Callable[[], Mapping[str, bytes]],
) -> int:
    """Write one file of all row groups of the sources, in their order; return its rows.

    ``values`` returns the key-values of its footer, and is asked last; that bounds rule out NaN
    is added to them. The sources are such that
    ``why_apart`` has nothing against them.
    """
    writer = _Splice(sink, replaced)
    for source in sources:
        try:
            writer.add(source)
        except _BROKEN as cause:
            raise Corrupt(
                f"bad parquet footer of {source.path}: {cause}.",
                path=source.path,
                offset=source.size - len(source.footer) - 8,
            ) from cause
    key, value = KNOWS_NAN
    return writer.finish({**values(), key: value.encode()})


@dataclass(slots=True)
class _Indexes:
    """The page indexes of a column chunk of the new file, and how far its pages moved."""

    chunk: Fields
    column: bytes
    offsets: bytes
    moved: int


@dataclass(slots=True)
class _Splice:
    """A file in the making."""

    sink: IO[bytes]
    replaced: OneValue | None
    at: int = 0
    rows: int = 0
    first: Fields = field(default_factory=dict)
    creators: set[bytes] = field(default_factory=set)
    #: Row groups with their chunks apart: where indexes lie is known at the end alone.
    groups: list[tuple[Fields, list[Fields]]] = field(default_factory=list)
    indexes: list[_Indexes] = field(default_factory=list)
    room: bytearray = field(default_factory=lambda: bytearray(_ROOM))

    def add(self, source: SpliceSource) -> None:
        file = source.fields
        if not self.at:
            self._write(MAGIC)
            self.first = file
        self.creators.add(_text(file.get(FileField.CREATED_BY)))
        self.rows += unpacked(file[FileField.ROWS][1])
        with source.open() as opened:
            for raw in split_list(file[FileField.GROUPS][1])[1]:
                self._group(split(raw), source, opened)

    def finish(self, values: Mapping[str, bytes]) -> int:
        for one in self.indexes:
            one.chunk[ChunkField.COLUMN_INDEX] = I64, packed(self.at)
            one.chunk[ChunkField.COLUMN_INDEX_SIZE] = I32, packed(len(one.column))
            self._write(one.column)
        for one in self.indexes:
            moved = _moved_pages(one.offsets, one.moved)
            one.chunk[ChunkField.OFFSET_INDEX] = I64, packed(self.at)
            one.chunk[ChunkField.OFFSET_INDEX_SIZE] = I32, packed(len(moved))
            self._write(moved)
        for part in footer_parts(self._file(), values):
            self._write(part)
        return self.rows

    def _file(self) -> Fields:
        groups = []
        for group, chunks in self.groups:
            group[GroupField.COLUMNS] = LIST, join_list(STRUCT, [join(chunk) for chunk in chunks])
            groups.append(join(group))
        file = dict(self.first)
        file[FileField.ROWS] = I64, packed(self.rows)
        file[FileField.GROUPS] = LIST, join_list(STRUCT, groups)
        if len(self.creators) > 1:
            # What readers conclude from the name of one writer must not be concluded of another's.
            file[FileField.CREATED_BY] = BINARY, binary(b"lakewright (spliced)")
        return file

    def _group(self, group: Fields, source: SpliceSource, opened: IO[bytes]) -> None:
        rows = unpacked(group[GroupField.ROWS][1])
        if not 0 <= rows < _MOST_ROWS:
            raise Forged(f"a row group claims {rows} rows")
        copied: list[Fields] = []
        run = _Run()
        for number, raw in enumerate(split_list(group[GroupField.COLUMNS][1])[1]):
            chunk = split(raw)
            if ChunkField.FILE in chunk or ChunkField.CRYPTO in chunk:
                raise Forged("a column lies elsewhere, or is encrypted")
            meta = split(chunk[ChunkField.META][1])
            if number in source.doubtful:
                chunk, meta = _without_indexes(chunk), without_bounds(meta)
            if self.replaced is not None and _column_path(meta) == [self.replaced.column.encode()]:
                self._copy(run, source, opened)
                run = _Run()
                made, new = self._made(self.replaced, rows, indexed=_has_indexes(chunk))
                for size_of, summed in SUMMED.items():
                    add(group, summed, unpacked(new[size_of][1]) - unpacked(meta[size_of][1]))
                copied.append(made)
                continue
            start, size = extent(meta)
            if start < 0 or size < 0 or start + size > source.size - len(source.footer) - 8:
                raise Forged("a column reaches past the end")
            if run.chunks and run.end != start:
                self._copy(run, source, opened)
                run = _Run()
            run.add(chunk, meta, start, size)
            copied.append(chunk)
        self._copy(run, source, opened)
        if GroupField.OFFSET in group and copied:
            begin, _ = extent(split(copied[0][ChunkField.META][1]))
            group[GroupField.OFFSET] = I64, packed(begin)
        group.pop(GroupField.ORDINAL, None)
        if len(self.groups) < MOST_ORDINALS:
            group[GroupField.ORDINAL] = I16, packed(len(self.groups))
        self.groups.append((group, copied))

    def _copy(self, run: "_Run", source: SpliceSource, opened: IO[bytes]) -> None:
        """Copy chunks that lie side by side."""
        if not run.chunks:
            return
        if run.end - run.start >= _ALIGNED:
            # Whole pages are copied faster than parts of two each.
            self._write(bytes((run.start - self.at) % _PAGE))
        moved = self.at - run.start
        for chunk, meta in run.chunks:
            self._shift(chunk, meta, moved, opened)
        copy_range(opened, run.start, run.end - run.start, self.sink, source.path, self.room)
        self.at += run.end - run.start

    def _shift(self, chunk: Fields, meta: Fields, moved: int, opened: IO[bytes]) -> None:
        """Change the places that the description of a column chunk names."""
        move(chunk, meta, moved)
        if _has_indexes(chunk):
            column = _blob(chunk, ChunkField.COLUMN_INDEX, ChunkField.COLUMN_INDEX_SIZE, opened)
            offsets = _blob(chunk, ChunkField.OFFSET_INDEX, ChunkField.OFFSET_INDEX_SIZE, opened)
            self.indexes.append(_Indexes(chunk, column, offsets, moved))
        for number in _INDEXES:
            chunk.pop(number, None)

    def _made(self, replaced: OneValue, rows: int, *, indexed: bool) -> tuple[Fields, Fields]:
        """Write the chunk of the column of one value."""
        optional = _is_optional(self.first, replaced.column)
        made = one_value_chunk(replaced.column, replaced.value, rows, optional=optional)
        meta, moved = made.meta, self.at
        for number in (ColumnField.PAGES, ColumnField.DICTIONARY):
            add(meta, number, moved)
        chunk: Fields = {ChunkField.OFFSET: (I64, packed(0)), ChunkField.META: (STRUCT, join(meta))}
        if indexed:
            self.indexes.append(_Indexes(chunk, made.column_index, made.offset_index, moved))
        self._write(made.pages)
        return chunk, meta

    def _write(self, data: bytes) -> None:
        self.sink.write(data)
        self.at += len(data)


@dataclass(slots=True)
class _Run:
    """Column chunks that lie side by side in a file."""

    chunks: list[tuple[Fields, Fields]] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def add(self, chunk: Fields, meta: Fields, start: int, size: int) -> None:
        if not self.chunks:
            self.start = start
        self.chunks.append((chunk, meta))
        self.end = start + size


def copy_range(
    source: IO[bytes], start: int, size: int, sink: IO[bytes], path: str, room: bytearray
) -> None:
    """Copy bytes of one file to the end of another; ``room`` is overwritten."""
    copied = _copy_of_file(source, start, size, sink, room)
    source.seek(start + copied)
    left = size - copied
    while left > 0:
        piece = source.read(min(left, _PIECE))
        if not piece:
            raise Corrupt(f"{path} ends within a column.", path=path, offset=start)
        sink.write(piece)
        left -= len(piece)


def _copy_of_file(
    source: IO[bytes], start: int, size: int, sink: IO[bytes], room: bytearray
) -> int:
    """Copy what can be copied between files of this machine; return how many bytes that was.

    Not within the kernel: ``sendfile`` fills small pages one by one, which takes longer than to
    read and to write a piece that stays in the processor's cache.
    """
    try:
        descriptor = source.fileno()
        sink.fileno()  # others may keep what they are given, and it is overwritten here
    except (OSError, AttributeError):
        return 0
    view, done = memoryview(room), 0
    while done < size:
        try:
            found = os.preadv(descriptor, [view[: size - done]], start + done)
        except OSError:
            # The descriptor may be no plain file; whatever is left is read and written.
            break
        if not found:
            break
        sink.write(view[:found])
        done += found
    return done


def _blob(chunk: Fields, place: int, size: int, opened: IO[bytes]) -> bytes:
    opened.seek(unpacked(chunk[place][1]))
    wanted = unpacked(chunk[size][1])
    found = opened.read(wanted)
    if len(found) != wanted:
        raise Forged("a page index reaches past the end")
    return found


def _moved_pages(offsets: bytes, moved: int) -> bytes:
    index = split(offsets)
    kind, pages = split_list(index[1][1])
    shifted = []
    for raw in pages:
        page = split(raw)
        add(page, 1, moved)
        shifted.append(join(page))
    index[1] = LIST, join_list(kind, shifted)
    return join(index)


def _has_indexes(chunk: Fields) -> bool:
    return ChunkField.COLUMN_INDEX in chunk and ChunkField.OFFSET_INDEX in chunk


def _without_indexes(chunk: Fields) -> Fields:
    return {number: raw for number, raw in chunk.items() if number not in _INDEXES}


def _column_path(meta: Fields) -> list[bytes]:
    return [text_bytes(raw) for raw in split_list(meta[ColumnField.PATH][1])[1]]


def _text(raw: Raw | None) -> bytes:
    return b"" if raw is None else text_bytes(raw[1])


def _shape(file: Fields) -> tuple[bytes, ...]:
    """Return what makes the columns of two files differ; the name of the root does not."""
    root, *columns = split_list(file[FileField.SCHEMA][1])[1]
    return join({n: value for n, value in split(root).items() if n != 4}), *columns


def _element(file: Fields, column: str) -> Fields | None:
    for raw in split_list(file[FileField.SCHEMA][1])[1][1:]:
        element = split(raw)
        if 4 in element and text_bytes(element[4][1]) == column.encode():
            return element
    return None


def _is_plain_text(file: Fields, column: str) -> bool:
    element = _element(file, column)
    if element is None or 1 not in element or 3 not in element:
        return False
    return (
        unpacked(element[1][1]) == _BYTE_ARRAY
        and unpacked(element[3][1]) <= _OPTIONAL
        and 5 not in element
    )


def _is_optional(file: Fields, column: str) -> bool:
    element = _element(file, column)
    return element is not None and unpacked(element[3][1]) == _OPTIONAL
