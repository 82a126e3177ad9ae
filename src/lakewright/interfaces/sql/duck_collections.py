"""Functions of lists, maps and structs."""

from sqlglot import exp

from lakewright.interfaces.sql.duck_calls import Call, Handler
from lakewright.interfaces.sql.duck_casts import call, number, plain_cast, text
from lakewright.interfaces.sql.duck_kinds import Value
from lakewright.interfaces.sql.duck_values import alike
from lakewright.model.expression.types import is_nested
from lakewright.model.schema import (
    BOOLEAN,
    INT,
    STRING,
    Field,
    List,
    Map,
    Struct,
)


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
        # As NULL, it has whatever type it meets.
        return Value(call("list_value"), None)
    nodes, kind = alike(list(made.args), strict=made.strict)
    if kind is None:
        raise made.refuse()
    return Value(call("list_value", *nodes), List(kind))


def _array_end(made: Call) -> Value:
    made.sized(1)
    kind = _list(made)
    if is_nested(kind.element):
        raise made.refuse()
    return Value(
        call("list_max" if made.name == "array_max" else "list_min", made.args[0].node),
        kind.element,
    )


def _sort_array(made: Call) -> Value:
    made.sized(1)
    if is_nested(_list(made).element):
        raise made.refuse()
    return Value(
        call("list_sort", made.args[0].node, text("ASC"), text("NULLS FIRST")), made.args[0].kind
    )


def _map_part(made: Call) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if not isinstance(kind, Map):
        raise made.refuse()
    return Value(
        call(made.name, made.args[0].node),
        List(kind.key if made.name == "map_keys" else kind.value),
    )


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


COLLECTIONS: dict[str, Handler] = {
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
}
