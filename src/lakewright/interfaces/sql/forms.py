"""Looking over a whole script before its first statement runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.interfaces.sql.duck import check_duck_form
from lakewright.interfaces.sql.procedures.known import find_procedure
from lakewright.interfaces.sql.query import parse_query
from lakewright.interfaces.sql.spark_texts import check_session, for_spark, takes_rest
from lakewright.interfaces.sql.statements import Call, CreateTable, Insert, Merge, Other, Query
from lakewright.interfaces.sql.statements import Statement as Read
from lakewright.interfaces.sql.text import Piece, piece, unknown_statement

if TYPE_CHECKING:
    from lakewright.api.lake import Lake


def check_forms(lake: "Lake", pieces: Sequence[Piece], statements: Sequence[Read]) -> None:
    """Refuse a script in which some statement cannot be read, before any of them runs.

    What a statement names is not looked up: a table may be the work of the one before it. The
    engine that will run a query is asked whether it can read it.
    """
    if lake.spark is not None:
        for written in pieces:
            check_session(written, lake.spark)
    # The first statement is refused by its own run, which reads it before it changes anything.
    for statement in statements[1:]:
        if isinstance(statement, Call):
            find_procedure(statement.procedure)
        if isinstance(statement, Other):
            _check_other(lake, statement.text)
        query = _query_of(statement)
        if query is not None:
            _check_query(lake, query)


def _query_of(statement: Read) -> str | None:
    match statement:
        case Query(text):
            return text
        case Insert(query=text) | CreateTable(query=text) | Merge(source=text):
            return text
        case _:
            return None


def _check_other(lake: "Lake", text: str) -> None:
    statement = piece(text)
    if lake.spark is None:
        raise unknown_statement(statement)
    if not takes_rest(statement):
        _check_query(lake, text)


def _check_query(lake: "Lake", text: str) -> None:
    if lake.spark is None:
        check_duck_form(parse_query(text))
        return
    from lakewright.engine.spark.query import check_form

    check_form(lake.spark, for_spark(text))
