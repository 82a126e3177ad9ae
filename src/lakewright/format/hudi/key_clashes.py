"""Rows with different values whose keys are one text.

In keys of several columns Hudi writes null as ``__null__`` and an empty text as ``__empty__``,
and puts ``,name:`` between the values without escaping what they hold. So the text ``__null__``
and null are one key, as are ``("1,b:2", "3")`` and ``("1", "2,b:3")`` of the columns a and b: of
two such rows one would replace the other without a word. Stored keys are taken as they are; what
is told apart here are the rows of one batch.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.texts import texts_of
from lakewright.format.hudi.key_text import EMPTY_PART, NULL_PART
from lakewright.model.errors import Invalid

_CUT = 80


def check_clashes(names: Sequence[str], columns: Sequence[pa.Array], keys: pa.Array) -> None:
    """Refuse rows whose key columns differ and whose keys do not.

    ``columns`` hold the texts of the key columns, null where a value is; ``keys`` are made of
    them. Only keys that can be read in two ways cost more than a look.
    """
    if _are_plain(names, keys):
        return
    odd = _ambiguous(names, columns, keys)
    if odd is None:
        return
    rows = pc.is_in(keys, value_set=keys.filter(odd).unique())
    parts = zip(*(column.filter(rows).to_pylist() for column in columns), strict=True)
    seen: dict[str, tuple[str | None, ...]] = {}
    for key, values in zip(keys.filter(rows).to_pylist(), parts, strict=True):
        other = seen.setdefault(key, values)
        if other != values:
            raise _clash(names, other, values, key)


def _are_plain(names: Sequence[str], keys: pa.Array) -> bool:
    """Say whether all keys, taken as one text, hold no mark and each separator once for a row."""
    held = texts_of(keys)
    if not len(held):
        return True
    whole = held.data[held.start[0] : held.start[-1] + held.size[-1]].tobytes()
    if any(mark.encode() in whole for mark in (NULL_PART, EMPTY_PART)):
        return False
    return all(whole.count(f",{name}:".encode()) == len(keys) for name in names[1:])


def _ambiguous(
    names: Sequence[str], columns: Sequence[pa.Array], keys: pa.Array
) -> pa.Array | None:
    """Return which keys can be read in more than one way, None where none can."""
    found = [pc.equal(column, mark) for column in columns for mark in (NULL_PART, EMPTY_PART)]
    found += [pc.greater(pc.count_substring(keys, f",{name}:"), 1) for name in names[1:]]
    odd = None
    for one in found:
        if pc.any(one).as_py():
            one = pc.fill_null(one, False)
            odd = one if odd is None else pc.or_(odd, one)
    return odd


def _clash(
    names: Sequence[str],
    one: tuple[str | None, ...],
    other: tuple[str | None, ...],
    key: str,
) -> Invalid:
    shown = [str(dict(zip(names, map(_cut, row), strict=True))) for row in (one, other)]
    return Invalid(
        f"two rows with different values have one record key, {_cut(key)!r}: {shown[0]} and "
        f"{shown[1]}. One would replace the other.",
        next_step="Nothing was written. Change one of the values: in keys of several columns Hudi "
        f"writes null as {NULL_PART}, an empty text as {EMPTY_PART}, and does not escape ',' "
        "and ':'.",
        key=key,
        columns=list(names),
    )


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _CUT else f"{text[: _CUT - 3]}..."
