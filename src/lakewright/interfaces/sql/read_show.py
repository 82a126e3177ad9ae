"""SHOW, DESCRIBE and CALL, most of which the parser does not know."""

from typing import Any

from sqlglot import exp

from lakewright.index.layout import PARTITION_RULES
from lakewright.interfaces.sql.names import table_name
from lakewright.interfaces.sql.read_ddl import parse_table
from lakewright.interfaces.sql.read_parts import constant, partition_spec
from lakewright.interfaces.sql.rule_texts import check_backslashes
from lakewright.interfaces.sql.statements import Call, Describe, PartitionSpec, Show
from lakewright.interfaces.sql.text import Piece, parse_sql, refused
from lakewright.model.expression.types import Value

_FORMS = (
    "SHOW TABLES [IN database] [LIKE 'pattern'], SHOW DATABASES [LIKE 'pattern'], "
    "SHOW PARTITIONS table [PARTITION (…)], SHOW COLUMNS IN table, SHOW TBLPROPERTIES table, "
    "SHOW CREATE TABLE table, SHOW PROCEDURES [LIKE 'pattern']"
)


def read_show(statement: Piece) -> Show | None:
    """Read SHOW; None where it shows something of the engine's."""
    words = statement.words(len(statement.tokens))
    what = words[1] if len(words) > 1 else ""
    place = 2
    match what:
        case "TABLES" | "DATABASES" | "SCHEMAS" | "PROCEDURES":
            name = None
            if words[place : place + 1] in (("IN",), ("FROM",)) and what == "TABLES":
                name = _bare(statement, place + 1)
                place += 2
            if words[place : place + 1] == ("LIKE",):
                place += 1
            pattern = _text(statement, place)
            return Show("DATABASES" if what == "SCHEMAS" else what, name, pattern)
        case "COLUMNS":
            if words[place : place + 1] in (("IN",), ("FROM",)):
                place += 1
            return Show(what, _table(statement, place))
        case "CREATE" if words[place : place + 1] == ("TABLE",):
            return Show(what, _table(statement, place + 1))
        case "PARTITIONS":
            return Show(what, _table(statement, place), partition=_partition(statement))
        case "TBLPROPERTIES":
            key = next(
                (t.text for t in statement.tokens[3:] if t.token_type.name == "STRING"), None
            )
            return Show(what, _table(statement, place), key)
        case _:
            return None


def _bare(statement: Piece, place: int) -> str:
    if place >= len(statement.tokens):
        raise refused("a name is missing.", f"Write one of: {_FORMS}.")
    return statement.tokens[place].text


def _text(statement: Piece, place: int) -> str | None:
    return statement.tokens[place].text if place < len(statement.tokens) else None


def _table(statement: Piece, place: int) -> str:
    """Read the name that begins at a token: names with dots between them."""
    end = place
    while end + 1 < len(statement.tokens) and statement.tokens[end + 1].text == ".":
        end += 2
    if end >= len(statement.tokens):
        raise refused("the name of a table is missing.", f"Write one of: {_FORMS}.")
    tokens = statement.tokens
    return table_name(parse_table(statement.text[tokens[place].start : tokens[end].end + 1]))


def _partition(statement: Piece) -> PartitionSpec | None:
    words = statement.words(len(statement.tokens))
    if "PARTITION" not in words:
        return None
    tail = statement.since(words.index("PARTITION"))
    read = parse_sql(f"TRUNCATE TABLE t {tail}")
    return partition_spec(read.args.get("partition"))


def read_describe(statement: Piece) -> Describe | None:
    """Read DESCRIBE [TABLE] [EXTENDED | FORMATTED] table."""
    tree = statement.parse()
    if not isinstance(tree, exp.Describe) or not isinstance(tree.this, exp.Table):
        return None
    return Describe(table_name(tree.this), bool(tree.args.get("style")))


def read_call(statement: Piece) -> Call:
    """Read CALL [system.]procedure(name => value, …, or values in order)."""
    check_backslashes(statement, PARTITION_RULES.key)
    tree = parse_sql(f"SELECT {statement.since(1)}")
    called = tree.expressions[0] if isinstance(tree, exp.Select) and tree.expressions else None
    while isinstance(called, exp.Dot):  # CALL system.name(…), as other engines write it
        called = called.expression
    if not isinstance(called, exp.Anonymous | exp.Func) or len(tree.expressions) != 1:
        raise refused(f"{statement.text} calls nothing.", "Write CALL procedure(name => value, …).")
    name, arguments = _called(called, statement)
    positional: list[Value] = []
    named: dict[str, Value] = {}
    for argument in arguments:
        if isinstance(argument, exp.Kwarg | exp.PropertyEQ | exp.EQ):
            key = argument.this.name
            if key in named:
                raise refused(f"argument {key} is given twice.", "Give it once.")
            named[key] = constant(argument.expression)
        elif named:
            raise refused(
                f"{argument.sql(dialect='spark')} has no name and follows one that has.",
                "Give arguments in order first, then those with names.",
            )
        else:
            positional.append(constant(argument))
    return Call(name, tuple(positional), named)


def _called(called: Any, statement: Piece) -> tuple[str, list[Any]]:  # noqa: ANN401
    if isinstance(called, exp.Anonymous):
        return str(called.this).lower(), list(called.expressions)
    # A name that is also a function of SQL arrives as that function: take the written name.
    name = statement.tokens[1].text.lower()
    return name, list(called.iter_expressions())
