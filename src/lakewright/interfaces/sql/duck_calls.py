"""Calls of functions: their arguments, and the types that Spark would convert them to."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lakewright.interfaces.sql.duck_casts import (
    call,
    cast,
    plain_cast,
)
from lakewright.interfaces.sql.duck_kinds import Value, only_spark
from lakewright.model.expression.types import is_nested, is_numeric
from lakewright.model.schema import (
    BINARY,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    Timestamp,
)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a function: its arguments in DuckDB's words, with their types."""

    name: str
    args: tuple[Value, ...]
    strict: bool

    def refuse(self) -> Exception:
        """Return the error for arguments that it is not known with."""
        kinds = ", ".join("NULL" if arg.kind is None else str(arg.kind) for arg in self.args)
        return only_spark(f"{self.name}({kinds})")

    def get(self, place: int, kind: DataType) -> exp.Expression:
        """Return an argument as a type that Spark would convert it to unasked."""
        value = self.args[place]
        given = value.kind
        if given is None or given == kind or _fits(given, kind):
            return cast(value, kind, strict=self.strict).node
        raise self.refuse()

    def word(self, place: int) -> str:
        """Return an argument that is a constant text."""
        node = self.args[place].node.unnest()
        if isinstance(node, exp.Literal) and node.is_string:
            return str(node.this)
        raise only_spark(f"{self.name} with a text that is not a constant")

    def count(self, place: int) -> int:
        """Return an argument that is a constant whole number."""
        node = self.args[place].node.unnest()
        sign = 1
        if isinstance(node, exp.Neg):
            sign, node = -1, node.this.unnest()
        if isinstance(node, exp.Literal) and node.is_int:
            return sign * int(node.this)
        raise only_spark(f"{self.name} with a number that is not a constant")

    def sized(self, *counts: int) -> None:
        """Refuse another number of arguments."""
        if len(self.args) not in counts:
            raise only_spark(f"{self.name} with {len(self.args)} arguments")


Handler = Callable[[Call], Value]


def _fits(given: DataType, kind: DataType) -> bool:
    if kind == STRING:
        return not is_nested(given) and given != BINARY
    if kind == DOUBLE:
        return is_numeric(given) or given == STRING
    if kind == LONG:
        return given == INT
    if kind == DATE:
        return given == STRING or isinstance(given, Timestamp)
    if kind == TIMESTAMP:
        return given in (STRING, DATE)
    return False


def plain(duck: str, kinds: tuple[DataType, ...], to: DataType) -> Handler:
    """Return the handler of a function that DuckDB has under some name."""

    def handle(made: Call) -> Value:
        made.sized(len(kinds))
        parts = [made.get(place, kind) for place, kind in enumerate(kinds)]
        return Value(plain_cast(call(duck, *parts), to), to)

    return handle
