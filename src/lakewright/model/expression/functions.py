"""The functions an expression may call, by their Spark SQL names."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lakewright.model.errors import InvalidExpression


@dataclass(frozen=True, slots=True)
class FunctionDef:
    """Name, how many arguments it takes (``most`` None: any number), and other names for it."""

    name: str
    least: int
    most: int | None
    aliases: tuple[str, ...] = ()


_ALL = (
    FunctionDef("lower", 1, 1, ("lcase",)),
    FunctionDef("upper", 1, 1, ("ucase",)),
    FunctionDef("length", 1, 1, ("char_length", "character_length", "len")),
    FunctionDef("trim", 1, 1),
    FunctionDef("ltrim", 1, 1),
    FunctionDef("rtrim", 1, 1),
    FunctionDef("substring", 2, 3, ("substr",)),
    FunctionDef("concat", 1, None),
    FunctionDef("abs", 1, 1),
    FunctionDef("round", 1, 2),
    FunctionDef("floor", 1, 1),
    FunctionDef("ceil", 1, 1, ("ceiling",)),
    FunctionDef("isnan", 1, 1),
    FunctionDef("coalesce", 1, None, ("nvl", "ifnull")),
    FunctionDef("year", 1, 1),
    FunctionDef("quarter", 1, 1),
    FunctionDef("month", 1, 1),
    FunctionDef("day", 1, 1, ("dayofmonth",)),
    FunctionDef("hour", 1, 1),
    FunctionDef("minute", 1, 1),
    FunctionDef("second", 1, 1),
    FunctionDef("date_trunc", 2, 2),
    FunctionDef("to_date", 1, 1),
)

#: Every function by its first name.
FUNCTIONS: Mapping[str, FunctionDef] = MappingProxyType({f.name: f for f in _ALL})

_BY_ANY_NAME = {name: f for f in _ALL for name in (f.name, *f.aliases)}

#: The units that ``date_trunc`` takes, each under its first name.
TRUNC_UNITS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("year", "yyyy", "yy"), "year"),
        "quarter": "quarter",
        **dict.fromkeys(("month", "mm", "mon"), "month"),
        "week": "week",
        **dict.fromkeys(("day", "dd"), "day"),
        "hour": "hour",
        "minute": "minute",
        "second": "second",
    }
)


def function_named(name: str) -> FunctionDef:
    """Look a function up by any of its names, in any case."""
    found = _BY_ANY_NAME.get(name.lower())
    if found is None:
        raise InvalidExpression(
            f"unknown function {name}.",
            next_step=f"Known: {', '.join(sorted(FUNCTIONS))}.",
            function=name,
        )
    return found


def check_arity(name: str, count: int) -> None:
    """Refuse a call with too few or too many arguments."""
    known = function_named(name)
    if count < known.least or (known.most is not None and count > known.most):
        wanted = (
            f"at least {known.least}"
            if known.most is None
            else f"{known.least}"
            if known.most == known.least
            else f"{known.least} to {known.most}"
        )
        raise InvalidExpression(
            f"{known.name} takes {wanted} argument(s), not {count}.",
            next_step="Give as many as it takes.",
            function=known.name,
        )
