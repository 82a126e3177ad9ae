"""The columns that an expression of a query can name, with their types."""

from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from lakewright.interfaces.sql.duck_casts import call, text
from lakewright.interfaces.sql.duck_kinds import Kind, Value, only_spark
from lakewright.model.schema import Struct

Columns: TypeAlias = list[tuple[str, Kind]]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A table of FROM: its name, its columns, and those that SELECT * shows of them."""

    name: str
    columns: Columns
    shown: Columns


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What can be named: the columns of tables, then names given in SELECT, then what is around."""

    sources: list[Source] = field(default_factory=list)
    aliases: dict[str, Kind] = field(default_factory=dict)
    outer: "Scope | None" = None
    #: In ORDER BY a name of SELECT goes before a column.
    named_first: bool = False

    def ordering(self) -> "Scope":
        """Return the scope of ORDER BY."""
        return Scope(self.sources, self.aliases, self.outer, named_first=True)

    def column(self, node: exp.Column) -> Value:
        """Return a column, or a field of one; a name that is not known is left to DuckDB."""
        parts = [str(part.this) for part in node.parts]
        if isinstance(node.this, exp.Star):
            raise only_spark(node.sql(dialect="spark"))
        found: Scope | None = self
        while found is not None:
            value = found._own(node, parts)
            if value is not None:
                return value
            found = found.outer
        return Value(node, None)

    def _own(self, node: exp.Column, parts: list[str]) -> Value | None:
        folded = [part.lower() for part in parts]
        if len(parts) == 1 and self.named_first and folded[0] in self.aliases:
            return Value(node, self.aliases[folded[0]])
        for source in self.sources:
            if len(parts) > 1 and source.name.lower() == folded[0]:
                kind = _find(source.columns, folded[1])
                if kind is not None:
                    whole = exp.Column(this=node.parts[1].copy(), table=node.parts[0].copy())
                    return _fields(Value(whole, kind[0]), parts[2:])
        for source in self.sources:
            kind = _find(source.columns, folded[0])
            if kind is not None:
                first = exp.Column(this=node.parts[0].copy())
                return _fields(Value(node if len(parts) == 1 else first, kind[0]), parts[1:])
        if len(parts) == 1 and folded[0] in self.aliases:
            return Value(node, self.aliases[folded[0]])
        return None


def _find(columns: Columns, name: str) -> tuple[Kind] | None:
    return next(((kind,) for one, kind in columns if one.lower() == name), None)


def _fields(value: Value, names: list[str]) -> Value:
    for name in names:
        value = field_of(value, name)
    return value


def field_of(whole: Value, name: str) -> Value:
    """Return a field of a struct."""
    if isinstance(whole.kind, Struct):
        for one in whole.kind:
            if one.name.lower() == name.lower():
                return Value(call("struct_extract", whole.node, text(one.name)), one.type)
    raise only_spark(f"the field {name} of {whole.kind}")
