"""How the columns of files become the columns of a result."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.evolve import Renames, conform
from lakewright.format.arrow.nested import Rows
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.schema import Struct


@lru_cache(maxsize=64)
def _wide_schema(target: Struct, table: Struct, more: tuple[str, ...]) -> pa.Schema:
    # Slices are many and the schemas that they are read with few.
    return to_arrow_schema(Struct((*target.fields, *table.select(more).fields)).nullable())


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The columns wanted of one file slice: most from its files, some from its partition's path.

    ``wide`` holds the columns of the result, then those that only the filter needs;
    ``constants`` the values of columns that are the same for the whole slice.
    """

    wide: pa.Schema
    width: int
    constants: Mapping[str, object]

    @staticmethod
    def of(
        target: Struct, table: Struct, extra: Iterable[str], constants: Mapping[str, object]
    ) -> "Projection":
        """Want the columns of ``target``, and those of ``table`` named in ``extra``."""
        more = tuple(name for name in dict.fromkeys(extra) if name not in target)
        wide = _wide_schema(target, table, more)
        names = frozenset(wide.names)
        held = {name: value for name, value in constants.items() if name in names}
        return Projection(wide, len(target), held)

    @property
    def from_files(self) -> tuple[str, ...]:
        """The columns that files are asked for."""
        return tuple(name for name in self.wide.names if name not in self.constants)

    def texts_beside(self, others: AbstractSet[str]) -> tuple[str, ...]:
        """Return the text columns that files are asked for, without those of ``others``."""
        return tuple(
            name
            for name in self.from_files
            if name not in others and pa.types.is_string(self.wide.field(name).type)
        )

    def widen(self, rows: pa.RecordBatch, renames: Renames) -> pa.RecordBatch:
        """Return rows of a file (a batch) as a batch with the wide schema.

        ``renames`` tells what the file calls members of structs. Texts that come as dictionaries
        stay so.
        """
        wide = _with_dictionaries(self.wide, rows.schema)
        if not self.constants and rows.schema.equals(wide):
            return rows
        rows = times_as_text(rows, wide)
        if not self.constants:
            return conform(rows, wide, renames)
        plain = pa.schema([field for field in wide if field.name not in self.constants])
        held = conform(rows, plain, renames)
        columns = [
            pa.repeat(pa.scalar(self.constants[field.name], field.type), rows.num_rows)
            if field.name in self.constants
            else held.column(field.name)
            for field in wide
        ]
        return pa.RecordBatch.from_arrays(columns, schema=wide)

    def narrow(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Drop the columns that only the filter needed."""
        return rows if self.width == len(self.wide) else rows.select(self.wide.names[: self.width])


def _with_dictionaries(target: pa.Schema, held: pa.Schema) -> pa.Schema:
    """Return the target's columns, those as dictionaries that the rows hold so."""
    for field in held:
        if pa.types.is_dictionary(field.type) and field.type.value_type == pa.string():
            at = target.get_field_index(field.name)
            if at >= 0 and target.field(at).type == pa.string():
                target = target.set(at, target.field(at).with_type(field.type))
    return target


def times_as_text(rows: Rows, target: pa.Schema) -> Rows:
    """Return rows (a table or batch) with times as Spark casts them where text is wanted.

    That is so of a partition column alone that a key generator formats.
    """
    for place, field in enumerate(rows.schema):
        wanted = target.get_field_index(field.name)
        if (
            pa.types.is_timestamp(field.type)
            and wanted >= 0
            and pa.types.is_string(target.field(wanted).type)
        ):
            whole = rows.column(place).cast(pa.timestamp("us")).cast(pa.string())
            shown = pc.utf8_rtrim(pc.utf8_rtrim(whole, "0"), ".")
            rows = rows.set_column(place, field.name, shown)
    return rows
