"""Functions that DuckDB computes as Spark does; a function that is not here needs Spark."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lakewright.interfaces.sql import duck_patterns as patterns
from lakewright.interfaces.sql.duck_casts import (
    call,
    cast,
    local,
    moment,
    must,
    number,
    plain_cast,
    text,
)
from lakewright.interfaces.sql.duck_kinds import Kind, Value, joined, only_spark
from lakewright.interfaces.sql.duck_numbers import computed, negative, rounded, whole
from lakewright.model.expression.types import is_floating, is_integer, is_nested, is_numeric
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
    Field,
    List,
    Map,
    Struct,
    Timestamp,
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
_MOST = 2**31 - 1


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


def _plain(duck: str, kinds: tuple[DataType, ...], to: DataType) -> Handler:
    """Return the handler of a function that DuckDB has under some name."""

    def handle(made: Call) -> Value:
        made.sized(len(kinds))
        parts = [made.get(place, kind) for place, kind in enumerate(kinds)]
        return Value(plain_cast(call(duck, *parts), to), to)

    return handle


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


def _conversion(kind: DataType) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        return cast(made.args[0], kind, strict=made.strict)

    return handle


# Texts.


def _substr(made: Call) -> Value:
    made.sized(2, 3)
    length = made.get(2, INT) if len(made.args) == 3 else number(_MOST)
    if made.args[0].kind == BINARY:
        raise made.refuse()
    return Value(call("lw_substr", made.get(0, STRING), made.get(1, INT), length), STRING)


def _length(made: Call) -> Value:
    made.sized(1)
    if made.args[0].kind == BINARY:
        return Value(plain_cast(call("octet_length", made.args[0].node), INT), INT)
    return Value(plain_cast(call("length", made.get(0, STRING)), INT), INT)


def _octets(made: Call) -> Value:
    made.sized(1)
    node = made.args[0].node
    if made.args[0].kind != BINARY:
        node = call("encode", made.get(0, STRING))
    return Value(plain_cast(call("octet_length", node), INT), INT)


def _pad(made: Call) -> Value:
    made.sized(2, 3)
    if made.args[0].kind == BINARY:
        raise made.refuse()
    fill = made.get(2, STRING) if len(made.args) == 3 else text(" ")
    return Value(call(f"lw_{made.name}", made.get(0, STRING), made.get(1, INT), fill), STRING)


def _trimmed(made: Call) -> Value:
    made.sized(1)
    duck = "trim" if made.name == "btrim" else made.name
    return Value(call(duck, made.get(0, STRING), text(" ")), STRING)


def _concat(made: Call) -> Value:
    if made.args and isinstance(made.args[0].kind, List):
        kind: Kind = None
        for arg in made.args:
            kind = joined(kind, arg.kind)
        assert kind is not None
        node = made.args[0].node
        for arg in made.args[1:]:
            # DuckDB takes a list that is null for an empty one.
            lost = exp.or_(*(exp.Is(this=exp.paren(n.copy()), expression=exp.Null()) for n in (node, arg.node)))
            both = call("list_concat", node, arg.node)
            node = exp.Case(ifs=[exp.If(this=lost, true=exp.Null())], default=both)
        return Value(node, kind)
    made.sized(*range(1, 1000))
    node = made.get(0, STRING)
    for place in range(1, len(made.args)):
        node = exp.DPipe(this=exp.paren(node), expression=exp.paren(made.get(place, STRING)))
    return Value(exp.paren(node), STRING)


def _concat_ws(made: Call) -> Value:
    if any(arg.kind is not None and is_nested(arg.kind) for arg in made.args):
        raise made.refuse()
    parts = [made.get(place, STRING) for place in range(len(made.args))]
    if len(parts) < 2:
        raise made.refuse()
    return Value(call("concat_ws", *parts), STRING)


def _replace(made: Call) -> Value:
    made.sized(2, 3)
    by = made.get(2, STRING) if len(made.args) == 3 else text("")
    return Value(call("lw_replace", made.get(0, STRING), made.get(1, STRING), by), STRING)


def _locate(made: Call) -> Value:
    made.sized(2, 3)
    if len(made.args) == 3:
        found = call("lw_locate", made.get(0, STRING), made.get(1, STRING), made.get(2, INT))
    else:
        found = call("instr", made.get(1, STRING), made.get(0, STRING))
    return Value(plain_cast(found, INT), INT)


def _rlike(made: Call) -> Value:
    made.sized(2)
    pattern = patterns.regular(made.word(1), ends=True)
    return Value(call("regexp_matches", made.get(0, STRING), text(pattern)), BOOLEAN)


def _regexp_replace(made: Call) -> Value:
    made.sized(3)
    if patterns.may_be_empty(made.word(1).replace("(", "")):
        raise only_spark(f"regexp_replace by the pattern {made.word(1)!r}, which may be empty,")
    parts = text(patterns.regular(made.word(1))), text(patterns.replacement(made.word(2)))
    return Value(call("regexp_replace", made.get(0, STRING), *parts, text("g")), STRING)


def _regexp_extract(made: Call) -> Value:
    made.sized(2, 3)
    group = made.count(2) if len(made.args) == 3 else 1
    pattern = patterns.regular(made.word(1))
    bare = pattern.replace("\\(", "").replace("(?:", "")
    if not 0 <= group <= bare.count("("):
        raise only_spark(f"regexp_extract of group {group} of {made.word(1)!r}")
    return Value(call("regexp_extract", made.get(0, STRING), text(pattern), number(group)), STRING)


def _split(made: Call) -> Value:
    made.sized(2)
    pattern = made.word(1)
    if patterns.may_be_empty(pattern):
        raise only_spark(f"split by the pattern {pattern!r}, which may be empty,")
    found = call("string_split_regex", made.get(0, STRING), text(patterns.regular(pattern)))
    return Value(found, List(STRING))


def _sha2(made: Call) -> Value:
    made.sized(2)
    if made.count(1) not in (0, 256) or made.args[0].kind not in (STRING, BINARY, None):
        raise made.refuse()
    return Value(call("sha256", made.args[0].node), STRING)


def _hash_text(duck: str) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        if made.args[0].kind not in (STRING, BINARY):
            raise made.refuse()
        return Value(call(duck, made.args[0].node), STRING)

    return handle


# Dates and moments.


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
            made = Call(made.name, (made.args[0], Value(text("yyyy-MM-dd HH:mm:ss"), STRING)), made.strict)
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
    days = exp.Sub(this=exp.paren(made.get(0, DATE)), expression=plain_cast(text("1970-01-01"), DATE))
    return Value(plain_cast(exp.paren(days), INT), INT)


def _of_unix_date(made: Call) -> Value:
    made.sized(1)
    added = exp.Add(this=plain_cast(text("1970-01-01"), DATE), expression=exp.paren(made.get(0, INT)))
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
        "YEAR": "year", "YEARS": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "weekofyear",
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
            plain_cast(exp.Mul(this=exp.paren(top), expression=exp.Literal.number("0.000001")), kind), kind
        )
    if field.upper() not in known:
        raise only_spark(f"EXTRACT of {field}")
    return FUNCTIONS[known[field.upper()]](made)


def _now(made: Call) -> Value:
    made.sized(0)
    now = call("get_current_timestamp")
    if made.name in ("current_date", "curdate"):
        return Value(plain_cast(local(now), DATE), DATE)
    return Value(now, TIMESTAMP)


def _date_part_of(made: Call) -> Value:
    made.sized(2)
    return extracted(Call(made.name, made.args[1:], made.strict), made.word(0))


# Numbers.


def _abs(made: Call) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if kind is None or not is_numeric(kind):
        raise made.refuse()
    return Value(plain_cast(call("abs", made.args[0].node), kind), kind)


def _round(made: Call) -> Value:
    made.sized(1, 2)
    digits = made.count(1) if len(made.args) == 2 else 0
    return rounded(made.args[0], digits, strict=made.strict)


def _whole(made: Call) -> Value:
    made.sized(1)
    name = "floor" if made.name == "floor" else "ceil"
    return whole(name, made.args[0], strict=made.strict)


def _mod(made: Call) -> Value:
    made.sized(2)
    return computed(exp.Mod, *made.args, strict=made.strict)


def _pmod(made: Call) -> Value:
    made.sized(2)
    kinds = {arg.kind for arg in made.args}
    if not kinds <= {INT, LONG}:
        raise made.refuse()
    rest = computed(exp.Mod, *made.args, strict=made.strict)
    again = computed(exp.Add, rest, made.args[1], strict=made.strict)
    low = exp.LT(this=exp.paren(rest.node), expression=number(0))
    wrapped = computed(exp.Mod, again, made.args[1], strict=made.strict)
    picked = exp.Case(ifs=[exp.If(this=low, true=wrapped.node)], default=rest.node.copy())
    return Value(picked, rest.kind)


def _logarithm(duck: str) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        given = made.get(0, DOUBLE)
        # Of 0 and less there is none, and Spark says null.
        above = exp.or_(
            exp.GT(this=exp.paren(given), expression=number(0)), call("isnan", given.copy())
        )
        inner = exp.Case(ifs=[exp.If(this=above, true=given.copy())])
        return Value(call(duck, inner), DOUBLE)

    return handle


def _sqrt(made: Call) -> Value:
    made.sized(1)
    given = made.get(0, DOUBLE)
    below = exp.LT(this=exp.paren(given), expression=number(0))
    nan = plain_cast(text("nan"), DOUBLE)
    return Value(
        exp.Case(ifs=[exp.If(this=below, true=nan)], default=call("sqrt", given.copy())), DOUBLE
    )


def _isnan(made: Call) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if kind is None or not is_floating(kind):
        raise made.refuse()
    return Value(call("coalesce", call("isnan", made.args[0].node), exp.false()), BOOLEAN)


def _nanvl(made: Call) -> Value:
    made.sized(2)
    one, other = made.get(0, DOUBLE), made.get(1, DOUBLE)
    chosen = exp.If(this=call("isnan", one.copy()), true=other)
    return Value(exp.Case(ifs=[chosen], default=one), DOUBLE)


# Choices.


def alike(values: list[Value], *, strict: bool) -> tuple[list[exp.Expression], Kind]:
    """Convert values to the type that holds all of them."""
    kind: Kind = None
    for value in values:
        kind = joined(kind, value.kind)
    return [cast(value, kind, strict=strict).node for value in values], kind


def _choice(duck: str) -> Handler:
    def handle(made: Call) -> Value:
        if not made.args:
            raise made.refuse()
        nodes, kind = alike(list(made.args), strict=made.strict)
        if duck != "coalesce" and kind is not None and is_nested(kind):
            raise made.refuse()
        return Value(call(duck, *nodes), kind)

    return handle


def _nvl2(made: Call) -> Value:
    made.sized(3)
    nodes, kind = alike(list(made.args[1:]), strict=made.strict)
    absent = exp.Is(this=exp.paren(made.args[0].node), expression=exp.Null())
    return Value(exp.Case(ifs=[exp.If(this=absent, true=nodes[1])], default=nodes[0]), kind)


def _nullif(made: Call) -> Value:
    made.sized(2)
    nodes, _ = alike(list(made.args), strict=made.strict)
    same = exp.EQ(this=exp.paren(nodes[0]), expression=exp.paren(nodes[1]))
    node = made.args[0].node.copy()
    return Value(exp.Case(ifs=[exp.If(this=same, true=exp.Null())], default=node), made.args[0].kind)


def _isnull(made: Call) -> Value:
    made.sized(1)
    absent = exp.Is(this=exp.paren(made.args[0].node), expression=exp.Null())
    return Value(absent if made.name == "isnull" else exp.not_(absent), BOOLEAN)


# Lists, maps and structs.


def _list(made: Call) -> List:
    kind = made.args[0].kind
    if not isinstance(kind, List):
        raise made.refuse()
    return kind


def _size(made: Call) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if not isinstance(kind, List | Map):
        raise made.refuse()
    duck = "len" if isinstance(kind, List) else "cardinality"
    return Value(plain_cast(call(duck, made.args[0].node), INT), INT)


def _array_contains(made: Call) -> Value:
    made.sized(2)
    kind = _list(made)
    if made.args[1].kind != kind.element or is_nested(kind.element):
        raise made.refuse()
    return Value(call("lw_contains", made.args[0].node, made.args[1].node), BOOLEAN)


def _array_join(made: Call) -> Value:
    made.sized(2)
    if _list(made).element != STRING:
        raise made.refuse()
    return Value(call("lw_join", made.args[0].node, made.get(1, STRING)), STRING)


def _array(made: Call) -> Value:
    if not made.args:
        raise made.refuse()
    nodes, kind = alike(list(made.args), strict=made.strict)
    if kind is None:
        raise made.refuse()
    return Value(call("list_value", *nodes), List(kind))


def _array_end(made: Call) -> Value:
    made.sized(1)
    kind = _list(made)
    if is_nested(kind.element):
        raise made.refuse()
    return Value(call("list_max" if made.name == "array_max" else "list_min", made.args[0].node), kind.element)


def _sort_array(made: Call) -> Value:
    made.sized(1)
    if is_nested(_list(made).element):
        raise made.refuse()
    return Value(call("list_sort", made.args[0].node, text("ASC"), text("NULLS FIRST")), made.args[0].kind)


def _map_part(made: Call) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if not isinstance(kind, Map):
        raise made.refuse()
    return Value(call(made.name, made.args[0].node), List(kind.key if made.name == "map_keys" else kind.value))


def _named_struct(made: Call) -> Value:
    if len(made.args) % 2 or not made.args:
        raise made.refuse()
    names = [made.word(place) for place in range(0, len(made.args), 2)]
    values = made.args[1::2]
    if len({name.lower() for name in names}) < len(names) or any(v.kind is None for v in values):
        raise made.refuse()
    fields = tuple(Field(n, v.kind) for n, v in zip(names, values, strict=True) if v.kind)
    parts = [
        exp.PropertyEQ(this=exp.to_identifier(n, quoted=True), expression=v.node)
        for n, v in zip(names, values, strict=True)
    ]
    return Value(exp.Struct(expressions=parts), Struct(fields))


def element(made: Call, *, base: int, failing: bool) -> Value:
    """Return an element of a list, counted from ``base``, or a value of a map."""
    made.sized(2)
    kind = made.args[0].kind
    given = made.args[0].node
    if isinstance(kind, Map):
        if kind.key != STRING:
            raise made.refuse()
        return Value(call("lw_at_key", given, made.get(1, STRING)), kind.value)
    listed = _list(made)
    place = exp.paren(made.get(1, INT))
    if base == 0:
        picked = call("lw_at_place", given, place)
        outside = exp.or_(
            exp.LT(this=place.copy(), expression=number(0)),
            exp.GTE(this=place.copy(), expression=call("len", given.copy())),
        )
    else:
        picked = call("lw_element", given, place)
        outside = exp.or_(
            exp.EQ(this=place.copy(), expression=number(0)),
            exp.GT(this=call("abs", place.copy()), expression=call("len", given.copy())),
        )
    if failing and made.strict:
        error = exp.If(this=outside, true=call("error", text("The list has no such element")))
        return Value(exp.Case(ifs=[error], default=picked), listed.element)
    return Value(picked, listed.element)


def _element_at(made: Call) -> Value:
    return element(made, base=1, failing=not made.name.startswith("try"))


def _get(made: Call) -> Value:
    _list(made)
    return element(made, base=0, failing=False)


_S, _D = STRING, DOUBLE

FUNCTIONS: dict[str, Handler] = {
    **dict.fromkeys(("substr", "substring"), _substr),
    "left": _plain("lw_left", (_S, INT), _S),
    "right": _plain("lw_right", (_S, INT), _S),
    **dict.fromkeys(("length", "char_length", "character_length", "len"), _length),
    "octet_length": _octets,
    **dict.fromkeys(("upper", "ucase"), _plain("upper", (_S,), _S)),
    **dict.fromkeys(("lower", "lcase"), _plain("lower", (_S,), _S)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim"), _trimmed),
    **dict.fromkeys(("lpad", "rpad"), _pad),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": _replace,
    "locate": _locate,
    "instr": lambda made: _locate(Call("instr", made.args[::-1], made.strict)),
    "position": _locate,
    "startswith": _plain("starts_with", (_S, _S), BOOLEAN),
    "endswith": _plain("ends_with", (_S, _S), BOOLEAN),
    "contains": _plain("contains", (_S, _S), BOOLEAN),
    **dict.fromkeys(("rlike", "regexp_like", "regexp"), _rlike),
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
    "split": _split,
    "md5": _hash_text("md5"),
    **dict.fromkeys(("sha1", "sha"), _hash_text("sha1")),
    "sha2": _sha2,
    "repeat": _plain("repeat", (_S, INT), _S),
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
    "last_day": _plain("last_day", (DATE,), DATE),
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
    "abs": _abs,
    "negative": lambda made: negative(made.args[0]),
    "round": _round,
    **dict.fromkeys(("floor", "ceil", "ceiling"), _whole),
    "mod": _mod,
    "pmod": _pmod,
    "sqrt": _sqrt,
    **dict.fromkeys(("power", "pow"), _plain("pow", (_D, _D), _D)),
    **dict.fromkeys(("sign", "signum"), _plain("lw_sign", (_D,), _D)),
    "exp": _plain("exp", (_D,), _D),
    **dict.fromkeys(("ln", "log"), _logarithm("ln")),
    "log10": _logarithm("log10"),
    "log2": _logarithm("log2"),
    "isnan": _isnan,
    "nanvl": _nanvl,
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), _choice("coalesce")),
    "greatest": _choice("greatest"),
    "least": _choice("least"),
    "nvl2": _nvl2,
    "nullif": _nullif,
    **dict.fromkeys(("isnull", "isnotnull"), _isnull),
    **dict.fromkeys(("size", "cardinality", "array_size"), _size),
    "array_contains": _array_contains,
    "array_join": _array_join,
    "array": _array,
    **dict.fromkeys(("array_max", "array_min"), _array_end),
    "sort_array": _sort_array,
    **dict.fromkeys(("map_keys", "map_values"), _map_part),
    "named_struct": _named_struct,
    **dict.fromkeys(("element_at", "try_element_at"), _element_at),
    "get": _get,
    "int": _conversion(INT),
    "bigint": _conversion(LONG),
    "double": _conversion(DOUBLE),
    "float": _conversion(FLOAT),
    "string": _conversion(STRING),
    "boolean": _conversion(BOOLEAN),
    "date": _conversion(DATE),
    "timestamp": _conversion(TIMESTAMP),
    "binary": _conversion(BINARY),
}
