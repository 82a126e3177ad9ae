"""Mergers for tables whose merge mode is CUSTOM.

Hudi names a custom merger by its strategy id (``hoodie.record.merge.strategy.id``), or by a
payload class. Register one under that name, and tables that carry it can be merged.
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lakewright.model.errors import AlreadyExists, Invalid, Unsupported
from lakewright.model.table import MergeMode
from lakewright.table.merge.policy import MergePolicy


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The result of a merge: one row per pair, and which rows are not deleted by it.

    ``kept`` is a boolean array, or None where every row stays.
    """

    rows: pa.Table
    kept: pa.BooleanArray | None = None


class RecordMerger(Protocol):
    """Merges two versions of records, many records at a time.

    The operation must be associative, since logs are merged before they meet the base file.
    """

    @property
    def merging_strategy(self) -> str:
        """The strategy id, or the payload class, of the tables that this merger serves."""
        ...

    def merge(self, older: pa.Table, newer: pa.Table) -> Merged:
        """Merge two Arrow tables of equal schema, row by row: row i of both has the same key."""
        ...


_REGISTERED: dict[str, RecordMerger] = {}


def register_merger(merger: RecordMerger, *, replace: bool = False) -> None:
    """Make a merger known to this process.

    Scans take it along to Spark's workers. Other processes, such as those that plan
    ``format("lakewright")`` for Spark, must register their own.
    """
    name = getattr(merger, "merging_strategy", None)
    if not isinstance(name, str) or not callable(getattr(merger, "merge", None)):
        raise Invalid(
            f"{merger!r} is no merger.",
            next_step="Give an object with the text merging_strategy and merge(older, newer).",
        )
    if name in _REGISTERED and not replace:
        raise AlreadyExists(
            f"a merger for {name!r} is registered already.",
            next_step="Pass replace=True to put this one in its place.",
            strategy=name,
        )
    _REGISTERED[name] = merger


def unregister_merger(strategy: str) -> None:
    """Forget a merger; an unknown name is no error."""
    _REGISTERED.pop(strategy, None)


def custom_merger(policy: MergePolicy) -> RecordMerger | None:
    """Return the merger that a policy needs; None where the policy itself says how to merge."""
    if policy.mode is not MergeMode.CUSTOM:
        return None
    return merger_for(policy.strategy_id, policy.payload_class)


def merger_for(strategy_id: str | None, payload_class: str | None) -> RecordMerger:
    """Return the registered merger of a table; ``Unsupported`` says what is missing."""
    names = [name for name in (strategy_id, payload_class) if name]
    for name in names:
        if name in _REGISTERED:
            return _REGISTERED[name]
    raise Unsupported(
        f"the table merges its log records with merge mode {MergeMode.CUSTOM} "
        f"({', '.join(names) or 'no strategy named'}), and no merger of that name is registered.",
        next_step="Register one with lakewright.register_merger, "
        'or read compacted rows only with mode="read_optimized".',
        strategy=strategy_id,
        payload_class=payload_class,
    )
