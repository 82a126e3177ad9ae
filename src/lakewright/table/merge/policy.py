"""How the records of one table are merged, decided once from its configuration."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.nested import Column, Rows, field_values
from lakewright.format.hudi.config import TableConfig
from lakewright.model.errors import Unsupported
from lakewright.model.schema import IS_DELETED, OPERATION, Struct
from lakewright.model.table import MergeMode
from lakewright.table.merge.winners import Flags

DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"

_MARKER_SUFFIXES = ("partial.update.unavailable.value", "partial.update.custom.marker")
_DELETING_OPERATIONS = pa.array(["D", "-U"])


#: Payload classes of older tables that say the same as a built-in mode and a partial update mode.
_PAYLOADS: dict[str, tuple[MergeMode, str, str | None]] = {
    "OverwriteNonDefaultsWithLatestAvroPayload": (
        MergeMode.COMMIT_TIME_ORDERING,
        "IGNORE_DEFAULTS",
        None,
    ),
    "PartialUpdateAvroPayload": (MergeMode.EVENT_TIME_ORDERING, "IGNORE_DEFAULTS", None),
    "AWSDmsAvroPayload": (MergeMode.COMMIT_TIME_ORDERING, "KEEP_VALUES", "Op"),
}

#: The payload class under which a record that lost still leaves its commit time on the row.
_LATER_META = "PartialUpdateAvroPayload"


class Gap(StrEnum):
    """Which values of a newer record stand for "not given", so that the older one's are kept."""

    NONE = "none"
    NULLS = "nulls"
    MARKER = "marker"


_GAPS = {
    "KEEP_VALUES": Gap.NONE,
    "IGNORE_DEFAULTS": Gap.NULLS,
    "FILL_DEFAULTS": Gap.NULLS,
    "IGNORE_MARKERS": Gap.MARKER,
    "FILL_UNAVAILABLE": Gap.MARKER,
}


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """The merge rules of a table.

    ``ordering`` holds the fields that are compared, none under commit-time merging. ``gap`` and
    ``marker`` say how partial updates leave a column out of a full record. ``delete_field``
    deletes a record where it equals ``delete_marker``. With ``meta_of_later`` Hudi's own columns
    come from the later record whichever wins.
    """

    mode: MergeMode
    ordering: tuple[str, ...]
    gap: Gap
    marker: str | None
    delete_field: str | None
    delete_marker: str | None
    strategy_id: str | None
    payload_class: str | None
    meta_of_later: bool = False

    @property
    def event_time(self) -> bool:
        """Whether ordering values decide."""
        return self.mode is MergeMode.EVENT_TIME_ORDERING and bool(self.ordering)

    @property
    def by_column(self) -> bool:
        """Whether two full records may have to be merged column by column."""
        return self.mode is MergeMode.CUSTOM or self.gap is not Gap.NONE

    @property
    def keeps_versions(self) -> bool:
        """Whether a row may change under a full record that loses, and keep its own version."""
        return self.mode is MergeMode.CUSTOM or (self.event_time and self.gap is not Gap.NONE)

    @staticmethod
    def of(config: TableConfig) -> "MergePolicy":
        """Read the policy of a table; a partial update mode that is not known is refused."""
        mode, partial = config.merge_mode, (config.partial_update_mode or "KEEP_VALUES").upper()
        delete_field = None
        payload = (config.payload_class or "").rpartition(".")[2]
        if mode is MergeMode.CUSTOM:
            mode, partial, delete_field = _PAYLOADS.get(payload, (mode, partial, None))
        if partial not in _GAPS:
            raise Unsupported(
                f"the table has partial update mode {partial}.",
                next_step=f"Known: {', '.join(_GAPS)}.",
                mode=partial,
            )
        settings = {**config.properties, **config.merge_properties}
        marker = next((v for k, v in settings.items() if k.endswith(_MARKER_SUFFIXES)), None)
        return MergePolicy(
            mode=mode,
            ordering=config.ordering if mode is MergeMode.EVENT_TIME_ORDERING else (),
            gap=_GAPS[partial],
            marker=marker,
            delete_field=settings.get(DELETE_FIELD) or delete_field,
            delete_marker=settings.get(DELETE_MARKER) or (delete_field and "D"),
            strategy_id=config.merge_strategy_id,
            payload_class=config.payload_class,
            meta_of_later=config.merge_mode is MergeMode.CUSTOM and payload == _LATER_META,
        )

    def columns(self, schema: Struct) -> tuple[str, ...]:
        """Return the top-level columns that must be read to apply the policy.

        They are columns of ``schema``, save Hudi's operation column, which is none.
        """
        wanted = [name.split(".")[0] for name in self.ordering]
        wanted.append(IS_DELETED)
        if self.delete_field:
            wanted.append(self.delete_field.split(".")[0])
        return (*dict.fromkeys(name for name in wanted if name in schema), OPERATION)

    def delete_flags(self, records: Rows) -> Flags | None:
        """Mark the records of a log block (table or batch) that delete; None where none can."""
        marks = self._marks(records)
        if not marks:
            return None
        flags = np.zeros(records.num_rows, dtype=bool)
        for mark in marks:
            flags |= np.asarray(pc.fill_null(mark, False), dtype=bool)
        return flags

    def _marks(self, records: Rows) -> list[Column]:
        marks: list[Column] = []
        deleted = field_values(records, IS_DELETED)
        if deleted is not None and pa.types.is_boolean(deleted.type):
            marks.append(deleted)
        operation = field_values(records, OPERATION)
        if operation is not None and pa.types.is_string(operation.type):
            marks.append(pc.is_in(operation, value_set=_DELETING_OPERATIONS))
        if self.delete_field and self.delete_marker is not None:
            chosen = field_values(records, self.delete_field)
            if chosen is not None and not pa.types.is_nested(chosen.type):
                marks.append(pc.equal(chosen.cast(pa.string()), self.delete_marker))
        return marks


#: For slices without log records, whatever the table says about merging.
NOTHING_TO_MERGE = MergePolicy(
    mode=MergeMode.COMMIT_TIME_ORDERING,
    ordering=(),
    gap=Gap.NONE,
    marker=None,
    delete_field=None,
    delete_marker=None,
    strategy_id=None,
    payload_class=None,
)
