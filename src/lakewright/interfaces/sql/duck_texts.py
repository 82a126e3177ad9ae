"""Functions of texts."""

from sqlglot import exp

from lakewright.interfaces.sql import duck_patterns as patterns
from lakewright.interfaces.sql.duck_calls import Call, Handler, plain
from lakewright.interfaces.sql.duck_casts import call, number, plain_cast, text
from lakewright.interfaces.sql.duck_kinds import Kind, Value, joined, only_spark
from lakewright.model.expression.types import is_nested
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    List,
)

_MOST = 2**31 - 1


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
            lost = exp.or_(
                *(exp.Is(this=exp.paren(n.copy()), expression=exp.Null()) for n in (node, arg.node))
            )
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


_S = STRING

TEXTS: dict[str, Handler] = {
    **dict.fromkeys(("substr", "substring"), _substr),
    "left": plain("lw_left", (_S, INT), _S),
    "right": plain("lw_right", (_S, INT), _S),
    **dict.fromkeys(("length", "char_length", "character_length", "len"), _length),
    "octet_length": _octets,
    **dict.fromkeys(("upper", "ucase"), plain("upper", (_S,), _S)),
    **dict.fromkeys(("lower", "lcase"), plain("lower", (_S,), _S)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim"), _trimmed),
    **dict.fromkeys(("lpad", "rpad"), _pad),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": _replace,
    "locate": _locate,
    "instr": lambda made: _locate(Call("instr", made.args[::-1], made.strict)),
    "position": _locate,
    "startswith": plain("starts_with", (_S, _S), BOOLEAN),
    "endswith": plain("ends_with", (_S, _S), BOOLEAN),
    "contains": plain("contains", (_S, _S), BOOLEAN),
    **dict.fromkeys(("rlike", "regexp_like", "regexp"), _rlike),
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
    "split": _split,
    "md5": _hash_text("md5"),
    **dict.fromkeys(("sha1", "sha"), _hash_text("sha1")),
    "sha2": _sha2,
    "repeat": plain("repeat", (_S, INT), _S),
}
