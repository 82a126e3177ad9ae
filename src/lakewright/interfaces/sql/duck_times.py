"""Functions of dates and moments."""

from sqlglot import exp

from lakewright.interfaces.sql import duck_patterns as patterns
from lakewright.interfaces.sql.duck_calls import Call, Handler, plain
from lakewright.interfaces.sql.duck_casts import call, local, moment, must, number, plain_cast, text
from lakewright.interfaces.sql.duck_kinds import Value, only_spark
from lakewright.model.schema import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
)

_WEEKDAY_NAMES = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_DATE_UNITS = {
    "YEAR": "year",
    "YYYY": "year",
    "YY": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "MON": "month",
    "MM": "month",
    "WEEK": "week",
}
_TIME_UNITS = {"DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second"}


def _date_part(duck: str, add: int = 0) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        node = call(duck, made.get(0, DATE))
        if add:
            node = exp.paren(exp.Add(this=node, expression=number(add)))
        return Value(plain_cast(node, INT), INT)

    return handle


def _time_part(duck: str) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        return Value(plain_cast(call(duck, local(made.get(0, TIMESTAMP))), INT), INT)

    return handle


def _date_add(made: Call) -> Value:
    made.sized(2)
    sign = exp.Sub if made.name == "date_sub" else exp.Add
    days = exp.paren(made.get(1, INT))
    return Value(plain_cast(sign(this=exp.paren(made.get(0, DATE)), expression=days), DATE), DATE)


def _add_months(made: Call) -> Value:
    made.sized(2)
    months = call("to_months", made.get(1, INT))
    added = exp.Add(this=exp.paren(made.get(0, DATE)), expression=months)
    return Value(plain_cast(added, DATE), DATE)


def _next_day(made: Call) -> Value:
    made.sized(2)
    name = made.word(1).strip().upper()
    known = [n for n in _WEEKDAY_NAMES if name in (n, n[:3], n[:2])]
    if not known:
        raise only_spark(f"next_day to {made.word(1)!r}")
    place = _WEEKDAY_NAMES.index(known[0]) + 1
    return Value(call("lw_next_day", made.get(0, DATE), number(place)), DATE)


def _datediff(made: Call) -> Value:
    made.sized(2)
    days = exp.Sub(this=exp.paren(made.get(0, DATE)), expression=exp.paren(made.get(1, DATE)))
    return Value(plain_cast(exp.paren(days), INT), INT)


def _months_between(made: Call) -> Value:
    made.sized(2)
    sides = (local(made.get(place, TIMESTAMP)) for place in (0, 1))
    return Value(plain_cast(call("lw_months", *sides), DOUBLE), DOUBLE)


def _trunc(made: Call) -> Value:
    made.sized(2)
    unit = _DATE_UNITS.get(made.word(1).upper())
    if unit is None:
        raise only_spark(f"trunc to {made.word(1)!r}")
    return Value(plain_cast(call("date_trunc", text(unit), made.get(0, DATE)), DATE), DATE)


def _date_trunc(made: Call) -> Value:
    made.sized(2)
    unit = (_DATE_UNITS | _TIME_UNITS).get(made.word(0).upper())
    if unit is None:
        raise only_spark(f"date_trunc to {made.word(0)!r}")
    cut = call("date_trunc", text(unit), local(made.get(1, TIMESTAMP)))
    return Value(moment(cut), TIMESTAMP)


def _date_format(made: Call) -> Value:
    made.sized(2)
    form = patterns.date_format(made.word(1))
    return Value(call("strftime", local(made.get(0, TIMESTAMP)), text(form)), STRING)


def _read(made: Call) -> exp.Expression:
    form, shape = patterns.date_reading(made.word(1))
    given = made.get(0, STRING)
    read = call("lw_parsed", given, text(shape), text(form))
    return must(given, read, "a text is no date of the pattern", strict=made.strict)


def _to_date(made: Call) -> Value:
    made.sized(1, 2)
    if len(made.args) == 2 and made.args[0].kind == STRING:
        return Value(plain_cast(_read(made), DATE), DATE)
    return Value(made.get(0, DATE), DATE)


def _to_timestamp(made: Call) -> Value:
    made.sized(1, 2)
    if len(made.args) == 2 and made.args[0].kind == STRING:
        return Value(moment(_read(made)), TIMESTAMP)
    return Value(made.get(0, TIMESTAMP), TIMESTAMP)


def _unix_timestamp(made: Call) -> Value:
    made.sized(1, 2)
    node = made.args[0].node
    if made.args[0].kind == STRING:
        if len(made.args) == 1:
            made = Call(
                made.name, (made.args[0], Value(text("yyyy-MM-dd HH:mm:ss"), STRING)), made.strict
            )
        node = _read(made)
    elif made.args[0].kind == DATE:
        node = made.get(0, TIMESTAMP)
    elif made.args[0].kind != TIMESTAMP:
        raise made.refuse()
    # A part of a second is cut off, before 1970 too.
    seconds = exp.IntDiv(this=call("epoch_us", node), expression=number(1_000_000))
    return Value(plain_cast(exp.paren(seconds), LONG), LONG)


def _from_unixtime(made: Call) -> Value:
    made.sized(1, 2)
    form = patterns.date_format(made.word(1) if len(made.args) == 2 else "yyyy-MM-dd HH:mm:ss")
    return Value(call("strftime", call("lw_at", made.get(0, LONG)), text(form)), STRING)


def _unix(unit: int) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        micros = call("epoch_us", made.get(0, TIMESTAMP))
        return Value(call("lw_floor_div", micros, number(unit)), LONG)

    return handle


def _since_epoch(unit: int) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        micros = exp.Mul(this=exp.paren(made.get(0, LONG)), expression=number(unit))
        return Value(moment(call("make_timestamp", micros)), TIMESTAMP)

    return handle


def _unix_date(made: Call) -> Value:
    made.sized(1)
    days = exp.Sub(
        this=exp.paren(made.get(0, DATE)), expression=plain_cast(text("1970-01-01"), DATE)
    )
    return Value(plain_cast(exp.paren(days), INT), INT)


def _of_unix_date(made: Call) -> Value:
    made.sized(1)
    added = exp.Add(
        this=plain_cast(text("1970-01-01"), DATE), expression=exp.paren(made.get(0, INT))
    )
    return Value(plain_cast(added, DATE), DATE)


def _zoned(made: Call) -> Value:
    made.sized(2)
    zone = made.word(1)
    if "/" not in zone and zone != "UTC":
        raise only_spark(f"the time zone {zone!r}, other than UTC and Continent/City,")
    given = made.get(0, TIMESTAMP)
    if made.name == "to_utc_timestamp":
        return Value(exp.AtTimeZone(this=exp.paren(local(given)), zone=text(zone)), TIMESTAMP)
    shown = exp.AtTimeZone(this=exp.paren(given), zone=text(zone))
    return Value(moment(exp.paren(shown)), TIMESTAMP)


def extracted(made: Call, field: str) -> Value:
    """Return a part of a date or a moment."""
    known = {
        "YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "weekofyear",
        "DAY": "day", "DAYOFWEEK": "dayofweek", "DOW": "dayofweek", "DOY": "dayofyear",
        "HOUR": "hour", "MINUTE": "minute",
    }  # fmt: skip
    if field.upper() == "SECOND" and made.args[0].kind == TIMESTAMP:
        kind = Decimal(8, 6)
        micros = exp.Mod(this=call("epoch_us", made.args[0].node), expression=number(60_000_000))
        top = exp.Cast(
            this=exp.Mod(
                this=exp.paren(exp.Add(this=exp.paren(micros), expression=number(60_000_000))),
                expression=number(60_000_000),
            ),
            to=exp.DataType.build("DECIMAL(18,0)", dialect="duckdb"),
        )
        return Value(
            plain_cast(
                exp.Mul(this=exp.paren(top), expression=exp.Literal.number("0.000001")), kind
            ),
            kind,
        )
    if field.upper() not in known:
        raise only_spark(f"EXTRACT of {field}")
    return TIMES[known[field.upper()]](made)


def _now(made: Call) -> Value:
    made.sized(0)
    now = call("get_current_timestamp")
    if made.name in ("current_date", "curdate"):
        return Value(plain_cast(local(now), DATE), DATE)
    return Value(now, TIMESTAMP)


def _date_part_of(made: Call) -> Value:
    made.sized(2)
    return extracted(Call(made.name, made.args[1:], made.strict), made.word(0))


TIMES: dict[str, Handler] = {
    "year": _date_part("year"),
    "quarter": _date_part("quarter"),
    "month": _date_part("month"),
    **dict.fromkeys(("day", "dayofmonth"), _date_part("day")),
    "dayofyear": _date_part("dayofyear"),
    "weekofyear": _date_part("weekofyear"),
    "dayofweek": _date_part("dayofweek", 1),
    "weekday": _date_part("isodow", -1),
    "hour": _time_part("hour"),
    "minute": _time_part("minute"),
    "second": _time_part("second"),
    **dict.fromkeys(("date_part", "datepart"), _date_part_of),
    **dict.fromkeys(("date_add", "dateadd", "date_sub"), _date_add),
    "add_months": _add_months,
    "last_day": plain("last_day", (DATE,), DATE),
    "next_day": _next_day,
    **dict.fromkeys(("datediff", "date_diff"), _datediff),
    "months_between": _months_between,
    "trunc": _trunc,
    "date_trunc": _date_trunc,
    "date_format": _date_format,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), _unix_timestamp),
    "from_unixtime": _from_unixtime,
    "unix_seconds": _unix(1_000_000),
    "unix_millis": _unix(1_000),
    "unix_micros": _unix(1),
    "unix_date": _unix_date,
    "date_from_unix_date": _of_unix_date,
    "timestamp_seconds": _since_epoch(1_000_000),
    "timestamp_millis": _since_epoch(1_000),
    "timestamp_micros": _since_epoch(1),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp"), _zoned),
    **dict.fromkeys(("current_date", "curdate", "current_timestamp", "now"), _now),
}
