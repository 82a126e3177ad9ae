"""Expressions of Spark in DuckDB's words, with the types that they have in Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lakewright.interfaces.sql import duck_patterns as patterns
from lakewright.interfaces.sql.duck_aggregates import AGGREGATES, WINDOWS, Under
from lakewright.interfaces.sql.duck_calls import Call
from lakewright.interfaces.sql.duck_casts import call, cast, moment, plain_cast, text
from lakewright.interfaces.sql.duck_collections import element
from lakewright.interfaces.sql.duck_functions import FUNCTIONS
from lakewright.interfaces.sql.duck_kinds import Kind, Value, joined, only_spark
from lakewright.interfaces.sql.duck_numbers import computed, literal, negative, whole_quotient
from lakewright.interfaces.sql.duck_scopes import Columns, Scope, field_of
from lakewright.interfaces.sql.duck_times import extracted
from lakewright.interfaces.sql.duck_values import alike
from lakewright.model.ddl import read_type
from lakewright.model.errors import LakewrightError
from lakewright.model.expression.types import common_type, is_integer, is_nested
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    Timestamp,
)

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_BITS = (exp.BitwiseAnd, exp.BitwiseOr)
_DAYS = frozenset({"DAY", "DAYS", "WEEK", "WEEKS", "MONTH", "MONTHS", "YEAR", "YEARS"})
_TIMES = frozenset({"HOUR", "HOURS", "MINUTE", "MINUTES", "SECOND", "SECONDS"})

_TEXTS = (exp.Literal, exp.RawString)

#: Types that tables here do not have.
_SMALL = frozenset({exp.DType.SMALLINT, exp.DType.TINYINT})

#: Translates a query within an expression, and returns its columns.
Inner = Callable[[exp.Expression, Scope], Columns]


@dataclass(frozen=True, slots=True, eq=False)
class Translator:
    """Translates expressions; ``inner`` does so with the queries that are found in them."""

    inner: Inner
    strict: bool

    def value(self, node: exp.Expression, scope: Scope) -> Value:
        """Return an expression in DuckDB's words; what is not known is refused."""
        match node:
            case exp.Literal():
                return Value(node, STRING) if node.is_string else literal(node)
            case exp.RawString():
                return Value(text(str(node.this)), STRING)
            case exp.National():
                return Value(text(str(node.this)), STRING)
            case exp.Concat() if all(isinstance(one, _TEXTS) for one in node.expressions):
                # Texts side by side are one.
                return Value(text("".join(str(one.this) for one in node.expressions)), STRING)
            case exp.HexString():
                return Value(call("unhex", text(str(node.this))), BINARY)
            case exp.Null():
                return Value(node, None)
            case exp.Boolean():
                return Value(node, BOOLEAN)
            case exp.Column():
                return scope.column(node)
            case exp.Dot():
                return self._field(node, scope)
            case exp.Paren():
                inner = self.value(node.this, scope)
                return Value(exp.paren(inner.node), inner.kind)
            case exp.Alias():
                inner = self.value(node.this, scope)
                node.set("this", inner.node)
                return Value(node, inner.kind)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return self._scalar(node, scope)
            case exp.Exists():
                self.inner(node.this, scope)
                return Value(node, BOOLEAN)
            case exp.Cast():
                return self._cast(node, scope)
            case exp.Anonymous() | exp.Window() | exp.Filter() | exp.Any():
                return self._called(node, scope)
            case exp.CurrentDate():
                return self._plain("current_date", [], scope)
            case exp.CurrentTimestamp():
                return self._plain("current_timestamp", [], scope)
            case exp.Substring() | exp.StrPosition() | exp.Trim() | exp.Extract():
                return self._written(node, scope)
            case _:
                return self._operator(node, scope)

    # Operators.

    def _operator(self, node: exp.Expression, scope: Scope) -> Value:
        if isinstance(node, _COMPARISONS):
            return self._comparison(node, scope)
        if isinstance(node, _ARITHMETIC):
            return self._arithmetic(node, scope)
        match node:
            case exp.And() | exp.Or():
                return self._connected(node, scope)
            case exp.Not():
                return Value(exp.not_(exp.paren(self._condition(node.this, scope))), BOOLEAN)
            case exp.Neg():
                return self._negative(node, scope)
            case exp.IntDiv():
                sides = (self.value(side, scope) for side in (node.this, node.expression))
                return whole_quotient(*sides, strict=self.strict)
            case exp.DPipe():
                parts = tuple(self.value(side, scope) for side in (node.this, node.expression))
                return FUNCTIONS["concat"](Call("concat", parts, self.strict))
            case exp.Is():
                node.set("this", exp.paren(self.value(node.this, scope).node))
                if not isinstance(node.expression, exp.Null | exp.Boolean):
                    raise only_spark(node.sql(dialect="spark"))
                return Value(node, BOOLEAN)
            case exp.Between():
                return self._between(node, scope)
            case exp.In():
                return self._in(node, scope)
            case exp.Like() | exp.ILike() | exp.Escape():
                return self._like(node, scope)
            case exp.RegexpLike():
                parts = tuple(self.value(side, scope) for side in (node.this, node.expression))
                return FUNCTIONS["rlike"](Call("RLIKE", parts, self.strict))
            case exp.Case():
                return self._case(node, scope)
            case exp.If():
                branches = [(node.this, node.args["true"])]
                return self._chosen(branches, node.args.get("false"), scope)
            case exp.Bracket() if len(node.expressions) == 1:
                parts = self.value(node.this, scope), self.value(node.expressions[0], scope)
                return element(Call("[…]", parts, self.strict), base=0, failing=True)
            case exp.BitwiseAnd() | exp.BitwiseOr():
                return self._bits(node, scope)
            case _:
                raise only_spark(f"{node.sql(dialect='spark')} ({type(node).__name__})")

    def _condition(self, node: exp.Expression, scope: Scope) -> exp.Expression:
        value = self.value(node, scope)
        if value.kind not in (BOOLEAN, None):
            raise only_spark(f"{value.kind} as a condition")
        return value.node

    def condition(self, node: exp.Expression, scope: Scope) -> exp.Expression:
        """Return a condition, as of WHERE."""
        return self._condition(node, scope)

    def _connected(self, node: exp.Expression, scope: Scope) -> Value:
        # A chain of thousands is no tree of thousands.
        form = type(node)
        parts, pending = [], [node]
        while pending:
            one = pending.pop()
            if type(one) is form:
                pending += [one.expression, one.this]
            else:
                parts.append(exp.paren(self._condition(one, scope)))
        join = exp.and_ if form is exp.And else exp.or_
        return Value(exp.paren(join(*parts)), BOOLEAN)

    def _comparison(self, node: exp.Expression, scope: Scope) -> Value:
        left, right = self.value(node.this, scope), self.value(node.expression, scope)
        left, right = self._comparable(left, right)
        node.set("this", exp.paren(left.node))
        node.set("expression", exp.paren(right.node))
        return Value(node, BOOLEAN)

    def _comparable(self, left: Value, right: Value) -> tuple[Value, Value]:
        if left.kind is None or right.kind is None or left.kind == right.kind:
            return left, right
        kind = common_type(left.kind, right.kind)
        if kind is None or is_nested(kind):
            raise only_spark(f"a comparison of {left.kind} with {right.kind}")
        return cast(left, kind, strict=self.strict), cast(right, kind, strict=self.strict)

    def _between(self, node: exp.Between, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        low = self._comparable(value, self.value(node.args["low"], scope))
        high = self._comparable(value, self.value(node.args["high"], scope))
        above = exp.GTE(this=exp.paren(low[0].node), expression=exp.paren(low[1].node))
        below = exp.LTE(this=exp.paren(high[0].node.copy()), expression=exp.paren(high[1].node))
        held = exp.paren(exp.and_(above, below))
        return Value(exp.not_(held) if node.args.get("negate") else held, BOOLEAN)

    def _in(self, node: exp.In, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        query = node.args.get("query")
        if query is not None:
            (column, *more) = self.inner(query, scope)
            if more or column[1] is None or joined(value.kind, column[1]) is None:
                raise only_spark("IN of a query of several columns")
            node.set("this", exp.paren(value.node))
            return Value(node, BOOLEAN)
        if not node.expressions or node.args.get("unnest") or node.args.get("field"):
            raise only_spark(node.sql(dialect="spark"))
        kind: Kind = value.kind
        others = [self.value(one, scope) for one in node.expressions]
        for other in others:
            if kind is not None and other.kind is not None and kind != other.kind:
                kind = common_type(kind, other.kind)
                if kind is None:
                    raise only_spark(f"IN of {value.kind} and {other.kind}")
            kind = kind or other.kind
        strict = self.strict
        node.set("this", exp.paren(cast(value, kind, strict=strict).node))
        node.set("expressions", [cast(other, kind, strict=strict).node for other in others])
        return Value(node, BOOLEAN)

    def _like(self, node: exp.Expression, scope: Scope) -> Value:
        escape = "\\"
        form = node
        if isinstance(node, exp.Escape):
            if not isinstance(node.expression, exp.Literal) or len(node.expression.name) != 1:
                raise only_spark(node.sql(dialect="spark"))
            escape, form = node.expression.name, node.this
        if not isinstance(form, exp.Like | exp.ILike):
            raise only_spark(node.sql(dialect="spark"))
        pattern = form.expression.unnest()
        if isinstance(pattern, exp.RawString):
            pattern = text(str(pattern.this))
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise only_spark("LIKE with a pattern that is not a constant")
        patterns.like(str(pattern.this), escape)
        given = self.value(form.this, scope)
        subject = FUNCTIONS["concat"](Call("LIKE", (given,), self.strict))
        name = "like_escape" if isinstance(form, exp.Like) else "ilike_escape"
        held = call(name, subject.node, text(str(pattern.this)), text(escape))
        return Value(exp.not_(held) if form.args.get("negate") else held, BOOLEAN)

    def _case(self, node: exp.Case, scope: Scope) -> Value:
        branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
        if node.this is not None:
            branches = [
                (exp.EQ(this=node.this.copy(), expression=when), then) for when, then in branches
            ]
        return self._chosen(branches, node.args.get("default"), scope)

    def _chosen(
        self,
        branches: Sequence[tuple[exp.Expression, exp.Expression]],
        default: exp.Expression | None,
        scope: Scope,
    ) -> Value:
        whens = [self._condition(when, scope) for when, _ in branches]
        values = [self.value(then, scope) for _, then in branches]
        values.append(
            self.value(default, scope) if default is not None else Value(exp.Null(), None)
        )
        nodes, kind = alike(values, strict=self.strict)
        pairs = zip(whens, nodes[:-1], strict=True)
        ifs = [exp.If(this=when, true=then) for when, then in pairs]
        return Value(exp.Case(ifs=ifs, default=nodes[-1]), kind)

    def _bits(self, node: exp.Expression, scope: Scope) -> Value:
        sides = [self.value(side, scope) for side in (node.this, node.expression)]
        nodes, kind = alike(sides, strict=self.strict)
        if kind is None or not is_integer(kind):
            raise only_spark(f"bits of {kind}")
        made = type(node)(this=exp.paren(nodes[0]), expression=exp.paren(nodes[1]))
        return Value(plain_cast(exp.paren(made), kind), kind)

    def _negative(self, node: exp.Neg, scope: Scope) -> Value:
        if isinstance(node.this, exp.Literal) and node.this.name == "2147483648":
            return Value(plain_cast(exp.paren(node), INT), INT)
        return negative(self.value(node.this, scope))

    def _arithmetic(self, node: exp.Expression, scope: Scope) -> Value:
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return self._moved(node, scope)
        left, right = self.value(node.this, scope), self.value(node.expression, scope)
        if left.kind == DATE and right.kind == INT and isinstance(node, exp.Add | exp.Sub):
            name = "date_add" if isinstance(node, exp.Add) else "date_sub"
            return FUNCTIONS[name](Call(name, (left, right), self.strict))
        if left.kind == DATE and right.kind == DATE:
            raise only_spark("an interval of two dates (datediff counts days)")
        return computed(type(node), left, right, strict=self.strict)

    def _moved(self, node: exp.Expression, scope: Scope) -> Value:
        interval = node.expression
        if not isinstance(interval, exp.Interval) or not isinstance(node, exp.Add | exp.Sub):
            raise only_spark(node.sql(dialect="spark"))
        value, amount = self.value(node.this, scope), interval.this
        unit = str(interval.args.get("unit") or "").upper()
        if isinstance(amount, exp.Neg):
            raise only_spark(interval.sql(dialect="spark"))
        count = str(amount.this) if isinstance(amount, exp.Literal) else ""
        if not count.lstrip("-").isdigit() or unit not in _DAYS | _TIMES:
            raise only_spark(interval.sql(dialect="spark"))
        plain = exp.Interval(this=text(count), unit=exp.Var(this=unit.rstrip("S")))
        if value.kind == DATE and unit in _DAYS:
            moved = type(node)(this=exp.paren(value.node), expression=plain)
            return Value(plain_cast(exp.paren(moved), DATE), DATE)
        if value.kind == DATE:
            value = cast(value, TIMESTAMP, strict=self.strict)
        if not isinstance(value.kind, Timestamp):
            raise only_spark(f"{value.kind} and an interval")
        local = plain_cast(value.node, Timestamp(TIMESTAMP.unit, utc=False))
        later = exp.paren(type(node)(this=exp.paren(local), expression=plain))
        return Value(moment(later) if value.kind.utc else later, value.kind)

    # Conversions, fields, queries.

    def _cast(self, node: exp.Cast, scope: Scope) -> Value:
        value = self.value(node.this, scope)
        if node.args.get("format"):
            raise only_spark(node.sql(dialect="spark"))
        if node.args["to"].this in _SMALL:
            raise only_spark(f"CAST as {node.args['to'].sql(dialect='spark')}")
        try:
            kind = read_type(node.args["to"])
        except LakewrightError as error:
            raise only_spark(f"CAST as {node.args['to'].sql(dialect='spark')}") from error
        strict = self.strict and not node.args.get("safe")
        if (
            isinstance(node.this, exp.Literal)
            and not node.this.is_string
            and kind in (DOUBLE, FLOAT)
        ):
            # 1.5D is read from its digits, as a text is.
            return Value(plain_cast(text(node.this.name), kind), kind)
        return cast(value, kind, strict=strict)

    def _field(self, node: exp.Dot, scope: Scope) -> Value:
        whole = self.value(node.this, scope)
        return field_of(whole, node.expression.name)

    def _scalar(self, node: exp.Expression, scope: Scope) -> Value:
        (column, *more) = self.inner(node, scope)
        if more:
            raise only_spark("a query of several columns as a value")
        made = node if isinstance(node, exp.Subquery) else exp.Subquery(this=node)
        return Value(made, column[1])

    # Functions.

    def _written(self, node: exp.Expression, scope: Scope) -> Value:
        """Functions that are written with words between their arguments."""
        match node:
            case exp.Substring():
                parts = [node.this, node.args.get("start"), node.args.get("length")]
                return self._plain("substring", [part for part in parts if part is not None], scope)
            case exp.StrPosition():
                parts = [node.args["substr"], node.this, node.args.get("position")]
                return self._plain("position", [part for part in parts if part is not None], scope)
            case exp.Extract():
                made = Call("extract", (self.value(node.expression, scope),), self.strict)
                return extracted(made, node.this.name)
            case _:
                return self._trimmed(node, scope)

    def _trimmed(self, node: exp.Expression, scope: Scope) -> Value:
        side = str(node.args.get("position") or "BOTH").upper()
        name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
        if node.expression is None or not str(node.expression):
            return self._plain(name, [node.this], scope)
        values = [self.value(part, scope) for part in (node.this, node.expression)]
        if any(value.kind != STRING for value in values):
            raise only_spark(node.sql(dialect="spark"))
        return Value(call(name, *(value.node for value in values)), STRING)

    def _plain(self, name: str, parts: Sequence[exp.Expression], scope: Scope) -> Value:
        handler = FUNCTIONS.get(name.lower())
        if handler is None:
            raise only_spark(f"the function {name}")
        if any(isinstance(part, exp.Lambda | exp.Distinct | exp.Star) for part in parts):
            raise only_spark(f"{name} of such arguments")
        values = tuple(self.value(part, scope) for part in parts)
        return handler(Call(name.lower(), values, self.strict))

    def _called(self, node: exp.Expression, scope: Scope) -> Value:
        layers: list[exp.Expression] = []
        inner = node
        while isinstance(inner, exp.Window | exp.Filter):
            layers.append(inner)
            inner = inner.this
        name, parts = _named(inner)
        known = AGGREGATES.get(name.lower())
        over = any(isinstance(layer, exp.Window) for layer in layers)
        if over and known is None:
            known = WINDOWS.get(name.lower())
        if known is None:
            if layers:
                raise only_spark(f"the function {name} over a window")
            return self._plain(name, parts, scope)
        distinct = len(parts) == 1 and isinstance(parts[0], exp.Distinct)
        if distinct:
            parts = list(parts[0].expressions)
        starred = [part for part in parts if isinstance(part, exp.Star)]
        values = tuple(self.value(p, scope) for p in parts if not isinstance(p, exp.Star))
        if starred and (name.lower() != "count" or len(parts) > 1 or distinct):
            raise only_spark(f"{name}(*)")
        under = self._under(layers, scope)
        return known(Call(name.lower(), values, self.strict), under, distinct)

    def _under(self, layers: Sequence[exp.Expression], scope: Scope) -> Under:
        for layer in layers:
            self.window(layer, scope)

        def under(made: exp.Expression) -> exp.Expression:
            for layer in reversed(layers):
                copy = layer.copy()
                copy.set("this", made)
                made = copy
            return made

        return under

    def window(self, layer: exp.Expression, scope: Scope) -> None:
        """Translate what an aggregate is taken over: a window, or the rows of FILTER."""
        if isinstance(layer, exp.Filter):
            layer.expression.set("this", self._condition(layer.expression.this, scope))
            return
        parts = [exp.paren(self.value(p, scope).node) for p in layer.args.get("partition_by") or ()]
        layer.set("partition_by", parts)
        self.order(layer.args.get("order"), scope)
        spec = layer.args.get("spec")
        if spec is not None:
            self._frame(layer, spec)

    @staticmethod
    def _frame(layer: exp.Expression, spec: exp.Expression) -> None:
        if str(spec.args.get("kind")).upper() == "RANGE" and any(
            isinstance(spec.args.get(end), exp.Expression) for end in ("start", "end")
        ):
            raise only_spark("a window over a RANGE of values")

    def order(self, order: exp.Expression | None, scope: Scope) -> None:
        """Translate what rows are ordered by; a bare number is the place of a column."""
        for one in order.expressions if order is not None else ():
            if isinstance(one, exp.Ordered) and not isinstance(one.this, exp.Literal):
                one.set("this", self.value(one.this, scope).node)


def _named(node: exp.Expression) -> tuple[str, list[exp.Expression]]:
    if isinstance(node, exp.Anonymous):
        return str(node.this), list(node.expressions)
    if isinstance(node, exp.Any) and isinstance(node.this, exp.Paren):
        return "any", [node.this.this]
    raise only_spark(node.sql(dialect="spark"))
