"""From text to statements."""

from collections.abc import Callable, Iterator, Mapping

from lakewright.interfaces.sql.read_ddl import read_alter, read_create, read_drop, read_truncate
from lakewright.interfaces.sql.read_dml import read_delete, read_insert, read_merge, read_update
from lakewright.interfaces.sql.read_show import read_call, read_describe, read_show
from lakewright.interfaces.sql.statements import Other, Query, Statement
from lakewright.interfaces.sql.text import Piece, piece, pieces

_READERS: Mapping[str, Callable[[Piece], Statement | None]] = {
    "CREATE": read_create,
    "DROP": read_drop,
    "TRUNCATE": read_truncate,
    "ALTER": read_alter,
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
    "SHOW": read_show,
    "DESCRIBE": read_describe,
    "DESC": read_describe,
    "CALL": read_call,
}
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "("})
_EXPLAINED = frozenset({"EXTENDED", "CODEGEN", "COST", "FORMATTED"})


def read_statements(text: str) -> Iterator[Statement]:
    """Read a script, statement by statement; each is read before the one before it is run."""
    return (read_statement(one) for one in pieces(text))


def read_statement(statement: Piece | str) -> Statement:
    """Read one statement."""
    if isinstance(statement, str):
        statement = piece(statement)
    verb = statement.word(0)
    if verb == "WITH" and _inserts(statement):
        return read_insert(statement)
    if verb in _QUERIES:
        return Query(statement.text)
    if verb == "EXPLAIN":
        start = 2 if statement.word(1) in _EXPLAINED else 1
        return Query(statement.since(start), prefix=statement.text[: statement.tokens[start].start])
    reader = _READERS.get(verb)
    read = None if reader is None else reader(statement)
    return Other(statement.text) if read is None else read


def _inserts(statement: Piece) -> bool:
    """Whether a WITH stands before an INSERT; a column of that name stands within parentheses."""
    depth = 0
    for place in range(len(statement.tokens)):
        depth += statement.nesting(place)
        if depth == 0 and statement.word(place) == "INSERT":
            return True
    return False
