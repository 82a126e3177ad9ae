"""Constants of text in statements that Spark itself parses: one reading, whatever the session.

Releases and settings of Spark differ in what a quoted text is. Statements are read here in one way
(``model.dialect``), by which rows are chosen and files left out; so Spark is given texts that it
can read in that way only. No setting of the session is touched: other threads use it too, and a
session of Spark Connect parses a query again whenever it is run.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType

from lakewright.interfaces.sql.text import TEXTS, Piece, piece, place_of
from lakewright.model.errors import Unsupported

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession

#: Statements whose rest Spark takes as it stands, quotes and all, but for SET VARIABLE.
_BARE = frozenset({"SET", "RESET", "ADD", "LIST"})
_VARIABLES = frozenset({"VAR", "VARIABLE"})
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SUBSTITUTED = "${"
#: Settings under which Spark reads texts in another way.
_BACKSLASHES = "spark.sql.parser.escapedStringLiterals"
_DOUBLE_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
_ANSI = "spark.sql.ansi.enabled"
_SUBSTITUTION = "spark.sql.variable.substitute"
_ON_BY_DEFAULT = frozenset({_ANSI, _SUBSTITUTION})


def for_spark(text: str) -> str:
    """Return a statement with texts that each session reads in the same way.

    A doubled quote is written as an escaped one, which Spark 3 knows too; ``${`` within a text is
    written so that Spark puts no variable in its place.
    """
    statement = piece(text)
    if takes_rest(statement):
        return text
    written, at = list[str](), 0
    for token in statement.tokens:
        if token.token_type in TEXTS and _is_doubtful(token, text):
            written += [text[at : token.start], _escaped(token.text)]
            at = token.end + 1
    return "".join([*written, text[at:]])


def check_session(statement: Piece, spark: "SparkSession") -> None:
    """Refuse a statement whose texts mean something else under the session's own settings."""
    from lakewright.engine.spark.session import setting

    def is_set(key: str) -> bool:
        told = setting(spark, key)
        return key in _ON_BY_DEFAULT if told is None else told.lower() == "true"

    if takes_rest(statement):
        return
    _check_backslashes(statement, is_set)
    _check_double_quotes(statement, is_set)
    _check_variables(statement, is_set)


def takes_rest(statement: Piece) -> bool:
    """Whether Spark takes what follows the first word as it stands, as in ``SET key=value``."""
    return statement.word(0) in _BARE and statement.word(1) not in _VARIABLES


def _is_doubtful(token: Token, text: str) -> bool:
    """Whether Spark could read a text in more than one way, by its release or by variables."""
    if _SUBSTITUTED in token.text:
        return True
    written = text[token.start : token.end + 1]
    return token.token_type is TokenType.STRING and written[0] * 2 in written[1:-1]


def _escaped(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return "'" + _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped) + "'"


def _check_backslashes(statement: Piece, is_set: Callable[[str], bool]) -> None:
    for token in statement.tokens:
        raw = token.token_type is TokenType.RAW_STRING
        written = statement.text[token.start : token.end + 1]
        if (
            raw
            or (token.token_type is TokenType.STRING and "\\" in written)
            or (token.token_type in TEXTS and _is_doubtful(token, statement.text))
        ):
            if is_set(_BACKSLASHES):
                raise _differs(statement, token, _BACKSLASHES)
            return


def _check_double_quotes(statement: Piece, is_set: Callable[[str], bool]) -> None:
    for token in statement.tokens:
        if token.token_type is TokenType.STRING and statement.text[token.start] == '"':
            if is_set(_DOUBLE_QUOTES) and is_set(_ANSI):
                raise _differs(statement, token, _DOUBLE_QUOTES)
            return


def _differs(statement: Piece, token: Token, key: str) -> Unsupported:
    written = statement.text[token.start : token.end + 1]
    return Unsupported(
        f"{written} at {place_of(statement.text, token.start)} would be read in another way by "
        f"this Spark session, in which {key} is true.",
        next_step=f"Set {key} to false for this session; in SQL of a lake \\ escapes the next "
        "sign, r'…' takes it as it is, and both quotes make texts.",
        key=key,
        sql=statement.text,
    )


def _check_variables(statement: Piece, is_set: Callable[[str], bool]) -> None:
    """Refuse a variable of Spark's outside of texts; within them it is text."""
    tokens = statement.tokens
    for number, token in enumerate(tokens):
        if token.token_type in TEXTS:
            continue
        follows = number + 1 < len(tokens) and tokens[number + 1].start == token.end + 1
        opened = token.text.endswith("$") and follows and tokens[number + 1].text == "{"
        if (_SUBSTITUTED in token.text or opened) and is_set(_SUBSTITUTION):
            raise Unsupported(
                f"${{…}} at {place_of(statement.text, token.start)}: SQL of a lake is taken as it "
                "is written, and no variable is put in.",
                next_step="Put the value into the text in Python, or use spark.sql().",
                sql=statement.text,
            )
