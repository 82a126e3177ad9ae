"""Orders that keep rows near each other which are near in several columns at once.

Each column's values are first replaced by their place among the values of a sample, stretched
over all bits of a coordinate: so any type that sorts will do, and skew does no harm.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Bits of one number that sorts rows; a sign bit is left alone.
_BITS = 60
#: More bits than this tell values apart that no file would hold apart.
_MOST_BITS = 12

Coordinates = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Scale:
    """Values of a column, in order and each once, that cut it into pieces of about equal weight."""

    edges: pa.Array
    bits: int

    @staticmethod
    def of(sample: pa.ChunkedArray, bits: int) -> "Scale":
        """Cut a column by a sample of its values."""
        values = sample.drop_null()
        order = pc.sort_indices(values)
        count = 1 << bits
        places = np.unique(np.linspace(0, max(len(values) - 1, 0), count).astype(np.int64))
        found = values.take(order.take(pa.array(places[: len(values)])))
        edges = found.unique() if len(found) else found
        return Scale(edges.combine_chunks() if isinstance(edges, pa.ChunkedArray) else edges, bits)

    def coordinates(self, column: pa.Array) -> Coordinates:
        """Return the places of values, nulls first, from 0 to the most that the bits hold."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        cuts = len(self.edges)
        both = pa.chunked_array([self.edges, column.cast(self.edges.type)])
        # An edge comes before the values that equal it, since the sort is stable.
        order = pc.sort_indices(both).to_numpy()
        passed = np.cumsum(order < cuts, dtype=np.uint64)
        found = np.empty(len(column), np.uint64)
        mine = order >= cuts
        found[order[mine] - cuts] = passed[mine]
        # Values of 1 to ``cuts``, and 0 for nulls and for what lies below the sample.
        if column.null_count:
            found[column.is_null().to_numpy(zero_copy_only=False)] = 0
        most = np.uint64((1 << self.bits) - 1)
        return found * most // np.uint64(max(cuts, 1))


def bits_for(columns: int) -> int:
    """Return how many bits of each of so many columns fit into one number."""
    return max(1, min(_MOST_BITS, _BITS // max(columns, 1)))


def z_order(coordinates: Sequence[Coordinates], bits: int) -> Coordinates:
    """Return the place of each row on the Z curve: the bits of all coordinates in turn."""
    found = np.zeros_like(coordinates[0])
    columns = len(coordinates)
    for bit in range(bits):
        for number, values in enumerate(coordinates):
            at = np.uint64(bit * columns + (columns - 1 - number))
            found |= ((values >> np.uint64(bit)) & np.uint64(1)) << at
    return found


def hilbert_order(coordinates: Sequence[Coordinates], bits: int) -> Coordinates:
    """Return the place of each row on Hilbert's curve, by Skilling's transformation of axes."""
    axes = [values.copy() for values in coordinates]
    one = np.uint64(1)
    bit = np.uint64(1) << np.uint64(bits - 1)
    q = bit
    while q > one:
        below = q - one
        for axis in axes:
            high = (axis & q) != 0
            swap = np.where(high, np.uint64(0), (axes[0] ^ axis) & below)
            axes[0] ^= np.where(high, below, swap)
            if axis is not axes[0]:
                axis ^= swap
        q >>= one
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    turned = np.zeros_like(axes[0])
    q = bit
    while q > one:
        turned ^= np.where((axes[-1] & q) != 0, q - one, np.uint64(0))
        q >>= one
    return z_order([axis ^ turned for axis in axes], bits)
