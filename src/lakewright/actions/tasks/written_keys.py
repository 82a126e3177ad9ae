"""The keys that files were written for: of rows they hold, and of rows they delete."""

from collections.abc import Collection
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.compact import sized, slice_reader
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.index.key_lookup import find_keys, stored_keys
from lakewright.model.files import FileSlice

Flags: TypeAlias = npt.NDArray[np.bool_]


def mentioned(
    spec: ServiceSpec, piece: FileSlice, instants: Collection[str], keys: pa.Array
) -> Flags:
    """Return which keys the base file of a slice holds, or its logs have or delete.

    Of the logs the blocks of ``instants`` count.
    """
    found = np.zeros(len(keys), bool)
    piece = sized(piece, spec.open_storage())
    if piece.base is not None:
        found[find_keys(spec.pinned, piece, keys).row] = True
    if piece.logs:
        logged = slice_reader(spec).logged_keys(piece, *instants)
        found |= pc.is_in(keys, value_set=logged).to_numpy(zero_copy_only=False)
    return found


def mentioned_keys(spec: ServiceSpec, piece: FileSlice, instants: Collection[str]) -> pa.Array:
    """Return all keys that ``mentioned`` would find; some may be there twice."""
    piece = sized(piece, spec.open_storage())
    parts = []
    if piece.base is not None:
        parts.append(stored_keys(spec.pinned, piece)[0])
    if piece.logs:
        parts.append(slice_reader(spec).logged_keys(piece, *instants))
    return pa.chunked_array(parts, pa.string()).combine_chunks()
