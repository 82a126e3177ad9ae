"""Column types under their SQL names, and the types into which two sides are brought."""

import re
from datetime import date, datetime, time
from decimal import Decimal as PyDecimal
from typing import TypeAlias, TypeGuard

from lakewright.model.errors import InvalidExpression
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    Fixed,
    List,
    Map,
    Struct,
    Time,
    Timestamp,
    Unit,
)

#: What a literal may hold.
Value: TypeAlias = bool | int | float | PyDecimal | str | bytes | date | datetime | time | None

LOCAL_TIMESTAMP = Timestamp(Unit.MICROS, utc=False)
TIME = Time(Unit.MICROS)
INT_RANGE = (-(2**31), 2**31 - 1)
LONG_RANGE = (-(2**63), 2**63 - 1)
#: Decimals have at most this many digits.
MAX_DIGITS = 38
#: Wide enough for every long.
LONG_DECIMAL = Decimal(19, 0)

_NAMES: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "bool": BOOLEAN,
    "int": INT,
    "integer": INT,
    "long": LONG,
    "bigint": LONG,
    "float": FLOAT,
    "real": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "text": STRING,
    "varchar": STRING,
    "binary": BINARY,
    "bytes": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamptz": TIMESTAMP,
    "timestamp_ntz": LOCAL_TIMESTAMP,
    "timestampntz": LOCAL_TIMESTAMP,
    "time": TIME,
    "decimal": Decimal(10, 0),
    "numeric": Decimal(10, 0),
}
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def parse_type(text: str) -> DataType:
    """Read a type's SQL name; only types that one value can be converted to are named here."""
    name = text.strip().lower()
    known = _NAMES.get(name)
    if known is not None:
        return known
    parts = _DECIMAL.fullmatch(name)
    if parts:
        return Decimal(int(parts[1]), int(parts[2] or 0))
    raise InvalidExpression(
        f"{text!r} is not a type to convert to.",
        next_step="Allowed: boolean, int, long, float, double, decimal(p,s), string, binary, "
        "date, timestamp, timestamp_ntz, time.",
        type=text,
    )


def sql_type(of: DataType) -> str:
    """Return the SQL name of a type; the inverse of ``parse_type`` where that reads it."""
    match of:
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case Timestamp(utc=utc):
            return "TIMESTAMP" if utc else "TIMESTAMP_NTZ"
        case Time():
            return "TIME"
        case Fixed():
            return "BINARY"
        case List(element):
            return f"ARRAY<{sql_type(element)}>"
        case Map(value, key):
            return f"MAP<{sql_type(key)},{sql_type(value)}>"
        case Struct(fields):
            return f"STRUCT<{','.join(f'{f.name}:{sql_type(f.type)}' for f in fields)}>"
        case _:
            return "BIGINT" if of == LONG else str(of).upper()


def type_of(value: Value) -> DataType | None:
    """Return the type that a literal has by itself; NULL has none."""
    match value:
        case None:
            return None
        case bool():
            return BOOLEAN
        case int():
            return _integer_type(value)
        case float():
            return DOUBLE
        case PyDecimal():
            return _decimal_type(value)
        case str():
            return STRING
        case bytes():
            return BINARY
        case datetime():
            return LOCAL_TIMESTAMP if value.tzinfo is None else TIMESTAMP
        case date():
            return DATE
        case time():
            return TIME


def _integer_type(value: int) -> DataType:
    if INT_RANGE[0] <= value <= INT_RANGE[1]:
        return INT
    if LONG_RANGE[0] <= value <= LONG_RANGE[1]:
        return LONG
    return _decimal_type(PyDecimal(value))


def _decimal_type(value: PyDecimal) -> DataType:
    if not value.is_finite():
        return DOUBLE
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_DIGITS:
        raise InvalidExpression(
            f"{value} has more than {MAX_DIGITS} digits.",
            next_step="Write it as a floating-point number, such as 1e40.",
            value=str(value),
        )
    return Decimal(precision, scale)


def is_integer(of: DataType) -> bool:
    """Whole numbers."""
    return of in (INT, LONG)


def is_floating(of: DataType) -> bool:
    """Binary floating-point numbers, the types that know NaN."""
    return of in (FLOAT, DOUBLE)


def is_numeric(of: DataType) -> bool:
    """Numbers of any kind."""
    return is_integer(of) or is_floating(of) or isinstance(of, Decimal)


def is_nested(of: DataType) -> TypeGuard[List | Map | Struct]:
    """Types that hold other types; they have no order and no literals here."""
    return isinstance(of, (List, Map, Struct))


def as_decimal(of: DataType) -> Decimal:
    """Return the decimal type that holds every value of a whole-number or decimal type."""
    if isinstance(of, Decimal):
        return of
    return Decimal(10, 0) if of == INT else LONG_DECIMAL


def wider_decimal(left: Decimal, right: Decimal) -> Decimal | None:
    """Return the decimal type that holds both without loss, if 38 digits are enough."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return Decimal(whole + scale, scale) if whole + scale <= MAX_DIGITS else None


def common_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which two columns are compared, or None where there is none.

    A text is converted to the other side's type, whole numbers and texts meet in ``long``, and a
    date meets a moment at its midnight.
    """
    if left == right:
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    for one, other in ((left, right), (right, left)):
        if one == STRING and not is_nested(other):
            return LONG if other == INT else other
    instants = [t for t in (left, right) if isinstance(t, Timestamp)]
    if instants and all(isinstance(t, Timestamp) or t == DATE for t in (left, right)):
        return Timestamp(Unit.MICROS, utc=any(t.utc for t in instants))
    if {type(left), type(right)} == {Time}:
        return TIME
    if all(t == BINARY or isinstance(t, Fixed) for t in (left, right)):
        return BINARY
    return None


def _common_number(left: DataType, right: DataType) -> DataType:
    if is_integer(left) and is_integer(right):
        return LONG
    if is_floating(left) or is_floating(right):
        return DOUBLE
    return wider_decimal(as_decimal(left), as_decimal(right)) or DOUBLE
