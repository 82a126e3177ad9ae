"""The words with which Python code starts an expression."""

from lakewright.model.errors import InvalidExpression
from lakewright.model.expression.functions import function_named
from lakewright.model.expression.nodes import (
    Case,
    Expression,
    Function,
    Literal,
    Reference,
    as_expression,
)


def col(name: str) -> Reference:
    """Name a column, or a member of a struct as ``a.b``; backticks hold a dotted name together."""
    return Reference(split_path(name))


def lit(value: object) -> Expression:
    """Make a constant of a Python value."""
    return as_expression(value)


def function(name: str, *arguments: object) -> Function:
    """Call a function by its SQL name; the error for an unknown one lists those there are."""
    return Function(function_named(name).name, tuple(as_expression(a) for a in arguments))


def when(*branches: tuple[object, object], otherwise: object = None) -> Case:
    """Choose the value of the first (condition, value) pair whose condition is true."""
    if not branches:
        raise InvalidExpression(
            "when() needs at least one (condition, value) pair.",
            next_step="Write when((condition, value)).",
        )
    pairs = tuple((as_expression(test), as_expression(value)) for test, value in branches)
    return Case(pairs, Literal(None) if otherwise is None else as_expression(otherwise))


def split_path(name: str) -> tuple[str, ...]:
    """Split ``a.b`` into the names of a path; backticks quote, a doubled backtick is one."""
    if not isinstance(name, str):
        raise InvalidExpression(
            f"a column name is text, not {name!r}.", next_step="Write name, or struct.member."
        )
    parts: list[str] = []
    rest = name
    while True:
        if rest.startswith("`"):
            part, rest = _quoted(rest, name)
        else:
            part, dot, after = rest.partition(".")
            rest = dot + after
        if not part:
            raise InvalidExpression(
                f"{name!r} is not a column name.", next_step="Write name, or struct.member."
            )
        parts.append(part)
        if not rest:
            return tuple(parts)
        if not rest.startswith("."):
            raise InvalidExpression(
                f"{name!r} is not a column name: text follows the backtick.",
                next_step="Write `odd name`, with a dot before what follows.",
            )
        rest = rest[1:]


def _quoted(text: str, whole: str) -> tuple[str, str]:
    at = 1
    while True:
        end = text.find("`", at)
        if end < 0:
            raise InvalidExpression(
                f"{whole!r} is not a column name: a backtick is not closed.",
                next_step="Close it; a backtick within a name is written twice.",
            )
        if not text.startswith("``", end):
            return text[1:end].replace("``", "`"), text[end + 1 :]
        at = end + 2
