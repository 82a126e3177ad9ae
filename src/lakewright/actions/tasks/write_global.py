"""Tables whose keys are unique over all partitions: a record that changes its partition moves."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_lookup import Changes, group_works, repeated_in
from lakewright.actions.tasks.write_spec import GroupWork, WriteSpec
from lakewright.index.record_index import RecordIndex, Tagged
from lakewright.model.errors import Unsupported
from lakewright.model.files import FileSlice
from lakewright.model.schema import PARTITION_PATH, RECORD_KEY, STRING, Field, Struct
from lakewright.table.merge import ordering as order
from lakewright.table.merge.combine import combined, incoming_deletes, ordering_columns
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Flags, Places
from lakewright.table.reader.slice_reader import FileSliceReader

Texts: TypeAlias = npt.NDArray[np.object_]


def plan_global(
    spec: WriteSpec, rows: pa.Table | None, deletes: pa.Array | None
) -> Iterator[GroupWork]:
    """Return what happens to the groups of all partitions; rows carry the one they go to.

    A delete takes its key wherever it lies. A row whose key lies in another partition is
    inserted in its own and deleted there, unless event time decides and the stored row is
    newer; without the option to move it changes the row where it lies.
    """
    policy = MergePolicy.of(spec.config)
    own = np.empty(0, object)
    if rows is not None and not rows.num_rows:
        rows = None
    if rows is None and deletes is None:
        return
    if rows is not None:
        rows = combined(rows, policy, spec.config.ordering)
        own = np.asarray(rows.column(PARTITION_PATH).to_pylist(), object)
        rows = rows.drop_columns([PARTITION_PATH])
    count = len(own)
    parts = [] if rows is None else list(rows.column(RECORD_KEY).chunks)
    if deletes is not None:
        parts.append(deletes)
    keys = pa.chunked_array(parts, pa.string()).combine_chunks()
    tagged = RecordIndex(spec.pinned, spec.layout).tag(keys, pa.array([""] * len(keys)))
    tagged = tagged.filtered(tagged.alive | _returns(spec, tagged, own)).settled()
    moves = _moves(spec, tagged, own)
    if policy.by_column and moves.any():
        raise Unsupported(
            f"{int(moves.sum())} records would change their partition in a table that merges "
            "column by column, and lose the columns that they do not bring.",
            next_step="Give them their stored partition, or delete them there first.",
        )
    stale = _stale(spec, tagged, moves, rows, policy)
    yield from _by_partition(spec, rows, keys, own, tagged, moves & ~stale, stale, count)


def _returns(spec: WriteSpec, tagged: Tagged, own: Texts) -> Flags:
    """Mark the findings whose deleted row the question may bring back.

    A row returns to its own partition only. One that is added where its key is not, or that a
    delete takes, does not care for what is deleted already.
    """
    if spec.drop_existing or tagged.alive.all():
        return np.zeros(len(tagged.row), bool)
    there = np.array([piece.group.partition for piece in tagged.slices], object)
    returns = tagged.row >= len(own)
    rows = np.flatnonzero(~returns)
    returns[rows] = own[tagged.row[rows]] == there[tagged.slice[rows]]
    return returns


def _moves(spec: WriteSpec, tagged: Tagged, own: Texts) -> Flags:
    """Mark the findings of rows that will lie in another partition."""
    is_row = tagged.row < len(own)
    moves = np.zeros(len(tagged.row), bool)
    if not spec.layout.update_partition or spec.drop_existing or not len(own):
        return moves
    there = np.array([piece.group.partition for piece in tagged.slices], object)
    places = np.flatnonzero(is_row)
    moves[places] = own[tagged.row[places]] != there[tagged.slice[places]]
    return moves


def _stale(
    spec: WriteSpec, tagged: Tagged, moves: Flags, rows: pa.Table | None, policy: MergePolicy
) -> Flags:
    """Mark the findings whose stored row is newer than the row that would take it away.

    A row that deletes and has no ordering value takes away whatever is stored.
    """
    stale = np.zeros(len(moves), bool)
    if rows is None or not policy.event_time or not moves.any():
        return stale
    for number in np.unique(tagged.slice[moves]):
        here = np.flatnonzero(moves & (tagged.slice == number))
        some = rows.take(pa.array(tagged.row[here]))
        stale[here] = _beaten(spec, tagged.slices[int(number)], some, policy)
    return stale


def _beaten(spec: WriteSpec, piece: FileSlice, rows: pa.Table, policy: MergePolicy) -> Flags:
    keys = rows.column(RECORD_KEY).combine_chunks()
    names = tuple(dict.fromkeys(name.split(".")[0] for name in policy.ordering))
    wanted = Struct((Field(RECORD_KEY, STRING), *spec.schema.select(names).nullable().fields))
    reader = FileSliceReader.of(spec.pinned.state).only(keys).project(wanted)
    beaten = np.zeros(len(keys), bool)
    incoming = ordering_columns(rows, policy.ordering)
    for batch in reader.open(piece):
        which = pc.index_in(batch.column(RECORD_KEY), value_set=keys)
        met = tuple(column.take(which) for column in incoming)
        newer = order.exceeds(ordering_columns(batch, policy.ordering), met)
        beaten[which.to_numpy(zero_copy_only=False)[newer]] = True
    _, untimed = incoming_deletes(rows, policy)
    return beaten & ~untimed


def _by_partition(
    spec: WriteSpec,
    rows: pa.Table | None,
    keys: pa.Array,
    own: Texts,
    tagged: Tagged,
    moves: Flags,
    stale: Flags,
    count: int,
) -> Iterator[GroupWork]:
    is_row = tagged.row < count
    # A row that a newer one keeps from moving changes nothing elsewhere either.
    lost = np.zeros(count, bool)
    lost[tagged.row[stale]] = True
    late = np.zeros(len(is_row), bool)
    late[is_row] = lost[tagged.row[is_row]]
    moves = moves & ~late
    stays = is_row & ~moves & ~late
    settled = np.zeros(count, bool)
    # A row that is updated somewhere, or too old to move, is not inserted.
    settled[tagged.row[is_row & (stays | stale)]] = True
    fresh = np.flatnonzero(~settled)
    held: dict[str, dict[str, tuple[FileSlice, Places, Places, Places]]] = {}
    for number, piece in enumerate(tagged.slices):
        here = tagged.slice == number
        changed = here & stays
        if spec.drop_existing:
            changed = np.zeros(len(here), bool)
        gone = here & (~is_row | moves)
        if changed.any() or gone.any():
            entry = (piece, tagged.row[changed], tagged.position[changed], tagged.row[gone])
            held.setdefault(piece.group.partition, {})[piece.group.file_id] = entry
    repeated = repeated_in(tagged)
    targets = set(own[fresh].tolist()) if count else set()
    for partition in sorted({*held, *targets}):
        files = spec.pinned.files(partition)
        new = fresh[own[fresh] == partition] if count else fresh
        changes = Changes(held.get(partition, {}), new, repeated)
        yield from group_works(spec, files, rows, keys, changes)
