"""Hypothesis strategies for table schemas and for rows that fit them."""

import datetime as dt
from decimal import Decimal as Number
from typing import Any

from hypothesis import strategies as st

from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Time,
    Timestamp,
    Unit,
)

names = st.text("abcdefgh_", min_size=1, max_size=6).filter(lambda n: not n.startswith("_hoodie"))
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))
leaves: st.SearchStrategy[DataType] = st.one_of(
    st.sampled_from([BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE]),
    decimals,
    st.integers(1, 20).map(Fixed),
    st.sampled_from([Time(Unit.MILLIS), Time(Unit.MICROS)]),
    st.builds(Timestamp, st.sampled_from(Unit), st.booleans()),
)


def structs_of(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
    fields = st.lists(
        st.builds(Field, names, inner, st.booleans()), min_size=1, max_size=5, unique_by=_name
    )
    return fields.map(lambda made: Struct(tuple(made)))


def _name(field: Field) -> str:
    return field.name


types: st.SearchStrategy[DataType] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(List, inner, st.booleans()),
        st.builds(Map, inner, st.just(STRING), st.booleans()),
        structs_of(inner),
    ),
    max_leaves=6,
)
structs = structs_of(types)

_EPOCH = dt.datetime(1970, 1, 1)
_MOMENTS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))


def values(kind: DataType) -> st.SearchStrategy[Any]:
    """Return values of a type in the Python form that Arrow takes and gives."""
    match kind:
        case Primitive():
            return _PLAIN[kind]
        case Decimal():
            limit = 10**kind.precision - 1
            return st.integers(-limit, limit).map(lambda i: _decimal(i, kind.scale))
        case Fixed():
            return st.binary(min_size=kind.size, max_size=kind.size)
        case Time():
            step = 1000 if kind.unit is Unit.MILLIS else 1
            return st.integers(0, 86_399_999_999 // step).map(lambda i: _time(i * step))
        case Timestamp():
            zone = dt.UTC if kind.utc else None
            exact = kind.unit is Unit.MICROS
            return _MOMENTS.map(lambda m: _cut(m, exact).replace(tzinfo=zone))
        case List():
            return st.lists(_maybe(values(kind.element), kind.element_nullable), max_size=4)
        case Map():
            value = _maybe(values(kind.value), kind.value_nullable)
            return st.dictionaries(st.text(max_size=3), value, max_size=3).map(
                lambda d: list(d.items())
            )
        case Struct():
            return rows(kind)


def rows(struct: Struct) -> st.SearchStrategy[dict[str, Any]]:
    """Return rows of a schema."""
    return st.fixed_dictionaries(
        {field.name: _maybe(values(field.type), field.nullable) for field in struct}
    )


def _maybe(inner: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.none() | inner if nullable else inner


def _decimal(unscaled: int, scale: int) -> Number:
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return Number((int(unscaled < 0), digits, -scale))


def _cut(moment: dt.datetime, exact: bool) -> dt.datetime:
    return moment if exact else moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _time(micros: int) -> dt.time:
    return (_EPOCH + dt.timedelta(microseconds=micros)).time()


_PLAIN = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(width=32, allow_nan=False),
    DOUBLE: st.floats(allow_nan=False),
    STRING: st.text(max_size=12),
    BINARY: st.binary(max_size=12),
    DATE: st.dates(),
}
