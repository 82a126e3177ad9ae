"""Expressions with names and types resolved, and every conversion written out.

Both sides of a comparison have the same type (timestamps may differ in unit), so that a
translator never has to think about coercion. Nodes are values: equal trees are equal and
hashable (a NaN literal is equal only to itself by identity, as in Python).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from lakewright.model.expression.nodes import Comparator, Operator, TextTest
from lakewright.model.expression.types import Value
from lakewright.model.schema import BOOLEAN, DataType

#: The names that lead from the table to a column or a member of a struct.
Path: TypeAlias = tuple[str, ...]


class BoundNode:
    """Base of the bound nodes."""

    __slots__ = ()

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the direct sub-expressions, in the order in which they are written."""
        return ()


@final
@dataclass(frozen=True, slots=True)
class BoundLiteral(BoundNode):
    """A constant in the Python form of its type."""

    value: Value
    type: DataType


@final
@dataclass(frozen=True, slots=True)
class BoundReference(BoundNode):
    """A column of the schema, spelled as the schema spells it."""

    path: Path
    type: DataType
    nullable: bool = True


@final
@dataclass(frozen=True, slots=True)
class BoundComparison(BoundNode):
    """A comparison of two values of one type."""

    op: Comparator
    left: "BoundExpression"
    right: "BoundExpression"
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return left and right."""
        return (self.left, self.right)


@final
@dataclass(frozen=True, slots=True)
class BoundAnd(BoundNode):
    """Both; false wins over NULL."""

    left: "BoundExpression"
    right: "BoundExpression"
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return left and right."""
        return (self.left, self.right)


@final
@dataclass(frozen=True, slots=True)
class BoundOr(BoundNode):
    """Either; true wins over NULL."""

    left: "BoundExpression"
    right: "BoundExpression"
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return left and right."""
        return (self.left, self.right)


@final
@dataclass(frozen=True, slots=True)
class BoundNot(BoundNode):
    """The opposite; NULL stays NULL."""

    child: "BoundExpression"
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the one sub-expression."""
        return (self.child,)


@final
@dataclass(frozen=True, slots=True)
class BoundIn(BoundNode):
    """Equal to one of the constants (none of them NULL); ``or_null`` when NULL was among them."""

    child: "BoundExpression"
    values: tuple[Value, ...]
    or_null: bool = False
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the tested expression."""
        return (self.child,)


@final
@dataclass(frozen=True, slots=True)
class BoundLike(BoundNode):
    """SQL's LIKE on text."""

    child: "BoundExpression"
    pattern: str
    escape: str = "\\"
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the tested expression."""
        return (self.child,)


@final
@dataclass(frozen=True, slots=True)
class BoundTextMatch(BoundNode):
    """``left`` starts with, ends with or contains ``right``; both text."""

    test: TextTest
    left: "BoundExpression"
    right: "BoundExpression"
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return left and right."""
        return (self.left, self.right)


@final
@dataclass(frozen=True, slots=True)
class BoundIsNull(BoundNode):
    """Whether the child is NULL."""

    child: "BoundExpression"
    type: DataType = BOOLEAN

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the one sub-expression."""
        return (self.child,)


@final
@dataclass(frozen=True, slots=True)
class BoundCast(BoundNode):
    """The child converted; what does not convert is NULL, which ``safe`` says to be meant."""

    child: "BoundExpression"
    type: DataType
    safe: bool = False

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the one sub-expression."""
        return (self.child,)


@final
@dataclass(frozen=True, slots=True)
class BoundArithmetic(BoundNode):
    """Arithmetic on two numbers of one kind (both long, both double, or both decimal)."""

    op: Operator
    left: "BoundExpression"
    right: "BoundExpression"
    type: DataType

    def children(self) -> tuple["BoundExpression", ...]:
        """Return left and right."""
        return (self.left, self.right)


@final
@dataclass(frozen=True, slots=True)
class BoundNegate(BoundNode):
    """The number with its sign turned."""

    child: "BoundExpression"
    type: DataType

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the one sub-expression."""
        return (self.child,)


@final
@dataclass(frozen=True, slots=True)
class BoundFunction(BoundNode):
    """A function call; arguments have the types that ``bind_functions`` gives them."""

    name: str
    arguments: tuple["BoundExpression", ...]
    type: DataType

    def children(self) -> tuple["BoundExpression", ...]:
        """Return the arguments."""
        return self.arguments


@final
@dataclass(frozen=True, slots=True)
class BoundCase(BoundNode):
    """The value of the first branch whose condition is true; all values have one type."""

    branches: tuple[tuple["BoundExpression", "BoundExpression"], ...]
    otherwise: "BoundExpression"
    type: DataType

    def children(self) -> tuple["BoundExpression", ...]:
        """Return conditions and values in the order written, then the rest value."""
        return (*(part for branch in self.branches for part in branch), self.otherwise)


BoundExpression: TypeAlias = (
    BoundLiteral
    | BoundReference
    | BoundComparison
    | BoundAnd
    | BoundOr
    | BoundNot
    | BoundIn
    | BoundLike
    | BoundTextMatch
    | BoundIsNull
    | BoundCast
    | BoundArithmetic
    | BoundNegate
    | BoundFunction
    | BoundCase
)


def walk(bound: BoundExpression) -> Iterator[BoundExpression]:
    """Yield the node and everything under it, parents first."""
    yield bound
    for child in bound.children():
        yield from walk(child)


# Up to this many links a chain leans to the left, as people write it.
_LONG_CHAIN = 64


def joined(links: Sequence[BoundExpression], kind: type[BoundAnd | BoundOr]) -> BoundExpression:
    """Join conditions by one connective; a long chain becomes a tree of small depth."""
    if len(links) > _LONG_CHAIN:
        middle = len(links) // 2
        return kind(joined(links[:middle], kind), joined(links[middle:], kind))
    whole = links[0]
    for link in links[1:]:
        whole = kind(whole, link)
    return whole
