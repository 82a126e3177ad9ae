"""Looking keys up in one file slice: footer first, key column only where it may hold some."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.texts import texts_of
from lakewright.format.hudi.base_file import BaseFileReader, open_base
from lakewright.format.hudi.base_footer import BaseFooter
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.index.late_logs import has_late_logs
from lakewright.model.errors import Corrupt, Unsupported
from lakewright.model.files import BaseFile, FileSlice
from lakewright.table.merge.winners import Flags
from lakewright.table.pinned import PinnedTable
from lakewright.table.reader.keys import key_columns, record_keys
from lakewright.table.reader.slice_reader import FileSliceReader

Places = npt.NDArray[np.int64]

#: The least first byte of letters whose order Java and UTF-8 do not agree on.
_DISPUTED = 0xEE
#: A filter is asked where the keys are at most this part of the file's rows: a look at the file
#: costs about as much per row as a question costs per key.
_WORTH_ASKING = 0.5
_ROWS = 1 << 20
#: The position of a key of which the base file holds several rows.
SEVERAL = -2
#: The position of a key that only logs hold, beside a base file without it.
LOGGED = -3


@dataclass(frozen=True, slots=True, eq=False)
class KeysFound:
    """Keys that a slice holds: the ``row`` of the question, and the row in the base file.

    Where the base file holds a key that the logs deleted, ``alive`` is False. Rows that only
    logs hold have no position (-1, or ``LOGGED`` where there is a base file, too), those of a key
    that the base file holds more than once have several (``SEVERAL``).
    """

    row: Places
    position: Places
    alive: Flags


def find_keys(pinned: PinnedTable, piece: FileSlice, keys: pa.Array) -> KeysFound:
    """Return which of the keys, each asked once, are in a slice.

    The base file names the keys where there is one, and logs of such a slice only change what is
    in it. They are read where the base file holds some of the keys, and only as far as they may
    delete. Logs of writers that knew another base file (``has_late_logs``) may hold keys of
    their own and are read for all keys, and a slice of logs alone is read whole.
    """
    reader = FileSliceReader.of(pinned.state)
    if piece.base is None:
        found = pc.is_in(keys, value_set=reader.only(keys).live_keys(piece))
        rows = np.flatnonzero(found.to_numpy(zero_copy_only=False))
        return KeysFound(rows, np.full(len(rows), -1, np.int64), np.ones(len(rows), bool))
    rows, positions = _in_base(pinned, piece.base, keys)
    alive = np.ones(len(rows), bool)
    if len(rows) and piece.logs:
        held = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
        alive = ~reader.deleted(piece, held, positions)
    found = KeysFound(rows, positions, alive)
    if len(rows) == len(keys) or not has_late_logs(pinned, piece):
        return found
    others = np.setdiff1d(np.arange(len(keys)), rows)
    rest = keys.take(pa.array(others))
    live = pc.is_in(rest, value_set=reader.only(rest).live_keys(replace(piece, base=None)))
    return _joined(found, others[live.to_numpy(zero_copy_only=False)])


def stored_keys(pinned: PinnedTable, piece: FileSlice) -> tuple[pa.Array, KeysFound]:
    """Return all keys of a slice, each once, and what ``find_keys`` would say of them."""
    reader = FileSliceReader.of(pinned.state)
    if piece.base is None:
        keys = reader.live_keys(piece).unique()
        count = len(keys)
        places = np.full(count, -1, np.int64)
        return keys, KeysFound(np.arange(count), places, np.ones(count, bool))
    with open_base(pinned.state.storage, piece.base.path, piece.base.size) as base:
        parts = [keys for keys, _ in _read_keys(pinned, base, piece.base)]
    keys = pa.chunked_array(parts, pa.string()).combine_chunks()
    distinct = keys.unique()
    positions = np.arange(len(keys))
    if len(distinct) < len(keys):
        found = pc.index_in(keys, value_set=distinct).to_numpy()
        _, positions, counts = np.unique(found, return_index=True, return_counts=True)
        positions[counts > 1] = SEVERAL
    alive = np.ones(len(distinct), bool)
    if piece.logs:
        alive = ~reader.deleted(piece, distinct, positions)
    found = KeysFound(np.arange(len(distinct)), positions, alive)
    if not has_late_logs(pinned, piece):
        return distinct, found
    live = reader.live_keys(replace(piece, base=None)).unique()
    more = live.filter(pc.invert(pc.is_in(live, value_set=distinct)))
    rows = np.arange(len(distinct), len(distinct) + len(more))
    return pa.concat_arrays([distinct, more]), _joined(found, rows)


def _joined(found: KeysFound, rows: Places) -> KeysFound:
    """Return what was found together with rows that only logs hold."""
    if not len(rows):
        return found
    return KeysFound(
        np.concatenate([found.row, rows]),
        np.concatenate([found.position, np.full(len(rows), LOGGED, np.int64)]),
        np.concatenate([found.alive, np.ones(len(rows), bool)]),
    )


def _in_base(pinned: PinnedTable, base: BaseFile, keys: pa.Array) -> tuple[Places, Places]:
    with open_base(pinned.state.storage, base.path, base.size) as reader:
        candidates = _candidates(reader.footer, keys)
        if not len(candidates):
            return candidates, candidates
        some = keys if len(candidates) == len(keys) else keys.take(pa.array(candidates))
        positions = _positions(pinned, reader, base, some)
    found = np.flatnonzero(positions != -1)
    return candidates[found], positions[found]


def _candidates(footer: BaseFooter, keys: pa.Array) -> Places:
    """Return the keys that the footer does not rule out."""
    rows: Places = np.arange(len(keys))
    if not footer.num_rows:
        return rows[:0]
    if footer.key_range is not None and _agreed(footer.key_range, keys):
        low, high = (pa.scalar(bound, pa.string()) for bound in footer.key_range)
        within = pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))
        rows = np.flatnonzero(within.to_numpy(zero_copy_only=False))
    if not len(rows) or footer.bloom is None or len(rows) > footer.num_rows * _WORTH_ASKING:
        return rows
    try:
        bloom = parse_bloom(*footer.bloom, footer.path, footer.offset)
    except (Corrupt, Unsupported):
        return rows  # a filter that cannot be read rules nothing out
    some = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
    return rows[bloom.contains(some)]


def _agreed(bounds: tuple[str, str], keys: pa.Array) -> bool:
    """Whether bytes sort as Java sorts: true unless letters beyond most scripts occur."""
    if any(ord(letter) >= 0xE000 for bound in bounds for letter in bound):
        return False
    return bool(texts_of(keys).used.max(initial=0) < _DISPUTED)


def _positions(
    pinned: PinnedTable, reader: BaseFileReader, base: BaseFile, keys: pa.Array
) -> Places:
    """Return the row of each key in the file, -1 where it has none, ``SEVERAL`` for many."""
    places = np.full(len(keys), -1, np.int64)
    counts = np.zeros(len(keys), np.int64)
    for stored, start in _read_keys(pinned, reader, base):
        found = pc.index_in(stored, value_set=keys)
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        which = found.drop_null().to_numpy().astype(np.int64)
        places[which] = rows + start
        counts += np.bincount(which, minlength=len(keys))
    places[counts > 1] = SEVERAL
    return places


def _read_keys(
    pinned: PinnedTable, reader: BaseFileReader, base: BaseFile
) -> Iterator[tuple[pa.Array, int]]:
    """Stream the keys of a base file, with the row that each part begins at."""
    config = pinned.state.config
    names = pinned.names.at(base.instant)
    columns = key_columns(config)
    start = 0
    for batch in reader.iter_batches(names.in_file(columns), batch_rows=_ROWS):
        yield record_keys(names.in_table(batch, columns), config, reader.path), start
        start += batch.num_rows
