"""Which rows of a base file its logs deleted, found without a look at the rows themselves."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.hudi.log.blocks import BlockKind, LogBlock
from lakewright.model.schema import IS_DELETED, OPERATION
from lakewright.model.table import MergeMode
from lakewright.table.merge.winners import Flags, Places
from lakewright.table.reader.logs import SliceLogs
from lakewright.table.reader.merged import begin_contest
from lakewright.table.reader.source import SliceSource


@dataclass(frozen=True, slots=True, eq=False)
class Deleted:
    """Rows that the logs deleted; of ``doubtful`` ones the merged slice has to say."""

    dead: Flags
    doubtful: Flags


def deleted_by_logs(
    source: SliceSource, logs: SliceLogs, keys: pa.Array, positions: Places
) -> Deleted:
    """Say which keys, each at its row of the base file, the logs of a slice deleted.

    In doubt are keys of which an ordering value decides, those without one row in the base file
    (-1 and below), and all where records are merged column by column.
    """
    nothing = np.zeros(len(keys), dtype=bool)
    policy = source.policy
    if policy.mode is not MergeMode.CUSTOM and not any(_deletes(source, b) for b in logs.blocks):
        return Deleted(nothing, nothing)
    if logs.by_column:
        return Deleted(nothing, np.ones(len(keys), dtype=bool))
    contest, by_position = begin_contest(source, logs)
    winners = contest.winners
    if not winners.deleted.any():
        return Deleted(nothing, nothing)
    gone = winners.keys.filter(pa.array(winners.deleted))
    found = pc.index_in(pa.array(positions) if by_position else keys, value_set=gone)
    dead = np.asarray(found.is_valid(), dtype=bool)
    # A delete takes the first row of a key that the base file holds more than once.
    doubtful = positions < 0
    if winners.ordering:
        hard = winners.hard[winners.deleted]
        doubtful[dead] |= ~hard[found.drop_null().to_numpy()]
    return Deleted(dead, doubtful)


def _deletes(source: SliceSource, block: LogBlock) -> bool:
    """Whether some record of a block may delete."""
    if block.kind is BlockKind.DELETE or IS_DELETED in source.schema or source.policy.delete_field:
        return True
    # Hudi's operation column is in files whether the table has it or not.
    return block.schema_text is None or f'"{OPERATION}"' in block.schema_text
