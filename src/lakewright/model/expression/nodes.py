"""Expressions as written: names and types are not resolved yet.

Python operators build bigger expressions, so ``==`` does not compare two nodes; ``identical``
does. Combine conditions with ``&``, ``|`` and ``~``: Python's ``and``, ``or`` and ``not`` ask
for a truth value, which an expression does not have before it meets rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn, TypeAlias, final

from lakewright.model.errors import InvalidExpression
from lakewright.model.expression.types import Value, parse_type
from lakewright.model.schema import DataType

_VALUE_TYPES = (bool, int, float, Decimal, str, bytes, date, datetime, time)


class Comparator(StrEnum):
    """The six comparisons and the one that treats NULL as a value."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    NULL_SAFE_EQ = "<=>"

    @property
    def mirrored(self) -> "Comparator":
        """Return the comparator for the two sides exchanged."""
        return _MIRRORED.get(self, self)


_MIRRORED = {
    Comparator.LT: Comparator.GT,
    Comparator.LE: Comparator.GE,
    Comparator.GT: Comparator.LT,
    Comparator.GE: Comparator.LE,
}


class Operator(StrEnum):
    """Arithmetic."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"


class TextTest(StrEnum):
    """Where a piece of text is looked for."""

    PREFIX = "startswith"
    SUFFIX = "endswith"
    INFIX = "contains"


class Expression:
    """A node of an expression tree; immutable."""

    __slots__ = ()
    # A node has no value equality (``==`` builds a comparison), so it must not act as a key.
    __hash__ = None  # type: ignore[assignment]

    def children(self) -> tuple["Expression", ...]:
        """Return the direct sub-expressions, in the order in which they are written."""
        return ()

    def identical(self, other: object) -> bool:
        """Tell whether the other tree has the same nodes with the same values."""
        return fingerprint(self) == fingerprint(other)

    def __bool__(self) -> NoReturn:
        raise InvalidExpression(
            "an expression has no truth value of its own.",
            next_step="Combine conditions with &, | and ~ instead of and, or and not, "
            "and put each comparison in parentheses.",
        )

    def __eq__(self, other: object) -> "Comparison":  # type: ignore[override]
        return Comparison(Comparator.EQ, self, as_expression(other))

    def __ne__(self, other: object) -> "Comparison":  # type: ignore[override]
        return Comparison(Comparator.NE, self, as_expression(other))

    def __lt__(self, other: object) -> "Comparison":
        return Comparison(Comparator.LT, self, as_expression(other))

    def __le__(self, other: object) -> "Comparison":
        return Comparison(Comparator.LE, self, as_expression(other))

    def __gt__(self, other: object) -> "Comparison":
        return Comparison(Comparator.GT, self, as_expression(other))

    def __ge__(self, other: object) -> "Comparison":
        return Comparison(Comparator.GE, self, as_expression(other))

    def __and__(self, other: object) -> "And":
        return And(self, as_expression(other))

    def __rand__(self, other: object) -> "And":
        return And(as_expression(other), self)

    def __or__(self, other: object) -> "Or":
        return Or(self, as_expression(other))

    def __ror__(self, other: object) -> "Or":
        return Or(as_expression(other), self)

    def __invert__(self) -> "Not":
        return Not(self)

    def __add__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.ADD, self, as_expression(other))

    def __radd__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.ADD, as_expression(other), self)

    def __sub__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.SUBTRACT, self, as_expression(other))

    def __rsub__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.SUBTRACT, as_expression(other), self)

    def __mul__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.MULTIPLY, self, as_expression(other))

    def __rmul__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.MULTIPLY, as_expression(other), self)

    def __truediv__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.DIVIDE, self, as_expression(other))

    def __rtruediv__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.DIVIDE, as_expression(other), self)

    def __mod__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.MODULO, self, as_expression(other))

    def __rmod__(self, other: object) -> "Arithmetic":
        return Arithmetic(Operator.MODULO, as_expression(other), self)

    def __neg__(self) -> "Negate":
        return Negate(self)

    def __contains__(self, item: object) -> NoReturn:
        raise InvalidExpression(
            "`in` asks for a truth value, which an expression does not have.",
            next_step="Use .is_in([...]) for a set of values, .contains(text) for text.",
        )

    # Indexing (struct members) would make Python think that a node can be looped over.
    __iter__ = None

    def __getitem__(self, name: str) -> "Expression":
        """Return the member ``name`` of a struct column."""
        if isinstance(self, Reference) and isinstance(name, str):
            return Reference((*self.path, name))
        raise InvalidExpression(
            f"[{name!r}] does not name a member of a struct column.",
            next_step='Write col("a")["b"] or col("a.b").',
        )

    def eq_null_safe(self, other: object) -> "Comparison":
        """Equal, where NULL equals NULL (``<=>``)."""
        return Comparison(Comparator.NULL_SAFE_EQ, self, as_expression(other))

    def is_in(self, options: Iterable[object]) -> "In":
        """One of these values; an empty list is never true."""
        if isinstance(options, (str, bytes)) or not isinstance(options, Iterable):
            raise InvalidExpression(
                f"is_in takes a list of values, not {options!r}.",
                next_step="Write .is_in([...]).",
            )
        return In(self, tuple(as_expression(o) for o in options))

    def between(self, low: object, high: object) -> "Between":
        """From ``low`` to ``high``, both included."""
        return Between(self, as_expression(low), as_expression(high))

    def like(self, pattern: str, escape: str = "\\") -> "Like":
        """Match SQL's pattern: ``%`` any text, ``_`` one character."""
        return Like(self, pattern, escape)

    def startswith(self, text: object) -> "TextMatch":
        """Text that begins with ``text``."""
        return TextMatch(TextTest.PREFIX, self, as_expression(text))

    def endswith(self, text: object) -> "TextMatch":
        """Text that ends with ``text``."""
        return TextMatch(TextTest.SUFFIX, self, as_expression(text))

    def contains(self, text: object) -> "TextMatch":
        """Text that holds ``text`` somewhere."""
        return TextMatch(TextTest.INFIX, self, as_expression(text))

    def is_null(self) -> "IsNull":
        """NULL; never itself NULL."""
        return IsNull(self)

    def is_not_null(self) -> "Not":
        """Not NULL; never itself NULL."""
        return Not(IsNull(self))

    def cast(self, to: str | DataType) -> "Cast":
        """Convert to a type, given as a value or by its SQL name; what does not convert is NULL."""
        return Cast(self, parse_type(to) if isinstance(to, str) else to)


#: A boolean expression; whether it is one is known once it is bound.
Predicate: TypeAlias = Expression


class UnaryExpression(Expression):
    """An expression over one other, ``child``."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def child(self) -> Expression:
            """The expression it is over."""
            ...

    def children(self) -> tuple[Expression, ...]:
        """Return the one sub-expression."""
        return (self.child,)


class BinaryExpression(Expression):
    """An expression over two others, ``left`` and ``right``."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def left(self) -> Expression:
            """The first of the two."""
            ...

        @property
        def right(self) -> Expression:
            """The second of the two."""
            ...

    def children(self) -> tuple[Expression, ...]:
        """Return left and right."""
        return (self.left, self.right)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant; a datetime without a zone is a wall-clock reading."""

    value: Value

    def __post_init__(self) -> None:
        if self.value is not None and not isinstance(self.value, _VALUE_TYPES):
            raise InvalidExpression(
                f"{self.value!r} ({type(self.value).__name__}) cannot stand in an expression.",
                next_step="Allowed: None, bool, int, float, Decimal, str, bytes, date, datetime, "
                "time; lists only in is_in.",
            )
        if isinstance(self.value, str):
            _check_text(self.value)
        if isinstance(self.value, Decimal) and not self.value.is_finite():
            raise InvalidExpression(
                f"{self.value!r} is not a decimal number.", next_step="Write float('nan') or inf."
            )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reference(Expression):
    """A column by name, or a member of a struct column by its path."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Comparison(BinaryExpression):
    """One of the seven comparisons."""

    op: Comparator
    left: Expression
    right: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class And(BinaryExpression):
    """Both; false wins over NULL."""

    left: Expression
    right: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class Or(BinaryExpression):
    """Either; true wins over NULL."""

    left: Expression
    right: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class Not(UnaryExpression):
    """The opposite; NULL stays NULL."""

    child: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class In(Expression):
    """Equal to one of the options."""

    child: Expression
    options: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """Return the tested expression and the options."""
        return (self.child, *self.options)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Between(Expression):
    """From low to high, both included."""

    child: Expression
    low: Expression
    high: Expression

    def children(self) -> tuple[Expression, ...]:
        """Return the tested expression and the bounds."""
        return (self.child, self.low, self.high)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Like(UnaryExpression):
    """SQL's LIKE with a constant pattern."""

    child: Expression
    pattern: str
    escape: str = "\\"

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise InvalidExpression(
                f"LIKE takes a constant text as its pattern, not {self.pattern!r}.",
                next_step="Write .like('ab%').",
            )
        _check_text(self.pattern)
        if len(self.escape) != 1:
            raise InvalidExpression(
                f"the escape of LIKE is one character, not {self.escape!r}.",
                next_step="Leave it out for the backslash.",
            )


@final
@dataclass(frozen=True, slots=True, eq=False)
class TextMatch(BinaryExpression):
    """``left`` starts with, ends with or contains ``right``."""

    test: TextTest
    left: Expression
    right: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class IsNull(UnaryExpression):
    """Whether the child is NULL."""

    child: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cast(UnaryExpression):
    """The child converted to a type; what does not convert is NULL.

    ``safe`` (TRY_CAST) says that NULL is meant where a value that is to be stored does not convert;
    else that is an error.
    """

    child: Expression
    type: DataType
    safe: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic(BinaryExpression):
    """Addition and its kin."""

    op: Operator
    left: Expression
    right: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class Negate(UnaryExpression):
    """The number with its sign turned."""

    child: Expression


@final
@dataclass(frozen=True, slots=True, eq=False)
class Function(Expression):
    """A named function, see ``functions``."""

    name: str
    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """Return the arguments."""
        return self.arguments


@final
@dataclass(frozen=True, slots=True, eq=False)
class Case(Expression):
    """The value of the first branch whose condition is true, else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression

    def children(self) -> tuple[Expression, ...]:
        """Return conditions and values in the order written, then the rest value."""
        return (*(part for branch in self.branches for part in branch), self.otherwise)


@final
@dataclass(frozen=True, slots=True, eq=False)
class InZone(UnaryExpression):
    """The child, with its times read and shown in a zone: a region or an offset."""

    child: Expression
    zone: str


def as_expression(value: object) -> Expression:
    """Return the value itself where it is an expression, else a literal of it."""
    return value if isinstance(value, Expression) else Literal(value)  # type: ignore[arg-type]


def _check_text(text: str) -> None:
    """Refuse half a character: columns hold UTF-8, and no text of theirs compares with it."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidExpression(
            f"{text!r} is no text: it holds half a character (a lone surrogate).",
            next_step="Give text that is valid in UTF-8; what Python made of other bytes of a "
            "file name or an argument is none.",
            value=ascii(text),
        ) from error


def chain(node: Expression, kind: type[And | Or]) -> list[Expression]:
    """Return the links of ``a AND b AND ...`` in order, however long it is.

    Only links that lean to the left are taken apart, so that joining them again from the left
    gives the same tree.
    """
    links: list[Expression] = []
    while isinstance(node, kind):
        links.append(node.right)
        node = node.left
    links.append(node)
    links.reverse()
    return links


def fingerprint(node: object) -> object:
    """Return a hashable image of a tree; two trees are identical when their images are equal."""
    if isinstance(node, Literal):
        # The repr tells 1 from True and 1.0, 0.0 from -0.0, and makes NaN equal to itself.
        return ("Literal", type(node.value).__name__, repr(node.value))
    if isinstance(node, Expression):
        members = fields(node)  # type: ignore[arg-type]
        return (type(node).__name__, *(fingerprint(getattr(node, f.name)) for f in members))
    if isinstance(node, tuple):
        return tuple(fingerprint(part) for part in node)
    return node
