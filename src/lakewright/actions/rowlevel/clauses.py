"""The clauses of a merge: what is said in Python or SQL, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from lakewright.model.errors import Invalid
from lakewright.model.expression.nodes import Expression, as_expression
from lakewright.model.expression.parse import parse_expression


class Act(StrEnum):
    """What happens to a row."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """What happens to the rows for which ``where`` holds, and for which no clause before did.

    ``values`` are by column; None stands for ``*``: each column from the one of the same name
    in the source.
    """

    act: Act
    where: Expression | None = None
    values: Mapping[str, Expression] | None = None


#: The Python forms: a word, a mapping, or a list of either.
ClauseForm: TypeAlias = str | Mapping[str, Any] | Clause
ClauseForms: TypeAlias = ClauseForm | Sequence[ClauseForm] | None

_ALLOWED = {
    "when_matched": (Act.UPDATE, Act.DELETE, Act.IGNORE),
    "when_not_matched": (Act.INSERT, Act.IGNORE),
    "when_not_matched_by_source": (Act.UPDATE, Act.DELETE, Act.IGNORE),
}
_KEYS = {"set": Act.UPDATE, "insert": Act.INSERT, "delete": Act.DELETE, "ignore": Act.IGNORE}


def read_clauses(name: str, given: ClauseForms) -> tuple[Clause, ...]:
    """Read one of the three arguments of ``merge``; None and ``[]`` leave the rows alone."""
    if given is None:
        return ()
    if isinstance(given, Sequence) and not isinstance(given, str):
        return tuple(_clause(name, form) for form in given)
    return (_clause(name, given),)


def _clause(name: str, form: object) -> Clause:
    allowed = _ALLOWED[name]
    if isinstance(form, Clause):
        clause = form
    elif isinstance(form, str):
        clause = _word(name, form)
    elif isinstance(form, Mapping):
        clause = _mapping(name, form)
    else:
        raise _refused(name, form)
    if clause.act not in allowed:
        raise Invalid(
            f"{name} cannot {clause.act}.", next_step=f"Allowed: {', '.join(allowed)}.", clause=name
        )
    if name == "when_not_matched_by_source" and clause.act is Act.UPDATE and clause.values is None:
        raise Invalid(
            f"{name} cannot take every column from the source: there is no source row.",
            next_step='Name the columns: {"set": {"column": "expression"}}.',
            clause=name,
        )
    return clause


def _word(name: str, word: str) -> Clause:
    try:
        return Clause(Act(word.strip().lower()))
    except ValueError as cause:
        raise _refused(name, word) from cause


def _mapping(name: str, form: Mapping[str, Any]) -> Clause:
    acts = [key for key in form if key in _KEYS]
    strange = sorted(set(form) - set(_KEYS) - {"where"})
    if len(acts) != 1 or strange:
        raise _refused(name, dict(form))
    (key,) = acts
    where = form.get("where")
    condition = None if where is None else read_expression(where)
    act = _KEYS[key]
    if act in (Act.DELETE, Act.IGNORE):
        if form[key] is not True:
            raise _refused(name, dict(form))
        return Clause(act, condition)
    return Clause(act, condition, read_values(form[key]))


def read_values(given: object) -> Mapping[str, Expression] | None:
    """Read ``"*"``, or columns with the expressions that make their values.

    A text is SQL, as everywhere; ``lit("text")`` is a text itself.
    """
    if isinstance(given, str) and given.strip() == "*":
        return None
    if not isinstance(given, Mapping) or not given:
        raise Invalid(
            f"{given!r} does not say which columns get which values.",
            next_step='Give "*", or a mapping such as {"total": "t.total + s.total"}.',
        )
    return {str(column): read_expression(value) for column, value in given.items()}


def read_expression(value: object) -> Expression:
    """Read SQL text; anything else is an expression or a constant."""
    return parse_expression(value) if isinstance(value, str) else as_expression(value)


def _refused(name: str, form: object) -> Invalid:
    return Invalid(
        f"{name} does not take {form!r}.",
        next_step=f"Give one of {', '.join(repr(str(a)) for a in _ALLOWED[name])}, a mapping "
        'with one of "set", "insert", "delete", "ignore" and perhaps "where", or a list of these.',
        clause=name,
    )
