"""The bytes under an Arrow string column, for work that numpy does faster than a loop."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.model.errors import Invalid

#: A string's smallest part: bytes of UTF-8, or code units of UTF-16.
U = TypeVar("U", bound=np.uint8 | np.uint16)
Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Texts(Generic[U]):
    """Strings side by side: value ``i`` is ``size[i]`` units from ``start[i]``."""

    data: npt.NDArray[U]
    start: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def used(self) -> npt.NDArray[U]:
        """The units of all values, where they lie side by side as Arrow has them."""
        if not len(self):
            return self.data[:0]
        return self.data[self.start[0] : self.start[-1] + self.size[-1]]

    def by_size(self) -> Iterator[tuple[Ints, npt.NDArray[U]]]:
        """Yield the rows of each length with their units as a matrix, one row a value."""
        if not len(self):
            return
        first = int(self.size[0])
        if bool(np.all(self.size == first)):
            yield np.arange(len(self)), self._matrix(self.start, first)
            return
        order = np.argsort(self.size, kind="stable")
        sizes = self.size[order]
        edges = np.flatnonzero(np.diff(sizes)) + 1
        for rows in np.split(order, edges):
            yield rows, self._matrix(self.start[rows], int(self.size[rows[0]]))

    def _matrix(self, start: Ints, size: int) -> npt.NDArray[U]:
        if not size:
            return np.empty((len(start), 0), self.data.dtype)
        if bool(np.all(np.diff(start) == size)):
            begin = int(start[0])
            return self.data[begin : begin + size * len(start)].reshape(len(start), size)
        taken: npt.NDArray[U] = self.data[start[:, None] + np.arange(size)]
        return taken


def texts_of(array: pa.Array) -> Texts[np.uint8]:
    """Return the UTF-8 bytes of a string column without copying them; nulls are refused."""
    if array.null_count:
        raise Invalid(
            f"{array.null_count} of {len(array)} keys are null.",
            next_step="Leave them out, or give them values.",
        )
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        width: type[Any] = np.int32
    elif pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        width = np.int64
    else:
        return texts_of(array.cast(pa.string()))
    if not len(array):
        none = np.empty(0, np.int64)
        return Texts(np.empty(0, np.uint8), none, none)
    _, offsets, data = array.buffers()
    marks = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    wide: Ints = marks.astype(np.int64)
    raw = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Texts(raw, wide[:-1], np.diff(wide))
