"""Queries: which tables they name, where in the text, and as of when."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from lakewright.interfaces.sql.names import alias_of, parts_of, quoted
from lakewright.interfaces.sql.text import Piece, parse_sql, piece, place_of, refused

_TRAVEL = frozenset({"TIMESTAMP", "VERSION", "SYSTEM_TIME", "SYSTEM_VERSION"})
_SOURCES = frozenset({"FROM", "JOIN"})


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One place where a query names a table.

    ``start`` and ``end`` bound the name, time travel included, in the query's text. ``node`` is
    the place in the parsed tree, None where only tokens are known.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    as_of: str | None = None
    alias: str | None = None
    sampled: bool = False
    node: exp.Table | None = None

    @property
    def name(self) -> str:
        """The name with dots."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A query with the places where it names tables that no CTE of its own defines."""

    text: str
    tree: exp.Expression | None
    uses: tuple[Use, ...]


def parse_query(text: str) -> Parsed:
    """Parse a query; ``Invalid`` points at what cannot be read."""
    statement = piece(text)
    tree = parse_sql(text)
    found = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
    uses = [_use(statement, table) for table in found if not _is_local(table)]
    return Parsed(text, tree, tuple(sorted(uses, key=lambda use: use.start)))


def scan_query(text: str) -> Parsed:
    """Find tables by the words before them, in a query that only an engine can parse."""
    statement = piece(text)
    uses = []
    for place in range(len(statement.tokens) - 1):
        if statement.word(place) in _SOURCES:
            parts, last = _dotted(statement, place + 1)
            if parts:
                uses.append(_travelled(statement, parts, place + 1, last))
    return Parsed(text, None, tuple(uses))


def _use(statement: Piece, table: exp.Table) -> Use:
    begin, last = table.parts[0].meta["start"], table.parts[-1].meta["end"]
    places = {token.start: n for n, token in enumerate(statement.tokens)}
    first = places[begin]
    final = next(n for n in range(first, len(statement.tokens)) if statement.tokens[n].end == last)
    use = _travelled(statement, parts_of(table), first, final)
    return Use(
        use.parts,
        use.start,
        use.end,
        use.as_of,
        alias_of(table),
        table.args.get("sample") is not None,
        table,
    )


def _travelled(statement: Piece, parts: tuple[str, ...], first: int, last: int) -> Use:
    """Read what follows a name: ``[FOR] TIMESTAMP AS OF '…'`` and its kin."""
    tokens = statement.tokens
    place = last + 1
    if statement.word(place) == "FOR" and statement.word(place + 1) in _TRAVEL:
        place += 1
    kind = statement.word(place)
    if (
        kind not in _TRAVEL
        or statement.word(place + 1) != "AS"
        or statement.word(place + 2) != "OF"
    ):
        return Use(parts, tokens[first].start, tokens[last].end + 1)
    at = place + 3
    if statement.word(at) in ("TIMESTAMP", "DATE"):
        at += 1
    if at >= len(tokens) or tokens[at].token_type.name not in ("STRING", "NUMBER"):
        raise refused(
            f"{kind} AS OF needs a constant at {place_of(statement.text, tokens[place].start)}.",
            "Write TIMESTAMP AS OF '2026-11-01 12:30:00' or VERSION AS OF '20261101123000000'.",
        )
    text = tokens[at].text
    travels_by_time = kind in ("TIMESTAMP", "SYSTEM_TIME")
    as_of = _moment(text) if travels_by_time else text
    return Use(parts, tokens[first].start, tokens[at].end + 1, as_of)


def _moment(text: str) -> str:
    """Read a day as its first moment, as Spark and Hudi do in SQL."""
    try:
        day = dt.date.fromisoformat(text.strip()) if len(text.strip()) == 10 else None
    except ValueError:
        day = None
    return f"{day.isoformat()}T00:00:00" if day is not None else text


def _dotted(statement: Piece, place: int) -> tuple[tuple[str, ...], int]:
    tokens = statement.tokens
    names, last = list[str](), place
    while place < len(tokens) and tokens[place].token_type.name in ("VAR", "IDENTIFIER"):
        names.append(tokens[place].text)
        last = place
        if place + 1 >= len(tokens) or tokens[place + 1].text != ".":
            break
        place += 2
    return tuple(names), last


def _is_local(table: exp.Table) -> bool:
    """Whether a name is one that the query itself defines with WITH, and that is visible there."""
    if len(table.parts) > 1:
        return False
    name = table.name.lower()
    node: Any = table
    inside: exp.CTE | None = None
    while node is not None:
        if isinstance(node, exp.CTE):
            inside = node
        within = node.args.get("with_")
        if isinstance(within, exp.With) and name in _visible(within, inside):
            return True
        node = node.parent
    return False


def _visible(within: exp.With, inside: exp.Expression | None) -> set[str]:
    names: set[str] = set()
    for cte in within.expressions:
        if cte is inside and not within.args.get("recursive"):
            break
        names.add(str(cte.alias).lower())
    return names


def rewritten(parsed: Parsed, ours: Sequence[Use]) -> Iterator[str | int]:
    """Yield the query in pieces: text as it was written, and the number of a table in ``ours``.

    Only the names of tables are replaced. A table without an alias gets its own name as one, so
    that columns can be qualified as before; ``database.table.column`` loses its database.
    """
    edits: list[tuple[int, int, str | int, str]] = []
    for number, use in enumerate(ours):
        alias = "" if use.alias is not None or use.sampled else f" AS {quoted(use.parts[-1])}"
        edits.append((use.start, use.end, number, alias))
    edits += [(start, end, name, "") for start, end, name in _qualified(parsed, ours)]
    at = 0
    for start, end, what, behind in sorted(edits, key=lambda edit: edit[0]):
        yield parsed.text[at:start]
        yield what
        yield behind
        at = end
    yield parsed.text[at:]


def _qualified(parsed: Parsed, ours: Sequence[Use]) -> Iterator[tuple[int, int, str]]:
    """Find columns that are written with database and table."""
    known = {tuple(p.lower() for p in u.parts) for u in ours if len(u.parts) == 2}
    if parsed.tree is None or not known:
        return
    for column in parsed.tree.find_all(exp.Column):
        parts = [p for p in column.parts if isinstance(p, exp.Identifier)]
        if len(parts) > 2 and tuple(str(p.this).lower() for p in parts[:2]) in known:
            start, end = parts[0].meta.get("start"), parts[1].meta.get("end")
            if start is not None and end is not None:
                yield start, end + 1, quoted(str(parts[1].this))
