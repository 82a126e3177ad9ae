"""Values that Arrow lets pass and no file may hold: text that is not UTF-8, keys twice in a map.

Arrow looks at neither when it is handed buffers or casts without checks, Parquet writes both, and
readers then disagree: some fail, some show U+FFFD, Spark shows one of the two values of a map.
The quick look takes whole columns at once and may be wrong about bytes that belong to no value,
such as those under a null. Where it finds something, every value is looked at.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.model.errors import Invalid

_SAMPLE = 60
#: Entries of a map up to which each is compared with those near it, without sorting.
_SHORT = 16


def check_sound(batch: pa.RecordBatch) -> None:
    """Refuse text that is not UTF-8 and maps that hold a key twice, at every level.

    The columns have the types of this package: one kind of text, of list and of map. ``Invalid``
    names the column and a value.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not _looks_sound(column):
            for path, array in _parts(column, name):
                if pa.types.is_map(array.type):
                    _check_map(array, path)
                else:
                    _check_text(array, path)


def _looks_sound(array: pa.Array) -> bool:
    kind = array.type
    if pa.types.is_string(kind):
        return _is_utf8(array)
    if pa.types.is_struct(kind):
        return all(_looks_sound(array.field(i)) for i in range(kind.num_fields))
    if pa.types.is_map(kind):
        start, size = _range(array)
        keys, items = array.keys.slice(start, size), array.items.slice(start, size)
        return _are_keys_once(array, keys) and _looks_sound(keys) and _looks_sound(items)
    if pa.types.is_list(kind):
        return _looks_sound(array.values.slice(*_range(array)))
    return True


def _parts(array: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Return the texts and maps in a column, without what lies under nulls."""
    kind = array.type
    if pa.types.is_string(kind):
        yield path, array
    elif pa.types.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from _parts(child, f"{path}.{field.name}")
    elif pa.types.is_map(kind):
        present = array.drop_null()
        yield path, present
        start, size = _range(present)
        yield from _parts(present.keys.slice(start, size), f"{path}.key")
        yield from _parts(present.items.slice(start, size), f"{path}.value")
    elif pa.types.is_list(kind):
        yield from _parts(array.flatten(), f"{path}.element")


def _range(array: pa.Array) -> tuple[int, int]:
    """Return where the elements of a list or map begin among its child's, and how many follow."""
    if not len(array):
        return 0, 0
    offsets = array.offsets
    first = offsets[0].as_py()
    return first, offsets[-1].as_py() - first


def _is_utf8(array: pa.Array) -> bool:
    """Say whether texts are UTF-8: their bytes as one text, and each begins with a character."""
    _, marks, data = array.buffers()
    if not len(array) or data is None:
        return True
    offsets = np.frombuffer(marks, np.int32)[array.offset : array.offset + len(array) + 1]
    held = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    if not len(held) or held.view(np.int8).min() >= 0:
        return True
    ends = pa.py_buffer(np.array([0, len(held)], np.int64))
    whole = pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(held)])
    begins = offsets[:-1][offsets[:-1] < offsets[1:]] - offsets[0]
    return _is_valid(whole) and not bool(((held[begins] & 0xC0) == 0x80).any())


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _check_text(array: pa.Array, path: str) -> None:
    if _is_valid(array):
        return
    for value in array.view(pa.binary()):
        held = value.as_py()
        try:
            if held is not None:
                held.decode()
        except UnicodeDecodeError as cause:
            shown = repr(held[: cause.end + _SAMPLE])[1:]
            raise Invalid(
                f"column {path} holds text that is not UTF-8, such as {shown}.",
                next_step="Decode it from the encoding that it has, or give it as binary.",
                column=path,
                value=shown,
            ) from cause


def _are_keys_once(maps: pa.Array, keys: pa.Array) -> bool:
    if keys.null_count:
        return False
    sizes = np.diff(maps.offsets.to_numpy())
    longest = int(sizes.max()) if len(sizes) else 0
    if longest < 2:
        return True
    if longest > _SHORT:
        pairs = np.sort(_pairs(sizes, keys))
        return not bool((pairs[1:] == pairs[:-1]).any())
    rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    for apart in range(1, longest):
        same = pc.equal(keys.slice(apart), keys.slice(0, len(keys) - apart))
        if pc.any(same).as_py():
            near = rows[apart:] == rows[:-apart]
            if (near & same.to_numpy(zero_copy_only=False)).any():
                return False
    return True


def _pairs(sizes: npt.NDArray[np.int32], keys: pa.Array) -> npt.NDArray[np.int64]:
    """Return a number for each entry, the same for the same key of the same map."""
    coded = keys.dictionary_encode()
    codes: npt.NDArray[np.int32] = coded.indices.to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    return rows * max(len(coded.dictionary), 1) + codes


def _check_map(maps: pa.Array, path: str) -> None:
    keys = maps.keys.slice(*_range(maps))
    if keys.null_count:
        raise Invalid(
            f"column {path} holds a map with a key that is null.",
            next_step="Give every entry a key.",
            column=path,
        )
    if _are_keys_once(maps, keys):
        return
    pairs = _pairs(np.diff(maps.offsets.to_numpy()), keys)
    order = np.argsort(pairs, kind="stable")
    again = order[1:][pairs[order][1:] == pairs[order][:-1]].min()
    shown = keys.view(pa.binary())[int(again)].as_py()[:_SAMPLE].decode(errors="replace")
    raise Invalid(
        f"column {path} holds a map in which the key {shown!r} stands twice.",
        next_step="Keep one entry for each key; Spark would show one of them, and refuses to "
        "build such a map.",
        column=path,
        key=shown,
    )
