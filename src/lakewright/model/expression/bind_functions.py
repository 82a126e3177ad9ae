"""Types of functions and of arithmetic: what goes in, what comes out."""

from collections.abc import Callable, Sequence

from lakewright.model.errors import InvalidExpression
from lakewright.model.expression.bound import (
    BoundArithmetic,
    BoundExpression,
    BoundFunction,
    BoundLiteral,
    BoundNegate,
)
from lakewright.model.expression.coerce import (
    at_moment,
    cast_in_zone,
    converted,
    describe,
    is_null,
    on_wall,
)
from lakewright.model.expression.functions import TRUNC_UNITS, check_arity
from lakewright.model.expression.nodes import Operator
from lakewright.model.expression.types import (
    MAX_DIGITS,
    as_decimal,
    common_type,
    is_floating,
    is_integer,
    is_numeric,
)
from lakewright.model.expression.zones import (
    MOMENT_AT,
    WALL_CLOCK,
    begins_hours_with_utc,
    current_zone,
)
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    Fixed,
    Time,
    Timestamp,
    Unit,
)

Arguments = tuple[BoundExpression, ...]


def bind_call(name: str, arguments: Arguments) -> BoundExpression:
    """Check the arguments of a function, convert them, and give the call its type."""
    if name in (WALL_CLOCK, MOMENT_AT):
        return _between_zones(name, arguments)
    check_arity(name, len(arguments))
    return _BINDERS[name](name, arguments)


def bind_arithmetic(op: Operator, left: BoundExpression, right: BoundExpression) -> BoundExpression:
    """Bring both numbers to one kind: long, double or decimal; ``/`` of whole numbers is double."""
    left, right = _number(left, op.value), _number(right, op.value)
    if is_floating(left.type) or is_floating(right.type):
        kind: DataType = DOUBLE
    elif is_integer(left.type) and is_integer(right.type):
        kind = DOUBLE if op is Operator.DIVIDE else LONG
    else:
        own, other = _decimal_side(left), _decimal_side(right)
        result = _decimal_result(op, as_decimal(own.type), as_decimal(other.type))
        return BoundArithmetic(op, own, other, result)
    return BoundArithmetic(op, converted(left, kind), converted(right, kind), kind)


def bind_negate(child: BoundExpression) -> BoundExpression:
    """Turn the sign of a number."""
    number = _plain_number(child, "-")
    return BoundNegate(number, number.type)


def unified(values: Sequence[BoundExpression], place: str) -> tuple[BoundExpression, ...]:
    """Bring the alternatives of one result to one type; NULL fits every type."""
    typed = [v for v in values if not is_null(v)]
    if not typed:
        return tuple(values)
    kind = typed[0].type
    for value in typed[1:]:
        common = common_type(kind, value.type)
        if common is None or (STRING in (kind, value.type) and kind != value.type):
            raise InvalidExpression(
                f"{place} mixes {describe(typed[0])} with {describe(value)}.",
                next_step="Convert them to one type with CAST.",
            )
        kind = common
    return tuple(converted(v, kind) for v in values)


def bind_cast(child: BoundExpression, to: DataType, *, safe: bool = False) -> BoundExpression:
    """Convert to a type, refusing pairs of types between which there is no conversion."""
    if child.type == to:
        return child
    if is_null(child):
        return BoundLiteral(None, to)
    if not _castable(child.type, to):
        raise InvalidExpression(
            f"{describe(child)} cannot be converted to {to}.",
            next_step="Convert to another type, or leave the CAST out.",
            type=str(to),
            source=str(child.type),
        )
    return cast_in_zone(child, to, safe=safe)


def _castable(source: DataType, to: DataType) -> bool:
    scalar = (Decimal, Time, Timestamp)
    if STRING in (source, to):
        other = to if source == STRING else source
        return (
            other in (BOOLEAN, INT, LONG, BINARY, DATE)
            or is_numeric(other)
            or isinstance(other, scalar)
        )
    if is_numeric(source) or source == BOOLEAN:
        return is_numeric(to) or to == BOOLEAN or (is_integer(source) and to == TIMESTAMP)
    if source == DATE or isinstance(source, Timestamp):
        seconds = isinstance(source, Timestamp) and source.utc and to == LONG
        return to == DATE or isinstance(to, Timestamp) or seconds
    return isinstance(source, Time) and isinstance(to, Time)


def _number(side: BoundExpression, place: str) -> BoundExpression:
    if is_null(side):
        return BoundLiteral(None, LONG)
    if not is_numeric(side.type):
        raise InvalidExpression(
            f"{place} takes numbers, not {describe(side)}.",
            next_step="Convert it with CAST(... AS DOUBLE), or as another number.",
            type=str(side.type),
        )
    return side


def _plain_number(side: BoundExpression, place: str) -> BoundExpression:
    """A long, a double or a decimal."""
    number = _number(side, place)
    if isinstance(number.type, Decimal):
        return number
    return converted(number, LONG if is_integer(number.type) else DOUBLE)


def _decimal_side(side: BoundExpression) -> BoundExpression:
    if isinstance(side.type, Decimal):
        return side
    if isinstance(side, BoundLiteral) and isinstance(side.value, int):
        # A constant takes no more digits than it has, so that the result keeps its scale.
        return converted(side, Decimal(max(len(str(abs(side.value))), 1), 0))
    return converted(side, as_decimal(side.type))


def _decimal_result(op: Operator, left: Decimal, right: Decimal) -> Decimal:
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    match op:
        case Operator.ADD | Operator.SUBTRACT:
            scale = max(left.scale, right.scale)
            precision = max(whole_left, whole_right) + scale + 1
        case Operator.MULTIPLY:
            scale = left.scale + right.scale
            precision = left.precision + right.precision + 1
        case Operator.DIVIDE:
            scale = max(6, left.scale + right.precision + 1)
            precision = whole_left + right.scale + scale
        case Operator.MODULO:
            scale = max(left.scale, right.scale)
            precision = max(min(whole_left, whole_right) + scale, 1)
    if precision <= MAX_DIGITS:
        return Decimal(precision, scale)
    # Digits before the point are kept; six after it are kept as long as they can be.
    whole = precision - scale
    return Decimal(MAX_DIGITS, max(MAX_DIGITS - whole, min(scale, 6)))


def require_text(side: BoundExpression, place: str) -> BoundExpression:
    """Return text as it is and refuse the rest."""
    if side.type == STRING:
        return side
    if is_null(side):
        return BoundLiteral(None, STRING)
    raise InvalidExpression(
        f"{place} takes text, not {describe(side)}.",
        next_step="Convert it with CAST(... AS STRING).",
        type=str(side.type),
    )


def _of_text(name: str, arguments: Arguments) -> BoundExpression:
    return BoundFunction(name, tuple(require_text(a, name) for a in arguments), STRING)


def _length(name: str, arguments: Arguments) -> BoundExpression:
    (side,) = arguments
    measured = (
        side if side.type == BINARY or isinstance(side.type, Fixed) else require_text(side, name)
    )
    return BoundFunction(name, (measured,), INT)


def _substring(name: str, arguments: Arguments) -> BoundExpression:
    for position in arguments[1:]:
        if not is_integer(position.type):
            raise InvalidExpression(
                f"{name} counts in whole numbers, not {describe(position)}.",
                next_step="Give a whole number, or a column of them.",
            )
    return BoundFunction(name, (require_text(arguments[0], name), *arguments[1:]), STRING)


def _absolute(name: str, arguments: Arguments) -> BoundExpression:
    number = _plain_number(arguments[0], name)
    return BoundFunction(name, (number,), number.type)


def _round(name: str, arguments: Arguments) -> BoundExpression:
    number = _plain_number(arguments[0], name)
    digits = arguments[1] if len(arguments) > 1 else BoundLiteral(0, INT)
    count = digits.value if isinstance(digits, BoundLiteral) else None
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_DIGITS:
        raise InvalidExpression(
            f"{name} takes a constant number of digits from 0 to {MAX_DIGITS}, "
            f"not {describe(digits)}.",
            next_step="Write the number of digits: round(x, 2).",
        )
    if number.type == LONG:
        return number
    kind = number.type
    if isinstance(kind, Decimal):
        scale = min(kind.scale, count)
        kind = Decimal(min(kind.precision - kind.scale + 1 + scale, MAX_DIGITS), scale)
    return BoundFunction(name, (number, digits), kind)


def _to_whole(name: str, arguments: Arguments) -> BoundExpression:
    number = _plain_number(arguments[0], name)
    if number.type == LONG:
        return number
    kind: DataType = LONG
    if isinstance(number.type, Decimal):
        kind = Decimal(min(number.type.precision - number.type.scale + 1, MAX_DIGITS), 0)
    return BoundFunction(name, (number,), kind)


def _is_nan(name: str, arguments: Arguments) -> BoundExpression:
    return BoundFunction(name, (converted(_number(arguments[0], name), DOUBLE),), BOOLEAN)


def _coalesce(name: str, arguments: Arguments) -> BoundExpression:
    options = unified(arguments, name)
    if len(options) == 1 or all(is_null(o) for o in options):
        return options[0]
    return BoundFunction(name, options, options[0].type)


def _date_part(name: str, arguments: Arguments) -> BoundExpression:
    return BoundFunction(name, (bind_cast(_time_like(arguments[0], name), DATE),), INT)


def _clock_part(name: str, arguments: Arguments) -> BoundExpression:
    return BoundFunction(name, (_on_wall(_moment(arguments[0], name)),), INT)


def _date_trunc(name: str, arguments: Arguments) -> BoundExpression:
    unit, moment = arguments
    known = (
        TRUNC_UNITS.get(unit.value.lower())
        if isinstance(unit, BoundLiteral) and isinstance(unit.value, str)
        else None
    )
    if known is None:
        raise InvalidExpression(
            f"{name} does not know the unit {describe(unit)}.",
            next_step=f"Allowed: {', '.join(dict.fromkeys(TRUNC_UNITS.values()))}.",
        )
    whole = _moment(moment, name)
    assert isinstance(whole.type, Timestamp)
    zone = current_zone()
    if zone is not None and whole.type.utc and not _begins_with_utc(known, zone):
        wall = on_wall(whole, zone)
        cut = BoundFunction(name, (BoundLiteral(known, STRING), wall), wall.type)
        return at_moment(cut, zone)
    kind = Timestamp(Unit.MICROS, whole.type.utc)
    return BoundFunction(name, (BoundLiteral(known, STRING), whole), kind)


def _begins_with_utc(unit: str, zone: str) -> bool:
    return unit in ("minute", "second") or (unit == "hour" and begins_hours_with_utc(zone))


def _on_wall(moment: BoundExpression) -> BoundExpression:
    """Return a moment as the clocks of the zone that is read in show it."""
    zone = current_zone()
    utc = isinstance(moment.type, Timestamp) and moment.type.utc
    return on_wall(moment, zone) if zone is not None and utc else moment


def _between_zones(name: str, arguments: Arguments) -> BoundExpression:
    """Bind what a bound expression was turned back into."""
    time, zone = arguments
    assert isinstance(zone, BoundLiteral)
    return (on_wall if name == WALL_CLOCK else at_moment)(time, str(zone.value))


def _to_date(name: str, arguments: Arguments) -> BoundExpression:
    return bind_cast(_time_like(arguments[0], name), DATE)


def _moment(side: BoundExpression, place: str) -> BoundExpression:
    side = _time_like(side, place)
    return side if isinstance(side.type, Timestamp) else bind_cast(side, TIMESTAMP)


def _time_like(side: BoundExpression, place: str) -> BoundExpression:
    if is_null(side):
        return BoundLiteral(None, TIMESTAMP)
    if side.type in (STRING, DATE) or isinstance(side.type, Timestamp):
        return side
    raise InvalidExpression(
        f"{place} takes a date or a timestamp, not {describe(side)}.",
        next_step="Convert it with CAST(... AS TIMESTAMP).",
        type=str(side.type),
    )


_BINDERS: dict[str, Callable[[str, Arguments], BoundExpression]] = {
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "concat"), _of_text),
    "length": _length,
    "substring": _substring,
    "abs": _absolute,
    "round": _round,
    **dict.fromkeys(("floor", "ceil"), _to_whole),
    "isnan": _is_nan,
    "coalesce": _coalesce,
    **dict.fromkeys(("year", "quarter", "month", "day"), _date_part),
    **dict.fromkeys(("hour", "minute", "second"), _clock_part),
    "date_trunc": _date_trunc,
    "to_date": _to_date,
}
