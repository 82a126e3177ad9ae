"""In which order a clustering puts rows: by columns, or along a curve through several of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from lakewright.actions.tasks.sorted_rows import sorted_rows
from lakewright.format.arrow.curves import Scale, bits_for, hilbert_order, z_order
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import Invalid
from lakewright.model.files import FileSlice
from lakewright.model.options import declare, parse_names
from lakewright.model.schema import Struct
from lakewright.table.reader.slice_reader import FileSliceReader


class Layout(StrEnum):
    """In which order rows are put where columns to sort by are given."""

    LINEAR = "LINEAR"
    ZORDER = "ZORDER"
    HILBERT = "HILBERT"


_NO_NAMES: tuple[str, ...] = ()
#: The column of a row's place on a curve, while rows are sorted.
_PLACE = "_lakewright_place"

SORT_COLUMNS = declare(
    "hoodie.clustering.plan.strategy.sort.columns",
    parse_names,
    _NO_NAMES,
    doc="Columns by which a clustering sorts rows; without any, row groups are copied as they are.",
    since="0.1",
    allowed="names of columns, with commas between",
)
LAYOUT = declare(
    "hoodie.layout.optimize.strategy",
    lambda text: Layout(text.strip().upper().replace("-", "")),
    Layout.LINEAR,
    doc="How a clustering orders rows by its columns: by the first, then the second; or along a "
    "curve that keeps rows together which are near in all of them.",
    since="0.1",
    allowed=", ".join(Layout),
)
SAMPLE = declare(
    "hoodie.layout.optimize.build.curve.sample.size",
    int,
    200_000,
    doc="Rows that are looked at to learn how the values of a column are spread, for a curve.",
    since="0.1",
    allowed="a whole number",
)


@dataclass(frozen=True, slots=True)
class Order:
    """By which columns, and how, rows are sorted; not at all without columns."""

    columns: tuple[str, ...] = ()
    layout: Layout = Layout.LINEAR

    @staticmethod
    def of(options: Mapping[str, str]) -> "Order":
        """Read it from options, or from the settings that a plan carries."""
        return Order(tuple(dict.fromkeys(SORT_COLUMNS.read(options))), LAYOUT.read(options))

    def __str__(self) -> str:
        names = ", ".join(self.columns)
        return names if self.layout is Layout.LINEAR else f"{self.layout} of {names}"

    def check_wish(self, columns: Struct) -> None:
        """Refuse what a user asks for and cannot be had, or would mean nothing."""
        if self.layout is not Layout.LINEAR and not self.columns:
            raise Invalid(
                f"the layout {self.layout} orders rows by columns, and none is given.",
                next_step=f"Name some: sort_by=[…], or {SORT_COLUMNS.key}.",
            )
        self.check(columns)

    def check(self, columns: Struct) -> None:
        """Refuse to sort by columns that are not there, or whose values have no order."""
        schema = to_arrow_schema(columns)
        for name in self.columns:
            place = schema.get_field_index(name)
            if place < 0:
                raise Invalid(
                    f"there is no column {name!r} to cluster by.",
                    next_step=f"Columns: {', '.join(schema.names)}.",
                    column=name,
                )
            if pa.types.is_nested(schema.field(place).type):
                raise Invalid(
                    f"column {name!r} is a {schema.field(place).type}, which has no order.",
                    next_step="Cluster by columns of plain values.",
                    column=name,
                )


@dataclass(frozen=True, slots=True)
class Sorting:
    """Sorts the rows of some slices, with about ``limit`` bytes of them in memory.

    ``rows`` is about how many there are, ``sample`` how many of them are looked at for a curve.
    """

    order: Order
    limit: int
    sample: int
    rows: int

    def rows_of(
        self, reader: FileSliceReader, slices: Sequence[FileSlice], target: Struct
    ) -> Iterator[pa.RecordBatch]:
        """Stream the rows of slices in order, the target's columns."""
        projected = reader.project(target)
        batches = (batch for piece in slices for batch in projected.open(piece))
        if not self.order.columns:
            return batches
        self.order.check(target)
        if self.order.layout is Layout.LINEAR or len(self.order.columns) == 1:
            return sorted_rows(batches, self.order.columns, self.limit)
        scales = self._scales(reader, slices, target)
        return self._along_curve(batches, scales)

    def _along_curve(
        self, batches: Iterable[pa.RecordBatch], scales: Sequence[Scale]
    ) -> Iterator[pa.RecordBatch]:
        placed = (self._placed(batch, scales) for batch in batches)
        for batch in sorted_rows(placed, (_PLACE,), self.limit):
            yield batch.drop_columns([_PLACE])

    def _placed(self, batch: pa.RecordBatch, scales: Sequence[Scale]) -> pa.RecordBatch:
        curve = hilbert_order if self.order.layout is Layout.HILBERT else z_order
        coordinates = [
            scale.coordinates(batch.column(name))
            for name, scale in zip(self.order.columns, scales, strict=True)
        ]
        return batch.append_column(_PLACE, pa.array(curve(coordinates, scales[0].bits)))

    def _scales(
        self, reader: FileSliceReader, slices: Sequence[FileSlice], target: Struct
    ) -> list[Scale]:
        """Look at every so-many-th row of the columns."""
        columns = Struct(tuple(target.field(name) for name in self.order.columns))
        projected = reader.project(columns)
        step = max(1, self.rows // max(self.sample, 1))
        held = []
        skip = 0
        for piece in slices:
            for batch in projected.open(piece):
                if skip < batch.num_rows:
                    held.append(batch.take(pa.array(range(skip, batch.num_rows, step))))
                skip = (skip - batch.num_rows) % step
        table = pa.Table.from_batches(held, to_arrow_schema(columns) if not held else None)
        bits = bits_for(len(self.order.columns))
        return [Scale.of(table.column(name), bits) for name in self.order.columns]
