"""Statements as text: taken apart at semicolons, parsed, and pointed into when they are wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from lakewright.model.dialect import LakeSql
from lakewright.model.errors import Invalid, InvalidExpression

#: Words with which a statement may begin, for guessing what was meant.
_VERBS = [
    "SELECT",
    "WITH",
    "VALUES",
    "FROM",
    "TABLE",
    "CREATE",
    "DROP",
    "ALTER",
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "TRUNCATE",
    "DESCRIBE",
    "DESC",
    "SHOW",
    "CALL",
    "EXPLAIN",
]


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement: its text as written, comments and all, and its tokens."""

    text: str
    tokens: tuple[Token, ...]

    def word(self, place: int) -> str:
        """Return a token in capitals, empty behind the last; a quoted name is no word."""
        if place >= len(self.tokens) or self.tokens[place].token_type in _QUOTED:
            return ""
        return self.tokens[place].text.upper()

    def words(self, count: int) -> tuple[str, ...]:
        """Return the first words in capitals."""
        return tuple(self.word(place) for place in range(count))

    def nesting(self, place: int) -> int:
        """Say by how much a token changes the depth of parentheses."""
        return {"(": 1, ")": -1}.get(self.word(place), 0)

    def since(self, place: int) -> str:
        """Return the text from a token on."""
        return self.text[self.tokens[place].start :] if place < len(self.tokens) else ""

    def parse(self) -> exp.Expression:
        """Parse the statement; ``Invalid`` points at what cannot be read."""
        return parse_sql(self.text)


#: Tokens that are texts.
TEXTS = frozenset({TokenType.STRING, TokenType.RAW_STRING})
_QUOTED = TEXTS | {TokenType.IDENTIFIER}


class _Tokenizer(LakeSql.Tokenizer):
    """Takes every statement apart; sqlglot's own leaves SHOW and CALL in one piece."""

    COMMANDS: ClassVar[set[TokenType]] = set()


def pieces(text: str) -> Iterator[Piece]:
    """Take a script apart; empty statements are left out."""
    start, held = 0, list[Token]()
    for token in [*tokenize(text), None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            held.append(token)
            continue
        end = len(text) if token is None else token.start
        if held:
            yield piece(text[start:end].strip())
        start, held = (end + 1), []


def piece(text: str) -> Piece:
    """Return one statement with its tokens."""
    return Piece(text, tuple(tokenize(text)))


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text; ``Invalid`` where a quote is not closed."""
    try:
        return _Tokenizer(dialect=LakeSql).tokenize(text)
    except SqlglotError as cause:
        raise Invalid(
            "a quote, a backtick or a comment is not closed.",
            next_step=f"Look at the end of: {text.strip()[-60:]!r}.",
            sql=text,
        ) from cause


def parse_sql(text: str, into: "type[Any] | None" = None) -> exp.Expression:
    """Parse one statement or, with ``into``, a part of one."""
    with teaching(text):
        options: dict[str, Any] = {} if into is None else {"into": into}
        tree: exp.Expression = sqlglot.parse_one(text, dialect=LakeSql, **options)
        return tree


@contextmanager
def teaching(text: str) -> Iterator[None]:
    """Turn the parser's errors into ours, with the place in the text."""
    try:
        yield
    except ParseError as error:
        raise _unreadable(text, error) from error
    except SqlglotError as error:
        raise Invalid(
            f"cannot read the statement: {error}.",
            next_step="Look at quotes and comments: one may not be closed.",
            sql=text,
        ) from error
    except RecursionError as error:
        raise Invalid(
            "the statement is nested too deeply.", next_step="Use IN (…), or a table of values."
        ) from error


def _unreadable(text: str, error: ParseError) -> Invalid:
    first: dict[str, Any] = error.errors[0] if error.errors else {}
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    told = str(first.get("description") or "it does not follow the grammar")
    told = told.partition(" for <class")[0].partition(" but got <Token")[0].rstrip(".")
    near = str(first.get("highlight") or "")
    return Invalid(
        f"cannot read the statement at line {line}, column {column}: {told}"
        f"{f', near {near!r}' if near else ''}.",
        next_step=_pointer(text, line, column, near),
        sql=text,
        line=line,
        column=column,
    )


def _pointer(text: str, line: int, column: int, near: str) -> str:
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1]
    mark = " " * max(column - max(len(near), 1), 0) + "^" * max(len(near), 1)
    return f"Here:\n  {shown}\n  {mark}"


def place_of(text: str, offset: int) -> str:
    """Say in words where in a text something stands."""
    before = text[:offset]
    return f"line {before.count(chr(10)) + 1}, column {offset - (before.rfind(chr(10)) + 1) + 1}"


def unknown_statement(statement: Piece) -> Invalid:
    """Return the error for a statement that nothing here knows."""
    verb = statement.word(0)
    if verb in _VERBS:
        what = " ".join(word for word in statement.words(2) if word)
        return Invalid(
            f"{what} is not known here: {statement.text[:80]}",
            next_step="SQL of a lake creates, alters and drops tables and databases; whatever else "
            "Spark knows needs a session: lakewright.connect(place, spark=spark).",
            sql=statement.text,
        )
    near = get_close_matches(verb, _VERBS, n=2)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return Invalid(
        f"{verb or statement.text[:20]!r} does not begin a statement that is known here.",
        next_step=f"{hint}Known: {', '.join(dict.fromkeys(_VERBS))}.",
        sql=statement.text,
    )


def refused(what: str, next_step: str, statement: str = "") -> InvalidExpression:
    """Return the error for a form of a statement that has no meaning here."""
    return InvalidExpression(what, next_step=next_step, sql=statement)
