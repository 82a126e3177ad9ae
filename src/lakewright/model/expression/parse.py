"""SQL text (Spark's dialect) to expressions, by way of sqlglot."""

from collections.abc import Callable
from decimal import Decimal as PyDecimal
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from lakewright.model.dialect import LakeSql
from lakewright.model.errors import InvalidExpression
from lakewright.model.expression.functions import FUNCTIONS, check_arity, function_named
from lakewright.model.expression.nodes import (
    And,
    Arithmetic,
    Between,
    Case,
    Cast,
    Comparator,
    Comparison,
    Expression,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Operator,
    Or,
    Reference,
    TextMatch,
    TextTest,
)
from lakewright.model.expression.types import parse_type
from lakewright.model.expression.values import fit_decimal, read_moment, read_text
from lakewright.model.schema import DOUBLE, FLOAT, INT, LONG, STRING, DataType, Decimal, Timestamp

Sql: TypeAlias = exp.Expression

#: Longer ones are beyond every type; Python does not even read those of thousands of digits.
_LONGEST_INTEGER = 1000


def parse_expression(sql: str) -> Expression:
    """Read a condition or a value from SQL; what has no meaning for a single row is refused.

    Conversions of constants are carried out (``CAST('2026-11-01' AS DATE)`` is a date).
    """
    try:
        tree: Any = sqlglot.parse_one(sql, dialect=LakeSql, into=exp.Condition)
        return _read(tree)
    except SqlglotError as error:
        raise InvalidExpression(
            f"cannot read {sql!r} as SQL: {_reason(error)}.",
            next_step="Write it as the WHERE clause of a Spark query, such as "
            "dt >= '2026-11-01' AND id IN (1, 2); names that are SQL words go in backticks.",
            sql=sql,
        ) from error
    except RecursionError as error:
        raise InvalidExpression(
            "the expression is nested too deeply.",
            next_step="Use IN (...) for a long list of values.",
            length=len(sql),
        ) from error


def read_tree(tree: Sql) -> Expression:
    """Read an expression that sqlglot has parsed already, as a part of a statement."""
    return _read(tree)


def _reason(error: SqlglotError) -> str:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[-1]
        near = str(first.get("highlight") or "").strip()
        told = str(first.get("description") or "it does not follow the grammar")
        told = told.partition(" for <class")[0].rstrip(".")
        return f"{told}, near {near!r}" if near else told
    return "a quote or a backtick is not closed" if "token" in str(error).lower() else str(error)


def _refused(tree: Sql, what: str | None = None) -> InvalidExpression:
    text = tree.sql(dialect="spark")
    return InvalidExpression(
        f"{what or type(tree).__name__} cannot stand in an expression over one row: {text}.",
        next_step="Compare and compute with columns of the row and constants. Known functions: "
        f"{', '.join(sorted(FUNCTIONS))}.",
        construct=type(tree).__name__,
        sql=text,
    )


def _read(tree: Sql) -> Expression:
    reader = _READERS.get(type(tree))
    if reader is None:
        raise _refused(tree, _kind_of_refusal(tree))
    read = reader(tree)
    # "x NOT IN (...)" and its kin: newer sqlglot marks the node itself.
    return Not(read) if tree.args.get("negate") else read


def _kind_of_refusal(tree: Sql) -> str | None:
    if isinstance(tree, exp.AggFunc):
        return f"the aggregate {tree.sql_name().lower()}"
    if isinstance(tree, (exp.Query, exp.Exists)):
        return "a subquery"
    if isinstance(tree, exp.Window):
        return "a window function"
    if isinstance(tree, exp.Anonymous):
        return f"the unknown function {tree.name}"
    if isinstance(tree, exp.Func):
        return f"the function {tree.sql_name().lower()}"
    return None


# Leaves


def _reference(tree: Sql) -> Expression:
    parts = _names(tree)
    if any(not name for name in parts):
        raise _refused(tree)
    return Reference(parts)


def _names(tree: Sql) -> tuple[str, ...]:
    if isinstance(tree, exp.Identifier):
        return (str(tree.this),)
    if isinstance(tree, exp.Dot):
        return (*_names(tree.this), *_names(tree.expression))
    if isinstance(tree, exp.Column) and not isinstance(tree.this, exp.Star):
        return tuple(str(part.this) for part in tree.parts)
    raise _refused(tree)


def _constant(tree: Sql) -> Expression:
    text = str(tree.this)
    if tree.args.get("is_string"):
        return Literal(text)
    if "e" in text.lower():
        return Literal(float(text))
    if "." in text or len(text) > _LONGEST_INTEGER:
        return Literal(PyDecimal(text))
    return Literal(int(text))


def _hex(tree: Sql) -> Expression:
    digits = str(tree.this)
    try:
        return Literal(bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")))
    except ValueError as error:
        raise _refused(tree, "a bad hexadecimal constant") from error


# Conditions


def _compare(op: Comparator) -> Callable[[Sql], Expression]:
    return lambda tree: Comparison(op, _read(tree.this), _read(tree.expression))


def _joined(kind: type[exp.And | exp.Or], make: type[And | Or]) -> Callable[[Sql], Expression]:
    """Read a chain without recursion on its length: ``a OR b OR ...`` leans to the left."""

    def read(tree: Sql) -> Expression:
        right: list[Sql] = []
        while type(tree) is kind:
            right.append(tree.expression)
            tree = tree.this
        whole = _read(tree)
        for part in reversed(right):
            whole = make(whole, _read(part))
        return whole

    return read


def _is(tree: Sql) -> Expression:
    child, state = _read(tree.this), tree.expression
    if isinstance(state, exp.Null):
        return IsNull(child)
    if isinstance(state, exp.Boolean):
        return Comparison(Comparator.NULL_SAFE_EQ, child, Literal(bool(state.this)))
    raise _refused(tree)


def _in(tree: Sql) -> Expression:
    if set(_given(tree)) - {"this", "expressions", "negate"}:
        raise _refused(tree, "a subquery")
    return In(_read(tree.this), tuple(_read(option) for option in tree.expressions))


def _between(tree: Sql) -> Expression:
    if "symmetric" in _given(tree):
        raise _refused(tree, "BETWEEN SYMMETRIC")
    low, high = tree.args["low"], tree.args["high"]
    return Between(_read(tree.this), _read(low), _read(high))


def _like(tree: Sql, escape: str = "\\") -> Expression:
    pattern = tree.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise _refused(tree, "LIKE with a pattern that is not a constant")
    return Like(_read(tree.this), str(pattern.this), escape)


def _escaped(tree: Sql) -> Expression:
    like, escape = tree.this, tree.expression
    if not isinstance(like, exp.Like) or not isinstance(escape, exp.Literal):
        raise _refused(tree)
    read = _like(like, str(escape.this))
    return Not(read) if like.args.get("negate") else read


def _text_test(test: TextTest) -> Callable[[Sql], Expression]:
    return lambda tree: TextMatch(test, _read(tree.this), _read(tree.expression))


# Values


def _arithmetic(op: Operator) -> Callable[[Sql], Expression]:
    return lambda tree: Arithmetic(op, _read(tree.this), _read(tree.expression))


def _negative(tree: Sql) -> Expression:
    child = _read(tree.this)
    # -1 and -1BD are constants, -(1) and -x are operations
    written = type(tree.this) is exp.Literal or isinstance(tree.this, exp.TryCast)
    if written and isinstance(child, Literal):
        value = child.value
        if isinstance(value, PyDecimal):
            # The minus of Python's decimals rounds to the digits of the thread's context.
            return Literal(value.copy_negate())
        if isinstance(value, (int, float)):
            return Literal(-value)
    return Negate(child)


def _cast(tree: Sql) -> Expression:
    if "format" in _given(tree):
        raise _refused(tree, "CAST with a format")
    target = tree.args["to"]
    # sqlglot writes Spark's TIME as TIMESTAMP
    name = "time" if target.this is exp.DataType.Type.TIME else target.sql(dialect="spark")
    to, child = parse_type(name), _read(tree.this)
    folded = _folded(child, to)
    return Cast(child, to, bool(tree.args.get("safe"))) if folded is None else folded


def _folded(child: Expression, to: DataType) -> Literal | None:
    """Carry out the conversion of a constant; this is also how 5L, 1.5D and DATE '...' arrive."""
    if not isinstance(child, Literal) or child.value is None or to == STRING:
        return None
    value = child.value
    if isinstance(value, str):
        try:
            moment = isinstance(to, Timestamp) and to.utc
            return Literal(read_moment(value) if moment else read_text(value, to))
        except ValueError:
            return None
    if isinstance(value, bool):
        return None
    if to in (INT, LONG) and isinstance(value, int):
        return child
    if to in (FLOAT, DOUBLE) and isinstance(value, (int, float, PyDecimal)):
        return Literal(float(value))
    if isinstance(to, Decimal) and isinstance(value, (int, PyDecimal)):
        try:
            return Literal(fit_decimal(PyDecimal(value), to))
        except ValueError:
            return None
    return None


def _case(tree: Sql) -> Expression:
    tested = tree.args.get("this")

    def condition(branch: Sql) -> Expression:
        if tested is None:
            return _read(branch.this)
        return Comparison(Comparator.EQ, _read(tested), _read(branch.this))

    branches = tuple((condition(b), _read(b.args["true"])) for b in tree.args["ifs"])
    default = tree.args.get("default")
    return Case(branches, Literal(None) if default is None else _read(default))


def _if(tree: Sql) -> Expression:
    default = tree.args.get("false")
    otherwise = Literal(None) if default is None else _read(default)
    return Case(((_read(tree.this), _read(tree.args["true"])),), otherwise)


def _null_if(tree: Sql) -> Expression:
    value = _read(tree.this)
    same = Comparison(Comparator.EQ, value, _read(tree.expression))
    return Case(((same, Literal(None)),), value)


def _call(name: str, *slots: str) -> Callable[[Sql], Expression]:
    """Read a function whose arguments sqlglot keeps in these slots; more than these is refused."""
    allowed = {*slots, "safe", "coalesce", "big_int", "binary"}

    def read(tree: Sql) -> Expression:
        if set(_given(tree)) - allowed:
            raise _refused(tree, f"the function {name} with these arguments")
        return _function(name, [a for slot in slots for a in _listed(tree.args.get(slot))])

    return read


def _function(name: str, arguments: list[Sql]) -> Function:
    check_arity(name, len(arguments))
    return Function(name, tuple(_read(a) for a in arguments))


def _listed(argument: object) -> list[Sql]:
    if isinstance(argument, list):
        return argument
    return [argument] if isinstance(argument, exp.Expression) else []


def _given(tree: Sql) -> dict[str, object]:
    return {name: value for name, value in tree.args.items() if value not in (None, [], False)}


def _date_part(name: str) -> Callable[[Sql], Expression]:
    # sqlglot writes day(x) as day(to_date(x)); our functions convert by themselves
    def read(tree: Sql) -> Expression:
        inner = tree.this
        wrapped = isinstance(inner, exp.TsOrDsToDate) and not inner.args.get("safe")
        return _function(name, [inner.this if wrapped else inner])

    return read


def _trim(tree: Sql) -> Expression:
    if set(_given(tree)) - {"this", "position"}:
        raise _refused(tree, "trim with the characters to cut")
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    return _function(names.get(str(tree.args.get("position")).upper(), "trim"), [tree.this])


def _date_trunc(tree: Sql) -> Expression:
    unit = tree.args["unit"]
    return Function("date_trunc", (Literal(str(unit.this).lower()), _read(tree.this)))


def _left(tree: Sql) -> Expression:
    return Function("substring", (_read(tree.this), Literal(1), _read(tree.expression)))


def _anonymous(tree: Sql) -> Expression:
    name = str(tree.this).lower()
    arguments = tree.expressions
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        test = IsNull(_read(arguments[0]))
        return test if name == "isnull" else Not(test)
    return _function(function_named(name).name, arguments)


_READERS: dict[type[Sql], Callable[[Sql], Expression]] = {
    exp.Column: _reference,
    exp.Dot: _reference,
    exp.Literal: _constant,
    exp.HexString: _hex,
    exp.RawString: lambda tree: Literal(str(tree.this)),
    exp.Boolean: lambda tree: Literal(bool(tree.this)),
    exp.Null: lambda tree: Literal(None),
    exp.Paren: lambda tree: _read(tree.this),
    exp.And: _joined(exp.And, And),
    exp.Or: _joined(exp.Or, Or),
    exp.Not: lambda tree: Not(_read(tree.this)),
    exp.EQ: _compare(Comparator.EQ),
    exp.NEQ: _compare(Comparator.NE),
    exp.LT: _compare(Comparator.LT),
    exp.LTE: _compare(Comparator.LE),
    exp.GT: _compare(Comparator.GT),
    exp.GTE: _compare(Comparator.GE),
    exp.NullSafeEQ: _compare(Comparator.NULL_SAFE_EQ),
    exp.NullSafeNEQ: lambda tree: Not(_compare(Comparator.NULL_SAFE_EQ)(tree)),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _escaped,
    exp.StartsWith: _text_test(TextTest.PREFIX),
    exp.EndsWith: _text_test(TextTest.SUFFIX),
    exp.Contains: _text_test(TextTest.INFIX),
    exp.Add: _arithmetic(Operator.ADD),
    exp.Sub: _arithmetic(Operator.SUBTRACT),
    exp.Mul: _arithmetic(Operator.MULTIPLY),
    exp.Div: _arithmetic(Operator.DIVIDE),
    exp.Mod: _arithmetic(Operator.MODULO),
    exp.Neg: _negative,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _null_if,
    exp.Coalesce: _call("coalesce", "this", "expressions"),
    exp.Lower: _call("lower", "this"),
    exp.Upper: _call("upper", "this"),
    exp.Length: _call("length", "this"),
    exp.Trim: _trim,
    exp.Substring: _call("substring", "this", "start", "length"),
    exp.Left: _left,
    exp.Concat: _call("concat", "expressions"),
    exp.DPipe: _call("concat", "this", "expression"),
    exp.Abs: _call("abs", "this"),
    exp.Round: _call("round", "this", "decimals"),
    exp.Floor: _call("floor", "this"),
    exp.Ceil: _call("ceil", "this"),
    exp.IsNan: _call("isnan", "this"),
    exp.Year: _date_part("year"),
    exp.Quarter: _date_part("quarter"),
    exp.Month: _date_part("month"),
    exp.Day: _date_part("day"),
    exp.DayOfMonth: _date_part("day"),
    exp.Hour: _call("hour", "this"),
    exp.Minute: _call("minute", "this"),
    exp.Second: _call("second", "this"),
    exp.TimestampTrunc: _date_trunc,
    exp.TsOrDsToDate: _call("to_date", "this"),
    exp.Anonymous: _anonymous,
}
