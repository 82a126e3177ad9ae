"""Rows of one batch that share a key, combined into one before they meet what is stored."""

import numpy as np
import pyarrow as pa

from lakewright.format.arrow.nested import Rows, field_values
from lakewright.model.schema import RECORD_KEY
from lakewright.table.merge import ordering as order
from lakewright.table.merge.fold import Folding, Versions
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Flags, Places


def combined(rows: pa.Table, policy: MergePolicy, ordering: tuple[str, ...]) -> pa.Table:
    """Return one row per ``_hoodie_record_key``; the rows themselves where all keys differ.

    The greatest value of the ``ordering`` fields wins, on a tie the later row, whatever decides
    against stored rows; without ordering fields the later row wins. Where the table merges
    column by column, so are rows of one key. Order is kept.
    """
    keys = rows.column(RECORD_KEY).combine_chunks()
    codes = _codes(keys)
    if codes is None:
        return rows
    if policy.by_column:
        return Folding(policy).add(None, incoming_versions(rows, policy), tombstones=False).rows
    return rows.take(pa.array(winning_places(codes, ordering_columns(rows, ordering))))


def winning_places(codes: Places, columns: order.Columns) -> Places:
    """Return, in rising order, the place of the winner of each code."""
    places = np.arange(len(codes))
    if columns:
        places = np.argsort(order.ranks(columns), kind="stable")
    best = np.full(int(codes.max()) + 1, -1, np.int64)
    best[codes[places]] = places  # of several assignments to one place the last stays
    return np.sort(best[best >= 0])


def ordering_columns(rows: Rows, fields: tuple[str, ...]) -> order.Columns:
    """Return the ordering values of rows in comparable form; absent fields have no say."""
    found = (field_values(rows, name) for name in fields)
    return tuple(order.comparable(column) for column in found if column is not None)


def incoming_versions(rows: pa.Table, policy: MergePolicy) -> Versions:
    """Describe rows on their way into the table for merging column by column."""
    deleted, hard = incoming_deletes(rows, policy)
    ordering = ordering_columns(rows, policy.ordering) if policy.event_time else ()
    keys = rows.column(RECORD_KEY).combine_chunks()
    return Versions(keys, rows, {}, deleted, hard, ordering)


def incoming_deletes(rows: pa.Table, policy: MergePolicy) -> tuple[Flags, Flags]:
    """Mark the rows that delete, and those of them that do so whatever is stored.

    A delete whose ordering values are all missing has nothing to be compared by.
    """
    deleted = policy.delete_flags(rows)
    if deleted is None or not deleted.any():
        none = np.zeros(rows.num_rows, bool)
        return none, none
    if not policy.event_time:
        return deleted, deleted
    missing = np.ones(rows.num_rows, bool)
    for name in policy.ordering:
        column = field_values(rows, name)
        if column is not None:
            missing &= np.asarray(column.is_null(), bool)
    return deleted, deleted & missing


def _codes(keys: pa.Array) -> Places | None:
    """Number the keys by value; None where no key occurs twice."""
    coded = keys.dictionary_encode()
    if len(coded.dictionary) == len(keys):
        return None
    codes: Places = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
